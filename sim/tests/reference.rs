//! Networks against a machine that is slow and obviously right.
//!
//! The reference has no events. It goes from one picosecond to the next, and asks each output of
//! each router whether any queue may send there now. So it cannot miss a moment at which a packet
//! may go on, which an event-driven network does if a wake-up is forgotten.
use ayre_sim::link::LinkTiming;
use ayre_sim::network::{Network, NodeQueue, Parameters, Readout, Record, Switching};
use ayre_sim::routing::{Plan, Policy, Step};
use ayre_sim::time::Time;
use ayre_sim::topology::Topology;
use core::num::NonZeroU32;
use core::ops::Range;
use proptest::prelude::*;
use std::collections::{HashMap, VecDeque};

/// A packet that a node sends.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: u64,
    source: u32,
    target: u32,
    bytes: u32,
}

/// A packet in a queue.
#[derive(Clone, Debug)]
struct Packet {
    number: usize,
    bytes: u32,
    /// When it may ask for an output.
    ready: u64,
    /// The steps that are left.
    way: VecDeque<Step>,
}

#[derive(Default)]
struct Queue {
    packets: VecDeque<Packet>,
    /// Which line into the crossbar reads it, as a queue's place in the router.
    line: usize,
    /// The output channel at the other end of the link: router, port, channel.
    feeder: Option<(usize, usize, usize)>,
    /// Packets whose tails are leaving: until when, and their bytes.
    leaving: Vec<(u64, u32)>,
    length: Length,
}

/// The bytes of a queue: summed over all ticks, and at its longest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Length {
    sum: u64,
    most: u64,
}

struct Output {
    free: u64,
    /// The input port that is asked first.
    turn: usize,
    /// Room at the other end of each channel; none where a node takes everything.
    room: Option<Vec<u32>>,
    /// The first queue at the other end, and its router.
    leads_to: Option<(usize, usize)>,
}

/// An input port: its queues, and which of them is asked first.
struct Input {
    queues: Range<usize>,
    turn: usize,
}

#[derive(Default)]
struct Router {
    queues: Vec<Queue>,
    inputs: Vec<Input>,
    lines: Vec<u64>,
    outputs: Vec<Output>,
    turn: usize,
}

struct Reference<'a> {
    parameters: &'a Parameters,
    routers: Vec<Router>,
    /// Packets between routers: when they arrive, and the queue that they arrive at.
    arrivals: Vec<(u64, usize, usize, Packet)>,
    /// Room that is given back: when, router, port, channel, bytes.
    credits: Vec<(u64, usize, usize, usize, u32)>,
    /// When each packet was delivered.
    delivered: Vec<Option<u64>>,
}

/// The places of each router's queues: the first one of each input port.
fn places(topology: &Topology, parameters: &Parameters) -> Vec<Vec<usize>> {
    let of = |router: usize, port: u16| {
        let linked = |link: &ayre_sim::topology::Link| {
            (link.to.router as usize, link.to.port) == (router, port)
        };
        match (topology.links.iter().any(linked), parameters.node_queue) {
            (true, _) => usize::from(parameters.channels),
            (false, NodeQueue::PerTarget) => topology.nodes.len(),
            (false, NodeQueue::One) => 1,
        }
    };
    let ports = topology.ports.iter().enumerate();
    ports
        .map(|(router, ports)| {
            let mut first = vec![0];
            for port in 0..*ports {
                first.push(first[usize::from(port)] + of(router, port));
            }
            first
        })
        .collect()
}

