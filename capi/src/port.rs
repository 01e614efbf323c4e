//! Ports: opening, connecting, progress, jobs.
use crate::access::{ayre_notification, ayre_peer, timeout};
use crate::border::{self, In, Out, Text, TextBuffer};
use crate::error::{self, Failure, Outcome, flag, number, status, taken};
use crate::interface::Interface;
use crate::place::handle;
use ayre::{Config, Mode, NetOptions, PeerId, Port, Spin};
use std::ffi::c_int;
use std::mem::size_of;
use std::net::SocketAddr;
use std::time::Duration;

/// One process's interface to its peers. A port is used by one thread at a time. A program with
/// several threads that communicate opens one for each. `ayre_messenger_start` makes a messenger of
/// it, for handlers and all that is built on them.
pub struct ayre_port(#[allow(dead_code, reason = "opaque")] Interface);
handle!(ayre_port of Interface);

/// Peers access this port's memory themselves: for processes that trust each other not to break
/// the protocol.
pub const AYRE_DIRECT: u32 = 0;
/// This port performs the operations of its peers, and checks each.
pub const AYRE_MEDIATED: u32 = 1;

/// The options of a port. Fill it by `ayre_config_init`, then change what you like.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ayre_config {
    /// Bytes of this structure, by which the library knows the version of the header.
    pub size: usize,
    /// `AYRE_DIRECT` or `AYRE_MEDIATED`. A connection is direct only where both ports choose that.
    pub mode: u32,
    /// The number by which peers know this port. A job gives its own.
    pub number: u32,
    /// Polls of a blocking wait before it yields.
    pub spin_polls: u32,
    /// Yields before it sleeps.
    pub spin_yields: u32,
    /// The longest time that connecting and accepting may take, in microseconds.
    pub setup_timeout_us: u64,
    /// For how long a revocation waits for a peer inside an operation, in microseconds.
    pub revoke_grace_us: u64,
    /// For how long closing may deliver posted operations to other hosts, in microseconds.
    pub linger_us: u64,
}

/// Fills a structure of options with the usual ones: direct connections, number 0, one minute for
/// set-up.
///
/// `size` is `sizeof(struct ayre_config)`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_config_init(config: Out<ayre_config>, size: usize) -> c_int {
    let usual = ayre_config {
        size,
        mode: AYRE_DIRECT,
        number: 0,
        spin_polls: Spin::DEDICATED.polls,
        spin_yields: Spin::DEDICATED.yields,
        setup_timeout_us: 60_000_000,
        revoke_grace_us: 100_000,
        linger_us: 1_000_000,
    };
    status(|| {
        if size != size_of::<ayre_config>() {
            return Err(Failure::Argument("the size of the options is none of this version"));
        }
        config.given()?;
        config.fill(usual);
        Ok(())
    })
}

fn config(options: In<ayre_config>) -> Outcome<Config> {
    let Some(options) = options.get() else { return Ok(Config::new()) };
    if options.size != size_of::<ayre_config>() {
        return Err(Failure::Argument("fill the options by ayre_config_init"));
    }
    let number = u16::try_from(options.number);
    let mode = match options.mode {
        AYRE_DIRECT => Mode::Direct,
        AYRE_MEDIATED => Mode::Mediated,
        _ => return Err(Failure::Argument("the mode is AYRE_DIRECT or AYRE_MEDIATED")),
    };
    Ok(Config::new()
        .mode(mode)
        .number(number.map_err(|_| Failure::Argument("a port's number is below 65536"))?)
        .spin(Spin { polls: options.spin_polls, yields: options.spin_yields })
        .setup_timeout(Duration::from_micros(options.setup_timeout_us))
        .revoke_grace(Duration::from_micros(options.revoke_grace_us))
        .linger(Duration::from_micros(options.linger_us)))
}

