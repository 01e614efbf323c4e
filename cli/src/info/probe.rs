//! The permissions that the kernel gives this process, found by trying.
//!
//! Versions tell little: containers filter system calls, and administrators switch features off.

use std::os::fd::OwnedFd;

use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, ftruncate, memfd_create,
};
use rustix::io::{Errno, IoSlice, IoSliceMut, Result, write};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recv, recvmsg, send, sendmsg,
    socketpair,
};
use rustix::process::{PidfdFlags, getpid, getppid, pidfd_open};
use rustix::thread::{MembarrierCommand, MembarrierQuery, membarrier, membarrier_query};
use serde::Serialize;

use super::machine::line_of;

/// An ability, whether it is there, and what follows from that.
#[derive(Serialize)]
pub(super) struct Probe {
    pub(super) name: &'static str,
    pub(super) available: bool,
    pub(super) consequence: String,
}

/// All probes, in the order in which they are shown.
pub(super) fn probes() -> Vec<Probe> {
    let mut probes = memory();
    probes.extend(waking());
    probes.push(membarrier_probe());
    probes.extend(shortcuts());
    probes
}

fn probe(name: &'static str, available: bool, yes: &str, no: &str) -> Probe {
    Probe { name, available, consequence: if available { yes } else { no }.to_owned() }
}

fn memory() -> Vec<Probe> {
    vec![
        memory_to_hand_over(),
        probe(
            "descriptor passing",
            try_descriptor_passing().is_ok(),
            "processes hand memory over to each other by local sockets",
            "memory cannot be handed over: Ayre cannot run here",
        ),
        probe(
            "seal of size",
            try_seal(SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL).is_ok(),
            "no peer can end this process by making shared memory shorter",
            "a peer could end this process by making shared memory shorter: for trusted ones only",
        ),
        probe(
            "seal of writing",
            try_write_seal().is_ok(),
            "what is handed over for reading cannot be written: the processor refuses",
            "what is handed over for reading is a file opened for reading, and no more than that",
        ),
        probe(
            "huge pages in memfds",
            try_huge_memfd().is_ok(),
            "large regions may take huge pages, which makes scattered accesses faster",
            "none reserved: regions take small pages (/proc/sys/vm/nr_hugepages reserves some)",
        ),
    ]
}

/// The memory that processes share.
fn memory_to_hand_over() -> Probe {
    let consequence = match (try_memfd(), ayre::host::fallback_folder()) {
        (Ok(_), _) => {
            "processes of this host reach each other's memory: files that both map (memfd)".into()
        }
        (Err(refused), Some(place)) => format!(
            "memfd_create is refused ({refused}): files in {} stand in, {} MiB free; they cannot \
             be sealed, so only processes of this user take them to whom it is refused, too",
            place.path.display(),
            place.free >> 20
        ),
        (Err(refused), None) => {
            let consequence = format!(
                "memfd_create is refused ({refused}), and no folder has room for files in its \
                 place (set TMPDIR): Ayre cannot run here"
            );
            return Probe { name: "memory", available: false, consequence };
        }
    };
    Probe { name: "memory", available: true, consequence }
}

fn waking() -> Vec<Probe> {
    vec![
        probe(
            "eventfd",
            eventfd(0, EventfdFlags::CLOEXEC).is_ok(),
            "threads of a program wake each other by one descriptor",
            "eventfd2 is refused: threads of a program wake each other by a pipe, two descriptors",
        ),
        probe(
            "bells and epoll",
            try_bell().is_ok(),
            "a program that waits sleeps, and leaves its processor to others",
            "a program that waits keeps its processor busy: every wait polls",
        ),
        probe(
            "pidfd",
            pidfd_open(getpid(), PidfdFlags::empty()).is_ok(),
            "a peer that has died is noticed at once",
            "a peer that has died is noticed when its socket closes",
        ),
    ]
}

/// The sleeping side must be sure that a sender sees its flag; this decides who pays for that.
fn membarrier_probe() -> Probe {
    let offered = membarrier_query();
    let commands = [
        ("global", MembarrierQuery::GLOBAL),
        ("global expedited", MembarrierQuery::GLOBAL_EXPEDITED),
        ("private expedited", MembarrierQuery::PRIVATE_EXPEDITED),
        ("private expedited, core", MembarrierQuery::PRIVATE_EXPEDITED_SYNC_CORE),
        ("private expedited, rseq", MembarrierQuery::PRIVATE_EXPEDITED_RSEQ),
    ];
    let names: Vec<_> = commands
        .into_iter()
        .filter_map(|(name, command)| offered.contains(command).then_some(name))
        .collect();
    let works = membarrier(MembarrierCommand::RegisterGlobalExpedited)
        .and_then(|()| membarrier(MembarrierCommand::GlobalExpedited))
        .is_ok();
    let consequence = if works {
        format!("sending to a peer that is awake costs no fence (offered: {})", names.join("; "))
    } else {
        "every message costs its sender a fence, in case its receiver sleeps".to_owned()
    };
    Probe { name: "membarrier", available: works, consequence }
}

