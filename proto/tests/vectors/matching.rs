//! Vectors of the matcher.
use super::script::{Fields, Machine, Script};
use ayre_proto::matching::{
    Arrive, Budget, Matcher, Message, MessageId, Pattern, Place, Post, PostMulti, Receive,
    ReceiveId, Removed, Share, Sizes,
};
use std::fmt::Write as _;

pub(crate) const HEADER: &str = "\
Which matched message goes into which receive (proto/src/matching/, spec/45).
Numbers are hexadecimal, `-` is any source, an unknown one, or nothing. HANDLEs are the caller's.
N is the place of a receive among those that have waited, or of a message among those kept.

matcher RECEIVES MESSAGES SOURCES -> ok             no receive, no message
grow RECEIVES MESSAGES -> RECEIVES MESSAGES         how large the tables are
post SOURCE TAG IGNORE CAPACITY HANDLE -> matched HANDLE     or posted N, or busy
multi SOURCE TAG IGNORE CAPACITY LEAST HANDLE -> posted N TAKEN      or released TAKEN, or busy
  TAKEN is, for each message taken: HANDLE OFFSET LEN
arrive SOURCE TAG LEN HANDLE WHOLE -> matched HANDLE OFFSET LEN RELEASED   or unexpected N, or busy
peek SOURCE TAG IGNORE -> N HANDLE                  or -
aside N -> ok                                       set aside, or gone
complete N -> ok                                    the body is whole, or gone
take N -> HANDLE                                    or gone
cancel N -> HANDLE                                  or gone
remove SOURCE -> RECEIVES MESSAGES                  handles, r before each receive's and m before
                                                    each message's, or -
budget LIMIT SOURCES -> ok                          nothing is kept
keep SOURCE BYTES -> fair                           or much, or over
back SOURCE BYTES -> KEPT LITTLE                    of all; whether the source has little";

/// A matcher and the names that it gave.
struct Named {
    matcher: Matcher,
    budget: Budget,
    receives: Vec<ReceiveId>,
    messages: Vec<MessageId>,
}

impl Named {
    fn new(sizes: Sizes) -> Self {
        let (matcher, budget) = (Matcher::new(sizes, 0), Budget::new(0, 0));
        Self { matcher, budget, receives: Vec::new(), messages: Vec::new() }
    }

    fn posted(&mut self, id: ReceiveId) -> String {
        self.receives.push(id);
        format!("posted {:x}", self.receives.len() - 1)
    }

    fn post(&mut self, inputs: &mut Fields<'_>) -> String {
        let pattern = pattern(inputs);
        let (capacity, handle) = (inputs.number(), inputs.number());
        match self.matcher.post(Receive { pattern, capacity, handle }) {
            Post::Matched(Message { handle, .. }) => format!("matched {handle:x}"),
            Post::Posted(id) => self.posted(id),
            Post::Busy => "busy".to_owned(),
        }
    }

    fn multi(&mut self, inputs: &mut Fields<'_>) -> String {
        let pattern = pattern(inputs);
        let (capacity, least, handle) = (inputs.number(), inputs.number(), inputs.number());
        let (receive, mut taken) = (Receive { pattern, capacity, handle }, String::new());
        let end = self.matcher.post_multi(receive, least, |message, place| {
            let (handle, Place { offset, len, .. }) = (message.handle, place);
            write!(taken, " {handle:x} {offset:x} {len:x}").expect("memory");
        });
        match end {
            PostMulti::Posted(id) => self.posted(id) + &taken,
            PostMulti::Released => "released".to_owned() + &taken,
            PostMulti::Busy => "busy".to_owned(),
        }
    }

    fn arrive(&mut self, inputs: &mut Fields<'_>) -> String {
        let (source, tag, len) = (inputs.maybe(), inputs.number(), inputs.number());
        let (handle, whole) = (inputs.number(), inputs.number::<u8>() == 1);
        match self.matcher.arrive(Message { source, tag, len, handle, whole }) {
            Arrive::Matched(Place { handle, offset, len, released, .. }) => {
                format!("matched {handle:x} {offset:x} {len:x} {}", u8::from(released))
            }
            Arrive::Unexpected(id) => {
                self.messages.push(id);
                format!("unexpected {:x}", self.messages.len() - 1)
            }
            Arrive::Busy => "busy".to_owned(),
        }
    }

    fn peek(&mut self, inputs: &mut Fields<'_>) -> String {
        let Some((id, message)) = self.matcher.peek(pattern(inputs)) else {
            return "-".to_owned();
        };
        let place = self.messages.iter().position(|other| *other == id).expect("a name it gave");
        format!("{place:x} {:x}", message.handle)
    }

