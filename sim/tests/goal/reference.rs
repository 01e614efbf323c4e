//! LogGOPSim's algorithm as it stands: one queue of events, lists for matching, retries.
use ayre_sim::goal::LogGops;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Send,
    Receive,
    Calc,
    Arrival,
}

#[derive(Clone, Debug, Default)]
struct Operation {
    kind: u8,
    rank: usize,
    size: u64,
    /// The other rank, or -1.
    peer: i64,
    tag: i64,
    cpu: usize,
    nic: usize,
    waits: u32,
    on_start: Vec<usize>,
    on_end: Vec<usize>,
    done: bool,
}

impl Operation {
    fn kind(&self) -> Kind {
        [Kind::Send, Kind::Receive, Kind::Calc][usize::from(self.kind)]
    }
}

/// Reads what `draw` writes: one statement in a line, words with spaces between them.
fn read(text: &str) -> (usize, Vec<Operation>) {
    let (mut ranks, mut rank, mut first) = (0, 0, 0);
    let mut operations: Vec<Operation> = Vec::new();
    let label = |word: &str| word[1..].trim_end_matches(':').parse::<usize>().unwrap();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let after = |name: &str| {
            let place = words.iter().position(|word| *word == name);
            place.map(|place| words[place + 1].trim_end_matches('b').parse::<i64>().unwrap())
        };
        match words[..] {
            ["num_ranks", number] => ranks = number.parse().unwrap(),
            ["rank", number, "{"] => (rank, first) = (number.parse().unwrap(), operations.len()),
            [one, verb @ ("requires" | "irequires"), other] => {
                let (one, other) = (first + label(one), first + label(other));
                operations[one].waits += 1;
                let other = &mut operations[other];
                if verb == "requires" { &mut other.on_end } else { &mut other.on_start }.push(one);
            }
            [_, verb @ ("send" | "recv" | "calc"), ..] => operations.push(Operation {
                kind: ["send", "recv", "calc"].iter().position(|kind| *kind == verb).unwrap() as u8,
                rank,
                size: after(verb).unwrap() as u64,
                peer: after("to").or_else(|| after("from")).unwrap_or(0),
                tag: after("tag").unwrap_or(0),
                cpu: after("cpu").unwrap_or(0) as usize,
                nic: after("nic").unwrap_or(0) as usize,
                ..Operation::default()
            }),
            _ => {}
        }
    }
    (ranks, operations)
}

struct World {
    model: LogGops,
    operations: Vec<Operation>,
    /// Time, number and operation of each event, and whether a message arrives.
    events: BinaryHeap<Reverse<(u64, u64, usize, bool)>>,
    created: u64,
    cpus: Vec<[u64; 4]>,
    sending: Vec<[u64; 4]>,
    receiving: Vec<[u64; 4]>,
    messages: Vec<Vec<usize>>,
    receives: Vec<Vec<usize>>,
    freed: Vec<usize>,
}

/// When each rank finishes, and the number of events; `None` if anything waits for ever.
pub(crate) fn run(text: &str, model: &LogGops) -> Option<(Vec<u64>, u64)> {
    let (ranks, operations) = read(text);
    let mut world = World {
        model: *model,
        operations,
        events: BinaryHeap::new(),
        created: 0,
        cpus: vec![[0; 4]; ranks],
        sending: vec![[0; 4]; ranks],
        receiving: vec![[0; 4]; ranks],
        messages: vec![Vec::new(); ranks],
        receives: vec![Vec::new(); ranks],
        freed: Vec::new(),
    };
    let free = |(_, operation): &(usize, &Operation)| operation.waits == 0;
    world.freed =
        world.operations.iter().enumerate().filter(free).map(|(number, _)| number).collect();
    world.begin_freed();
    while let Some(Reverse((at, order, number, arrival))) = world.events.pop() {
        if let Some(later) = world.act(at, number, arrival) {
            world.events.push(Reverse((later, order, number, arrival)));
        }
        world.begin_freed();
    }
    let done = world.operations.iter().all(|operation| operation.done);
    let received = world.messages.iter().all(Vec::is_empty);
    let finish = world.cpus.iter().map(|cpus| *cpus.iter().max().unwrap()).collect();
    (done && received).then_some((finish, world.created))
}

