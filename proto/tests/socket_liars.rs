//! Any words of a peer about a stream of sockets.
#[path = "common/any_socket.rs"]
mod any_socket;

use proptest::prelude::*;

proptest! {
    #[test]
    fn any_words_of_a_peer_leave_both_ends_in_the_ring(
        script in proptest::collection::vec(any::<u8>(), 0..40 * any_socket::STEP),
    ) {
        any_socket::stream(&script);
    }
}
