//! Relaying the ranks' output line by line, each line with its rank in front if that is asked for.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread;

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, ioctl_fionread};
use serde::{Deserialize, Serialize};

/// Bytes that are read from a rank at once.
const CHUNK_BYTES: usize = 64 << 10;

/// A longer line is relayed in pieces, each a line of its own, so that memory stays bounded.
const LINE_BYTES_MAX: usize = 1 << 20;

/// Where a rank's output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Sink {
    Stdout,
    Stderr,
}

/// One output of one rank.
pub(super) struct Stream {
    source: OwnedFd,
    sink: Sink,
    lines: LineBuffer,
}

impl Stream {
    /// A rank stands in front of every line.
    pub(super) fn new(source: OwnedFd, sink: Sink, rank: Option<u16>) -> Self {
        Self { source, sink, lines: LineBuffer::new(rank) }
    }
}

/// A receiver of the lines.
pub(super) trait Taker: Send {
    /// Takes whole lines, waiting for room; false when the sink takes no more.
    fn take(&mut self, sink: Sink, lines: &[u8]) -> bool;
}

/// This process's own output.
pub(super) struct Own;

impl Taker for Own {
    fn take(&mut self, sink: Sink, lines: &[u8]) -> bool {
        sink.write(lines)
    }
}

/// The launcher's handle on the thread that relays.
///
/// Both sides speak by closing a pipe, which also tells of an end that nobody planned.
pub(super) struct Output {
    to_finish: Option<PipeWriter>,
    ended: PipeReader,
}

impl Output {
    /// Starts the thread.
    pub(super) fn relay(streams: Vec<Stream>, taker: impl Taker + 'static) -> Result<Self> {
        let (finish, to_finish) = io::pipe().context("creating a pipe")?;
        let (ended, to_end) = io::pipe().context("creating a pipe")?;
        let relay = Relay { streams, finish, taker };
        let body = move || {
            let _closed_at_the_end = to_end;
            if let Err(error) = relay.run() {
                super::say(&format!("the ranks' output is lost from here on: {error}"));
            }
        };
        thread::Builder::new()
            .name("output".to_owned())
            .spawn(body)
            .context("starting the thread that relays output")?;
        Ok(Self { to_finish: Some(to_finish), ended })
    }

    /// Asks for what the ranks, now ended, have written; tells whether all of it is out.
    pub(super) fn finish(&mut self) -> bool {
        self.to_finish = None;
        let mut event = [PollFd::new(&self.ended, PollFlags::IN)];
        let at_once = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut event, Some(&at_once)), Ok(1))
    }

    /// Becomes readable when the thread has ended.
    pub(super) fn ended(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }
}

struct Relay<T> {
    streams: Vec<Stream>,
    finish: PipeReader,
    taker: T,
}

impl<T: Taker> Relay<T> {
    fn run(mut self) -> io::Result<()> {
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let (ready, finishing) = self.wait()?;
            if finishing {
                return self.finish(&mut chunk);
            }
            // From the last to the first, because a stream that ends gives its place to the last.
            for index in ready.into_iter().rev() {
                if !self.streams[index].relay(&mut chunk, &mut self.taker)? {
                    self.streams.swap_remove(index);
                }
            }
        }
    }

    /// Waits until streams can be read or the job has ended.
    fn wait(&self) -> io::Result<(Vec<usize>, bool)> {
        let sources = self.streams.iter().map(|stream| stream.source.as_fd());
        let mut events: Vec<_> = sources
            .chain([self.finish.as_fd()])
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        while let Err(error) = poll(&mut events, None) {
            if error != Errno::INTR {
                return Err(error.into());
            }
        }
        let mut ready: Vec<_> =
            (0..events.len()).filter(|index| !events[*index].revents().is_empty()).collect();
        let finishing = ready.pop_if(|index| *index == self.streams.len()).is_some();
        Ok((ready, finishing))
    }

    /// Relays what the pipes hold. Their end is not waited for: a process that a rank has left
    /// behind may keep them open for ever.
    fn finish(mut self, chunk: &mut [u8]) -> io::Result<()> {
        for mut stream in self.streams {
            let mut left = ioctl_fionread(&stream.source)?;
            let mut open = true;
            while open && left > 0 {
                let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(chunk.len());
                left -= wanted as u64;
                open = stream.relay(&mut chunk[..wanted], &mut self.taker)?;
            }
            if open {
                stream.end(&mut self.taker);
            }
        }
        Ok(())
    }
}

