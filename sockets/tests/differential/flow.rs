//! Bytes of one direction: written and read by the calls that a program names, and checked.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::common::byte_at;
use crate::common::call::{self, Outcome, is_nonblocking, set_receive_timeout};
use crate::program::{Flow, Read, Side, Step, Wait, Write};
use crate::setting::{Fault, Place, Setting, told};
use crate::wait::{For, Waiter};

/// Bytes that a pipe takes at once.
const PIPE: usize = 60_000;

/// One direction of a connection, seen by one of its ends.
#[derive(Clone, Copy)]
pub(crate) struct Direction {
    pub(crate) setting: &'static Setting,
    pub(crate) connection: usize,
    pub(crate) writer: Side,
}

impl Setting {
    /// Whether the planted fault is to happen now: once in each process, not at the first call.
    pub(crate) fn is_due(&self) -> bool {
        static CALLS: AtomicU32 = AtomicU32::new(0);
        CALLS.fetch_add(1, Ordering::SeqCst) == 3
    }
}

impl Direction {
    fn place(self) -> Place {
        Place::of(self.connection)
    }

    /// The number of this stream of bytes.
    fn stream(self) -> u32 {
        2 * self.connection as u32 + self.writer as u32
    }

    pub(crate) fn fail(self, text: &str) -> ! {
        let (place, shared) = (self.place(), &self.setting.shared);
        let at = |side| shared.get(place.at(side)) >> 32;
        let [begun, done, read] = [place.begun(self.writer), place.done(self.writer)]
            .map(|word| shared.get(word))
            .into_iter()
            .chain([shared.get(place.read(self.writer))])
            .collect::<Vec<_>>()
            .try_into()
            .expect("three numbers");
        self.setting.violation(&format!(
            "connection {}, bytes of {:?}, client in phase {}, server in phase {}, {begun} begun, \
             {done} written, {read} read: {text}",
            self.connection,
            self.writer,
            at(Side::Client),
            at(Side::Server),
        ))
    }

    /// The next bytes to write, which count as begun.
    pub(crate) fn next(self, length: usize) -> Vec<u8> {
        let (place, shared) = (self.place(), &self.setting.shared);
        let done = shared.get(place.done(self.writer));
        shared.word(place.begun(self.writer)).store(done + length as u64, Ordering::SeqCst);
        crate::common::bytes_from(self.stream(), done, length)
    }

    /// A write told that the first bytes are written.
    pub(crate) fn wrote(self, count: usize) {
        let done = self.setting.shared.word(self.place().done(self.writer));
        done.fetch_add(count as u64, Ordering::SeqCst);
    }

    /// Checks bytes that are next in the stream, without taking them.
    pub(crate) fn check(self, bytes: &[u8]) {
        let (place, shared) = (self.place(), &self.setting.shared);
        let from = shared.get(place.read(self.writer));
        for (i, byte) in bytes.iter().enumerate() {
            let wanted = byte_at(self.stream(), from + i as u64);
            if *byte != wanted {
                let position = from + i as u64;
                let mut text = format!("byte {position} is {byte:#x} in place of {wanted:#x}");
                text += &self.whence(&bytes[i..]);
                self.fail(&text);
            }
        }
        let begun = shared.get(place.begun(self.writer));
        if from + bytes.len() as u64 > begun {
            self.fail(&format!("{} bytes came, more than were written", bytes.len()));
        }
    }

    /// Where wrong bytes come from, as far as that can be told.
    fn whence(self, bytes: &[u8]) -> String {
        let probe = &bytes[..bytes.len().min(12)];
        let begun = self.setting.shared.get(self.place().begun(self.writer));
        let fits = |from: &u64| {
            probe.iter().enumerate().all(|(i, b)| *b == byte_at(self.stream(), from + i as u64))
        };
        match (0..begun).find(fits) {
            Some(from) if probe.len() >= 4 => format!("; these are bytes from {from} on"),
            _ => format!("; {} bytes like {probe:02x?}", bytes.len()),
        }
    }

    pub(crate) fn took(self, bytes: &[u8]) {
        self.check(bytes);
        let read = self.setting.shared.word(self.place().read(self.writer));
        read.fetch_add(bytes.len() as u64, Ordering::SeqCst);
    }

