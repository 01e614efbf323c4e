//! Replies: answers that are deposited at the end of who has asked.
use crate::depot::{Deposit, Deposits, Depot, Depots, Frozen, Inlet, InletOptions, Reply};
use crate::port::{Options, Port, Region, RegionOptions};
use crate::world::{World, fault_of, next_notification};
use ayre::deposit::{AddressMode, OPERAND, Program, Protection, Register, Stored, X, Y, Z};
use ayre::error::Status;
use ayre::memory::{Classes, Operation, Ticket};
use ayre::{Busy, Fault, PostError, Rights};

const NONE: Register = Register::At(255);
const LEN: usize = 1024;

/// A depot with memory that can be asked, and one at who asks.
struct Pair<F: Depots> {
    world: World<F>,
    asked: <F::Port as Port>::Region,
    _inlet: <F::Port as Deposits>::Inlet,
    remote: <F::Port as Deposits>::RemoteInlet,
    depot: <F::Port as Deposits>::Depot,
    region: <F::Port as Port>::Region,
    own: <F::Port as Deposits>::Inlet,
}

impl<F: Depots> Pair<F> {
    /// Register 1 of the asking end is 48; register 2 of what can be asked is 10.
    fn open(fabric: F, stored: &[Stored], options: &InletOptions) -> Self {
        let mut world = World::open(fabric);
        let (initiator, target) = (world.initiator_id(), world.target_id());
        let there = world.target();
        let asked = there.alloc(LEN, RegionOptions::new()).expect("memory is there");
        asked.write(0, &(0..LEN).map(|byte| (byte / 7) as u8).collect::<Vec<_>>());
        let depot = there.create_depot().expect("a depot");
        depot.protect(0..=255, Protection::all()).expect("nobody is inside");
        depot.set_register(2, 10).expect("nobody is inside");
        let all = InletOptions::new().rights(Rights::all()).registers(0..256);
        let inlet = there.share_inlet(initiator, &depot, (&asked, 0..LEN), &all, 1);
        let here = world.initiator();
        let remote = here.accept_inlet(target, 1).expect("what is handed over arrives");
        let region = here.alloc(LEN, RegionOptions::new()).expect("memory is there");
        let depot = here.create_depot().expect("a depot");
        depot.store(0, stored).expect("there is a place");
        depot.set_register(1, 48).expect("nobody is inside");
        let own = here.share_inlet(target, &depot, (&region, 0..LEN), options, 2);
        let (_inlet, own) = (inlet.expect("a valid inlet"), own.expect("a valid inlet"));
        Self { world, asked, _inlet, remote, depot, region, own }
    }

    fn ask(&mut self, deposit: Deposit<'_>, len: usize) -> Result<Ticket, PostError> {
        let reply = Reply::over(&self.own, Deposit::enter(0)).wants(len);
        let options = Options::new().notify(Classes::REQUESTER);
        let remote = &self.remote;
        self.world.drive(|port| port.deposit_reply(remote, &deposit, &reply, options))
    }

    /// How the last operation has ended.
    fn end(&mut self) -> Result<(), Fault> {
        self.world.settle();
        let peer = self.world.target_id();
        self.world.initiator().flush(peer)
    }

    fn bytes(&self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.region.read(0, &mut bytes);
        bytes
    }
}

fn append() -> Stored {
    let (tail, size) = (Register::At(0), Register::At(1));
    Program::new().write(AddressMode::Indirect).then(X.add(Y)).store([tail, size, NONE])
}

fn read(at: u64) -> Deposit<'static> {
    Deposit::carry(Program::new().read(AddressMode::Direct).carry([0; 3])).operand(at)
}

