//! Deposit messages: what they do to registers and memory, and what stops them.
use crate::depot::{Deposit, Deposits, Depot, Depots, Frozen, Inlet, InletOptions};
use crate::fabric::{Fabric, TARGET};
use crate::many_to_one::ManyToOne;
use crate::port::{Options, Port, Region, RegionOptions};
use crate::seed::Dice;
use crate::world::{World, fault_of, insist, next_notification};
use ayre::deposit::{
    AddressMode, INLETS, Instruction, OPERAND, Program, Protection, Register, Stored, X, Y, Z,
};
use ayre::error::Status;
use ayre::{Busy, Fault, PeerId, PostError, Rights};
use std::ops::Range;

const NONE: Register = Register::At(255);

/// A depot of the target with memory, and ways of the initiator into it.
struct Place<P: Deposits> {
    region: P::Region,
    depot: P::Depot,
    names: u64,
}

/// A way into a depot, at its owner and at its holder.
type Ways<P> = (<P as Deposits>::Inlet, <P as Deposits>::RemoteInlet);

impl<P: Deposits> Place<P> {
    fn open<F: Fabric<Port = P>>(world: &mut World<F>, len: usize) -> Self {
        let region = world.target().alloc(len, RegionOptions::new()).expect("memory is there");
        let depot = world.target().create_depot().expect("a depot");
        Self { region, depot, names: 1000 }
    }

    fn inlet<F: Fabric<Port = P>>(
        &mut self,
        world: &mut World<F>,
        range: Range<usize>,
        options: &InletOptions,
    ) -> Ways<P> {
        self.names += 1;
        let (initiator, target) = (world.initiator_id(), world.target_id());
        let part = (&self.region, range);
        let inlet = world.target().share_inlet(initiator, &self.depot, part, options, self.names);
        let remote = world.initiator().accept_inlet(target, self.names);
        (inlet.expect("a valid inlet"), remote.expect("what is handed over arrives"))
    }

    /// With every register for messages to name, and every right.
    fn open_inlet<F: Fabric<Port = P>>(&mut self, world: &mut World<F>) -> Ways<P> {
        self.depot.protect(0..=255, Protection::all()).expect("nobody is inside");
        let options = InletOptions::new().rights(Rights::all()).registers(0..256).entries(0..256);
        let range = 0..self.region.len();
        self.inlet(world, range, &options)
    }

    fn bytes(&self, range: Range<usize>) -> Vec<u8> {
        let mut bytes = vec![0; range.len()];
        self.region.read(range.start, &mut bytes);
        bytes
    }
}

fn fetch<F: Depots>(
    world: &mut World<F>,
    inlet: &<F::Port as Deposits>::RemoteInlet,
    deposit: Deposit<'_>,
    into: &mut [u8],
) -> Result<(u64, bool), PostError> {
    world.drive(|port| {
        let answer = port.deposit_fetch(inlet, &deposit, into)?;
        Ok((answer.value, answer.declined))
    })
}

/// Append at the tail of register 0, by what register 1 says.
fn append() -> Stored {
    let (tail, size) = (Register::At(0), Register::At(1));
    Program::new().write(AddressMode::Indirect).then(X.add(Y)).store([tail, size, NONE])
}

/// Records of one message each lie one behind the other; what does not fit faults, and changes
/// nothing.
// spec: DEP-1, DEP-2, DEP-4, DEP-5, DEP-17, DEP-18
pub fn appends_lie_one_behind_the_other<F: Depots>(fabric: F) {
    let mut world = World::open(fabric);
    let mut place = Place::open(&mut world, 4096);
    place.depot.store(0, &[append()]).expect("there is a place");
    place.depot.set_register(1, 24).expect("nobody is inside");
    let options = InletOptions::new().entries(0..1).longest(24);
    let (_inlet, remote) = place.inlet(&mut world, 64..64 + 240, &options);
    for byte in 1..=10 {
        let record = [byte; 24];
        let deposit = Deposit::enter(0).operand(u64::MAX).data(&record);
        world.post(|port| port.deposit(&remote, &deposit, Options::new()));
    }
    world.settle_ok();
    let expected: Vec<u8> = (1..=10).flat_map(|byte| [byte; 24]).collect();
    assert_eq!(place.bytes(64..64 + 240), expected);
    assert_eq!(place.depot.register(0), 240);
    world.post(|port| port.deposit(&remote, &Deposit::enter(0).data(&[9; 24]), Options::new()));
    world.settle();
    let peer = world.target_id();
    assert_eq!(world.initiator().flush(peer), Err(Fault::Bounds));
    assert_eq!((place.depot.register(0), place.bytes(304..328)), (240, vec![0; 24]));
    let deposit = Deposit::enter(1).data(&[9; 24]);
    assert_eq!(fault_of(fetch(&mut world, &remote, deposit, &mut [])), Fault::Bounds);
    let deposit = Deposit::enter(0).data(&[9; 25]);
    assert_eq!(fault_of(fetch(&mut world, &remote, deposit, &mut [])), Fault::TooLong);
}

