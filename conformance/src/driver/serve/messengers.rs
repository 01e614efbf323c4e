//! A driver's calls about messengers: what they run, they have the suite run meanwhile.
mod groups;
mod streams;

use super::super::words::{Answer, Words, message};
use super::{Held, Made, about_own_memory, answer, done, hear, nothing, say};
use crate::engine::messenger::Member;
use crate::messenger::{
    Active, Call, ChannelOptions, Channels, Membership, MessengerOptions, Multicast,
    MulticastOptions,
};
use ayre::active::Handler;
use ayre::channel::Channel;
use ayre::collective::Group;
use ayre::multicast::Change;
use ayre::stream::Stream;
use ayre::{PeerId, Port};
use groups::Begun;

/// A port's messenger, and what has been given out of it.
pub(super) struct Messaging {
    messenger: Member<Held>,
    streams: Vec<Option<Stream>>,
    groups: Vec<Group>,
    started: Vec<Option<Box<dyn Begun>>>,
}

/// Makes a call for handlers of this number of arguments.
macro_rules! counted {
    ($count:expr, $many:ident => $call:expr) => {
        counted!($count, $many => $call; 0 1 2 3 4 5 6 7 8)
    };
    ($count:expr, $many:ident => $call:expr; $($number:literal)+) => {
        match $count {
            $($number => {
                const $many: usize = $number;
                $call
            })+
            many => panic!("a message has at most 8 arguments, and not {many}"),
        }
    };
}

/// Has the suite run something, and answers its calls until it has.
fn run(held: &mut Held, due: &str, mut make: impl FnMut(&str, &mut Words<'_>) -> Made) {
    say(&format!("run {due}"));
    loop {
        let line = hear().expect("the suite ends what it runs");
        let mut words = Words::of(&line);
        let made = match words.word() {
            "ran" => return,
            // Without the hook's noise.
            "panicked" => std::panic::resume_unwind(Box::new("as the suite says")),
            call @ ("read" | "write" | "own") => about_own_memory(held, call, &mut words),
            call => make(call, &mut words),
        };
        answer(&made.unwrap_or_else(|why| why));
    }
}

fn handler<const N: usize>(
    number: usize,
) -> impl FnMut(&mut Held, &mut dyn Call, [u64; N], &[u8]) + Send + 'static {
    move |held, call, arguments, payload| {
        let due = format!("{number} {} {}", call.source().0, message(&arguments, payload));
        run(held, &due, |name, words| match name {
            "post" => {
                let (to, by, handler) = (words.peer(), channel(words), words.number());
                let (arguments, payload) = words.message();
                nothing(call.post((to, by), handler, &arguments, &payload)?)
            }
            "cast" => {
                let (group, handler) = (Membership(words.number()), words.number());
                let (arguments, payload) = words.message();
                nothing(call.post_to_group(group, handler, &arguments, &payload)?)
            }
            _ => panic!("no handler calls `{name}`"),
        });
    }
}

fn watcher(number: usize) -> impl FnMut(&mut Held, &Change) + Send + 'static {
    let list = |peers: &[PeerId]| super::super::words::list(peers.iter().map(|peer| peer.0));
    move |held, change| {
        let due = match change {
            Change::View { number, ticket, members, joined } => {
                format!("view {number} {ticket} {} {}", list(members), list(joined))
            }
            Change::Ended => "ended".into(),
            other => panic!("the suite knows nothing of {other:?}"),
        };
        run(held, &format!("{number} {due}"), |name, _| panic!("no watcher calls `{name}`"));
    }
}

/// By which channel; 0 is none.
fn channel(words: &mut Words<'_>) -> Option<Channel> {
    Channel::with_number(words.number())
}

impl Messaging {
    pub(super) fn new(port: Port, words: &mut Words<'_>) -> Result<Self, Answer> {
        let (overflow, landing, longest) = (words.limit(), words.limit(), words.limit());
        let options = MessengerOptions { overflow, landing, longest };
        let messenger = Member::with_options(port, &options)?;
        Ok(Self { messenger, streams: vec![], groups: vec![], started: vec![] })
    }

    pub(super) fn port(&mut self) -> &mut Port {
        self.messenger.port()
    }

    pub(super) fn into_port(self) -> Port {
        self.messenger.into_port()
    }

    /// A call of a messenger's, if it is one.
    pub(super) fn make(
        &mut self,
        call: &str,
        words: &mut Words<'_>,
        held: &mut Held,
    ) -> Option<Made> {
        Some(match call {
            "handler" | "announced" => self.about_handlers(call, words),
            "call" | "try_call" => self.sends(call, words, held),
            "poll" | "serve" | "drain" | "sync" | "failures" | "forget" => {
                self.runs(call, words, held)
            }
            "channel" | "hold_channel" | "release_channel" | "poll_only" | "backlog" => {
                self.about_channels(call, words, held)
            }
            "stage" | "set_entry" | "clear_entry" | "let_set_entries" => {
                self.about_entries(call, words, held)
            }
            "open_stream" | "stream" | "push" | "try_push" | "close_stream" | "cancel" => {
                self.about_streams(call, words, held)
            }
            "group" | "group_of_all" | "fix_schedule" | "adapt" | "record" | "recording"
            | "recording_text" => self.about_groups(call, words, held),
            "collect" | "start" | "finished" | "finish" => self.collects(call, words, held),
            "found" | "join" | "leave_group" | "members" => self.about_members(call, words, held),
            "multicast" | "try_multicast" | "multicast_through" => {
                self.multicasts(call, words, held)
            }
            _ => return None,
        })
    }