/// The data of answers is stored consecutively, in the order of posting; the last answer notifies
/// before its operation ends.
// spec: DEP-28
pub fn answers_are_appended<F: Depots>(fabric: F) {
    let [tail, size, all] = [0, 1, 2].map(Register::At);
    let program = Program::new().write(AddressMode::Indirect).then(X.add(Y)).notify_if(X.eq(Z));
    let options = InletOptions::new().entries(0..1).longest(48);
    let mut pair = Pair::open(fabric, &[program.store([tail, size, all])], &options);
    pair.depot.set_register(2, 20 * 48).expect("nobody is inside");
    let source = pair.world.target_id();
    let (remote, own) = (&pair.remote, &pair.own);
    let mut expected = vec![];
    for round in 0..20_u64 {
        let at = round * 37 % 900;
        let reply = Reply::over(own, Deposit::enter(0)).wants(48).noted_as(7, 700);
        let options = Options::new().notify(Classes::REQUESTER).tag(round as u32);
        pair.world.post(|port| port.deposit_reply(remote, &read(at), &reply, options));
        let mut bytes = [0; 48];
        pair.asked.read(at as usize, &mut bytes);
        expected.extend(bytes);
    }
    pair.world.settle_ok();
    assert_eq!(pair.bytes(20 * 48), expected);
    assert_eq!(pair.depot.register(0), 20 * 48);
    let mut notes = std::iter::from_fn(|| next_notification(pair.world.initiator()));
    for round in 0..20 {
        let mut note = notes.next().expect("each has ended");
        if round == 19 {
            assert_eq!((note.class, note.tag, note.value), (Classes::COMPLETER, 7, 700));
            assert_eq!((note.source, note.status), (source, Status::Ok));
            assert_eq!(note.operation, Operation::Reply);
            note = notes.next().expect("it has ended");
        }
        let requester = (Classes::REQUESTER, Status::Ok, round);
        assert_eq!((note.class, note.status, note.tag), requester);
    }
    assert_eq!(notes.next(), None);
    // A reply's notification is nobody's credit: the peer's own still come through.
    let here = pair.world.initiator_id();
    let posted =
        pair.world.until("room", |world| world.target().notify(here, Options::new().tag(3)).ok());
    assert!(posted.0 > 0);
    pair.world.until("the peer's notification", |world| {
        next_notification(world.initiator()).filter(|note| note.tag == 3)
    });
}

/// A value that comes back is the reply's operand, whether data is brought, read, or neither.
// spec: DEP-28, DEP-11
pub fn answers_give_operands<F: Depots>(fabric: F) {
    let stored = Program::new().then(X.add(OPERAND));
    let options = InletOptions::new().entries(0..1);
    let mut pair = Pair::open(fabric, &[stored.store([Register::At(0), NONE, NONE])], &options);
    let sum = |pair: &mut Pair<F>, deposit| {
        let reply = Reply::over(&pair.own, Deposit::enter(0).operand(5));
        let options = Options::new();
        let remote = &pair.remote;
        let given = reply.operand_given();
        pair.world.post(|port| port.deposit_reply(remote, &deposit, &given, options));
        pair.world.settle_ok();
        pair.depot.register(0)
    };
    let count = Program::new().then(X.add(OPERAND)).give(X).carry([2, 0, 0]);
    assert_eq!(sum(&mut pair, Deposit::carry(count).operand(3)), 10);
    assert_eq!(sum(&mut pair, Deposit::carry(count).operand(3)), 10 + 13);
    let brings = Program::new().write(AddressMode::Direct).give(X).carry([2, 0, 0]);
    let deposit = Deposit::carry(brings).operand(512).data(&[9; 16]);
    assert_eq!(sum(&mut pair, deposit), 10 + 13 + 16);
    let mut bytes = [0; 16];
    pair.asked.read(512, &mut bytes);
    assert_eq!(bytes, [9; 16]);
    let own = Reply::over(&pair.own, Deposit::enter(0).operand(5));
    let (remote, count) = (&pair.remote, Deposit::carry(count).operand(3));
    pair.world.post(|port| port.deposit_reply(remote, &count, &own, Options::new()));
    pair.world.settle_ok();
    assert_eq!(pair.depot.register(0), 10 + 13 + 16 + 5, "it has an operand of its own");
}

/// A message that was declined or has faulted has no answer, and causes no reply.
// spec: DEP-28
pub fn declined_and_faulted_messages_are_not_replied_to<F: Depots>(fabric: F) {
    let options = InletOptions::new().entries(0..1);
    let mut pair = Pair::open(fabric, &[append()], &options);
    let beyond = pair.ask(read(LEN as u64), 48);
    let declines = Program::new().decline_if(X.eq(X)).read(AddressMode::Direct).carry([0; 3]);
    match beyond {
        Err(error) => assert_eq!(error, Fault::Bounds.into()),
        Ok(_) => assert_eq!(pair.end(), Err(Fault::Bounds)),
    }
    let _ = (pair.end(), next_notification(pair.world.initiator()));
    let _ = pair.ask(Deposit::carry(declines), 48);
    assert_eq!(pair.end(), Ok(()));
    let note = next_notification(pair.world.initiator()).expect("it was asked for");
    assert_eq!(note.status, Status::Declined);
    assert_eq!((pair.depot.register(0), pair.bytes(48)), (0, vec![0; 48]));
}