/// Answers bring the value of a register, the contents of memory, and whether a guard has declined.
// spec: DEP-11, DEP-12, DEP-13
pub fn answers_bring_values_and_memory<F: Depots>(fabric: F) {
    let mut world = World::open(fabric);
    let mut place = Place::open(&mut world, 4096);
    let (_inlet, remote) = place.open_inlet(&mut world);
    let count = Program::new().then(X.add(OPERAND)).give(X).carry([7, 0, 0]);
    for round in 0..5 {
        let deposit = Deposit::carry(count).operand(3);
        let answer = fetch(&mut world, &remote, deposit, &mut []);
        assert_eq!(answer, Ok((3 * round, false)));
    }
    let bounded = Program::new().decline_if(X.ge(OPERAND)).then(X.add(Y)).give(X).carry([7, 8, 0]);
    let declined = fetch(&mut world, &remote, Deposit::carry(bounded).operand(15), &mut []);
    assert_eq!(declined, Ok((15, true)));
    place.region.write(100, &(0..=255).collect::<Vec<u8>>());
    let read = Program::new().read(AddressMode::Direct).carry([0; 3]);
    for len in [1, 8, 64, 100, 156, 1024] {
        let mut into = vec![0xaa; len];
        let deposit = Deposit::carry(read).operand(100);
        assert_eq!(fetch(&mut world, &remote, deposit, &mut into), Ok((0, false)));
        assert_eq!(into, place.bytes(100..100 + len), "{len} bytes");
    }
    let mut into = [0xaa; 16];
    let deposit = Deposit::carry(read).operand(100).mask(0b1010);
    assert_eq!(fetch(&mut world, &remote, deposit, &mut into), Ok((0, false)));
    assert_eq!(into, [0, 0, 0, 0, 4, 5, 6, 7, 0, 0, 0, 0, 12, 13, 14, 15]);
    let write = Program::new().write(AddressMode::Direct).carry([0; 3]);
    let deposit = Deposit::carry(write).operand(2048).data(&[1; 12]).mask(0b101);
    assert_eq!(fetch(&mut world, &remote, deposit, &mut []), Ok((0, false)));
    assert_eq!(place.bytes(2048..2060), [1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1]);
    let mut long = [0; 1025];
    let deposit = Deposit::carry(read);
    assert_eq!(fault_of(fetch(&mut world, &remote, deposit, &mut long)), Fault::TooLong);
}

/// The same random messages leave the same registers, memory and answers as on a loopback, whose
/// machine is held against an interpreter.
// spec: DEP-7, DEP-8, DEP-9, DEP-14, DEP-18, DEP-22
pub fn every_executor_does_the_same<F: Depots>(fabric: F) {
    for list in 0..crate::seed::cases(8) {
        let (here, there) = (random(fabric, list), random(fabric.loopback(), list));
        for (number, (here, there)) in here.iter().zip(&there).enumerate() {
            assert_eq!(here, there, "message {number} of list {list}");
        }
        assert_eq!(here.len(), there.len());
    }
}

