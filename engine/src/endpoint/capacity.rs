//! Room for remotes: which of them make room for others.
use super::{RawEndpoint, RemoteId, RemoteNames};
use crate::error::SetupError;

impl RawEndpoint {
    /// See [`RemoteNames`].
    pub fn remote_names(&self) -> RemoteNames {
        self.remotes.names().clone()
    }

    /// Whether a number names a remote, and is not stale.
    #[inline(always)]
    pub fn knows(&self, remote: RemoteId) -> bool {
        self.remotes.knows(remote)
    }

    /// Has a remote make room for one more where that is needed.
    ///
    /// # Errors
    /// [`SetupError::Exhausted`] where all of them are called, connected or waited for, or have
    /// sent what was not received yet.
    // spec: ENV-40
    pub(super) fn free_place(&mut self) -> Result<(), SetupError> {
        if self.remotes.len() < self.remotes.places() {
            return Ok(());
        }
        let gone = self.dispensable().ok_or_else(|| {
            let most = self.remotes.places();
            SetupError::exhausted(format!(
                "endpoint number; an endpoint has connections with {most} others at most"
            ))
        })?;
        self.forget(gone);
        debug_assert!(self.remotes.len() < self.remotes.places(), "it has made room");
        Ok(())
    }

    /// Links of endpoints that are not known are refused while there is no room for one more.
    // spec: ENV-40
    pub(super) fn update_full(&mut self) {
        // A peer of each remote but the endpoint itself, and one for itself.
        let (count, places) = (self.remotes.len(), self.remotes.places());
        let is_full = count + 1 >= places
            && (count >= places && self.dispensable().is_none()
                || self.port.free_number().is_err());
        if self.remotes.set_full(is_full) {
            let names = || Box::new(self.remotes.names().clone()) as _;
            self.port.remote.let_in_only(is_full.then(names));
        }
    }

    /// Of the remotes that have ended, the one that has gone first; failing that, of those that
    /// nobody has called, the one that was learned of first. None of which something was not
    /// received yet, or is waited for.
    fn dispensable(&self) -> Option<RemoteId> {
        let is_idle = |remote: RemoteId| self.protocol.kept_of(remote) == 0;
        let mut idle: Vec<_> =
            self.remotes.unused().filter(|(.., remote)| is_idle(*remote)).collect();
        if idle.is_empty() {
            return None;
        }
        idle.sort_unstable();
        let awaited = self.awaited();
        idle.into_iter().map(|(.., remote)| remote).find(|remote| !awaited[remote.index()])
    }

