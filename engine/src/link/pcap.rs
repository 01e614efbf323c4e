//! A network that writes down what goes over it, for Wireshark and its like.
//!
//! The file is of the pcap format, with times in nanoseconds. A socket does not show the headers
//! under its datagrams, so they are made up: the addresses and ports are true, the rest is what an
//! ordinary host would write.
use super::seal::sealed_for;
use crate::clock;
use crate::log::tell;
use crate::net::datagram::{DATAGRAM_MAX, IPV6_HEADERS, Inbox, Net, NetCounters, Outbox, Tap};
use crate::net::hints::Hints;
use crate::sys::descriptor;
use crate::sys::longest_file::Limited;
use etherparse::PacketBuilder;
use rustix::fs::{FileType, Mode, OFlags, fchmod, fstat};
use std::fmt::Debug;
use std::io::{self, BufWriter, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

/// Says that times are in nanoseconds, and by its order of bytes that all is little-endian.
const MAGIC: u32 = 0xa1b2_3c4d;
/// Version 2.4.
const VERSION: [u16; 2] = [2, 4];
/// Longest packet.
const SNAP_BYTES: u32 = 1 << 18;
/// Each packet begins with its IP header.
const LINKTYPE_RAW: u32 = 101;
/// Routers that a packet may pass, as hosts say it.
const HOPS: u8 = 64;
const NANOS: u64 = 1_000_000_000;
const _: () = assert!(NANOS <= u32::MAX as u64, "a part of a second has a word");
const _: () = assert!(SNAP_BYTES as usize > DATAGRAM_MAX + IPV6_HEADERS, "packets are whole");

/// Another network, of which every datagram is written to a file: on its way out when it is handed
/// over, on its way in when it is taken. In place of a sealed one it is the frame in it.
// spec: NET-13
#[derive(Debug)]
pub(crate) struct Capture<N, W: Write = Limited> {
    inner: N,
    recorder: Arc<Mutex<Recorder<W>>>,
    /// Datagrams at the front of the outbox that the network did not take the last time: they are
    /// written already.
    written: usize,
}

/// The writer of the file, for two callers: the seal gives the plain frames, and the net tells when
/// they leave.
#[derive(Debug)]
struct Recorder<W: Write> {
    file: BufWriter<W>,
    local: SocketAddr,
    /// Nanoseconds since 1970 when the caller's clock was 0.
    epoch: u64,
    /// Frames that have been sealed and not been handed over since.
    sealed: Vec<(SocketAddr, Vec<u8>)>,
    /// Frames of sealed datagrams are told by who seals and opens them.
    hides_sealed: bool,
    /// A packet that is being put together.
    packet: Vec<u8>,
    /// The file took no more: nothing is written any longer, and the network goes on.
    is_broken: bool,
}

impl<N: Net> Capture<N> {
    /// Begins a file, and forgets what it held before. `now` is the time by the caller's clock. It
    /// holds tokens and contents, so only its owner may read it, and no link leads elsewhere.
    ///
    /// # Errors
    ///
    /// The system's error about the file.
    // spec: SEAL-17
    pub(crate) fn create(inner: N, path: &Path, now: u64) -> io::Result<Self> {
        let since = clock::since_1970();
        let since = u64::try_from(since.as_nanos()).unwrap_or(0);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW;
        let own = Mode::RUSR | Mode::WUSR;
        let file = descriptor::open(path, flags, own)?;
        // It may have been there.
        if FileType::from_raw_mode(fstat(&file)?.st_mode) == FileType::RegularFile {
            fchmod(&file, own)?;
        }
        Self::new(inner, Limited(file), since.saturating_sub(now))
    }
}

impl<N: Net, W: Write> Capture<N, W> {
    /// Begins a file that is open already; `epoch` is the time since 1970, in nanoseconds, at which
    /// the caller's clock was 0.
    pub(crate) fn new(inner: N, file: W, epoch: u64) -> io::Result<Self> {
        let mut file = BufWriter::new(file);
        file.write_all(&MAGIC.to_le_bytes())?;
        file.write_all(&VERSION.map(u16::to_le_bytes).concat())?;
        // Two words for the time zone, which nobody uses.
        file.write_all(&[0; 8])?;
        file.write_all(&[SNAP_BYTES, LINKTYPE_RAW].map(u32::to_le_bytes).concat())?;
        file.flush()?;
        let recorder = Recorder {
            file,
            local: inner.local(),
            epoch,
            sealed: Vec::new(),
            hides_sealed: false,
            packet: Vec::new(),
            is_broken: false,
        };
        Ok(Self { inner, recorder: Arc::new(Mutex::new(recorder)), written: 0 })
    }
}

fn lock<W: Write>(recorder: &Mutex<Recorder<W>>) -> MutexGuard<'_, Recorder<W>> {
    recorder.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl<W: Write + Debug + Send> Tap for Mutex<Recorder<W>> {
    #[cold]
    fn seals(&self, to: SocketAddr, frame: &[u8]) {
        lock(self).sealed.push((to, frame.to_vec()));
    }

    #[cold]
    fn opened(&self, from: SocketAddr, frame: &[u8], now: u64) {
        let mut recorder = lock(self);
        let local = recorder.local;
        recorder.record(from, local, frame, now);
    }
}

impl<W: Write> Recorder<W> {
    /// Writes one datagram down.
    fn record(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8], now: u64) {
        self.packet.clear();
        if wrap(&mut self.packet, from, to, bytes).is_none() {
            // It is too long for the header's field, and for any network.
            return;
        }
        debug_assert!(self.packet.len() > bytes.len(), "a packet has headers");
        debug_assert!(self.packet.len() <= SNAP_BYTES as usize, "it is written whole");
        let (time, len) = (self.epoch.saturating_add(now), self.packet.len() as u32);
        let head = [(time / NANOS) as u32, (time % NANOS) as u32, len, len];
        let mut write = || {
            self.file.write_all(&head.map(u32::to_le_bytes).concat())?;
            self.file.write_all(&self.packet)
        };
        if !self.is_broken
            && let Err(error) = write()
        {
            self.end(&error);
        }
    }

    /// Writes down what was sealed since the last time.
    fn record_sealed(&mut self, now: u64) {
        let local = self.local;
        for (to, frame) in std::mem::take(&mut self.sealed) {
            self.record(local, to, &frame, now);
        }
    }

    /// Writes one down that travels as it is.
    fn record_bare(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8], now: u64) {
        if !self.hides_sealed || sealed_for(bytes).is_none() {
            self.record(from, to, bytes, now);
        }
    }

    /// A pause: a reader sees what has come so far.
    fn pause(&mut self) {
        if !self.is_broken
            && !self.file.buffer().is_empty()
            && let Err(error) = self.file.flush()
        {
            self.end(&error);
        }
    }

    // spec: NET-13
    #[cold]
    fn end(&mut self, error: &io::Error) {
        self.is_broken = true;
        tell!(WARN, "the capture at {} ends here: {error}", self.local);
    }
}