/// Posts the messages of a list; returns the outcome of each, and the registers and memory in the
/// end.
fn random<F: Depots>(fabric: F, list: u64) -> Vec<String> {
    let mut dice = Dice::new(list);
    let mut world = World::open(fabric);
    let mut place = Place::open(&mut world, 256);
    for index in 0..8 {
        let value = if dice.below(2) == 0 { dice.below(200) } else { dice.word() };
        place.depot.set_register(index, value).expect("nobody is inside");
        let protection = dice.pick(&[3, 3, 3, 3, 1, 2, 0]);
        let protection = Protection::from_bits_truncate(protection);
        place.depot.protect(index..=index, protection).expect("nobody is inside");
        let (operand, enters) = (dice.below(200), dice.below(4) > 0);
        let stored = Stored { instruction: any_instruction(&mut dice, u64::MAX), operand, enters };
        place.depot.store(index, &[stored]).expect("there is a place");
    }
    let rights = dice.pick(&[0x33, 0x33, 0x33, 0x23, 0x13, 0x32]);
    let options = InletOptions::new()
        .rights(Rights::from_bits_truncate(rights))
        .registers(1..7)
        .entries(1..8);
    let (_inlet, remote) = place.inlet(&mut world, 0..256, &options);
    let mut found = vec![];
    for _ in 0..40 {
        let data = vec![dice.below(256) as u8; dice.pick(&[0, 0, 8, 16, 33, 64])];
        let registers = [(); 3].map(|()| dice.below(7) as u8);
        let deposit = match dice.below(2) {
            0 => Deposit::carry(any_instruction(&mut dice, !(1 << 61))),
            _ => Deposit::enter(dice.below(8) as u16).registers(registers),
        };
        let mask = dice.pick(&[u64::MAX, u64::MAX, 0b1011]);
        let deposit = deposit.operand(dice.below(300)).mask(mask);
        let wanted = if data.is_empty() { dice.pick(&[0, 8, 24]) } else { 0 };
        let mut into = vec![0; wanted];
        let answer = fetch(&mut world, &remote, deposit.data(&data), &mut into);
        found.push(format!("{answer:?} {into:?}"));
    }
    found.push(format!("{:?}", [0, 1, 2, 3, 4, 5, 6, 7].map(|index| place.depot.register(index))));
    found.push(format!("{:?}", place.bytes(0..256)));
    found
}

/// A valid one that names registers that are there.
fn any_instruction(dice: &mut Dice, allowed: u64) -> Instruction {
    loop {
        let random = u64::from_le_bytes(dice.bytes(8).try_into().expect("eight bytes"));
        if let Ok(found) = Instruction::parse(random & allowed & 0xff07_0707_ffff_ffff) {
            return found;
        }
    }
}

/// The owner is notified exactly where a test holds; room for notifications is not used up by
/// messages that raise none.
// spec: DEP-11, DEP-16, DEP-27
pub fn tests_notify_where_they_hold<F: Depots>(fabric: F) {
    let mut world = World::open(fabric);
    let mut place = Place::open(&mut world, 64);
    let raise = Program::new().notify_if(OPERAND.gt(X)).then(X.or(OPERAND));
    place.depot.store(0, &[raise.store([Register::At(3), NONE, NONE])]).expect("a place");
    let (_inlet, remote) = place.inlet(&mut world, 0..64, &InletOptions::new().entries(0..1));
    let source = world.initiator_id();
    let mut level = 0;
    for round in 0..300_u64 {
        let bit = 1 << (round * 7 % 20 / 2);
        let options = Options::new().tag(round as u32).value(bit);
        let deposit = Deposit::enter(0).operand(bit);
        world.post(|port| port.deposit(&remote, &deposit, options));
        world.settle_ok();
        let note = next_notification(world.target());
        assert_eq!(note.is_some(), bit > level, "round {round}");
        if let Some(note) = note {
            assert_eq!((note.source, note.tag, note.value), (source, round as u32, bit));
            assert_eq!(note.status, Status::Ok);
        }
        level |= bit;
        if round % 50 == 49 {
            level = 0;
            place.depot.set_register(3, 0).expect("nobody is inside");
        }
    }
    // Without NOTIFY, carried instructions have no say in it.
    let options = InletOptions::new().rights(Rights::PROGRAM).registers(0..8);
    let (_inlet, remote) = place.inlet(&mut world, 0..64, &options);
    let notify = Deposit::carry(Program::new().notify().carry([0; 3]));
    assert_eq!(fault_of(fetch(&mut world, &remote, notify, &mut [])), Fault::Rights);
    assert_eq!(world.raised().target, []);
}

