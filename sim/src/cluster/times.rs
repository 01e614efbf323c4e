//! The times of an interface, as a cluster needs them: two stages, and what some frames add.
use crate::extoll;
use crate::nic::{INLINE, LINE, Parameters, Unit};
use crate::time::Time;
use ayre_proto::command::COMMAND_BYTES;
use ayre_proto::link::frame::{HEADER_BYTES, Payload, Record, RecordKind};

/// The times of a stage of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The time for which a frame keeps the stage, besides that of its bytes.
    pub frame: Time,
    /// The time for which each byte keeps it.
    pub byte: Time,
    /// The time that a frame takes through it, besides that of its bytes.
    pub latency: Time,
}

/// The times of an interface and of the processor beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceTimes {
    /// From a program's store of a command to the interface.
    pub call: Time,
    /// A read of memory, which a frame waits for if it has data of a put that its command does not
    /// carry.
    pub read: Time,
    /// The time that a frame of answers waits for memory. The write that `receive` counts, and that
    /// a request does not need, is already taken off.
    pub answer: Time,
    /// From the interface to the network.
    pub send: Stage,
    /// From the network to the program that polls, writes of memory included.
    pub receive: Stage,
}

impl InterfaceTimes {
    /// An interface beside PCIe of 16 GB/s, with stages of 10 ns for each frame, all of which take
    /// equally long: round figures, our choice, where a test needs some.
    pub const PCIE: Self = Self {
        call: Time::from_nanos(150),
        read: Time::ZERO,
        answer: Time::ZERO,
        send: Stage { frame: Time::from_nanos(10), byte: Time(62), latency: Time::from_nanos(50) },
        receive: Stage {
            frame: Time::from_nanos(10),
            byte: Time(62),
            latency: Time::from_nanos(150),
        },
    };

    /// The times of our own interface, as its units have them.
    ///
    /// ```text
    ///   put:   call | send [+ read]  | network | receive: check, translation, write, poll
    ///   get:   call | send           | network | receive: check, translation | ..........
    ///                                                     answer: read | less those
    /// ```
    ///
    /// A frame's bytes pass the links to both hosts, but for its header, which is taken off again.
    /// Frames keep a stage for the longest time that they keep one of its units.
    pub fn of(nic: &Parameters) -> Self {
        use Unit::{
            Channel, Check, Decode, Frame, Keys, Notify, Read, Segmenter, Tlb, Window, Write,
        };
        let pcie = &nic.pcie;
        let per_byte = |unit: Unit, span: Time| {
            let path = nic.clock.span(nic.piece.div_ceil(nic.row(unit).bytes.max(1)).into());
            Time(span.max(path).0 / u64::from(nic.piece))
        };
        let stage = |units: &[Unit], byte: Time, latency: Time| {
            let hold = units.iter().map(|unit| nic.hold(*unit, 0)).max().unwrap_or_default();
            let header = Time(byte.0 * HEADER_BYTES as u64);
            Stage { frame: hold, byte, latency: Time(latency.0.saturating_sub(header.0)) }
        };
        let translation = nic.latency(&[Keys, Tlb]);
        let host = pcie.request_span() + pcie.latency + nic.memory + pcie.latency;
        let read = nic.latency(&[Read]) + host;
        let write =
            nic.latency(&[Notify, Write]) + pcie.write_span(LINE) + pcie.latency + nic.memory;
        let (command, made) = (nic.latency(&[Window, Decode, Segmenter]), [Frame, Channel]);
        let received = nic.latency(&[Check, Decode]) + translation + write;
        Self {
            call: pcie.write_time(LINE),
            read: translation + read,
            answer: Time(read.0.saturating_sub((command + write).0)),
            send: stage(
                &[Decode, Segmenter, Frame, Channel],
                per_byte(Read, pcie.data_span(nic.piece)),
                command + nic.latency(&made),
            ),
            receive: stage(
                &[Check, Decode, Keys, Tlb, Notify],
                per_byte(Write, pcie.write_span(nic.piece)),
                received,
            ),
        }
    }

    /// An interface whose [profile](super::Profile::units) has the times of its units. These are
    /// all but that of the call. Programs compute in no time: the time of software is left out.
    pub fn of_units(times: &extoll::Parameters) -> Self {
        let none = Stage { frame: Time::ZERO, byte: Time::ZERO, latency: Time::ZERO };
        let (read, answer) = (Time::ZERO, Time::ZERO);
        Self { call: times.pio_write, read, answer, send: none, receive: none }
    }

    /// The time that a frame waits for memory of its own host.
    pub(super) fn memory(&self, payload: &[u8]) -> Time {
        let Ok(payload) = Payload::parse(payload) else { return Time::ZERO };
        let is_read = |bytes: &[u8]| bytes.len() > COMMAND_BYTES + INLINE as usize;
        let waits = |record: Record<'_>| match record.kind {
            RecordKind::Response => self.answer,
            RecordKind::Command if is_read(record.bytes) => self.read,
            _ => Time::ZERO,
        };
        payload.records().map(waits).max().unwrap_or_default()
    }
}