/// Opens a port without peers. `options` may be NULL. Does not block. End it with
/// `ayre_port_close` or `ayre_port_leave`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_port_open(options: In<ayre_config>, port: Out<*mut ayre_port>) -> c_int {
    status(|| port.hand_out(|| Ok(Interface::Port(Port::open(config(options)?)?))))
}

/// Joins the job that `ayre run`, mpirun or Slurm has started this process in, and connects with
/// all its ranks. `options` may be NULL. Blocks until all ranks have joined.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_port_join(options: In<ayre_config>, port: Out<*mut ayre_port>) -> c_int {
    status(|| port.hand_out(|| Ok(Interface::Port(Port::join_with(config(options)?)?))))
}

/// 1 if a launcher has started this process as a rank of a job, else 0.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_is_launched() -> c_int {
    flag(|| Ok(Port::is_launched()))
}

/// Closes a port: peers take it for dead. Blocks at most for `linger_us` of its options. Its other
/// handles are to be closed, too, before or after it. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_port_close(port: Out<ayre_port>) -> c_int {
    border::closed(port)
}

/// Leaves all peers once what was posted and sent has arrived, and closes the port. Blocks.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_port_leave(port: Out<ayre_port>) -> c_int {
    status(|| Ok(port.close()?.into_port().leave()?))
}

/// The number by which peers know this port; in a job, the rank.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_port_rank(port: Out<ayre_port>) -> c_int {
    error::count(|| Ok(port.held()?.rank()))
}

/// The ports of the job, this one included; 1 for a port outside of jobs.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_port_size(port: Out<ayre_port>) -> c_int {
    error::count(|| Ok(port.held()?.size()))
}

/// Lists the connected peers, at most `room` of them, in ascending order. Returns how many there
/// are.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_port_peers(port: Out<ayre_port>, peers: Out<ayre_peer>, room: usize) -> i64 {
    number(|| peers.list(port.held()?.peers(), room))
}

/// Listens at a path, for peers of this host. Does not block.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_port_listen(port: Out<ayre_port>, path: Text) -> c_int {
    status(|| Ok(port.held()?.listen(path.text()?)?))
}

/// Connects with the port that listens at a path. Blocks until it has accepted. Returns the peer.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_port_connect(port: Out<ayre_port>, path: Text) -> c_int {
    error::peer(|| Ok(port.held()?.connect(path.text()?)?))
}

/// Accepts the next port that connects. Blocks. Returns the peer.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_port_accept(port: Out<ayre_port>) -> c_int {
    error::peer(|| Ok(port.held()?.accept()?))
}

/// Connects a port with itself. Returns the peer.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_port_connect_loopback(port: Out<ayre_port>) -> c_int {
    error::peer(|| Ok(port.held()?.connect_loopback()?))
}

/// Opens the port to other hosts, at the addresses of `AYRE_NET`, or all that others may reach.
///
/// Links are encrypted by `key`, 64 hexadecimal digits that all ports share; NULL gives plain
/// links, for closed networks. Writes where the port is found, as text such as
/// `192.0.2.1:7000 [2001:db8::1]:7000`, into `addresses`, which has `room` bytes. Returns the
/// length of that text; if it is not below `room`, the text is cut.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_port_open_net(
    port: Out<ayre_port>,
    key: Text,
    addresses: TextBuffer,
    room: usize,
) -> i64 {
    number(|| {
        let options = match key.is_null() {
            true => NetOptions::plain(),
            false => NetOptions::sealed(key.text()?)?,
        };
        let found: Vec<_> = port.held()?.open_net(&options)?;
        let found: Vec<_> = found.iter().map(SocketAddr::to_string).collect();
        let found = found.join(" ");
        addresses.say(&found, room)?;
        Ok(found.len() as i64)
    })
}

/// Connects with a port of another host. `addresses` is the text that `ayre_port_open_net` has
/// given there. Blocks until it has accepted. Returns the peer.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_port_connect_net(port: Out<ayre_port>, addresses: Text) -> c_int {
    error::peer(|| {
        let all = addresses.text()?.split_ascii_whitespace().map(str::parse).collect();
        let all: Vec<SocketAddr> = Result::map_err(all, |_| {
            Failure::Argument("an address has the form 192.0.2.1:7000 or [2001:db8::1]:7000")
        })?;
        Ok(port.held()?.connect_net(&all)?)
    })
}

