//! Deposit instructions as text and as words.
//!
//! ```text
//! text    entry; write [r0]; r0 += r1
//! words   0080010010a51 0 1             the instruction, its operand, 1 for an entry
//! words   six of a message, as they stand in a capture, behind `message`
//! ```

use std::fs::File;
use std::io::{BufRead, BufReader, Write, stdin, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use ayre::deposit::{
    DepositMessage, Form, Instruction, Stored, assemble as assemble_line, read_message,
};

/// Lines to be turned.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A file of lines; standard input where none is named
    file: Option<PathBuf>,
}

/// Words for text: what has no instruction is left out.
pub(crate) fn assemble(args: &Args) -> Result<ExitCode> {
    turn(args, |line| {
        Ok(assemble_line(line)?.map(|Stored { instruction, operand, enters }| {
            format!("{:016x} {operand:x} {}", instruction.word(), u8::from(enters))
        }))
    })
}

/// Text for words.
pub(crate) fn disassemble(args: &Args) -> Result<ExitCode> {
    turn(args, |line| {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace().peekable();
        let is_message = words.next_if_eq(&"message").is_some();
        let words: Vec<u64> = words
            .map(|word| u64::from_str_radix(word, 16).with_context(|| format!("{word:?}")))
            .collect::<Result<_>>()?;
        match (is_message, &words[..]) {
            (false, []) => Ok(None),
            (false, [word, rest @ ..]) if rest.len() <= 2 => instruction(*word, rest).map(Some),
            (true, words) => Ok(Some(message(words)?)),
            _ => bail!("an instruction has at most three words"),
        }
    })
}

fn instruction(word: u64, rest: &[u64]) -> Result<String> {
    let instruction = Instruction::parse(word)?;
    let operand = rest.first().copied().unwrap_or_default();
    let enters = rest.get(1).is_some_and(|enters| *enters == 1);
    Ok(Stored { instruction, operand, enters }.to_string())
}

fn message(words: &[u64]) -> Result<String> {
    let words = words.try_into().context("a message has six words")?;
    let (inlet, epoch, message) = read_message(&words)?;
    let DepositMessage { form, operand, mask, len, brings, is_answered } = message;
    let form = match form {
        Form::Probe => "probe".to_owned(),
        Form::Pointer { entry, registers: [x, y, z] } => {
            format!("enter {entry} with $x = {x}, $y = {y}, $z = {z}")
        }
        Form::Carried(instruction) => {
            format!("carry {}", Stored { instruction, operand, enters: false })
        }
    };
    let (slot, generation) = (inlet.slot, inlet.generation);
    let mut text =
        format!("inlet {slot}.{generation}, epoch {epoch}: {form}; operand {operand:#x}");
    if len > 0 {
        text += &format!("; {} {len} bytes", if brings { "brings" } else { "wants" });
    }
    if !mask.is_all() {
        text += &format!("; mask {:#x}", mask.0);
    }
    Ok(text + if is_answered { "; asks" } else { "" })
}

fn turn(args: &Args, each: impl Fn(&str) -> Result<Option<String>>) -> Result<ExitCode> {
    let lines: Box<dyn BufRead> = match &args.file {
        Some(path) => {
            let file = File::open(path).with_context(|| path.display().to_string())?;
            ensure!(file.metadata()?.is_file(), "{} is no file", path.display());
            Box::new(BufReader::new(file))
        }
        None => Box::new(stdin().lock()),
    };
    let mut out = stdout().lock();
    for (number, line) in (1..).zip(lines.lines()) {
        let found = each(&line?).with_context(|| format!("line {number}"))?;
        if let Some(text) = found {
            writeln!(out, "{text}")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
