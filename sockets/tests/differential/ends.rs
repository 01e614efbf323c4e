//! How connections end, and what the other end sees of it.

use crate::common::call::{self, close, exit_now, fork, poll, recv, send, set_option, wait_for};
use crate::program::{End, Side};
use crate::setting::told;
use crate::strand::Strand;

impl Strand {
    pub(crate) fn finish(&mut self, end: End) {
        match end {
            End::Shutdown(side, extra) => self.shutdown(side, extra),
            End::Close(side, writes) => self.close_first(side, writes),
            End::Reset(side) => self.reset(side),
            End::CloseUnread(side, length) => self.close_unread(side, length),
            End::Kill(side) => self.kill(side),
            End::ShutdownRead(side) => self.shutdown_read(side),
        }
    }

    fn close_all(&mut self) {
        self.close_spare();
        self.leave();
        self.expect(close(self.fd), "close");
    }

    /// Reads once, where no more bytes may come, and says what that told.
    fn read_end(&mut self) -> String {
        let mut byte = [0; 9];
        let fd = self.fd;
        // Ends come by themselves; a wait first where the read would not.
        if call::is_nonblocking(fd) {
            let events = poll(fd, libc::POLLIN | libc::POLLRDHUP, -1);
            if events.is_ok_and(|events| events & libc::POLLIN == 0) {
                self.fail(&format!("the end came, but poll told {events:?}"));
            }
        }
        let count = call::read(fd, &mut byte);
        if let Ok(count @ 1..) = count {
            self.fail(&format!("{count} bytes came in place of the end: {:?}", &byte[..count]));
        }
        if !self.from(self.side.other()).is_empty() {
            self.fail(&format!("the end came before all bytes: {}", told(count)));
        }
        told(count)
    }

    fn expect_end(&mut self, wanted: &str) {
        let end = self.read_end();
        self.fact(&format!("the end is told as {end}"));
        if end != wanted {
            self.fail(&format!("the end is told as {end} in place of {wanted}"));
        }
    }

    fn shutdown(&mut self, side: Side, extra: u32) {
        let other = side.other();
        if side == self.side {
            self.expect(call!(shutdown(self.fd, libc::SHUT_WR)), "shutdown");
            let sent = send(self.fd, b"more", libc::MSG_NOSIGNAL);
            self.fact(&format!("send after shutdown told {}", told(sent)));
            self.plain(other, extra);
            self.expect_end("0");
        } else {
            self.expect_end("0");
            self.expect_end("0");
            self.plain(other, extra);
            self.expect(call!(shutdown(self.fd, libc::SHUT_WR)), "shutdown");
        }
        self.close_all();
    }

    fn close_first(&mut self, side: Side, writes: bool) {
        if side == self.side {
            return self.close_all();
        }
        self.expect_end("0");
        let events = poll(self.fd, libc::POLLIN | libc::POLLRDHUP, 0);
        self.fact(&format!("poll after the end told {events:?}"));
        if writes {
            let error = loop {
                match send(self.fd, b"vain", libc::MSG_NOSIGNAL) {
                    Ok(_) => crate::setting::pause(),
                    Err(libc::EAGAIN) => crate::setting::pause(),
                    Err(error) => break error,
                }
            };
            if ![libc::EPIPE, libc::ECONNRESET].contains(&error) {
                self.fail(&format!("send to a closed end told {}", told(Err(error))));
            }
        }
        self.close_all();
    }

    fn reset(&mut self, side: Side) {
        if side == self.side {
            // A reset may take bytes with it that the other end has not read.
            self.await_signal(0);
            let linger = libc::linger { l_onoff: 1, l_linger: 0 };
            self.expect(set_option(self.fd, libc::SOL_SOCKET, libc::SO_LINGER, &linger), "LINGER");
            return self.close_all();
        }
        self.signal(0);
        self.expect_end("ECONNRESET");
        self.expect_end("0");
        let sent = send(self.fd, b"vain", libc::MSG_NOSIGNAL);
        self.fact(&format!("send after a reset told {}", told(sent)));
        self.close_all();
    }

    fn close_unread(&mut self, side: Side, length: u16) {
        let length = length.min(1000);
        if side != self.side {
            self.plain(side.other(), u32::from(length));
            self.signal(0);
            self.expect_end("ECONNRESET");
            return self.close_all();
        }
        self.await_signal(0);
        let told = poll(self.fd, libc::POLLIN, 5000);
        if told != Ok(libc::POLLIN) {
            self.fail(&format!("bytes are there, but poll told {told:?}"));
        }
        self.close_all();
    }

    fn kill(&mut self, side: Side) {
        if side != self.side {
            self.expect_end("0");
            return self.close_all();
        }
        match fork() {
            Ok(0) => {
                // All others must have closed it before.
                self.await_signal(0);
                let _ = call!(kill(std::process::id() as i32, libc::SIGKILL));
                exit_now(7)
            }
            Ok(child) => {
                self.close_all();
                self.signal(0);
                let ended = wait_for(child);
                if ended != Ok(128 + libc::SIGKILL) {
                    self.fail(&format!("the child that was to die told {ended:?}"));
                }
            }
            Err(error) => self.fail(&format!("fork told {}", told(Err(error)))),
        }
    }

    fn shutdown_read(&mut self, side: Side) {
        let other = side.other();
        if side == self.side {
            self.expect(call!(shutdown(self.fd, libc::SHUT_RD)), "shutdown");
            let events = poll(self.fd, libc::POLLIN | libc::POLLRDHUP, 5000);
            self.fact(&format!("poll after SHUT_RD told {events:?}"));
            let mut byte = [0];
            let count = recv(self.fd, &mut byte, libc::MSG_DONTWAIT);
            self.fact(&format!("recv after SHUT_RD told {}", told(count)));
            self.plain(side, 7);
            self.await_signal(0);
        } else {
            self.plain(other.other(), 7);
            self.signal(0);
            // Its close is the end of both, as nothing is unread.
            self.expect_end("0");
        }
        self.close_all();
    }
}
