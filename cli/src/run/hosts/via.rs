//! How an agent is started on a host: a command with places for the host and for the agent.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::process::Command;
use std::str::FromStr;

use anyhow::{Context, Result, ensure};

const HOST: &str = "{host}";
const COMMAND: &str = "{command}";

/// A template, in words as a shell would see them.
///
/// Replaces `{command}`. As a word of its own it becomes the words of the agent's command, which
/// are executed directly; within a longer word it is quoted for a shell.
#[derive(Clone, Debug)]
pub(crate) struct Via(Vec<String>);

impl Via {
    /// It asks for no password, which a program in the background could not read, and notices when
    /// a host is gone.
    pub(super) fn ssh() -> Self {
        let options = ["-T", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=15"];
        let words = ["ssh"].into_iter().chain(options).chain([HOST, "exec {command}"]);
        Self(words.map(str::to_owned).collect())
    }

    /// Steps of a Slurm allocation. The agent binds ranks itself, so it is not bound.
    pub(super) fn srun() -> Self {
        let words = ["srun", "--nodes=1", "--ntasks=1", "--cpu-bind=none", "-w", HOST, COMMAND];
        Self(words.map(str::to_owned).to_vec())
    }

    /// Advice where the program cannot be executed, or does not connect; None for a user's own
    /// program.
    pub(super) fn advice(program: &str, host: &str) -> Option<String> {
        let other = "or start agents otherwise, with --via 'COMMAND {host} {command}'";
        match program {
            "ssh" => Some(format!("`ssh {host} true` must work without a password, {other}")),
            "srun" => Some(format!("`srun -N1 -w {host} true` must work, {other}")),
            _ => None,
        }
    }

    /// The command that starts `agent` on `host`.
    pub(super) fn command(&self, host: &str, agent: &Agent) -> Command {
        let words = self.words(host, agent);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    }

    fn words(&self, host: &str, agent: &Agent) -> Vec<OsString> {
        let mut words = Vec::new();
        for word in &self.0 {
            match word.as_str() {
                COMMAND => words.extend(agent.words()),
                _ => words.push(fill(word, host, agent)),
            }
        }
        words
    }
}

impl FromStr for Via {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let words = shell_words::split(text).context("the quotes do not match")?;
        let has_command = words.iter().skip(1).any(|word| word.contains(COMMAND));
        ensure!(has_command, "there is no {COMMAND} behind the program's name");
        Ok(Self(words))
    }
}

/// The command of an agent, the same on every host.
pub(super) struct Agent {
    pub(super) path: PathBuf,
}

impl Agent {
    fn words(&self) -> [OsString; 2] {
        [self.path.clone().into(), "agent".into()]
    }

    /// For this machine, where nothing needs to be connected with.
    pub(super) fn command(&self) -> Command {
        let [program, argument] = self.words();
        let mut command = Command::new(program);
        command.arg(argument);
        command
    }

    /// For a shell.
    fn quoted(&self) -> OsString {
        let path = self.path.as_os_str().as_bytes();
        let mut text = b"'".to_vec();
        for byte in path {
            match byte {
                b'\'' => text.extend_from_slice(b"'\\''"),
                byte => text.push(*byte),
            }
        }
        text.extend_from_slice(b"' agent");
        OsString::from_vec(text)
    }
}

fn fill(word: &str, host: &str, agent: &Agent) -> OsString {
    let mut filled = OsString::new();
    for (index, part) in word.split(COMMAND).enumerate() {
        if index > 0 {
            filled.push(agent.quoted());
        }
        filled.push(OsStr::new(&part.replace(HOST, host)));
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(via: &Via) -> Vec<String> {
        let agent = Agent { path: "/opt/it's/ayre".into() };
        via.words("b", &agent).into_iter().map(|word| word.into_string().unwrap()).collect()
    }

    #[test]
    fn a_command_of_its_own_is_not_quoted() {
        let via: Via = "ip netns exec {host} {command}".parse().unwrap();
        assert_eq!(words(&via), ["ip", "netns", "exec", "b", "/opt/it's/ayre", "agent"]);
    }

    #[test]
    fn a_command_inside_a_word_is_quoted_for_a_shell() {
        let via: Via = "sh -c 'cd /{host} && exec {command}'".parse().unwrap();
        assert_eq!(words(&via), ["sh", "-c", "cd /b && exec '/opt/it'\\''s/ayre' agent"]);
        assert_eq!(words(&Via::ssh()).last().unwrap(), "exec '/opt/it'\\''s/ayre' agent");
    }

    #[test]
    fn a_template_without_a_command_is_refused() {
        for text in ["", "ssh {host}", "{command}", "sh -c '{command}", "ssh {host} command"] {
            assert!(text.parse::<Via>().is_err(), "{text}");
        }
    }
}
