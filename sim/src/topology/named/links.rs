//! Links by the names of their ends.
use super::super::{Link, Port};
use super::{LinkError, Named};
use std::collections::BTreeSet;

/// The links that a word names.
#[derive(Clone, Copy)]
enum Meant {
    /// Those at a port.
    At(Port),
    /// Those between two routers.
    Between([u32; 2]),
}

impl Named {
    /// The places of the links that a text names, as a list with commas. `ROUTER--ROUTER` are all
    /// links between two routers, and `ROUTER:PORT` is that at a port. Both are meant with the
    /// links of the opposite direction.
    ///
    /// # Errors
    /// See [`LinkError`].
    pub fn links(&self, text: &str) -> Result<Vec<usize>, LinkError> {
        let mut all = BTreeSet::new();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let meant = self.meant(word)?;
            let links = self.topology.links.iter().enumerate();
            let links = links.filter(|(_, link)| meant.is(link)).map(|(place, _)| place);
            let places: Vec<_> = links.collect();
            if places.is_empty() {
                return Err(LinkError::NoLink(brief(word)));
            }
            all.extend(places);
        }
        Ok(all.into_iter().collect())
    }

    fn meant(&self, word: &str) -> Result<Meant, LinkError> {
        let form = || LinkError::Form(brief(word));
        if let Some((name, port)) = word.split_once(':') {
            let unknown = || LinkError::Unknown { word: brief(word), router: brief(name) };
            let router = self.router(name).ok_or_else(unknown)?;
            let port = port.parse().map_err(|_| form())?;
            return Ok(Meant::At(Port { router, port }));
        }
        // Names may have dashes, too.
        let ends = word.match_indices("--").find_map(|(at, dashes)| {
            Some([self.router(&word[..at])?, self.router(&word[at + dashes.len()..])?])
        });
        ends.map(Meant::Between).ok_or_else(form)
    }
}

impl Meant {
    fn is(self, link: &Link) -> bool {
        match self {
            Self::At(port) => link.from == port || link.to == port,
            Self::Between([one, other]) => {
                let ends = [link.from.router, link.to.router];
                ends == [one, other] || ends == [other, one]
            }
        }
    }
}

/// The beginning of a text, for errors.
fn brief(text: &str) -> String {
    text.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Topology;

    #[test]
    fn links_are_found_by_name() {
        let ring = Named::by_number(Topology::torus(&[4]).unwrap());
        let ends = |text| {
            let links = ring.links(text).unwrap().into_iter();
            let links = links.map(|place| ring.topology.links[place]);
            links.map(|link| (link.from.router, link.to.router)).collect::<Vec<_>>()
        };
        assert_eq!(ends("r0--r1"), [(0, 1), (1, 0)]);
        assert_eq!(ends("r3:0, r1--r2"), [(0, 3), (1, 2), (2, 1), (3, 0)]);
        assert_eq!(ends("r0--r1, r1--r0"), [(0, 1), (1, 0)]);
        assert_eq!(ends(""), []);
        let said = |text| ring.links(text).unwrap_err().to_string();
        assert_eq!(said("r0--r2"), "there is no link `r0--r2`");
        assert_eq!(said("r0:2"), "there is no link `r0:2`");
        assert_eq!(said("r9:1"), "`r9:1`: there is no router `r9`");
        assert!(said("r0-r1").starts_with("`r0-r1` names no link"));
        // The first dashes that part the word into two names count.
        let mut names = ring.clone();
        names.routers[0] = "a--b".to_owned();
        assert_eq!(names.links("a--b--r1").unwrap(), ring.links("r0--r1").unwrap());
    }
}