impl<'a> Reference<'a> {
    fn new(topology: &Topology, parameters: &'a Parameters, work: &[Sent]) -> Self {
        let places = places(topology, parameters);
        let mut routers: Vec<Router> =
            places.iter().map(|first| router(first, parameters)).collect();
        for link in &topology.links {
            let (from, to) = (link.from, link.to);
            let first = places[to.router as usize][usize::from(to.port)];
            let output = &mut routers[from.router as usize].outputs[usize::from(from.port)];
            output.leads_to = Some((to.router as usize, first));
            let channels = usize::from(parameters.channels);
            output.room = Some(vec![parameters.buffer; channels]);
            for channel in 0..channels {
                let queue = &mut routers[to.router as usize].queues[first + channel];
                queue.feeder = Some((from.router as usize, usize::from(from.port), channel));
            }
        }
        let plan = Plan::new(topology, parameters.policy, parameters.channels).unwrap();
        for (number, sent) in work.iter().enumerate() {
            let inject = topology.nodes[sent.source as usize].inject;
            let mut place = places[inject.router as usize][usize::from(inject.port)];
            if parameters.node_queue == NodeQueue::PerTarget {
                place += sent.target as usize;
            }
            let way = plan.way(sent.source, sent.target).unwrap().into();
            let ready = sent.at + parameters.injection.0;
            let packet = Packet { number, bytes: sent.bytes, ready, way };
            routers[inject.router as usize].queues[place].packets.push_back(packet);
        }
        let delivered = vec![None; work.len()];
        Self { parameters, routers, arrivals: Vec::new(), credits: Vec::new(), delivered }
    }

    /// A picosecond.
    fn tick(&mut self, now: u64) {
        for (_, router, port, channel, bytes) in self.credits.extract_if(.., |it| it.0 == now) {
            let room = self.routers[router].outputs[port].room.as_mut().unwrap();
            room[channel] += bytes;
        }
        for (_, router, queue, packet) in self.arrivals.extract_if(.., |it| it.0 == now) {
            self.routers[router].queues[queue].packets.push_back(packet);
        }
        for router in 0..self.routers.len() {
            let ports = self.routers[router].outputs.len();
            let first = self.routers[router].turn;
            for port in (first..ports).chain(0..first) {
                self.serve(router, port, now);
            }
        }
        let routers = self.routers.iter_mut();
        routers.for_each(|router| router.queues.iter_mut().for_each(|queue| queue.measure(now)));
    }

    /// The first input port in turn sends to an output, if any of its queues may. Of these it takes
    /// the first one in turn.
    fn serve(&mut self, router: usize, port: usize, now: u64) {
        let place = &self.routers[router];
        if place.outputs[port].free > now {
            return;
        }
        let inputs = place.inputs.len();
        let turn = place.outputs[port].turn;
        let found = (turn..inputs).chain(0..turn).find_map(|input| {
            let Input { queues, turn } = &place.inputs[input];
            let mut order = (*turn..queues.end).chain(queues.start..*turn);
            order.find_map(|queue| Some((queue, self.may_leave(router, queue, port, now)?)))
        });
        if let Some((queue, channel)) = found {
            self.leave(router, queue, (port, channel), now);
        }
    }

    /// The channel by which the head of a queue may leave through an output now.
    fn may_leave(&self, router: usize, queue: usize, port: usize, now: u64) -> Option<usize> {
        let place = &self.routers[router];
        let head = place.queues[queue].packets.front()?;
        let hop = head.way[0].hop;
        let span = self.parameters.link.span(head.bytes).0;
        let stored = self.parameters.switching == Switching::StoreAndForward;
        let from = head.ready + if stored { span } else { 0 };
        let is_free = place.lines[place.queues[queue].line] <= now;
        if usize::from(hop.port) != port || from > now || !is_free {
            return None;
        }
        let Some(room) = &place.outputs[port].room else { return Some(0) };
        let channels = usize::from(hop.first)..usize::from(hop.first + hop.count);
        // Of those with most room the first one.
        let channel = channels.rev().max_by_key(|channel| room[*channel])?;
        (room[channel] >= head.bytes).then_some(channel)
    }