/// An inlet that holds stops at a message that faults, refuses later ones, and goes on as its owner
/// decides. Another inlet of the same peer is not affected.
// spec: DEP-19, DEP-20, DEP-21, DEP-22, DEP-23
pub fn a_stopped_inlet_waits_for_its_owner<F: Depots>(fabric: F) {
    let mut world = World::open(fabric);
    let mut place = Place::open(&mut world, 256);
    place.depot.store(0, &[append()]).expect("there is a place");
    place.depot.set_register(1, 16).expect("nobody is inside");
    place.depot.set_register(0, 250).expect("nobody is inside");
    let options = InletOptions::new().entries(0..1);
    let (inlet, mut remote) = place.inlet(&mut world, 0..256, &options.clone().holds());
    let (_other, beside) = place.inlet(&mut world, 0..256, &options.rights(Rights::all()));
    assert_eq!(inlet.held(), Ok(None));
    let send = |byte: &u8| [*byte; 16];
    let held = Deposit::enter(0);
    let first = fetch(&mut world, &remote, held.data(&send(&1)), &mut []);
    assert_eq!(fault_of(first), Fault::Held);
    let note = next_notification(world.target()).expect("a stop notifies");
    assert_eq!(note.status, Status::Fault(Fault::Held));
    let found = inlet.held().expect("nobody is inside").expect("a message");
    assert_eq!((found.cause, found.data), (Fault::Bounds, vec![1; 16]));
    let second = fetch(&mut world, &remote, held.data(&send(&2)), &mut []);
    assert_eq!(fault_of(second), Fault::Stopped);
    assert_eq!(world.drive(|port| port.rejoin_inlet(&mut remote)), Err(Fault::Stopped.into()));
    let nothing = Deposit::carry(Program::new().carry([0; 3]));
    assert_eq!(fetch(&mut world, &beside, nothing, &mut []), Ok((0, false)), "others go on");

    place.depot.set_register(0, 32).expect("nobody is inside");
    assert_eq!(inlet.resume(), Ok(false));
    assert_eq!((place.bytes(32..48), place.depot.register(0)), (vec![1; 16], 48));
    // What was posted for the time before the stop does not overtake.
    let late = fetch(&mut world, &remote, held.data(&send(&3)), &mut []);
    assert_eq!(fault_of(late), Fault::Stopped);
    assert_eq!(world.drive(|port| port.rejoin_inlet(&mut remote)), Ok(()));
    assert_eq!(fetch(&mut world, &remote, held.data(&send(&4)), &mut []), Ok((0, false)));
    assert_eq!((place.bytes(48..64), place.depot.register(0)), (vec![4; 16], 64));
    assert_eq!(inlet.resume(), Err(Fault::Stopped.into()), "it runs");
    assert_eq!(inlet.skip(), Err(Fault::Stopped.into()), "it runs");
}

/// A held message is skipped, or faults again, or goes with the registers that messages may write.
// spec: DEP-19, DEP-21
pub fn owners_skip_and_reset<F: Depots>(fabric: F) {
    let mut world = World::open(fabric);
    let mut place = Place::open(&mut world, 64);
    place.depot.protect(0..=1, Protection::all()).expect("nobody is inside");
    place.depot.set_register(0, 5).expect("nobody is inside");
    place.depot.set_register(2, 7).expect("nobody is inside");
    let options = InletOptions::new().rights(Rights::PROGRAM).registers(0..3).holds();
    let (inlet, mut remote) = place.inlet(&mut world, 0..64, &options);
    let trap = Deposit::carry(Program::new().exception().carry([0; 3])).operand(77);
    assert_eq!(fault_of(fetch(&mut world, &remote, trap, &mut [])), Fault::Held);
    let found = inlet.held().expect("nobody is inside").expect("a message");
    assert_eq!((found.cause, found.message.operand), (Fault::Exception, 77));
    assert_eq!(inlet.resume(), Err(Fault::Held.into()), "it is no other message than before");
    assert_eq!(inlet.skip(), Ok(()));
    assert_eq!(inlet.held(), Ok(None));
    assert_eq!(world.drive(|port| port.rejoin_inlet(&mut remote)), Ok(()));
    let set = Deposit::carry(Program::new().then(X.set(OPERAND)).carry([1, 0, 0])).operand(9);
    assert_eq!(fetch(&mut world, &remote, set, &mut []), Ok((0, false)));
    assert_eq!(fault_of(fetch(&mut world, &remote, trap, &mut [])), Fault::Held);
    assert_eq!(inlet.reset(), Ok(()));
    assert_eq!([0, 1, 2].map(|index| place.depot.register(index)), [0, 0, 7]);
    assert_eq!(world.drive(|port| port.rejoin_inlet(&mut remote)), Ok(()));
    assert_eq!(fetch(&mut world, &remote, set, &mut []), Ok((0, false)));
}