    fn about_handlers(&mut self, call: &str, words: &mut Words<'_>) -> Made {
        let messenger = &mut self.messenger;
        if call == "announced" {
            let (peer, id) = (words.peer(), words.number());
            return counted!(words.number::<usize>(), N => {
                let handler = Handler::<N>::with_id(id).expect("a handler's id");
                done(u8::from(messenger.is_announced(peer, handler)))
            });
        }
        let (number, count, word) = (words.number(), words.number::<usize>(), words.word());
        if word.starts_with('x') {
            let name = Words::of(word).name();
            return counted!(count, N => {
                done(messenger.register::<N>(&name, handler(number))?.id())
            });
        }
        let id = word.parse().expect("a handler's id");
        counted!(count, N => done(messenger.register_static::<N>(id, handler(number))?.id()))
    }

    fn sends(&mut self, call: &str, words: &mut Words<'_>, held: &mut Held) -> Made {
        let (to, by, id) = (words.peer(), channel(words), words.number());
        let (arguments, payload) = words.message();
        let messenger = &mut self.messenger;
        counted!(arguments.len(), N => {
            let handler = Handler::<N>::with_id(id).expect("a handler's id");
            let arguments: [u64; N] = arguments.try_into().expect("as many");
            match (call, by) {
                ("try_call", None) => {
                    nothing(messenger.try_call(to, handler, arguments, &payload)?)
                }
                ("try_call", Some(by)) => {
                    nothing(messenger.try_call_by((to, by), handler, arguments, &payload)?)
                }
                (_, None) => nothing(messenger.call(held, to, handler, arguments, &payload)?),
                (_, Some(by)) => {
                    nothing(messenger.call_by(held, (to, by), handler, arguments, &payload)?)
                }
            }
        })
    }

    fn runs(&mut self, call: &str, words: &mut Words<'_>, held: &mut Held) -> Made {
        let messenger = &mut self.messenger;
        match call {
            "poll" => done(messenger.poll(held)),
            "serve" => done(messenger.wait(held, words.time())?),
            "drain" => {
                messenger.flush(held);
                nothing(())
            }
            "sync" => nothing(messenger.sync(held)?),
            "failures" => {
                let told = messenger.failures().map(|it| {
                    let is_ours = u8::from(it.is_ours);
                    format!("{} {} {} {is_ours}", it.peer.0, it.handler, it.cause as u8)
                });
                done(told.collect::<Vec<_>>().join(" "))
            }
            _ => nothing(messenger.disconnect(words.peer())?),
        }
    }

    fn about_channels(&mut self, call: &str, words: &mut Words<'_>, held: &mut Held) -> Made {
        let messenger = &mut self.messenger;
        if call == "channel" {
            let number = words.number();
            let (priority, weight, room) = (words.limit(), words.limit(), words.limit());
            messenger.open_channel(number, ChannelOptions { priority, weight, room })?;
            return nothing(());
        }
        let peer = (call == "backlog").then(|| words.peer());
        let channel = channel(words).expect("a channel's number");
        match (call, peer) {
            ("poll_only", _) => done(messenger.poll_only(held, channel)),
            (_, Some(peer)) => done(messenger.backlog(peer, channel)),
            ("hold_channel", _) => {
                messenger.hold(channel);
                nothing(())
            }
            _ => {
                messenger.release(channel);
                nothing(())
            }
        }
    }

    fn about_members(&mut self, call: &str, words: &mut Words<'_>, held: &mut Held) -> Made {
        let messenger = &mut self.messenger;
        match call {
            "found" => {
                let (watch, name) = (watcher(words.number()), words.name());
                let options = MulticastOptions { window: words.limit(), requests: words.limit() };
                done(messenger.found(&name, options, watch)?.0)
            }
            "join" => {
                let (watch, name, door) = (watcher(words.number()), words.name(), words.peer());
                let options = MulticastOptions { window: words.limit(), requests: words.limit() };
                done(messenger.join(held, &name, door, options, watch)?.0)
            }
            "leave_group" => nothing(messenger.leave(held, Membership(words.number()))?),
            _ => {
                let members = messenger.members(Membership(words.number())).into_iter();
                done(members.map(|peer| peer.0.to_string()).collect::<Vec<_>>().join(" "))
            }
        }
    }

    fn multicasts(&mut self, call: &str, words: &mut Words<'_>, held: &mut Held) -> Made {
        let messenger = &mut self.messenger;
        let through = (call == "multicast_through").then(|| (words.name(), words.peer()));
        let group = Membership(if through.is_none() { words.number() } else { 0 });
        let id = words.number();
        let (arguments, payload) = words.message();
        counted!(arguments.len(), N => {
            let handler = Handler::<N>::with_id(id).expect("a handler's id");
            let arguments: [u64; N] = arguments.try_into().expect("as many");
            match (call, &through) {
                (_, Some((name, door))) => {
                    let to = (&name[..], *door);
                    messenger.multicast_through(held, to, handler, arguments, &payload)?
                }
                ("multicast", _) => {
                    messenger.multicast(held, group, handler, arguments, &payload)?
                }
                _ => messenger.try_multicast(group, handler, arguments, &payload)?,
            }
            nothing(())
        })
    }
}