    fn leave(&mut self, router: usize, queue: usize, (port, channel): (usize, usize), now: u64) {
        let place = &mut self.routers[router];
        let mut packet = place.queues[queue].packets.pop_front().unwrap();
        let gone = now + self.parameters.link.span(packet.bytes).0;
        place.queues[queue].leaving.push((gone, packet.bytes));
        let line = place.queues[queue].line;
        place.lines[line] = gone;
        place.turn = (port + 1) % 64;
        if place.turn >= place.outputs.len() {
            place.turn = 0;
        }
        let inputs = place.inputs.len();
        let input = place.inputs.iter().position(|input| input.queues.contains(&queue)).unwrap();
        let Input { queues, turn } = &mut place.inputs[input];
        *turn = if queue + 1 == queues.end { queues.start } else { queue + 1 };
        let output = &mut place.outputs[port];
        output.free = gone;
        output.turn = (input + 1) % inputs;
        packet.way.pop_front();
        match output.leads_to {
            None => {
                let at = gone + self.parameters.wire_to_node.0;
                self.delivered[packet.number] = Some(at);
            }
            Some((to, first)) => {
                output.room.as_mut().unwrap()[channel] -= packet.bytes;
                packet.ready = now + (self.parameters.link.wire + self.parameters.pipeline).0;
                self.arrivals.push((packet.ready, to, first + channel, packet.clone()));
            }
        }
        if let Some((before, port, channel)) = place.queues[queue].feeder {
            let at = gone + self.parameters.credit.0;
            self.credits.push((at, before, port, channel, packet.bytes));
        }
    }

    /// Runs until all packets are delivered, or `most` picoseconds have passed.
    fn run(mut self, most: u64) -> Vec<Option<u64>> {
        for now in 0..most {
            if self.delivered.iter().all(Option::is_some) {
                break;
            }
            self.tick(now);
        }
        self.delivered
    }

    /// The lengths of queues by their router, input port and place there.
    fn lengths_by_place(&self, topology: &Topology) -> HashMap<(u32, u16, u32), Length> {
        let mut lengths = HashMap::new();
        for (router, first) in places(topology, self.parameters).iter().enumerate() {
            for (port, ends) in first.windows(2).enumerate() {
                for channel in 0..ends[1] - ends[0] {
                    let queue = &self.routers[router].queues[ends[0] + channel];
                    let place = (router as u32, port as u16, channel as u32);
                    lengths.insert(place, queue.length);
                }
            }
        }
        lengths
    }
}

impl Queue {
    /// Takes the length that it has from this tick to the next one.
    fn measure(&mut self, now: u64) {
        self.leaving.retain(|(gone, _)| *gone > now);
        let waiting = self.packets.iter().filter(|packet| packet.ready <= now);
        let waiting = waiting.map(|packet| packet.bytes);
        let bytes: u32 = waiting.chain(self.leaving.iter().map(|(_, bytes)| *bytes)).sum();
        self.length.sum += u64::from(bytes);
        self.length.most = self.length.most.max(bytes.into());
    }
}

/// A router whose input ports have their first queues at these places.
fn router(first: &[usize], parameters: &Parameters) -> Router {
    let ports = first.len() - 1;
    let mut router = Router::default();
    for port in 0..ports {
        let queues = first[port]..first[port + 1];
        router.inputs.push(Input { queues: queues.clone(), turn: queues.start });
        for queue in queues {
            let line = if parameters.readout == Readout::Port { first[port] } else { queue };
            router.queues.push(Queue { line, ..Queue::default() });
        }
        router.outputs.push(Output { free: 0, turn: 0, room: None, leads_to: None });
    }
    router.lines = vec![0; router.queues.len()];
    router
}

/// Networks whose packets have one way.
fn shapes() -> impl Strategy<Value = (Topology, Policy, u16)> {
    prop_oneof![
        (2_u32..6).prop_map(|n| (Topology::star(n).unwrap(), Policy::Direct, n as u16)),
        (2_u32..6).prop_map(|n| (Topology::switch(n).unwrap(), Policy::Direct, 1)),
        (2_u32..5, 2_u32..4, 2_u16..5).prop_map(|(a, b, c)| (
            Topology::torus(&[a, b]).unwrap(),
            Policy::DimensionOrder,
            c
        )),
        (2_u32..4, 2_u32..4, 1_u16..4).prop_map(|(a, b, c)| (
            Topology::mesh(&[a, b]).unwrap(),
            Policy::DimensionOrder,
            c
        )),
        (2_u32..4, 2_u32..4, 1_u16..3).prop_map(|(a, b, c)| (
            Topology::mesh(&[a, b]).unwrap(),
            Policy::WestFirst,
            c
        )),
        // Queues of a port lie across words of 64 requests.
        (2_u32..4, 2_u32..4, 13_u16..80).prop_map(|(a, b, c)| (
            Topology::mesh(&[a, b]).unwrap(),
            Policy::DimensionOrder,
            c
        )),
        (2_u32..4, 1_u32..3, 1_u16..3).prop_map(|(h, l, c)| (
            Topology::tree(h, l).unwrap(),
            Policy::UpByTarget,
            c
        )),
        (2_u32..5, 2_u32..4, 1_u16..3).prop_map(|(a, b, c)| (
            Topology::torus(&[a, b]).unwrap(),
            Policy::UpDown,
            c
        )),
    ]
}

