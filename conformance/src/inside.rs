//! Processes that are killed while they are inside a depot.
use crate::Executor;
use crate::engine::socket_path;
use crate::fabric::{INITIATOR, TARGET};
use crate::processes::{address, start};
use crate::world::{insist, join};
use ayre::deposit::{
    Deposit, Depot, Inlet, InletOptions, OPERAND, Program, Register, RemoteInlet, Stored, X, Y,
};
use ayre::{PeerId, Port, PostOptions, Region, RegionOptions};
use std::thread::yield_now;

/// Processes that are killed.
const KILLS: u64 = 40;
/// A sender that lives through all of that.
const SURVIVOR: PeerId = PeerId(4);
/// Name of every inlet.
const INLET: u64 = 1;

/// Every message adds its operand to registers 0 to 3, and is inside for nearly all of its time.
fn add_to_all() -> [Stored; 2] {
    let add = |x, y| {
        let program = Program::new().then(X.add(OPERAND)).then(Y.add(OPERAND));
        program.store([Register::At(x), Register::At(y), Register::At(255)])
    };
    Stored::sequence([add(0, 1), add(2, 3)]).expect("nothing is transferred")
}

/// Senders are killed at any instruction of a compound: others, and the owner, find the depot open
/// and all of a message's writes or none.
// spec: DEP-25, DEP-26
pub fn a_sender_killed_in_a_compound_leaves_all_writes_or_none(test_of_child: &str) {
    let executor = Executor::Direct;
    let mut port = executor.open(TARGET.0);
    let path = socket_path();
    port.listen(&path).expect("a socket path");
    let depot = port.create_depot().expect("a depot");
    let region = port.alloc(4096, RegionOptions::new()).expect("memory is there");
    depot.store(0, &add_to_all()).expect("there is a place");
    let mut survivor = executor.open(SURVIVOR.0);
    std::thread::scope(|scope| {
        let connecting = scope.spawn(|| survivor.connect(&path));
        assert_eq!(port.accept().expect("the survivor connects"), SURVIVOR);
        assert_eq!(join(connecting).expect("the target accepts"), TARGET);
    });
    let inlet = share(&mut port, SURVIVOR, &depot, &region);
    let remote = survivor.accept_inlet(TARGET, INLET).expect("what is handed over arrives");
    let mut before = 0;
    for kill in 0..KILLS {
        let mut child = start(test_of_child, &path, executor);
        assert_eq!(port.accept().expect("the child connects"), INITIATOR);
        let theirs = share(&mut port, INITIATOR, &depot, &region);
        // Each time somewhere else, and while another one is at it too.
        while depot.register(0) < before + 500 + 37 * kill {
            add(&mut survivor, &remote);
            yield_now();
        }
        child.kill().expect("the child is ours");
        child.wait().expect("the child is ours");
        add(&mut survivor, &remote);
        let frozen = depot.freeze().expect("who has died is not inside");
        let found = [0, 1, 2, 3].map(|index| frozen.register(index));
        assert_eq!(found, [found[0]; 4], "after {kill} kills");
        drop(frozen);
        before = found[0];
        while port.is_alive(INITIATOR) {
            port.progress();
        }
        port.revoke_inlet(theirs).expect("it is alive");
        port.disconnect(INITIATOR).expect("it is known");
    }
    std::fs::remove_file(&path).expect("the socket is there");
    port.revoke_inlet(inlet).expect("it is alive");
}

fn share(port: &mut Port, peer: PeerId, depot: &Depot, region: &Region) -> Inlet {
    let options = InletOptions::new().entries(0..1);
    port.share_inlet(peer, depot, (region, 0..4096), &options, INLET).expect("a valid inlet")
}

fn add(port: &mut Port, inlet: &RemoteInlet) {
    let deposit = Deposit::enter(0).operand(1);
    insist(port, |port| port.deposit(inlet, &deposit, PostOptions::new()));
}

/// The child's part: posts until it is killed. Returns at once where nobody has started it so.
///
/// # Panics
/// Where the parent does not answer.
pub fn child() {
    let Some(address) = address() else { return };
    let mut port = Executor::Direct.open(INITIATOR.0);
    assert_eq!(port.connect(address).expect("the parent accepts"), TARGET);
    let remote = port.accept_inlet(TARGET, INLET).expect("an inlet");
    loop {
        add(&mut port, &remote);
    }
}