/// A reply is admitted as any message is, and its fault is its sender's.
// spec: DEP-28, DEP-5, DEP-13
pub fn replies_fault<F: Depots>(fabric: F) {
    let options = InletOptions::new().entries(0..1).longest(48);
    let mut pair = Pair::open(fabric, &[append()], &options);
    for (len, tail, fault) in [(49, 0, Fault::TooLong), (48, LEN as u64 - 40, Fault::Bounds)] {
        pair.depot.set_register(0, tail).expect("nobody is inside");
        if pair.ask(read(0), len).is_ok() {
            assert_eq!(pair.end(), Err(fault), "{len} bytes at {tail}");
        }
        let note = next_notification(pair.world.initiator()).expect("a fault is always told");
        assert_eq!((note.class, note.status), (Classes::REQUESTER, Status::Fault(fault)));
        assert_eq!(pair.depot.register(0), tail);
        let _ = pair.end();
    }
    assert_eq!(pair.bytes(LEN), vec![0; LEN]);
    let brings = Reply::over(&pair.own, Deposit::enter(0).data(&[1]));
    let remote = &pair.remote;
    let port = pair.world.initiator();
    let refused = port.deposit_reply(remote, &read(0), &brings, Options::new());
    assert_eq!(fault_of(refused), Fault::Malformed);
    let long = Reply::over(&pair.own, Deposit::enter(0)).wants(1025);
    let refused = port.deposit_reply(remote, &read(0), &long, Options::new());
    assert_eq!(fault_of(refused), Fault::TooLong);
    let mut stranger = fabric.open(9);
    let reply = Reply::over(&pair.own, Deposit::enter(0));
    let refused = stranger.deposit_reply(remote, &read(0), &reply, Options::new());
    assert_eq!(fault_of(refused), Fault::ForeignHandle);
}

/// An inlet that holds stops at a reply, too, and keeps what has come.
// spec: DEP-28, DEP-19, DEP-20, DEP-21
pub fn a_held_reply_waits_for_its_owner<F: Depots>(fabric: F) {
    let options = InletOptions::new().entries(0..1).holds();
    let mut pair = Pair::open(fabric, &[append()], &options);
    pair.depot.set_register(0, LEN as u64).expect("nobody is inside");
    if pair.ask(read(70), 48).is_ok() {
        assert_eq!(pair.end(), Err(Fault::Held));
    }
    let note = next_notification(pair.world.initiator()).expect("a stop notifies");
    assert_eq!((note.class, note.status), (Classes::COMPLETER, Status::Fault(Fault::Held)));
    let mut bytes = vec![0; 48];
    pair.asked.read(70, &mut bytes);
    let held = pair.own.held().expect("nobody is inside").expect("a message");
    assert_eq!((held.cause, &held.data), (Fault::Bounds, &bytes));
    let _ = pair.end();
    let refused = pair.ask(read(0), 48);
    assert_eq!(fault_of(refused), Fault::Stopped);
    pair.depot.set_register(0, 0).expect("nobody is inside");
    assert_eq!(pair.own.resume(), Ok(false));
    assert_eq!(pair.bytes(48), bytes);
    pair.ask(read(0), 48).expect("it runs");
    assert_eq!((pair.end(), pair.depot.register(0)), (Ok(()), 96));
}

/// While the depot of who asks is frozen, answers wait; nothing can be asked for it.
// spec: DEP-28, DEP-24
pub fn replies_wait_for_a_thaw<F: Depots>(fabric: F) {
    let options = InletOptions::new().entries(0..1);
    let mut pair = Pair::open(fabric, &[append()], &options);
    pair.ask(read(0), 48).expect("there is room");
    let depot = pair.depot.clone();
    let frozen = depot.freeze().expect("nobody is inside");
    let before = frozen.register(0);
    for _ in 0..100 {
        pair.world.serve();
        assert_eq!(frozen.register(0), before);
    }
    assert_eq!(pair.ask(read(0), 48), Err(PostError::Busy(Busy::DepotLocked)));
    drop(frozen);
    assert_eq!(pair.end(), Ok(()));
    assert_eq!(depot.register(0), 48);
}

/// After an inlet is revoked no reply comes over it, even if another one has its place in the
/// depot.
// spec: DEP-28, REV-1
pub fn no_reply_after_a_revocation<F: Depots>(fabric: F) {
    let options = InletOptions::new().entries(0..1);
    let Pair { mut world, remote, depot, region, own, _inlet, .. } =
        Pair::open(fabric, &[append()], &options);
    let reply = Reply::over(&own, Deposit::enter(0)).wants(48);
    world
        .drive(|port| port.deposit_reply(&remote, &read(0), &reply, Options::new()))
        .expect("room");
    let peer = world.target_id();
    let here = world.initiator();
    here.revoke_inlet(own).expect("it is alive");
    let tail = depot.register(0);
    let _next = here.share_inlet(peer, &depot, (&region, 0..LEN), &options, 3).expect("a place");
    world.settle();
    let ended = world.initiator().flush(peer);
    assert_eq!(depot.register(0), tail);
    match tail {
        0 => assert_eq!(ended, Err(Fault::StaleKey)),
        _ => assert_eq!((ended, tail), (Ok(()), 48)),
    }
}
