//! Whether an inlet takes messages.
use ayre_proto::deposit::Standing;
use ayre_proto::fault::Fault;

// spec: DEP-19, DEP-20
#[test]
fn a_stop_refuses_until_it_runs_and_then_the_old_epoch() {
    let new = Standing::NEW;
    assert_eq!(new.admit(0), Ok(()));
    let stopped = new.stopped(Fault::Bounds);
    assert_eq!(stopped.cause(), Some(Fault::Bounds));
    assert!((0..=255).all(|epoch| stopped.admit(epoch) == Err(Fault::Stopped)));
    let running = stopped.running();
    assert_eq!((running.epoch(), stopped.epoch(), running.cause()), (1, 1, None));
    assert_eq!(running.admit(0), Err(Fault::Stopped));
    assert_eq!(running.admit(1), Ok(()));
}

// spec: DEP-20
#[test]
fn epochs_begin_anew() {
    let last = (0..255).fold(Standing::NEW, |now, _| now.stopped(Fault::Held).running());
    assert_eq!(last.epoch(), 255);
    assert_eq!(last.stopped(Fault::Held).running(), Standing::NEW);
}

#[test]
fn any_word_is_read() {
    for bit in 0..64 {
        let standing = Standing::from_word(1 << bit);
        assert_eq!(Standing::from_word(standing.word()), standing);
        assert_eq!(standing.is_stopped(), bit == 8);
    }
}
