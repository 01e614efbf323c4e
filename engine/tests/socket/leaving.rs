//! Readers that leave the ring, and what it has.
use crate::world::{LONG, connect, pair, readable_within};
use rustix::fd::AsFd;
use rustix::net::RecvFlags;
use std::io::Read;
use std::net::Shutdown;

// spec: SOCK-21
#[test]
fn bytes_in_the_ring_of_a_reader_that_has_left_precede_the_end() {
    for closes in [false, true] {
        let [near, far] = connect(&pair());
        far.connection.want_bytes(None);
        assert_eq!(near.write(b"request"), Ok(7));
        assert_eq!(near.written_by_ring(), 7);
        far.connection.leave_reading();
        match closes {
            true => {
                near.close();
            }
            false => near.end_writing(),
        }
        near.socket.shutdown(Shutdown::Write).unwrap();
        let mut into = [0; 16];
        assert!(readable_within(&[far.socket.as_fd()], LONG));
        // As a program does that does not have this library.
        let got = (&far.socket).read(&mut into).unwrap();
        assert_eq!(&into[..got], b"request", "closes: {closes}");
    }
}

// spec: SOCK-21
#[test]
fn a_reader_that_goes_on_reads_what_it_has_left_unless_the_writer_has_claimed_it() {
    for claims in [false, true] {
        let [near, far] = connect(&pair());
        far.connection.want_bytes(None);
        assert_eq!(near.write(b"request"), Ok(7));
        assert_eq!(near.written_by_ring(), 7);
        far.connection.leave_reading();
        if claims {
            near.settle().unwrap();
        }
        assert_eq!(far.connection.is_readable(), !claims);
        let mut into = [0; 16];
        assert!(!claims || readable_within(&[far.socket.as_fd()], LONG));
        assert_eq!(far.read(&mut into[..3], RecvFlags::empty()), Ok(3));
        // It does not want the ring again.
        far.connection.want_bytes(None);
        assert_eq!(near.write(b"more"), Ok(4));
        assert_eq!(near.written_by_ring(), if claims { 0 } else { 7 });
        let mut got = 3;
        while got < 11 {
            assert!(far.connection.is_readable() || readable_within(&[far.socket.as_fd()], LONG));
            got += far.read(&mut into[got..], RecvFlags::empty()).unwrap();
        }
        assert_eq!(&into[..got], b"requestmore", "claims: {claims}");
        assert!(!far.close() && !near.close());
    }
}

// spec: SOCK-21
#[test]
fn a_reader_that_comes_back_leaves_its_bytes_again() {
    let [near, far] = connect(&pair());
    far.connection.want_bytes(None);
    assert_eq!(near.write(b"request"), Ok(7));
    far.connection.leave_reading();
    let mut into = [0; 16];
    assert_eq!(far.read(&mut into[..3], RecvFlags::empty()), Ok(3));
    far.connection.leave_reading();
    assert!(!far.close(), "the other program has its bytes, and gets no reset");
    near.settle().unwrap();
    let got = (&far.socket).read(&mut into).unwrap();
    assert_eq!(&into[..got], b"uest");
}
