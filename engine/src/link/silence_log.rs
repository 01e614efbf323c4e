//! Silent peers, and what the log says of them.
//!
//! A process that is stopped and one that was killed are both silent. The host of a killed process
//! answers each datagram to its port with "port unreachable". Another host can forge that answer,
//! so a link takes note of it only while it hears nothing.
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