    /// The bytes of `TwoReaders`: their number and their sum, as their order cannot be told.
    pub(crate) fn sum(self, length: usize) -> u64 {
        let from = self.setting.shared.get(self.place().read(self.writer));
        (0..length as u64).map(|i| u64::from(byte_at(self.stream(), from + i))).sum()
    }

    pub(crate) fn skip(self, length: usize) {
        let read = self.setting.shared.word(self.place().read(self.writer));
        read.fetch_add(length as u64, Ordering::SeqCst);
    }

    /// Whether all that was written has been read.
    pub(crate) fn is_empty(self) -> bool {
        let (place, shared) = (self.place(), &self.setting.shared);
        shared.get(place.read(self.writer)) == shared.get(place.done(self.writer))
    }

    /// Writes all bytes of a flow.
    pub(crate) fn send(self, fd: c_int, flow: &Flow, waiter: &mut Waiter) {
        let mut left = flow.length as usize;
        for step in flow.writes.iter().cycle() {
            if left == 0 {
                return;
            }
            left -= self.send_once(fd, step, left, waiter);
        }
    }

    fn send_once(self, fd: c_int, step: &Step<Write>, left: usize, waiter: &mut Waiter) -> usize {
        let length = left.min(step.length as usize);
        let short = step.length.is_multiple_of(2);
        let blocks = !is_nonblocking(fd);
        let before = matches!(step.wait, Wait::Poll | Wait::Select | Wait::Level | Wait::OneShot);
        let after = matches!(step.wait, Wait::Edge | Wait::Shared | Wait::SharedOneShot);
        let mut how = step.how;
        if after && blocks && !matches!(how, Write::Send | Write::Sendmsg | Write::Sendmmsg) {
            how = Write::Send;
        }
        let flags = if before || after { libc::MSG_DONTWAIT } else { 0 };
        let mut ready = false;
        if before {
            waiter.wait(fd, step.wait, For::Write, short);
            ready = true;
        }
        loop {
            waiter.forget();
            let bytes = self.next(length);
            match write_by(how, fd, &bytes, flags) {
                Ok(0) => self.fail(&format!("{how:?} of {length} bytes told 0")),
                Ok(count) => {
                    self.wrote(count);
                    let whole = !matches!(how, Write::Sendfile | Write::Splice);
                    if count != length && blocks && flags == 0 && whole {
                        self.fail(&format!("{how:?} that blocks told {count} of {length}"));
                    }
                    return count;
                }
                Err(libc::EAGAIN) if ready && how != Write::Splice => {
                    self.fail(&format!("{how:?} told EAGAIN after {:?} told ready", step.wait))
                }
                Err(libc::EAGAIN) if blocks && flags == 0 => {
                    self.fail(&format!("{how:?} that blocks told EAGAIN"))
                }
                Err(libc::EAGAIN) => {
                    waiter.wait(fd, step.wait, For::Write, short);
                    // Threads may tell of a change that this end has seen before.
                    ready = !matches!(step.wait, Wait::Shared | Wait::SharedOneShot);
                }
                Err(error) => self.fail(&format!("{how:?} told {}", told(Err(error)))),
            }
        }
    }

    /// Reads all bytes of a flow.
    pub(crate) fn receive(self, fd: c_int, flow: &Flow, waiter: &mut Waiter) {
        let mut left = flow.length as usize;
        for step in flow.reads.iter().cycle() {
            if left == 0 {
                return;
            }
            left -= self.receive_once(fd, step, left, waiter);
        }
    }