impl<N: Net, W: Write + Debug + Send + 'static> Net for Capture<N, W> {
    fn send(&mut self, outbox: &mut Outbox, now: u64) {
        let mut recorder = lock(&self.recorder);
        recorder.record_sealed(now);
        let local = recorder.local;
        for (to, bytes) in outbox.iter().skip(self.written) {
            recorder.record_bare(local, to, bytes, now);
        }
        drop(recorder);
        self.inner.send(outbox, now);
        self.written = outbox.len();
    }

    fn receive(&mut self, inbox: &mut Inbox, now: u64) {
        self.inner.receive(inbox, now);
        let mut recorder = lock(&self.recorder);
        recorder.record_sealed(now);
        let local = recorder.local;
        for index in 0..inbox.len() {
            let (from, bytes) = inbox.get(index);
            recorder.record_bare(from, local, bytes, now);
        }
        if inbox.is_empty() {
            recorder.pause();
        }
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }

    fn deadline(&self) -> Option<u64> {
        self.inner.deadline()
    }

    fn local(&self) -> SocketAddr {
        self.inner.local()
    }

    fn datagram_max(&self, to: SocketAddr) -> usize {
        self.inner.datagram_max(to)
    }

    fn counters(&self) -> NetCounters {
        self.inner.counters()
    }

    fn check_address(&mut self, to: SocketAddr) {
        self.inner.check_address(to);
    }

    fn hints(&self) -> Hints {
        self.inner.hints()
    }

    fn tap(&self) -> Option<Arc<dyn Tap>> {
        lock(&self.recorder).hides_sealed = true;
        Some(self.recorder.clone())
    }
}

/// Appends a datagram with the headers of IP and UDP; `None` if it is too long for them.
fn wrap(packet: &mut Vec<u8>, from: SocketAddr, to: SocketAddr, bytes: &[u8]) -> Option<()> {
    let ip = match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => PacketBuilder::ipv4(from.octets(), to.octets(), HOPS),
        (from, to) => PacketBuilder::ipv6(sixth(from).octets(), sixth(to).octets(), HOPS),
    };
    ip.udp(from.port(), to.port()).write(packet, bytes).ok()
}

