//! How a script runs a machine and writes down each step, and how a line is read again.
use ayre_netsim::Dice;
use std::fmt::Write as _;
use std::str::SplitWhitespace;

/// A machine that is driven by lines of text.
pub(crate) trait Machine {
    /// Performs one step and says what came out.
    fn step(&mut self, name: &str, inputs: &mut Fields<'_>) -> String;
}

/// The inputs of a step.
pub(crate) struct Fields<'a>(SplitWhitespace<'a>);

impl<'a> Fields<'a> {
    /// The next input as it stands.
    pub(crate) fn text(&mut self) -> &'a str {
        self.0.next().expect("one more input")
    }

    /// The next input as a hexadecimal number that fits the type asked for.
    pub(crate) fn number<T: TryFrom<u128>>(&mut self) -> T {
        number(self.text())
    }

    /// The next input as a hexadecimal number, or none for `-`.
    pub(crate) fn maybe<T: TryFrom<u128>>(&mut self) -> Option<T> {
        Some(self.text()).filter(|text| *text != "-").map(number)
    }
}

fn number<T: TryFrom<u128>>(text: &str) -> T {
    let number = u128::from_str_radix(text, 16).ok().and_then(|number| number.try_into().ok());
    number.unwrap_or_else(|| panic!("{text} is no number that fits"))
}

/// Performs the step that a line's text asks for.
pub(crate) fn perform(machine: &mut dyn Machine, input: &str) -> String {
    let mut words = input.split_whitespace();
    let name = words.next().expect("a step has a name");
    let mut fields = Fields(words);
    let output = machine.step(name, &mut fields);
    assert_eq!(fields.0.next(), None, "{input}: more inputs than {name} takes");
    output
}

/// A script under way.
pub(crate) struct Script {
    machine: Box<dyn Machine>,
    text: String,
    /// Where the random inputs come from; the same for every run.
    pub(crate) random: Random,
}

impl Script {
    pub(crate) fn new(machine: Box<dyn Machine>, header: &str) -> Self {
        let mut text = String::new();
        for line in header.lines().chain(["", "Written by `cargo xtask vectors`."]) {
            writeln!(text, "{}", format!("# {line}").trim_end()).expect("memory");
        }
        Self { machine, text, random: Random::new(1) }
    }

    /// Runs one step and returns what came out.
    pub(crate) fn run(&mut self, input: impl AsRef<str>) -> String {
        let input = input.as_ref();
        let output = perform(self.machine.as_mut(), input);
        writeln!(self.text, "{input} -> {output}").expect("memory");
        output
    }

    /// The output of a step that changes nothing; it is not written down.
    pub(crate) fn look(&mut self, input: &str) -> String {
        perform(self.machine.as_mut(), input)
    }

    /// Says what the next steps show.
    pub(crate) fn section(&mut self, what: &str) {
        writeln!(self.text, "\n# {what}").expect("memory");
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

/// Numbers of a script, the same everywhere.
pub(crate) struct Random(Dice);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Dice(seed))
    }

    /// Any word.
    pub(crate) fn word(&mut self) -> u64 {
        self.0.word()
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0.below(end)
    }

    /// A word that is likely to stand at an edge.
    pub(crate) fn edge(&mut self) -> u64 {
        match self.below(4) {
            0 => self.word(),
            1 => self.below(64),
            2 => (1 << self.below(64)) - self.below(2),
            _ => u64::MAX - self.below(3),
        }
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}