impl World {
    fn begin_freed(&mut self) {
        let mut freed = std::mem::take(&mut self.freed);
        freed.sort_by_key(|number| {
            let operation = &self.operations[*number];
            (operation.rank, operation.kind())
        });
        for number in freed {
            let operation = &self.operations[number];
            let mut at = self.cpus[operation.rank][operation.cpu];
            if operation.kind() == Kind::Send {
                at = at.max(self.sending[operation.rank][operation.nic]);
            }
            self.events.push(Reverse((at, self.created, number, false)));
            self.created += 1;
        }
    }

    /// The result is when to try again.
    fn act(&mut self, at: u64, number: usize, arrival: bool) -> Option<u64> {
        let Operation { rank, size, peer, cpu, nic, .. } = self.operations[number];
        let hosts = self.model.hosts;
        let (long, further) = (size > hosts.eager, size.max(1) - 1);
        let kind = if arrival { Kind::Arrival } else { self.operations[number].kind() };
        let host = if arrival { peer as usize } else { rank };
        let mut free = self.cpus[host][cpu];
        match kind {
            Kind::Send => free = free.max(self.sending[host][nic]),
            Kind::Arrival => free = free.max(self.receiving[host][nic]),
            Kind::Receive => free = at,
            Kind::Calc => {}
        }
        if free > at {
            return Some(free);
        }
        let per_byte = self.model.gap_per_byte.0;
        match kind {
            Kind::Calc => {
                self.cpus[host][cpu] = at + size * 1_000;
                self.start(number);
                self.end(number);
            }
            Kind::Send => {
                let cost = hosts.overhead.0 + further * hosts.overhead_per_byte.0;
                self.cpus[host][cpu] = at + cost;
                self.sending[host][nic] = at + hosts.gap.0 + further * per_byte;
                let arrives = at + hosts.overhead.0 + self.model.latency.0;
                self.events.push(Reverse((arrives, self.created, number, true)));
                self.created += 1;
                self.start(number);
                if !long {
                    self.end(number);
                }
            }
            Kind::Receive => {
                self.start(number);
                if let Some(message) = self.find(number, host, false) {
                    self.release(message, at, cpu, nic);
                    self.end(number);
                }
            }
            Kind::Arrival => {
                let cost = further * per_byte.max(hosts.overhead_per_byte.0);
                self.cpus[host][cpu] = at + hosts.overhead.0 + cost;
                self.receiving[host][nic] = at + hosts.gap.0 + further * per_byte;
                if let Some(receive) = self.find(number, host, true) {
                    self.release(number, at, cpu, nic);
                    self.end(receive);
                }
            }
        }
        None
    }

    /// The partner of a message or receive, which is taken away; otherwise that waits.
    fn find(&mut self, number: usize, host: usize, is_message: bool) -> Option<usize> {
        let operations = &self.operations;
        let fits = |message: usize, receive: usize| {
            let (message, receive) = (&operations[message], &operations[receive]);
            (receive.peer == -1 || receive.peer == message.rank as i64)
                && (receive.tag == -1 || receive.tag == message.tag)
        };
        let (from, to) = if is_message {
            (&mut self.receives[host], &mut self.messages[host])
        } else {
            (&mut self.messages[host], &mut self.receives[host])
        };
        let place = from
            .iter()
            .position(|other| if is_message { fits(number, *other) } else { fits(*other, number) });
        if place.is_none() {
            to.push(number);
        }
        place.map(|place| from.remove(place))
    }

    /// The sender of a long message goes on.
    fn release(&mut self, message: usize, at: u64, cpu: usize, nic: usize) {
        let Operation { rank, size, .. } = self.operations[message];
        if size > self.model.hosts.eager {
            self.cpus[rank][cpu] = self.cpus[rank][cpu].max(at);
            self.sending[rank][nic] = self.sending[rank][nic].max(at);
            self.end(message);
        }
    }

    fn start(&mut self, number: usize) {
        for other in self.operations[number].on_start.clone() {
            self.meet(other);
        }
    }

    fn end(&mut self, number: usize) {
        self.operations[number].done = true;
        for other in self.operations[number].on_end.clone() {
            self.meet(other);
        }
    }

    fn meet(&mut self, number: usize) {
        self.operations[number].waits -= 1;
        if self.operations[number].waits == 0 {
            self.freed.push(number);
        }
    }
}