    /// By place, the remotes from which something is waited for, or is to be told yet.
    fn awaited(&self) -> Vec<bool> {
        let mut awaited = vec![false; self.remotes.places()];
        self.protocol.awaited().for_each(|place| awaited[place] = true);
        awaited
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::endpoint::{EndpointOptions, OutgoingMessage, PostedReceive};
    use crate::error::DisconnectReason;
    use crate::error::{Fault, PostError, Refusal};
    use crate::mem::span::Spans;
    use crate::port::config::Spin;
    use std::net::Ipv4Addr;
    use std::time::Duration;

    const POLLS: usize = 1 << 20;

    fn message() -> OutgoingMessage {
        let bytes = Spans::default();
        OutgoingMessage { tag: Some(1), data: None, bytes, context: 0, delivered: true }
    }

    fn receive(source: Option<RemoteId>) -> PostedReceive {
        PostedReceive { source, tag: Some((1, 0)), into: Spans::default(), context: 1, many: None }
    }

    /// Of this host, and as if each were on one of its own.
    fn ways() -> [EndpointOptions; 2] {
        let options = EndpointOptions::new().spin(Spin::SHARED).linger(Duration::ZERO);
        let away = options.clone().at(Ipv4Addr::LOCALHOST.into()).apart();
        [options.local(), away.silence(Duration::from_secs(60))]
    }

    fn open(options: &EndpointOptions) -> RawEndpoint {
        RawEndpoint::open_with(options).unwrap()
    }

    /// One that knows three others at most.
    fn narrow(options: &EndpointOptions) -> RawEndpoint {
        let mut endpoint = open(options);
        endpoint.remotes.narrow(3);
        endpoint
    }

    fn until(
        sides: [&mut RawEndpoint; 2],
        mut is_so: impl FnMut(&mut [&mut RawEndpoint; 2]) -> bool,
    ) {
        let mut sides = sides;
        for _ in 0..POLLS {
            if is_so(&mut sides) {
                return;
            }
            sides.iter_mut().for_each(|side| _ = side.progress(|_| ()));
        }
        panic!("it does not come to be");
    }

    /// Sends, or is told why not.
    fn send([from, to]: [&mut RawEndpoint; 2], remote: RemoteId) -> Result<(), Fault> {
        let mut sent = None;
        until([from, to], |[from, _]| match from.send(remote, &message()) {
            Err(PostError::Busy(_)) => false,
            Ok(_) => sent.replace(Ok(())).is_none(),
            Err(PostError::Fault(fault)) => sent.replace(Err(fault)).is_none(),
        });
        sent.unwrap()
    }

    /// A client whose message has come to the server, which has not received it.
    fn client(server: &mut RawEndpoint, options: &EndpointOptions) -> (RawEndpoint, RemoteId) {
        let mut client = open(options);
        let to = client.remote(&server.address()).unwrap();
        assert_eq!(send([&mut client, server], to), Ok(()));
        let (name, mut source) = (client.address().name(), None);
        until([server, &mut client], |[server, _]| {
            source = server.remotes.named(&name);
            source.is_some_and(|it| server.find(Some(it), Some((1, 0))).is_some())
        });
        (client, source.unwrap())
    }

    fn take_all(server: &mut RawEndpoint) {
        while server.find(None, Some((1, 0))).is_some() {
            server.receive(receive(None)).unwrap();
            server.progress(|_| ());
        }
    }

    fn has_completions(server: &mut RawEndpoint, remote: RemoteId) {
        for _ in 0..POLLS {
            if server.reason(remote).is_some() {
                return;
            }
            server.progress(|_| ());
        }
        panic!("it goes on");
    }

    // spec: ENV-40
    #[test]
    fn departed_remotes_free_their_room_and_their_ids_go_stale() {
        for options in ways() {
            let mut server = narrow(&options);
            let mut first = None;
            for _ in 0..10 {
                let (mut client, source) = client(&mut server, &options);
                take_all(&mut server);
                assert_eq!(server.remote(&client.address()).unwrap(), source, "it is known");
                assert_eq!(send([&mut server, &mut client], source), Ok(()), "it is answered");
                assert_ne!(first.get_or_insert(source), &mut RemoteId::new(u64::MAX >> 16, 0));
                drop(client);
                has_completions(&mut server, source);
            }
            let (_client, living) = client(&mut server, &options);
            let stale = first.unwrap();
            assert!(server.remotes.iter().any(|it| it.id().index() == stale.index()), "it is used");
            let foreign = PostError::Fault(Fault::ForeignHandle);
            assert_eq!(server.send(stale, &message()), Err(foreign));
            assert_eq!(server.receive(receive(Some(stale))), Err(foreign));
            assert!(server.find(Some(stale), Some((1, 0))).is_none());
            assert_eq!((server.reason(stale), server.remote_names().of(stale)), (None, None));
            assert!(!server.forget(stale));
            assert!(server.remotes.known(living).is_some(), "nobody else was forgotten");
        }
    }

    // spec: ENV-40
    #[test]
    fn an_awaited_or_unread_remote_keeps_its_id() {
        let [options, _] = ways();
        let mut server = narrow(&options);
        let (gone, unreceived) = client(&mut server, &options);
        drop(gone);
        has_completions(&mut server, unreceived);
        let [awaited, called] = [0, 1].map(|_| open(&options).address());
        let awaited = server.remote(&awaited).unwrap();
        server.receive(PostedReceive { tag: Some((2, 0)), ..receive(Some(awaited)) }).unwrap();
        let never_called = server.remote(&called).unwrap();
        for _ in 0..3 {
            let next = server.remote(&open(&options).address()).unwrap();
            let known = [unreceived, awaited, next].map(|it| server.remotes.known(it).is_some());
            assert_eq!(known, [true; 3]);
        }
        assert!(server.remotes.known(never_called).is_none(), "it makes room");
        take_all(&mut server);
        server.remote(&open(&options).address()).unwrap();
        assert!(
            server.remotes.known(unreceived).is_none(),
            "who has gone goes before who was not called"
        );
        assert!(server.remotes.known(awaited).is_some());
    }

    // spec: ENV-40, LIFE-27
    #[test]
    fn beyond_as_many_living_ones_callers_hear_that_there_is_no_room() {
        for options in ways() {
            let mut server = narrow(&options);
            let mut clients = [0; 3].map(|_| client(&mut server, &options));
            take_all(&mut server);
            let mut late = open(&options);
            assert!(matches!(server.remote(&late.address()), Err(SetupError::Exhausted(_))));
            let to = late.remote(&server.address()).unwrap();
            assert_eq!(send([&mut late, &mut server], to), Err(Fault::Refused));
            assert!(matches!(late.reason(to), Some(DisconnectReason::Refused(Refusal::Full(_)))));
            // One leaves: there is room.
            let (gone, place) = std::mem::replace(&mut clients[1], (late, to));
            drop(gone);
            has_completions(&mut server, place);
            client(&mut server, &options);
        }
    }
}