impl Stream {
    /// Relays what can be read at once; false when the stream has ended, or its sink has. Then it
    /// is to be dropped: its rank learns that nobody reads, as if it wrote to the sink itself.
    fn relay(&mut self, chunk: &mut [u8], taker: &mut impl Taker) -> io::Result<bool> {
        let count = match rustix::io::read(&self.source, &mut *chunk) {
            Ok(count) => count,
            Err(Errno::INTR | Errno::AGAIN) => return Ok(true),
            Err(error) => return Err(error.into()),
        };
        if count == 0 {
            self.end(taker);
            return Ok(false);
        }
        let mut lines = Vec::with_capacity(count + count / 8);
        self.lines.push(&chunk[..count], &mut lines);
        Ok(lines.is_empty() || taker.take(self.sink, &lines))
    }

    fn end(&mut self, taker: &mut impl Taker) {
        let mut lines = Vec::new();
        self.lines.end(&mut lines);
        if !lines.is_empty() {
            taker.take(self.sink, &lines);
        }
    }
}

impl Sink {
    /// Writes all of `bytes`; false when the sink takes no more. A sink that another process has
    /// made non-blocking is waited for.
    fn write(self, mut bytes: &[u8]) -> bool {
        let (stdout, stderr) = (io::stdout(), io::stderr());
        let fd = match self {
            Self::Stdout => stdout.as_fd(),
            Self::Stderr => stderr.as_fd(),
        };
        while !bytes.is_empty() {
            match rustix::io::write(fd, bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let mut event = [PollFd::from_borrowed_fd(fd, PollFlags::OUT)];
                    // Whatever it returns, the next write tells.
                    let _ = poll(&mut event, None);
                }
                Err(Errno::PIPE) => return false,
                Err(error) => {
                    if self == Self::Stdout {
                        super::say(&format!("cannot write to standard output: {error}"));
                    }
                    return false;
                }
            }
        }
        true
    }
}

/// Cuts what a rank writes into lines.
struct LineBuffer {
    prefix: Option<Vec<u8>>,
    /// The beginning of a line whose end has not arrived.
    partial: Vec<u8>,
}

impl LineBuffer {
    fn new(rank: Option<u16>) -> Self {
        let prefix = rank.map(|rank| format!("[{rank}] ").into_bytes());
        Self { prefix, partial: Vec::new() }
    }

    /// Appends to `lines` the lines that `bytes` completes.
    fn push(&mut self, bytes: &[u8], lines: &mut Vec<u8>) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.partial.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.partial.len() >= LINE_BYTES_MAX {
                self.end(lines);
            }
        }
    }

    /// Appends to `lines` what has arrived of the current line.
    fn end(&mut self, lines: &mut Vec<u8>) {
        if self.partial.is_empty() {
            return;
        }
        lines.extend_from_slice(self.prefix.as_deref().unwrap_or_default());
        lines.append(&mut self.partial);
        // Without prefixes, what comes out is what went in.
        if self.prefix.is_some() && !lines.ends_with(b"\n") {
            lines.push(b'\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relayed(pieces: &[&[u8]]) -> Vec<u8> {
        let mut buffer = LineBuffer::new(Some(7));
        let mut lines = Vec::new();
        for piece in pieces {
            buffer.push(piece, &mut lines);
        }
        buffer.end(&mut lines);
        lines
    }

    #[test]
    fn lines_survive_any_cut() {
        let text = b"one\n\n\xff\0two\nthree";
        let expected = b"[7] one\n[7] \n[7] \xff\0two\n[7] three\n";
        for cut in 0..=text.len() {
            assert_eq!(relayed(&[&text[..cut], &text[cut..]]), expected, "cut at {cut}");
        }
    }

    #[test]
    fn empty_output_relays_no_line() {
        assert!(relayed(&[]).is_empty());
        assert!(relayed(&[b""]).is_empty());
    }

    #[test]
    fn an_endless_line_is_relayed_in_pieces() {
        let half = vec![b'x'; LINE_BYTES_MAX / 2];
        let lines = relayed(&[&half, &half, &half]);
        let lengths: Vec<_> = lines.split(|byte| *byte == b'\n').map(<[u8]>::len).collect();
        assert_eq!(lengths, [LINE_BYTES_MAX + 4, LINE_BYTES_MAX / 2 + 4, 0]);
    }
}
