//! Schedules by chance, for comparisons.
//!
//! Sends and receives are drawn in pairs, and require only what was drawn before. Messages that are
//! longer than `S` have tags of their own, so that none takes another one's receive.
use ayre_sim::random::Random;
use std::fmt::Write;

/// A schedule that follows from the seed. Its first line is a comment with parameters for the
/// model, as in `// L=2500 o=1500 g=1000 G=6 O=0 S=100`.
///
/// With `own_tags` each message has a tag of its own. Of messages with one tag, the order in which
/// receives are posted decides which one takes which message, and so whether the schedule ends.
pub(crate) fn schedule(seed: u64, own_tags: bool) -> Result<String, std::fmt::Error> {
    let random = Random::new(seed, 0);
    Draw { random, ranks: Vec::new(), cpus: 1, nics: 1, own_tags }.schedule()
}

struct Draw {
    random: Random,
    /// The text of each rank, and the number of its operations.
    ranks: Vec<(String, u32)>,
    cpus: u32,
    nics: u32,
    own_tags: bool,
}

impl Draw {
    fn schedule(&mut self) -> Result<String, std::fmt::Error> {
        let ranks = 2 + self.random.below(9);
        let steps = 1 + self.random.below(60);
        let wild = self.random.below(3) == 0;
        let long = !wild && self.random.below(2) == 0;
        (self.cpus, self.nics) = match self.random.below(4) {
            0 => (3, 2),
            1 => (1, 3),
            _ => (1, 1),
        };
        let eager = 100;
        let mut text = String::new();
        let times = [2_500, 1_500, 1_500, 8, 8].map(|most| self.random.below(most));
        let [latency, overhead, gap, per_byte, overhead_per_byte] = times;
        write!(text, "// L={latency} o={overhead} g={gap} G={per_byte}")?;
        writeln!(text, " O={overhead_per_byte} S={eager}")?;
        writeln!(text, "num_ranks {ranks}")?;
        self.ranks = vec![(String::new(), 0); ranks as usize];
        for step in 0..steps {
            if self.random.below(3) == 0 {
                let rank = self.random.below(ranks);
                let time = self.random.below(3) * self.random.below(2_000);
                self.add(rank, &format!("calc {time}"), false)?;
                continue;
            }
            let (source, target) = (self.random.below(ranks), self.random.below(ranks));
            let is_long = long && self.random.below(3) == 0;
            let bytes = 1 + self.random.below(eager) + if is_long { eager } else { 0 };
            let tag = if is_long || self.own_tags { 1_000 + step } else { self.random.below(3) };
            self.add(source, &format!("send {bytes}b to {target} tag {tag}"), true)?;
            let (mut from, mut with) = (source.to_string(), tag.to_string());
            // A receive of any message may leave one that nobody receives: all of a rank are so.
            if wild && target % 2 == 0 {
                (from, with) = ("-1".to_owned(), "-1".to_owned());
            } else if wild && target % 3 == 0 {
                from = "-1".to_owned();
            }
            self.add(target, &format!("recv {bytes}b from {from} tag {with}"), true)?;
        }
        for (rank, (operations, _)) in self.ranks.iter().enumerate() {
            writeln!(text, "rank {rank} {{\n{operations}}}")?;
        }
        Ok(text)
    }

    fn add(&mut self, rank: u32, operation: &str, nic: bool) -> std::fmt::Result {
        let (cpu, interface) = (self.random.below(self.cpus), self.random.below(self.nics));
        let (text, count) = &mut self.ranks[rank as usize];
        write!(text, "l{count}: {operation} cpu {cpu}")?;
        if nic {
            write!(text, " nic {interface}")?;
        }
        writeln!(text)?;
        for _ in 0..self.random.below(3) {
            if *count > 0 {
                // Mostly one of the last few.
                let back = 1 + self.random.below((*count).min(4));
                let verb = if self.random.below(4) == 0 { "irequires" } else { "requires" };
                writeln!(text, "l{count} {verb} l{}", *count - back)?;
            }
        }
        *count += 1;
        Ok(())
    }
}