/// The features that Ayre uses where it may, each with what happens otherwise.
fn shortcuts() -> Vec<Probe> {
    let (segment, receive) = (libc::UDP_SEGMENT, libc::UDP_GRO);
    vec![
        kernel_copies(),
        probe(
            "packet sockets",
            try_packet_socket().is_ok(),
            "short messages to other hosts go straight over Ethernet (AYRE_ETHERNET)",
            "all to other hosts goes by UDP; with CAP_NET_RAW short messages take half the time",
        ),
        probe(
            "UDP segmentation",
            crate::sys::udp_option_works(segment, 1400),
            "sending to other hosts takes fewer system calls: one for many datagrams (GSO)",
            "sending to other hosts takes a system call for each datagram: less bandwidth",
        ),
        probe(
            "UDP coalescing",
            crate::sys::udp_option_works(receive, 1),
            "receiving from them takes fewer system calls: one for many datagrams (GRO)",
            "receiving from them takes a system call for each datagram: less bandwidth",
        ),
        probe(
            "AES instructions",
            std::arch::is_x86_feature_detected!("aes"),
            "links between hosts are encrypted by the processor's own instructions",
            "links between hosts are encrypted by a program, many times slower (--plain is not)",
        ),
    ]
}

/// Ranks are siblings, and some systems let a process attach to its own descendants only. So the
/// question is put to a process that is not a descendant: the parent.
fn kernel_copies() -> Probe {
    let own = crate::sys::cross_memory_attach_works(getpid());
    let parent = getppid().is_some_and(crate::sys::cross_memory_attach_works);
    let scope = line_of("/proc/sys/kernel/yama/ptrace_scope");
    let otherwise = "long messages of this host are copied twice, by way of shared memory";
    let consequence = match (own, parent) {
        (true, true) => "long messages of this host, MPI's too, are copied once instead of twice \
                         (process_vm_readv), where that is quicker"
            .to_owned(),
        (true, false) => format!(
            "refused for the parent process (ptrace_scope {}): {otherwise}",
            scope.as_deref().unwrap_or("unknown")
        ),
        (false, _) => format!("process_vm_readv is refused altogether: {otherwise}"),
    };
    Probe { name: "kernel copies", available: own && parent, consequence }
}

/// Tries to open the socket of a port that sends Ethernet frames.
fn try_packet_socket() -> Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    rustix::net::socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)
}

fn try_memfd() -> Result<OwnedFd> {
    let file = memfd_create("ayre-info", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&file, 4096)?;
    Ok(file)
}

fn try_seal(seals: SealFlags) -> Result<OwnedFd> {
    let file = try_memfd()?;
    fcntl_add_seals(&file, seals)?;
    Ok(file)
}

/// Succeeds when the seal is accepted and writing is then refused.
fn try_write_seal() -> Result<()> {
    let file = try_seal(SealFlags::FUTURE_WRITE)?;
    match write(&file, b"x") {
        Err(Errno::PERM) => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Err(Errno::NOTSUP),
    }
}

/// Takes one huge page of the default size for a moment.
fn try_huge_memfd() -> Result<()> {
    let size = default_huge_page_bytes().ok_or(Errno::NOTSUP)?;
    let file = memfd_create("ayre-info", MemfdFlags::CLOEXEC | MemfdFlags::HUGETLB)?;
    fallocate(&file, FallocateFlags::empty(), 0, size)
}

fn default_huge_page_bytes() -> Option<u64> {
    let table = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = table.lines().find_map(|line| line.strip_prefix("Hugepagesize:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|size| size * 1024)
}

/// Sends a descriptor through a pair of local sockets, as a grant does.
fn try_descriptor_passing() -> Result<()> {
    let kind = SocketType::SEQPACKET;
    let (near, far) = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
    let sent = [std::os::fd::AsFd::as_fd(&far)];
    let mut room = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut room);
    control.push(SendAncillaryMessage::ScmRights(&sent));
    sendmsg(&near, &[IoSlice::new(b"x")], &mut control, SendFlags::empty())?;

    let mut room = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut room);
    let mut byte = [0];
    recvmsg(&far, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let arrived = control
        .drain()
        .any(|message| matches!(message, RecvAncillaryMessage::ScmRights(fds) if fds.len() == 1));
    rustix::net::sockopt::socket_peercred(&far)?;
    if arrived { Ok(()) } else { Err(Errno::NOTSUP) }
}

/// Wakes itself, as a sender wakes a port that sleeps.
fn try_bell() -> Result<()> {
    let flags = SocketFlags::CLOEXEC;
    let (ring, bell) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let waiter = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&waiter, &bell, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
    send(&ring, &[0], SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?;
    let mut events = Vec::with_capacity(1);
    epoll::wait(&waiter, rustix::buffer::spare_capacity(&mut events), None)?;
    recv(&bell, &mut [0; 8], RecvFlags::DONTWAIT)?;
    Ok(())
}