/// While a depot is frozen nothing changes; then all goes on.
// spec: DEP-24
pub fn a_frozen_depot_does_not_change<F: Depots>(fabric: F) {
    let mut world = World::open(fabric);
    let mut place = Place::open(&mut world, 64);
    let (_inlet, remote) = place.open_inlet(&mut world);
    let depot = place.depot.clone();
    let count = Deposit::carry(Program::new().then(X.add(OPERAND)).carry([0; 3])).operand(1);
    let post = |port: &mut F::Port| port.deposit(&remote, &count, Options::new());
    world.post(post);
    world.settle_ok();
    let mut frozen = depot.freeze().expect("nobody is inside");
    assert!(depot.freeze().is_err(), "once");
    let posted = world.drive(post);
    for _ in 0..10 {
        world.serve();
        assert_eq!(frozen.register(0), 1);
    }
    assert!(matches!(posted, Ok(_) | Err(PostError::Busy(Busy::DepotLocked))), "{posted:?}");
    frozen.set_register(0, 10);
    drop(frozen);
    if posted.is_err() {
        world.post(post);
    }
    world.settle_ok();
    assert_eq!(depot.register(0), 11);
}

/// After an inlet is revoked nothing comes in over it; others of the depot go on.
// spec: DEP-2, REV-1, REV-2
pub fn a_revoked_inlet_is_stale<F: Depots>(fabric: F) {
    let mut world = World::open(fabric);
    let mut place = Place::open(&mut world, 64);
    let (inlet, remote) = place.open_inlet(&mut world);
    let (_other, beside) = place.open_inlet(&mut world);
    let count =
        Deposit::carry(Program::new().then(X.add(OPERAND)).give(X).carry([0; 3])).operand(1);
    assert_eq!(fetch(&mut world, &remote, count, &mut []), Ok((0, false)));
    world.target().revoke_inlet(inlet).expect("it is alive");
    assert_eq!(fault_of(fetch(&mut world, &remote, count, &mut [])), Fault::StaleKey);
    assert_eq!(fetch(&mut world, &beside, count, &mut []), Ok((1, false)));
    world.target().deregister(&place.region).expect("it is registered");
    assert_eq!(fault_of(fetch(&mut world, &beside, count, &mut [])), Fault::StaleKey);
    assert_eq!(place.depot.register(0), 2);
}

/// Windows and parts lie within a depot and a region. An inlet belongs to its connection, a depot
/// to its port. A depot has room for a limited number of inlets.
// spec: DEP-2, CAP-6, LIM-1
pub fn inlets_are_bounded<F: Depots>(fabric: F) {
    let mut world = World::open(fabric);
    let place = Place::open(&mut world, 64);
    let (initiator, target) = (world.initiator_id(), world.target_id());
    let port = world.target();
    let mut share = |range: Range<usize>, options: &InletOptions| {
        port.share_inlet(initiator, &place.depot, (&place.region, range), options, 5)
    };
    let new = InletOptions::new();
    assert!(share(0..65, &new).is_err());
    assert!(share(4..8, &new).is_err(), "a part begins at a multiple of eight");
    assert!(share(0..64, &new.clone().registers(1..258)).is_err());
    assert!(share(0..64, &new.clone().entries(250..257)).is_err());
    assert!(share(0..64, &new.clone().longest(1025)).is_err());
    let mut inlets = vec![];
    while let Ok(inlet) = share(0..64, &new) {
        inlets.push(inlet);
    }
    assert_eq!(inlets.len(), INLETS);
    let remote = world.initiator().accept_inlet(target, 5).expect("the first one");
    let mut stranger = fabric.open(9);
    let depot = stranger.create_depot().expect("a depot");
    let deposit = Deposit::enter(0);
    let foreign = stranger.deposit(&remote, &deposit, Options::new());
    assert_eq!(fault_of(foreign), Fault::ForeignHandle);
    let part = (&place.region, 0..64);
    assert!(world.target().share_inlet(initiator, &depot, part, &new, 6).is_err());
}

/// An inlet that was dropped ends with its region, and leaves its place in the depot to another.
// spec: DEP-2, REG-4
pub fn ended_inlets_leave_room<F: Depots>(fabric: F) {
    let mut world = World::open(fabric);
    let mut place = Place::open(&mut world, 64);
    place.depot.store(0, &[append()]).expect("there is a place");
    let options = InletOptions::new().entries(0..1);
    let (_, ended) = place.inlet(&mut world, 0..64, &options);
    let initiator = world.initiator_id();
    assert_eq!(fill(world.target(), &place.depot, &place.region, initiator), INLETS - 1);
    world.target().deregister(&place.region).expect("it is registered");
    let deposit = Deposit::enter(0).data(&[1; 8]);
    assert_eq!(fault_of(fetch(&mut world, &ended, deposit, &mut [])), Fault::StaleKey);
    place.region = world.target().alloc(64, RegionOptions::new()).expect("memory is there");
    let (_, remote) = place.inlet(&mut world, 0..64, &options);
    assert_eq!(fetch(&mut world, &remote, deposit, &mut []), Ok((0, false)));
    assert_eq!(fault_of(fetch(&mut world, &ended, deposit, &mut [])), Fault::StaleKey);
    assert_eq!(place.bytes(0..8), [1; 8]);
    assert_eq!(fill(world.target(), &place.depot, &place.region, initiator), INLETS - 1);
}