/// Ends a connection at once and forgets the peer, which is told.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_port_disconnect(port: Out<ayre_port>, peer: ayre_peer) -> c_int {
    status(|| Ok(port.held()?.disconnect(PeerId(peer))?))
}

/// The mode of a connection: `AYRE_DIRECT` or `AYRE_MEDIATED`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_port_mode(port: Out<ayre_port>, peer: ayre_peer) -> c_int {
    flag(|| Ok(port.held()?.mode(PeerId(peer))? == Mode::Mediated))
}

/// 1 if the peer is alive, as far as this port knows. `ayre_progress` finds out.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_port_is_alive(port: Out<ayre_port>, peer: ayre_peer) -> c_int {
    flag(|| Ok(port.held()?.is_alive(PeerId(peer))))
}

/// Starts a thread of the library that performs the operations of mediated peers. Without it the
/// port does so in its own calls.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_port_start_engine(port: Out<ayre_port>) -> c_int {
    status(|| Ok(port.held()?.start_engine()?))
}

/// Serves peers and takes in what has come. Does not block.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_progress(port: Out<ayre_port>) -> c_int {
    status(|| {
        port.held()?.progress();
        Ok(())
    })
}

/// Waits until all ranks of the job have come here. Blocks.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_barrier(port: Out<ayre_port>) -> c_int {
    status(|| Ok(port.held()?.barrier()?))
}

/// Waits until all operations on a peer have completed there. Blocks.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_flush(port: Out<ayre_port>, peer: ayre_peer) -> c_int {
    status(|| Ok(port.held()?.flush(PeerId(peer))?))
}

/// 1 if all operations on a peer have completed there. Does not block.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_is_flushed(port: Out<ayre_port>, peer: ayre_peer) -> c_int {
    flag(|| Ok(port.held()?.is_flushed(PeerId(peer))))
}

/// Takes the next notification. Returns 1 if there was one, else 0. Does not block.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_poll_notification(
    port: Out<ayre_port>,
    note: Out<ayre_notification>,
) -> c_int {
    flag(|| {
        note.given()?;
        let found = port.held()?.poll_notification();
        let is_found = found.is_some();
        found.into_iter().for_each(|found| note.fill(found));
        Ok(is_found)
    })
}

/// Takes the next notification. Waits for it for `timeout_us` microseconds; for ever if that is
/// negative. Returns 1.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_wait_notification(
    port: Out<ayre_port>,
    note: Out<ayre_notification>,
    timeout_us: i64,
) -> c_int {
    let wait = || {
        note.given()?;
        note.fill(port.held()?.wait_notification(timeout(timeout_us))?);
        Ok(true)
    };
    taken(wait, |also| {
        if let Err(died) = also {
            let _ = note.change(|note| note.source = died.0);
        }
    })
}

/// How many calls were refused for a reason, `AYRE_BUSY_MESSAGES` to `AYRE_BUSY_CHANNEL`, and how
/// many operations have ended with a fault, `AYRE_FAULT_UNKNOWN_KEY` to `AYRE_FAULT_INTERRUPTED`.
/// With `AYRE_PROTOCOL` as the code: malformed input of peers.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_port_count(port: Out<ayre_port>, code: c_int) -> i64 {
    number(|| {
        let counters = port.held()?.counters();
        let count = match code {
            error::AYRE_PROTOCOL => Some(counters.malformed()),
            _ => error::busy_of(code)
                .map(|why| counters.busy(why))
                .or_else(|| error::fault_of(code).map(|why| counters.faults(why))),
        };
        let count = count.ok_or(Failure::Argument("nothing is counted under this code"))?;
        Ok(count as i64)
    })
}