#[derive(Clone, Debug)]
struct Case {
    topology: Topology,
    parameters: Parameters,
    work: Vec<Sent>,
}

fn cases() -> impl Strategy<Value = Case> {
    let times = (0_u64..12, 1_u64..9, 0_u64..6, 0_u64..12, 1_u64..4, 0_u64..8);
    let packets = prop::collection::vec((0_u64..150, any::<u32>(), any::<u32>(), 1_u32..12), 1..60);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (shapes(), times, packets, 0_u32..30, flags, 1_u32..4).prop_map(
        |((topology, policy, channels), times, packets, more, flags, width)| {
            let (wire, pipeline, injection, credit, phit, wire_to_node) = times;
            let (stored, by_channel, per_target) = flags;
            let longest = packets.iter().map(|packet| packet.3).max().unwrap_or(1);
            let parameters = Parameters {
                link: LinkTiming { phit: Time(phit), width, wire: Time(wire) },
                wire_to_node: Time(wire_to_node),
                pipeline: Time(pipeline),
                injection: Time(injection),
                credit: Time(credit),
                channels,
                buffer: longest + more,
                readout: if by_channel { Readout::Channel } else { Readout::Port },
                node_queue: if per_target { NodeQueue::PerTarget } else { NodeQueue::One },
                switching: if stored { Switching::StoreAndForward } else { Switching::CutThrough },
                policy,
            };
            let nodes = topology.nodes.len() as u32;
            let mut work: Vec<_> = packets
                .into_iter()
                .map(|(at, source, target, bytes)| {
                    let (source, target) = (source % nodes, target % nodes);
                    Sent { at, source, target, bytes }
                })
                .collect();
            work.sort_by_key(|sent| sent.at);
            Case { topology, parameters, work }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Each packet is delivered at the picosecond at which the reference delivers it, in a network
    /// of any number of parts.
    #[test]
    fn packets_arrive_when_the_reference_says(case in cases(), parts in 1_u32..4) {
        let mut network = Network::silent(&case.topology, case.parameters).unwrap();
        network.divide(parts);
        for (number, sent) in (1..).zip(&case.work) {
            let tag = NonZeroU32::new(number).unwrap();
            network.inject(Time(sent.at), sent.source, sent.target, sent.bytes, tag).unwrap();
        }
        network.run(u64::MAX / 2);
        let mut delivered = vec![None; case.work.len()];
        for delivery in network.deliveries() {
            delivered[delivery.tag.get() as usize - 1] = Some(delivery.at.0);
        }
        let expected = Reference::new(&case.topology, &case.parameters, &case.work).run(100_000);
        prop_assert_eq!(delivered, expected);
    }

    /// Queues are as long as those of the reference, up to some event or the last one.
    #[test]
    fn queues_are_as_long_as_the_reference_says(case in cases(), recorded in 1_usize..600) {
        let mut network = Network::silent(&case.topology, case.parameters).unwrap();
        network.record(Record::new(&case.topology, Time::ZERO, 0));
        for (number, sent) in (1..).zip(&case.work) {
            let tag = NonZeroU32::new(number).unwrap();
            network.inject(Time(sent.at), sent.source, sent.target, sent.bytes, tag).unwrap();
        }
        for _ in 0..recorded {
            network.step();
        }
        let record = network.take_record().unwrap();
        let mut reference = Reference::new(&case.topology, &case.parameters, &case.work);
        (0..record.span().0).for_each(|now| reference.tick(now));
        let lengths = reference.lengths_by_place(&case.topology);
        for queue in record.queues() {
            let place = (queue.router, queue.port, queue.channel);
            let sum = (queue.mean * record.span().0 as f64).round() as u64;
            prop_assert_eq!(lengths[&place], Length { sum, most: queue.most }, "{:?}", queue);
        }
    }
}
