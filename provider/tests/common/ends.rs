//! Endpoints with queues and address vectors, for tests that move data.

use super::*;

/// An entry of `fi_cq_read`.
pub(crate) type Told = CqTaggedEntry;

/// An endpoint with one queue for both directions.
pub(crate) struct End {
    pub(crate) ep: *mut FidEp,
    pub(crate) cq: *mut FidCq,
    pub(crate) av: *mut FidAv,
}

/// How the tests' endpoints are opened.
#[derive(Clone, Copy)]
pub(crate) struct Wishes {
    pub(crate) caps: u64,
    pub(crate) cq_flags: u64,
    pub(crate) tx_flags: u64,
    pub(crate) rx_flags: u64,
    pub(crate) threading: u32,
    pub(crate) data_progress: u32,
    pub(crate) wait_obj: u32,
    pub(crate) mr_mode: c_int,
}

impl Default for Wishes {
    fn default() -> Self {
        let caps = MSG | TAGGED | DIRECTED_RECV | SOURCE | MULTI_RECV;
        Self {
            caps,
            cq_flags: 0,
            tx_flags: 0,
            rx_flags: 0,
            threading: THREAD_SAFE,
            data_progress: PROGRESS_MANUAL,
            wait_obj: WAIT_NONE,
            mr_mode: 0,
        }
    }
}

impl Wishes {
    /// Peers may work on memory, too.
    pub(crate) fn remote() -> Self {
        let caps = MSG | TAGGED | RMA | ATOMIC | RMA_EVENT | SOURCE;
        Self { caps, ..Self::default() }
    }

    pub(crate) fn opened(self) -> Opened {
        let mut hints = Infos::hints_with(|info| info.caps = self.caps);
        hints.domain().threading = self.threading;
        hints.domain().data_progress = self.data_progress;
        hints.domain().mr_mode = self.mr_mode;
        // SAFETY: hints come with their attributes.
        unsafe {
            (*hints.info().tx_attr).op_flags = self.tx_flags;
            (*hints.info().rx_attr).op_flags = self.rx_flags;
        }
        Opened::new(&hints)
    }
}

pub(crate) fn open_ep(opened: &Opened) -> Result<*mut FidEp, c_int> {
    let mut ep = null_mut();
    match call!(opened.domain, ops.endpoint(opened.infos.0, &mut ep, 0xe0 as *mut c_void)) {
        0 => Ok(ep),
        status => Err(status),
    }
}

pub(crate) fn name(ep: *mut FidEp) -> [u8; 64] {
    let (mut bytes, mut room) = ([0; 64], 64);
    // SAFETY: the endpoint is open, and there is as much room as is said.
    let status =
        unsafe { (*(*ep).cm).getname.unwrap()(fid(ep), bytes.as_mut_ptr().cast(), &mut room) };
    assert_eq!((status, room), (0, 64));
    bytes
}

impl End {
    pub(crate) fn new(opened: &Opened, wishes: &Wishes) -> Self {
        let ep = open_ep(opened).unwrap();
        let change = |attr: &mut CqAttr| {
            (attr.format, attr.wait_obj) = (CQ_FORMAT_TAGGED, wishes.wait_obj);
        };
        let (cq, av) = (open_cq(opened, change).unwrap(), open_av(opened, 0));
        assert_eq!(bind(ep, cq, SEND | RECV | wishes.cq_flags), 0);
        assert_eq!(bind(ep, av, 0), 0);
        assert_eq!(control(ep, ENABLE, null_mut::<u8>()), 0);
        Self { ep, cq, av }
    }

    /// Two that know each other, and themselves: number 0 is the other, 1 its own.
    pub(crate) fn pair(opened: &Opened, wishes: &Wishes) -> [Self; 2] {
        let ends = [0, 1].map(|_| Self::new(opened, wishes));
        let names = ends.each_ref().map(|end| name(end.ep));
        ends[0].insert(&[names[1], names[0]]);
        ends[1].insert(&[names[0], names[1]]);
        ends
    }

    pub(crate) fn insert(&self, names: &[[u8; 64]]) -> Vec<u64> {
        let mut numbers = vec![0; names.len()];
        let (at, count) = (names.as_ptr().cast(), names.len());
        let inserted = call!(self.av, ops.insert(at, count, numbers.as_mut_ptr(), 0, null_mut()));
        assert_eq!(inserted, count as c_int);
        numbers
    }

    /// One completion, if there is one, and whose message it was.
    pub(crate) fn read(&self) -> Result<(Told, u64), isize> {
        let (mut told, mut source): (Told, u64) = (blank(), 0);
        match call!(self.cq, ops.readfrom((&raw mut told).cast(), 1, &mut source)) {
            1 => Ok((told, source)),
            status => Err(status),
        }
    }

    /// A failure.
    pub(crate) fn failure(&self) -> CqErrEntry {
        let mut failure = blank();
        assert_eq!(call!(self.cq, ops.readerr(&mut failure, 0)), 1);
        failure
    }

    pub(crate) fn close(self) {
        assert_eq!((close(self.ep), close(self.cq), close(self.av)), (0, 0, 0));
    }
}

/// The next completion of one, while all make progress.
pub(crate) fn next(of: &End, all: &[End]) -> (Told, u64) {
    for _ in 0..50_000_000u64 {
        match of.read() {
            Ok(told) => return told,
            Err(status) => assert_eq!(status, -(errno::EAGAIN as isize)),
        }
        for other in all.iter().filter(|other| other.ep != of.ep) {
            give_time(other);
        }
    }
    panic!("nothing comes");
}

/// The next failure of one.
pub(crate) fn next_failure(of: &End, all: &[End]) -> CqErrEntry {
    for _ in 0..50_000_000u64 {
        match of.read() {
            Err(status) if status == -(errno::EAVAIL as isize) => return of.failure(),
            Err(status) => assert_eq!(status, -(errno::EAGAIN as isize)),
            Ok((told, _)) => panic!("{told:?}"),
        }
        all.iter().filter(|other| other.ep != of.ep).for_each(give_time);
    }
    panic!("nothing fails");
}

/// Progress without taking a completion.
pub(crate) fn give_time(end: &End) {
    let status = call!(end.cq, ops.read(null_mut(), 0));
    assert!(status <= 0);
}

/// Repeats a call until there is room for it.
pub(crate) fn until_taken(all: &[End], mut call: impl FnMut() -> isize) -> isize {
    loop {
        match call() {
            status if status == -(errno::EAGAIN as isize) => all.iter().for_each(give_time),
            status => return status,
        }
    }
}
