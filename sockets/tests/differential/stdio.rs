//! A phase in which both ends use streams of the C library.

use std::ffi::{CStr, c_int};

use crate::common::call::{self, set_nonblocking};
use crate::program::Side;
use crate::strand::Strand;

/// A stream over a duplicate of a descriptor, which closing the stream closes.
struct Stream(*mut libc::FILE);

impl Stream {
    fn open(fd: c_int, mode: &CStr) -> Result<Self, i32> {
        let fd = call!(fcntl(fd, libc::F_DUPFD_CLOEXEC, 0))? as c_int;
        // SAFETY: the mode is a string of C, and the descriptor is open.
        let stream = unsafe { libc::fdopen(fd, mode.as_ptr()) };
        if stream.is_null() { Err(call::errno()) } else { Ok(Self(stream)) }
    }

    fn write(&self, bytes: &[u8]) -> usize {
        // SAFETY: the stream is open, and the bytes live.
        unsafe { libc::fwrite(bytes.as_ptr().cast(), 1, bytes.len(), self.0) }
    }

    fn flush(&self) -> call::Outcome {
        call!(fflush(self.0))
    }

    fn read(&self, bytes: &mut [u8]) -> usize {
        // SAFETY: as for writing.
        unsafe { libc::fread(bytes.as_mut_ptr().cast(), 1, bytes.len(), self.0) }
    }

    fn close(self) -> call::Outcome {
        call!(fclose(self.0))
    }
}

impl Strand {
    /// One end sends some bytes, and the other one a byte for an answer, which is read without a
    /// stream. So no stream takes bytes of a later phase into its buffer.
    pub(crate) fn stdio(&mut self, writer: Side, length: u16) {
        let was = set_nonblocking(self.fd, false);
        if writer == self.side {
            self.stdio_send(writer, usize::from(length));
            self.plain(writer.other(), 1);
        } else {
            self.stdio_receive(writer, usize::from(length));
            self.stdio_send(writer.other(), 1);
        }
        let _ = set_nonblocking(self.fd, was == Ok(true));
    }

    fn stdio_send(&self, writer: Side, length: usize) {
        let direction = self.from(writer);
        let stream = Stream::open(self.fd, c"w");
        let stream = stream.unwrap_or_else(|error| self.fail(&format!("fdopen told {error}")));
        let bytes = direction.next(length);
        for part in bytes.chunks(length / 3 + 1) {
            if stream.write(part) != part.len() {
                self.fail("fwrite wrote less");
            }
        }
        self.expect(stream.flush(), "fflush");
        direction.wrote(length);
        self.expect(stream.close(), "fclose");
    }

    fn stdio_receive(&self, writer: Side, length: usize) {
        let stream = Stream::open(self.fd, c"r");
        let stream = stream.unwrap_or_else(|error| self.fail(&format!("fdopen told {error}")));
        let mut bytes = vec![0; length];
        let count = stream.read(&mut bytes);
        if count != length {
            self.fail(&format!("fread read {count} bytes of {length}"));
        }
        self.from(writer).took(&bytes);
        self.expect(stream.close(), "fclose");
    }
}