    fn remove(&mut self, source: u32) -> String {
        let (mut receives, mut messages) = (Vec::new(), Vec::new());
        self.matcher.remove(source, |removed| match removed {
            Removed::Receive { id, handle } => receives.push((id, handle)),
            Removed::Message { handle, .. } => messages.push(format!("m{handle:x}")),
        });
        // They go in no certain order; here they stand in that of posting.
        receives.sort_unstable();
        let receives = receives.iter().map(|(_, handle)| format!("r{handle:x}"));
        let gone: Vec<String> = receives.chain(messages).collect();
        if gone.is_empty() { "-".to_owned() } else { gone.join(" ") }
    }
}

fn pattern(inputs: &mut Fields<'_>) -> Pattern {
    Pattern { source: inputs.maybe(), tag: inputs.number(), ignore: inputs.number() }
}

fn done(is_there: bool) -> String {
    if is_there { "ok" } else { "gone" }.to_owned()
}

fn named(handle: Option<u64>) -> String {
    handle.map_or_else(|| "gone".to_owned(), |handle| format!("{handle:x}"))
}

pub(crate) fn machine() -> Box<dyn Machine> {
    Box::new(Named::new(Sizes { receives: 1, messages: 1, sources: 1 }))
}

impl Machine for Named {
    fn step(&mut self, name: &str, inputs: &mut Fields<'_>) -> String {
        match name {
            "matcher" => {
                let (receives, messages) = (inputs.number(), inputs.number());
                *self = Self::new(Sizes { receives, messages, sources: inputs.number() });
                "ok".to_owned()
            }
            "post" => self.post(inputs),
            "multi" => self.multi(inputs),
            "arrive" => self.arrive(inputs),
            "peek" => self.peek(inputs),
            "aside" => done(self.matcher.set_aside(self.messages[inputs.number::<usize>()])),
            "complete" => done(self.matcher.complete(self.messages[inputs.number::<usize>()])),
            "take" => {
                let message = self.matcher.take(self.messages[inputs.number::<usize>()]);
                named(message.map(|message| message.handle))
            }
            "cancel" => named(self.matcher.cancel(self.receives[inputs.number::<usize>()])),
            "remove" => self.remove(inputs.number()),
            "grow" => {
                self.matcher.grow(inputs.number(), inputs.number());
                let Sizes { receives, messages, .. } = self.matcher.sizes();
                format!("{receives:x} {messages:x}")
            }
            "budget" => {
                self.budget = Budget::new(inputs.number(), inputs.number());
                "ok".to_owned()
            }
            "keep" => match self.budget.keep(inputs.number(), inputs.number()) {
                Share::Fair => "fair".to_owned(),
                Share::Much => "much".to_owned(),
                Share::Over => "over".to_owned(),
            },
            "back" => {
                let source = inputs.number();
                self.budget.give_back(source, inputs.number());
                format!("{:x} {}", self.budget.kept(), u8::from(self.budget.has_little(source)))
            }
            _ => panic!("{name} is no step of a matcher"),
        }
    }
}

const ALL: u64 = u64::MAX;