fn sixth(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::link::seal::{PREFIX_BYTES, TAG_BYTES};
    use crate::net::datagram::{DATAGRAM_MAX, Echo};
    use ayre_proto::link::frame::HEADER_BYTES;
    use etherparse::{NetSlice, SlicedPacket, TransportSlice};
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    const EPOCH: u64 = 1_700_000_000 * NANOS;

    /// Time, addresses with ports, and bytes of a packet.
    type Packet = (u64, String, Vec<u8>);

    fn capture() -> Capture<Echo, Vec<u8>> {
        Capture::new(Echo::new(), Vec::new(), EPOCH).unwrap()
    }

    /// Reads what was written, by the format's definition and etherparse's understanding of it.
    fn packets(capture: Capture<Echo, Vec<u8>>) -> Vec<Packet> {
        let mut recorder = lock(&capture.recorder);
        recorder.file.flush().unwrap();
        let mut rest = &recorder.file.get_ref()[..];
        let head = words(&mut rest, 6);
        assert_eq!([head[0], head[4], head[5]], [0xa1b2_3c4d, 262_144, 101]);
        assert_eq!((head[1], head[2], head[3]), (2 | 4 << 16, 0, 0));
        let mut packets = Vec::new();
        while !rest.is_empty() {
            let head = words(&mut rest, 4);
            assert_eq!(head[2], head[3], "whole packets");
            let (packet, after) = rest.split_at(head[2] as usize);
            rest = after;
            let time = u64::from(head[0]) * NANOS + u64::from(head[1]) - EPOCH;
            let (way, bytes) = unwrap(packet);
            packets.push((time, way, bytes));
        }
        packets
    }

    fn words(bytes: &mut &[u8], count: usize) -> Vec<u32> {
        let (front, rest) = bytes.split_at(4 * count);
        *bytes = rest;
        front.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
    }

    fn unwrap(packet: &[u8]) -> (String, Vec<u8>) {
        let sliced = SlicedPacket::from_ip(packet).unwrap();
        let Some(TransportSlice::Udp(udp)) = sliced.transport else { panic!("not UDP") };
        let header = udp.to_header();
        let (from, to, sum) = match sliced.net.unwrap() {
            NetSlice::Ipv4(ip) => {
                let ip = ip.header().to_header();
                assert_eq!(ip.header_checksum, ip.calc_header_checksum());
                let sum = header.calc_checksum_ipv4(&ip, udp.payload()).unwrap();
                (IpAddr::from(ip.source), IpAddr::from(ip.destination), sum)
            }
            NetSlice::Ipv6(ip) => {
                let ip = ip.header().to_header();
                let sum = header.calc_checksum_ipv6(&ip, udp.payload()).unwrap();
                (IpAddr::from(ip.source), IpAddr::from(ip.destination), sum)
            }
            NetSlice::Arp(_) => panic!("not IP"),
        };
        assert_eq!(header.checksum, sum);
        let from = SocketAddr::new(from, header.source_port);
        let to = SocketAddr::new(to, header.destination_port);
        (format!("{from} > {to}"), udp.payload().to_vec())
    }

    fn push(outbox: &mut Outbox, bytes: &[u8]) {
        outbox.push(([10, 0, 0, 2], 7).into(), |buffer| buffer.extend_from_slice(bytes));
    }

    #[test]
    fn sent_and_received_datagrams_are_captured_unchanged() {
        let (mut net, mut outbox) = (capture(), Outbox::new());
        push(&mut outbox, b"one");
        push(&mut outbox, b"");
        net.send(&mut outbox, 5);
        assert_eq!(Echo::drain(&mut net, NANOS + 6), [&b"one"[..], b""]);
        let (out, back) = ("10.0.0.1:1 > 10.0.0.2:7", "10.0.0.1:1 > 10.0.0.1:1");
        let meant: [(u64, &str, &[u8]); 4] =
            [(5, out, b"one"), (5, out, b""), (NANOS + 6, back, b"one"), (NANOS + 6, back, b"")];
        let got = packets(net);
        assert!(got.iter().map(|(time, way, bytes)| (*time, &way[..], &bytes[..])).eq(meant));
    }

    /// The mode does not depend on the umask or on an older file.
    // spec: SEAL-17
    #[test]
    fn a_capture_is_private_and_does_not_follow_symbolic_links() {
        let folder = std::env::temp_dir().join(format!("ayre-pcap-{}", std::process::id()));
        std::fs::create_dir(&folder).expect("a folder");
        let (own, link) = (folder.join("own"), folder.join("link"));
        std::fs::write(&own, b"before").expect("a file");
        std::fs::set_permissions(&own, Permissions::from_mode(0o666)).expect("its owner's");
        std::os::unix::fs::symlink(&own, &link).expect("a link");
        for path in [&own, &folder.join("new")] {
            drop(Capture::create(Echo::new(), path, 0).expect("a file"));
            let metadata = std::fs::metadata(path).expect("it is there");
            assert_eq!((metadata.mode() & 0o777, metadata.len()), (0o600, 24));
        }
        assert!(Capture::create(Echo::new(), &link, 0).is_err(), "a link");
        std::fs::remove_dir_all(&folder).expect("its own");
    }

    #[test]
    fn one_that_waits_in_the_outbox_is_written_once() {
        let (mut net, mut outbox) = (capture(), Outbox::new());
        net.inner.room = 1;
        (0..3).for_each(|number| push(&mut outbox, &[number]));
        net.send(&mut outbox, 1);
        net.send(&mut outbox, 2);
        push(&mut outbox, &[3]);
        net.inner.room = 100;
        net.send(&mut outbox, 3);
        push(&mut outbox, &[4]);
        net.send(&mut outbox, 4);
        let times: Vec<_> = packets(net).into_iter().map(|(at, _, bytes)| (at, bytes)).collect();
        assert_eq!(times, [(1, 0), (1, 1), (1, 2), (3, 3), (4, 4)].map(|(at, n)| (at, vec![n])));
    }

    #[test]
    fn both_families_and_all_lengths_are_written() {
        let net = capture();
        let v6 = |port| SocketAddr::new("fd00::1".parse().unwrap(), port);
        let mut recorder = lock(&net.recorder);
        recorder.record(v6(1), v6(2), &[6; 100], 0);
        recorder.record(([10, 0, 0, 1], 3).into(), v6(4), &[], 0);
        let longest = vec![4; DATAGRAM_MAX];
        recorder.record(([10, 0, 0, 1], 5).into(), ([10, 0, 0, 2], 6).into(), &longest, 0);
        recorder.record(([10, 0, 0, 1], 5).into(), ([10, 0, 0, 2], 6).into(), &[0; 65_536], 0);
        drop(recorder);
        let ways = [
            ("[fd00::1]:1 > [fd00::1]:2", 100),
            ("[::ffff:10.0.0.1]:3 > [fd00::1]:4", 0),
            ("10.0.0.1:5 > 10.0.0.2:6", DATAGRAM_MAX),
        ];
        let got = packets(net);
        assert!(got.iter().map(|(_, way, bytes)| (&way[..], bytes.len())).eq(ways));
    }

    // spec: NET-13
    #[test]
    fn of_a_sealed_datagram_the_frame_is_written_at_the_time_at_which_it_goes() {
        let mut net = capture();
        let tap = net.tap().unwrap();
        let mut sealed = vec![0xee; PREFIX_BYTES + HEADER_BYTES + TAG_BYTES];
        sealed[0] = 2;
        let peer = SocketAddr::from(([10, 0, 0, 2], 7));
        let mut outbox = Outbox::new();
        tap.seals(peer, b"what it says");
        push(&mut outbox, &sealed);
        push(&mut outbox, b"bare");
        net.send(&mut outbox, 5);
        assert_eq!(Echo::drain(&mut net, 6).len(), 2);
        tap.opened(peer, b"what it says", 7);
        let got = packets(net);
        let (out, back) = ("10.0.0.1:1 > 10.0.0.2:7", "10.0.0.2:7 > 10.0.0.1:1");
        let own = "10.0.0.1:1 > 10.0.0.1:1";
        let meant: [(u64, &str, &[u8]); 4] = [
            (5, out, b"what it says"),
            (5, out, b"bare"),
            (6, own, b"bare"),
            (7, back, b"what it says"),
        ];
        assert!(
            got.iter().map(|(at, way, bytes)| (*at, &way[..], &bytes[..])).eq(meant),
            "{got:?}"
        );
    }

    /// Takes this number of bytes, then none.
    #[derive(Debug)]
    struct Short(usize);

    impl Write for Short {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_ends_the_file_and_not_the_network() {
        let mut net = Capture::new(Echo::new(), Short(100), EPOCH).unwrap();
        for round in 0..3 {
            let mut outbox = Outbox::new();
            push(&mut outbox, &[round; 50]);
            net.send(&mut outbox, 0);
            assert_eq!(Echo::drain(&mut net, 0), [[round; 50]]);
        }
        assert!(lock(&net.recorder).is_broken);
    }
}
