//! A pair of ports with a link between them.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use anyhow::Result;
use ayre::network::Ethernet;
use ayre::{Config, NetOptions, PeerId, Port, RegionOptions, Rights, Spin};

use super::super::case::Path;
use super::super::ops::pair::{End, Pair, place};
use super::super::side::Side;
use super::{LARGEST, Options};

/// Whether frames are encrypted and authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protection {
    Plain,
    Sealed,
}

impl Protection {
    /// The word in the report.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Sealed => "sealed",
        }
    }

    /// How a port is open. Nobody dies here unnoticed: the launcher ends what is left of a job; and
    /// while other cases are measured, nobody looks after this link.
    fn options(self, at: SocketAddr) -> Result<NetOptions> {
        let options = match self {
            Self::Plain => NetOptions::plain(),
            Self::Sealed => NetOptions::sealed(KEY)?,
        };
        Ok(options.at(at).silence(A_DAY))
    }
}

/// It keeps no secret.
const KEY: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
const A_DAY: Duration = Duration::from_secs(86_400);
/// The name of the memory that is handed over.
const MEMORY: u64 = 1;

/// Opens a port on each rank, links them, and exchanges memory. Collective.
pub(super) fn join(
    side: &Side<'_>,
    options: &Options,
    protection: Protection,
    spin: Spin,
) -> Result<Rc<Pair>> {
    let ethernet = if options.ethernet { Ethernet::Required } else { Ethernet::Never };
    let change = |net: NetOptions| net.ethernet(ethernet);
    join_over(side, (options, protection), spin, change)
}

/// Two linked ports over a network as `change` makes it.
pub(super) fn join_over(
    side: &Side<'_>,
    (options, protection): (&Options, Protection),
    spin: Spin,
    change: impl FnOnce(NetOptions) -> NetOptions,
) -> Result<Rc<Pair>> {
    let mut port = Port::open(Config::new().number(side.rank() as u16).spin(spin))?;
    let own = port.connect_loopback()?;
    let net = change(protection.options(options.of(side.rank()))?);
    let other = link(&mut port, side, options, &net)?;
    let region = port.alloc(place::BULK + LARGEST, RegionOptions::new())?;
    for peer in [own, other] {
        port.share(peer, &region, 0..region.len(), Rights::all(), MEMORY)?;
    }
    let mut end =
        |peer| -> Result<End> { Ok(End { peer, memory: port.accept_region(peer, MEMORY)? }) };
    let (own, other) = (end(own)?, end(other)?);
    let member = Rc::new(RefCell::new(port));
    let pair = Rc::new(Pair { member, path: Path::Mediated, region, other, own });
    // What either has sent to the other has come before somebody stops to poll.
    pair.serve(side);
    Ok(pair)
}

fn link(port: &mut Port, side: &Side<'_>, options: &Options, net: &NetOptions) -> Result<PeerId> {
    let own = port.open_net(net)?[0];
    let first = SocketAddr::new(options.of(0).ip(), side.agree(own.port().into()) as u16);
    Ok(if side.measures() { port.accept()? } else { port.connect_net(&[first])? })
}