    fn receive_once(self, fd: c_int, step: &Step<Read>, left: usize, waiter: &mut Waiter) -> usize {
        let length = left.min(step.length as usize);
        let short = step.length.is_multiple_of(2);
        let blocks = !is_nonblocking(fd);
        let before = matches!(step.wait, Wait::Poll | Wait::Select | Wait::Level | Wait::OneShot);
        let after = matches!(step.wait, Wait::Edge | Wait::Shared | Wait::SharedOneShot);
        let timeout = step.wait == Wait::Timeout && blocks;
        let mut how = step.how;
        if after && blocks && matches!(how, Read::Read | Read::Readv | Read::Splice) {
            how = Read::Recv;
        }
        let flags = if before || after { libc::MSG_DONTWAIT } else { 0 };
        let mut ready = false;
        if before {
            waiter.wait(fd, step.wait, For::Read, short);
            ready = true;
        }
        if timeout {
            self.expect(set_receive_timeout(fd, 5), "SO_RCVTIMEO");
        }
        let count = loop {
            waiter.forget();
            match self.read_by(how, fd, length, flags) {
                Ok(0) => self.fail(&format!("{how:?} of {length} bytes told the end")),
                Ok(count) => {
                    let whole = how == Read::WaitAll && blocks && flags == 0 && !timeout;
                    if count != length && whole {
                        self.fail(&format!("MSG_WAITALL that blocks told {count} of {length}"));
                    }
                    break count;
                }
                Err(libc::EAGAIN) if ready => {
                    self.fail(&format!("{how:?} told EAGAIN after {:?} told ready", step.wait))
                }
                Err(libc::EAGAIN) if timeout => {}
                Err(libc::EAGAIN) if blocks && flags == 0 => {
                    self.fail(&format!("{how:?} that blocks told EAGAIN"))
                }
                Err(libc::EAGAIN) => {
                    waiter.wait(fd, step.wait, For::Read, short);
                    ready = !matches!(step.wait, Wait::Shared | Wait::SharedOneShot);
                }
                Err(error) => self.fail(&format!("{how:?} told {}", told(Err(error)))),
            }
        };
        if timeout {
            self.expect(set_receive_timeout(fd, 0), "SO_RCVTIMEO");
        }
        count
    }

    /// Reads by a call, checks the bytes, and takes them.
    fn read_by(self, how: Read, fd: c_int, length: usize, flags: c_int) -> Outcome {
        let mut buffer = vec![0; length];
        if how == Read::Peek {
            let peeked = call::recv(fd, &mut buffer, flags | libc::MSG_PEEK)?;
            self.check(&buffer[..peeked]);
            let count = call::recv(fd, &mut buffer, libc::MSG_DONTWAIT);
            match count {
                Ok(count) if count >= peeked => {}
                _ => self.fail(&format!("MSG_PEEK told {peeked} bytes, then recv {count:?}")),
            }
            let count = count?;
            self.took(&buffer[..count]);
            return Ok(count);
        }
        let mut count = read_into(how, fd, &mut buffer, flags)?;
        if count > length {
            self.fail(&format!("{how:?} of {length} bytes told {count}"));
        }
        if count > 1 && buffer[0] != buffer[1] && self.setting.fault.is_some() {
            count = self.plant(&mut buffer[..count]);
        }
        self.took(&buffer[..count]);
        Ok(count)
    }

    /// Spoils what a read has brought.
    fn plant(self, bytes: &mut [u8]) -> usize {
        let count = bytes.len();
        let wrong = [Fault::Drop, Fault::Reorder, Fault::Early, Fault::Repeat];
        let Some(fault) = self.setting.fault.filter(|fault| wrong.contains(fault)) else {
            return count;
        };
        if !self.setting.is_due() {
            return count;
        }
        match fault {
            Fault::Drop => bytes.copy_within(1.., 0),
            Fault::Reorder => bytes.swap(0, 1),
            Fault::Repeat => bytes.copy_within(..count - 1, 1),
            _ => return 0,
        }
        count - usize::from(fault == Fault::Drop)
    }

    pub(crate) fn expect(self, result: Outcome, name: &str) -> usize {
        result.unwrap_or_else(|error| self.fail(&format!("{name} told {}", told(Err(error)))))
    }
}

fn parts_of(bytes: &mut [u8], count: usize) -> Vec<libc::iovec> {
    let size = bytes.len().div_ceil(count).max(1);
    let part =
        |part: &mut [u8]| libc::iovec { iov_base: part.as_mut_ptr().cast(), iov_len: part.len() };
    bytes.chunks_mut(size).map(part).collect()
}

fn message_of(parts: &mut [libc::iovec]) -> libc::msghdr {
    let mut message = zeroed!(libc::msghdr);
    message.msg_iov = parts.as_mut_ptr();
    message.msg_iovlen = parts.len();
    message
}