pub(crate) fn script(s: &mut Script) {
    s.section("the oldest receive that accepts it, whatever else accepts it, too");
    s.run("matcher 8 8 4");
    for (handle, receive) in
        ["1 5 0", "- 5 0", "1 0 f", "2 5 0", "- 0 ffffffffffffffff"].iter().enumerate()
    {
        s.run(format!("post {receive} 10 {handle:x}"));
    }
    for message in ["1 5", "2 5", "2 5", "1 f", "- 77", "1 5", "- 5"] {
        s.run(format!("arrive {message} 8 aa 1"));
    }
    s.section("the oldest message that it accepts");
    for receive in ["- 5 8000000000000000", "1 5 0", "2 5 0"] {
        s.run(format!("peek {receive}"));
        s.run(format!("post {receive} 10 bb"));
    }
    s.section("set aside, taken, thrown away, cancelled; names are used once");
    s.run("matcher 2 8 4");
    for handle in 0..4 {
        s.run(format!("arrive 1 7 8 {handle:x} 1"));
    }
    for step in ["aside 0", "aside 0", "peek 1 7 0", "take 1", "take 1", "post 1 7 0 8 e"] {
        s.run(step);
    }
    for step in ["take 0", "take 0", "aside 2", "complete 2", "peek - 7 0", "take 3"] {
        s.run(step);
    }
    for step in ["post 1 7 0 8 f", "cancel 0", "cancel 0", "arrive 1 7 8 4 1", "take 4"] {
        s.run(step);
    }
    s.section("many messages in one buffer; what does not fit is cut");
    s.run("matcher 4 8 4");
    for len in ["10", "10", "8", "0"] {
        s.run(format!("arrive 1 0 {len} {len} 1"));
    }
    s.run(format!("multi - 0 {ALL:x} 28 9 a"));
    s.run(format!("multi 1 0 {ALL:x} 28 8 b"));
    s.run(format!("multi 1 0 {ALL:x} 28 8 c"));
    for len in ["20", "1", "20", "ffffffffffffffff", "1"] {
        s.run(format!("arrive 1 0 {len} 0 1"));
    }
    s.run("post 1 0 0 4 d");
    full(s);
    s.section("a source goes");
    s.run("matcher 8 10 4");
    for step in ["post 1 9 0 8 1", "post 2 9 0 8 2", "post - 9 0 8 3", "post 1 f0 f 8 4"] {
        s.run(step);
    }
    for (handle, whole) in [(0xa, 0), (0xb, 1), (0xc, 0), (0xd, 0)] {
        s.run(format!("arrive 1 1 8 {handle:x} {whole}"));
    }
    for step in ["complete 2", "aside 3", "remove 1", "remove 1", "take 3", "cancel 3"] {
        s.run(step);
    }
    for step in ["post - 1 0 8 5", "post - 1 0 8 6", "arrive 1 9 8 e 1", "arrive 2 9 8 f 1"] {
        s.run(step);
    }
    s.section("how much is kept of whom");
    s.run("budget 4b0 4");
    for step in ["keep 0 64", "keep 0 80", "keep 0 c8", "keep 1 64", "back 0 c8", "back 0 e4"] {
        s.run(step);
    }
    for step in ["keep 2 190", "keep 0 1f4", "keep 3 0", "keep 3 ffffffffffffffff"] {
        s.run(step);
    }
    s.section("at random");
    traffic(s);
}

fn full(s: &mut Script) {
    s.section("full, and grown");
    s.run("matcher 1 3 4");
    for source in ["0", "0", "-", "1"] {
        s.run(format!("arrive {source} 1 8 {} 1", source.replace('-', "9")));
    }
    s.run("post 3 2 0 8 1");
    s.run("post 3 1 0 8 2");
    s.run("post 0 1 0 8 2");
    s.run("arrive 3 1 8 8 1");
    s.run("arrive 3 1 8 9 1");
    s.run("grow 2 5");
    for step in ["post 3 3 0 8 3", "post 3 3 0 8 4", "arrive 1 1 8 a 1", "arrive 1 1 8 b 1"] {
        s.run(step);
    }
    s.run("grow 1 1");
    for step in ["arrive 1 1 8 c 1", "arrive 3 3 8 d 1", "arrive 3 2 8 e 1", "post - 1 0 8 5"] {
        s.run(step);
    }
}

fn traffic(s: &mut Script) {
    s.run("matcher 6 10 4");
    let (mut receives, mut messages) = (0, 0);
    for handle in 0..240u64 {
        let source = ["0", "1", "2", "3", "-"][s.random.below(5) as usize];
        let (tag, len) = (s.random.below(3) | s.random.below(2) << 63, s.random.below(40));
        let bits = [0, 1, 3, 1 << 63, 1 << 63 | 1, ALL];
        let ignore = s.random.pick(&bits);
        let receive = format!("{source} {tag:x} {ignore:x}");
        let made = match s.random.below(12) {
            0..5 => {
                let whole = s.random.below(2);
                s.run(format!("arrive {source} {tag:x} {len:x} {handle:x} {whole}"))
            }
            5..8 => s.run(format!("post {receive} {len:x} {handle:x}")),
            8 => {
                let least = s.random.below(16);
                s.run(format!("multi {receive} {len:x} {least:x} {handle:x}"))
            }
            9 => s.run(format!("peek {receive}")),
            10 if messages > 0 => {
                let name = s.random.pick(&["aside", "take", "complete"]);
                let by = s.random.below(messages.min(8));
                s.run(format!("{name} {:x}", messages - 1 - by))
            }
            _ if handle % 32 == 4 => {
                s.run(format!("grow {:x} {:x}", 6 + handle / 16, 9 + handle / 8))
            }
            _ if handle % 8 == 0 => s.run(format!("remove {:x}", handle / 8 % 4)),
            _ if receives > 0 => {
                let by = s.random.below(receives.min(6));
                s.run(format!("cancel {:x}", receives - 1 - by))
            }
            _ => continue,
        };
        receives += u64::from(made.starts_with("posted"));
        messages += u64::from(made.starts_with("unexpected"));
    }
}
