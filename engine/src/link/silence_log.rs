//! Silent peers, and what the log says of them.
//!
//! Nobody answers for a process that is stopped, nor for one that was killed. But the host of a
//! killed process answers each datagram to its port that the port is closed ("port unreachable").
//! Others can say that in its name; so a link asks for it only while it hears nothing.
use crate::log::tell;
use std::net::SocketAddr;
use std::time::Duration;

/// The log of a silent peer.
#[derive(Debug, Default)]
pub(super) struct SilenceLog {
    is_told: bool,
}

impl SilenceLog {
    /// Nothing was heard for so long. Whether that is news.
    #[cold]
    pub(super) fn tell(&mut self, peer_address: Option<SocketAddr>, silent: Duration) -> bool {
        let is_news = !std::mem::replace(&mut self.is_told, true);
        if is_news {
            let (at, silent) = (place(peer_address), silent.as_secs_f32());
            tell!(
                WARN,
                "nothing was heard of the port at {at} for {silent:.1} s; what goes there \
                         waits"
            );
        }
        is_news
    }

    /// Something is heard again.
    #[cold]
    pub(super) fn end(&mut self, peer_address: Option<SocketAddr>) {
        if std::mem::take(&mut self.is_told) {
            tell!(WARN, "the port at {} is heard again", place(peer_address));
        }
    }
}

fn place(at: Option<SocketAddr>) -> String {
    at.map_or_else(|| "an unknown address".to_owned(), |at| at.to_string())
}