/// Two messages, whose lengths tell how far the call came.
fn messages_of(parts: &mut [libc::iovec]) -> Vec<libc::mmsghdr> {
    let half = parts.len().div_ceil(2);
    parts
        .chunks_mut(half)
        .map(|parts| libc::mmsghdr { msg_hdr: message_of(parts), msg_len: 0 })
        .collect()
}

/// Bytes of the messages that a call tells as done.
fn sum_of(messages: &[libc::mmsghdr]) -> usize {
    messages.iter().map(|message| message.msg_len as usize).sum()
}

fn write_by(how: Write, fd: c_int, bytes: &[u8], flags: c_int) -> Outcome {
    let mut bytes = bytes.to_vec();
    let mut parts = parts_of(&mut bytes, 5);
    let count = parts.len() as c_int;
    match how {
        Write::Write => call::write(fd, &bytes),
        Write::Send => call::send(fd, &bytes, flags),
        Write::Writev => call!(writev(fd, parts.as_ptr(), count)),
        Write::Sendmsg => call!(sendmsg(fd, &message_of(&mut parts), flags)),
        Write::Sendmmsg => {
            // Two messages of which the first is sent in part would leave a hole.
            let mut messages = messages_of(&mut parts);
            messages.truncate(if flags == 0 && !is_nonblocking(fd) { 2 } else { 1 });
            let count = messages.len() as u32;
            call!(sendmmsg(fd, messages.as_mut_ptr(), count, flags))?;
            let sent = sum_of(&messages);
            if sent < bytes.len() && flags == 0 && !is_nonblocking(fd) {
                return Ok(sent + call::send(fd, &bytes[sent..], 0)?);
            }
            Ok(sent)
        }
        Write::Sendfile => {
            let file = call!(memfd_create(c"bytes".as_ptr(), libc::MFD_CLOEXEC))? as c_int;
            call::write(file, &bytes)?;
            let mut offset = 0;
            let sent = call!(sendfile(fd, file, &mut offset, bytes.len()));
            call::close(file)?;
            sent
        }
        Write::Splice => splice_out(fd, &bytes[..bytes.len().min(PIPE)]),
    }
}

/// Through a pipe, until the pipe is empty: what is in it could not be taken back.
fn splice_out(fd: c_int, bytes: &[u8]) -> Outcome {
    let ends = call::pipe()?;
    call::write(ends[1], bytes)?;
    let none = std::ptr::null_mut();
    let mut sent = 0;
    while sent < bytes.len() {
        match call!(splice(ends[0], none, fd, none, bytes.len() - sent, 0)) {
            Ok(count) => sent += count,
            Err(libc::EAGAIN) => {
                call::poll(fd, libc::POLLOUT, -1)?;
            }
            Err(error) => return Err(error),
        }
    }
    call::close(ends[0])?;
    call::close(ends[1])?;
    Ok(sent)
}

fn read_into(how: Read, fd: c_int, buffer: &mut [u8], flags: c_int) -> Outcome {
    match how {
        Read::Read => return call::read(fd, buffer),
        Read::Recv | Read::Peek => return call::recv(fd, buffer, flags),
        Read::WaitAll => return call::recv(fd, buffer, flags | libc::MSG_WAITALL),
        Read::Splice => return splice_in(fd, buffer),
        _ => {}
    }
    let mut parts = parts_of(buffer, 5);
    let count = parts.len() as c_int;
    match how {
        Read::Readv => call!(readv(fd, parts.as_ptr(), count)),
        Read::Recvmsg => call!(recvmsg(fd, &mut message_of(&mut parts), flags)),
        _ => {
            let mut messages = messages_of(&mut parts);
            messages.truncate(1);
            let none = std::ptr::null_mut();
            call!(recvmmsg(fd, messages.as_mut_ptr(), 1, flags, none))?;
            Ok(sum_of(&messages))
        }
    }
}

fn splice_in(fd: c_int, buffer: &mut [u8]) -> Outcome {
    let ends = call::pipe()?;
    let none = std::ptr::null_mut();
    let most = buffer.len().min(PIPE);
    let moved = call!(splice(fd, none, ends[1], none, most, 0));
    if let Ok(count) = moved {
        let mut taken = 0;
        while taken < count {
            taken += call::read(ends[0], &mut buffer[taken..count])?;
        }
    }
    call::close(ends[0])?;
    call::close(ends[1])?;
    moved
}
