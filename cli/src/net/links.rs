//! Links by the names of their ends.

use anyhow::{Result, bail};
use ayre_sim::topology::{Link, Named, Port};

/// A link's two ends, as `ROUTER:PORT -> ROUTER:PORT`.
pub(super) fn told(named: &Named, link: Link) -> String {
    let end = |port: Port| format!("{}:{}", named.routers[port.router as usize], port.port);
    format!("{} -> {}", end(link.from), end(link.to))
}

/// The places of the links that a word names: `ROUTER--ROUTER` are all between two routers,
/// `ROUTER:PORT` is that at a port, both with those of the opposite direction.
pub(super) fn meant(named: &Named, word: &str) -> Result<Vec<usize>> {
    let is_meant: Box<dyn Fn(&Link) -> bool> = if let Some(port) = port(named, word)? {
        Box::new(move |link| link.from == port || link.to == port)
    } else if let Some([one, other]) = pair(named, word) {
        Box::new(move |link| {
            let ends = [link.from.router, link.to.router];
            ends == [one, other] || ends == [other, one]
        })
    } else {
        bail!("`{word}` names no link: it is ROUTER--ROUTER or ROUTER:PORT, by their names");
    };
    let links = named.topology.links.iter().enumerate().filter(|(_, link)| is_meant(link));
    let links: Vec<_> = links.map(|(place, _)| place).collect();
    if links.is_empty() {
        bail!("there is no link `{word}`");
    }
    Ok(links)
}

fn port(named: &Named, word: &str) -> Result<Option<Port>> {
    let Some((name, port)) = word.split_once(':') else { return Ok(None) };
    match (named.router(name), port.parse()) {
        (Some(router), Ok(port)) => Ok(Some(Port { router, port })),
        (None, _) => bail!("`{word}`: there is no router `{name}`"),
        (_, Err(_)) => bail!("`{word}`: `{port}` is no number of a port"),
    }
}

/// Names may contain dashes, too.
fn pair(named: &Named, word: &str) -> Option<[u32; 2]> {
    let dashes = (0..word.len()).filter(|at| word.as_bytes()[*at..].starts_with(b"--"));
    dashes
        .into_iter()
        .find_map(|at| Some([named.router(&word[..at])?, named.router(&word[at + 2..])?]))
}
