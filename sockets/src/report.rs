//! The report of bytes by way, for those who ask by `AYRE_SOCKETS_REPORT`.
use crate::stream::Stream;
use crate::table::{self, Entry};
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

static CONNECTIONS: AtomicU64 = AtomicU64::new(0);
static RINGS: AtomicU64 = AtomicU64::new(0);
static BYTES: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

/// Counts a stream that this process has closed, or has open at its end. If several processes have
/// had it, as after a fork, the last one counts it, with the bytes of all.
pub(crate) fn count(stream: &Stream) {
    if !stream.connection().has_met() || !stream.connection().is_last_holder() {
        return;
    }
    let (out, inward) = (stream.connection().counts_out(), stream.connection().counts_in());
    CONNECTIONS.fetch_add(1, Ordering::Relaxed);
    if out.ring + inward.ring > 0 {
        RINGS.fetch_add(1, Ordering::Relaxed);
    }
    for (sum, bytes) in BYTES.iter().zip([out.ring, inward.ring, out.kernel, inward.kernel]) {
        sum.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// In a forked child: counts begin anew.
pub(crate) fn in_child() {
    for sum in BYTES.iter().chain([&CONNECTIONS, &RINGS]) {
        sum.store(0, Ordering::Relaxed);
    }
}

/// Writes the line of this process, once.
pub(crate) fn write() {
    static IS_WRITTEN: AtomicBool = AtomicBool::new(false);
    let Some(path) = std::env::var_os("AYRE_SOCKETS_REPORT") else { return };
    if IS_WRITTEN.swap(true, Ordering::Relaxed) {
        return;
    }
    let streams = table::all().into_iter().filter_map(|(_, entry)| match &*entry {
        Entry::Stream(stream) => Some(stream.clone()),
        _ => None,
    });
    let mut seen: Vec<*const Stream> = Vec::new();
    for stream in streams {
        if !seen.contains(&std::sync::Arc::as_ptr(&stream)) {
            seen.push(std::sync::Arc::as_ptr(&stream));
            count(&stream);
        }
    }
    if CONNECTIONS.load(Ordering::Relaxed) == 0 {
        return;
    }
    let program = std::env::current_exe().unwrap_or_default();
    let program = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let of = |sum: &AtomicU64| sum.load(Ordering::Relaxed);
    let [ring_out, ring_in, tcp_out, tcp_in] = [0, 1, 2, 3].map(|i| of(&BYTES[i]));
    let (connections, rings) = (of(&CONNECTIONS), of(&RINGS));
    let line = format!(
        "pid={} program={program} connections={connections} rings={rings} fallbacks={} \
         ring_bytes_out={ring_out} ring_bytes_in={ring_in} tcp_bytes_out={tcp_out} \
         tcp_bytes_in={tcp_in}\n",
        std::process::id(),
        connections - rings,
    );
    let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
    let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
}