/// So do inlets of a peer that is no longer connected.
// spec: DEP-2, LIFE-19
pub fn a_peer_that_goes_leaves_room<F: Depots>(fabric: F) {
    let mut ports = ManyToOne::open(fabric, SENDERS);
    let region = ports.target.alloc(64, RegionOptions::new()).expect("memory is there");
    let depot = ports.target.create_depot().expect("a depot");
    let ids = ports.ids();
    assert_eq!(fill(&mut ports.target, &depot, &region, ids[0]), INLETS);
    assert_eq!(fill(&mut ports.target, &depot, &region, ids[1]), 0);
    ports.target.disconnect(ids[0]).expect("it is connected");
    assert_eq!(fill(&mut ports.target, &depot, &region, ids[1]), INLETS);
}

/// Shares inlets and drops them until there is no more room; returns their number.
fn fill<P: Deposits>(port: &mut P, depot: &P::Depot, region: &P::Region, holder: PeerId) -> usize {
    let options = InletOptions::new().entries(0..1);
    let share = || port.share_inlet(holder, depot, (region, 0..64), &options, 5).ok();
    std::iter::from_fn(share).map(drop).count()
}

const SENDERS: u16 = 2;
const RECORDS: u64 = 1500;

/// A ring that several senders append to and its owner empties: nothing is lost, torn or overrun.
// spec: DEP-14, DEP-25, PROG-2
pub fn many_senders_share_a_queue<F: Depots>(fabric: F) {
    let mut ports = ManyToOne::open(fabric, SENDERS);
    let region = ports.target.alloc(1024, RegionOptions::new()).expect("memory is there");
    let depot = ports.target.create_depot().expect("a depot");
    let [tail, size, limit] = [0, 1, 2].map(Register::At);
    let program = Program::new().decline_if(X.ge(Z)).write(AddressMode::Wrapped).then(X.add(Y));
    depot.store(0, &[program.store([tail, size, limit])]).expect("there is a place");
    depot.set_register(1, 64).expect("nobody is inside");
    depot.set_register(2, 1024).expect("nobody is inside");
    let options = InletOptions::new().entries(0..1).longest(64);
    let mut inlets = vec![];
    let ids = ports.ids();
    let mut remotes = vec![];
    for (port, id) in ports.initiators.iter_mut().zip(ids) {
        let part = (&region, 0..1024);
        inlets.push(ports.target.share_inlet(id, &depot, part, &options, 3).expect("an inlet"));
        remotes.push(port.accept_inlet(TARGET, 3).expect("what is handed over arrives"));
    }
    let mut taken = 0;
    let mut next = vec![0; usize::from(SENDERS)];
    let mut take = || {
        while depot.register(0) > taken {
            let mut record = [0; 64];
            region.read((taken % 1024) as usize, &mut record);
            let (words, _) = record.as_chunks::<8>();
            let words: Vec<_> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
            let (sender, number) = (words[0] as usize, words[1]);
            assert!(words[1..].iter().all(|word| *word == number), "torn: {words:?}");
            assert_eq!(number, next[sender], "in its sender's order");
            next[sender] += 1;
            taken += 64;
            let _ = depot.set_register(2, taken + 1024);
        }
    };
    ports.each(
        (0..).zip(remotes).collect(),
        |port, (sender, remote)| {
            for number in 0..RECORDS {
                let mut words = [number; 8];
                words[0] = sender;
                let bytes = words.map(u64::to_le_bytes).concat();
                while insist(port, |port| {
                    port.deposit_fetch(&remote, &Deposit::enter(0).data(&bytes), &mut [])
                })
                .declined
                {
                    port.progress();
                    std::thread::yield_now();
                }
            }
        },
        |_| take(),
    );
    take();
    assert_eq!(next, [RECORDS; SENDERS as usize]);
}
