//! Shell completions and man pages of the tool, generated from its arguments.

use std::fmt::Write as _;
use std::fs::{create_dir_all, write};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use ayre::settings::SETTINGS;
use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;

/// The arguments of `ayre completions`.
#[derive(clap::Args)]
#[command(after_help = "bash: source <(ayre completions bash)\n\
    zsh: ayre completions zsh > a folder of $fpath, as _ayre\n\
    fish: ayre completions fish > ~/.config/fish/completions/ayre.fish")]
pub(crate) struct Completions {
    /// The shell that reads them
    shell: Shell,
}

/// The arguments of `ayre man`.
#[derive(clap::Args)]
pub(crate) struct Pages {
    /// Where the pages go; made where it is not there
    folder: PathBuf,
}

/// Prints what the shell reads.
pub(crate) fn complete(args: &Completions, tool: Command) -> Result<ExitCode> {
    io::stdout().write_all(&completions(args.shell, tool))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a page for the tool, and one for each of its commands and of theirs.
pub(crate) fn print(args: &Pages, tool: Command) -> Result<ExitCode> {
    create_dir_all(&args.folder).with_context(|| args.folder.display().to_string())?;
    for (name, text) in pages(tool)? {
        let path = args.folder.join(Path::new(&name));
        write(&path, text).with_context(|| path.display().to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn completions(shell: Shell, tool: Command) -> Vec<u8> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut shown(tool), "ayre", &mut text);
    text
}

/// All pages by the names of their files.
fn pages(tool: Command) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut tool = shown(tool).disable_help_subcommand(true);
    tool.build();
    let page = |command: &Command| {
        let man = Man::new(command.clone())
            .source(concat!("ayre ", env!("CARGO_PKG_VERSION")))
            .manual("Ayre");
        let mut text = Vec::new();
        man.render(&mut text)?;
        Ok((man.get_filename(), text))
    };
    let commands = tool.get_subcommands();
    let all = commands.flat_map(|command| [command].into_iter().chain(command.get_subcommands()));
    let is_own = |command: &&Command| command.get_name() != "help";
    let mut pages = all.filter(is_own).map(page).collect::<io::Result<Vec<_>>>()?;
    let (name, mut text) = page(&tool)?;
    text.extend(environment().into_bytes());
    pages.push((name, text));
    Ok(pages)
}

/// The tool without what nobody is to call by hand.
fn shown(tool: Command) -> Command {
    let commands: Vec<_> =
        tool.get_subcommands().filter(|command| !command.is_hide_set()).cloned().collect();
    Command::new("ayre")
        .version(env!("CARGO_PKG_VERSION"))
        .about(tool.get_about().cloned().unwrap_or_default())
        .subcommand_required(true)
        .subcommands(commands)
}

/// The variables, in the language of `man`.
fn environment() -> String {
    let mut text = String::from(".SH ENVIRONMENT\n");
    for setting in SETTINGS {
        let [values, default, meaning] =
            [setting.values, setting.default, setting.meaning].map(escaped);
        let name = setting.name;
        // Writing to a string cannot fail.
        let _ = write!(text, ".TP\n\\fB{name}\\fR\n{meaning}\n");
        let _ = write!(text, ".br\nValues: {values}\n.br\nWhere it is not set: {default}\n");
    }
    text
}

/// Text as `man` shows it unchanged: no sign of it begins a request.
fn escaped(text: &str) -> String {
    let text = text.replace('`', "").replace('\\', "\\e").replace('-', "\\-");
    format!("\\&{}", text.replace('\n', "\n\\&"))
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;
    use crate::tool;

    fn names() -> Vec<String> {
        shown(tool()).get_subcommands().map(|command| command.get_name().to_owned()).collect()
    }

    #[test]
    fn every_command_has_a_page_and_the_tool_one_with_the_variables() {
        let pages = pages(tool()).unwrap();
        let page = |name: &str| {
            let (_, text) = pages.iter().find(|(file, _)| file == name).unwrap();
            String::from_utf8(text.clone()).unwrap().replace("\\-", "-")
        };
        for name in names() {
            assert!(page(&format!("ayre-{name}.1")).contains(".SH SYNOPSIS"), "{name}");
        }
        assert!(page("ayre-run.1").contains("--hosts"));
        assert!(page("ayre-sim-run.1").contains("--trace"));
        let all = page("ayre.1");
        for setting in SETTINGS {
            assert!(all.contains(&format!("\n\\fB{}\\fR\n", setting.name)), "{}", setting.name);
        }
        assert!(!all.contains("agent"), "a command for launchers only");
    }

    #[test]
    fn completions_of_every_shell_name_every_command() {
        for shell in Shell::value_variants() {
            let text = String::from_utf8(completions(*shell, tool())).unwrap();
            for name in names() {
                assert!(text.contains(&name), "{shell}: {name}");
            }
        }
    }

    #[test]
    fn every_argument_of_every_command_has_a_help_text() {
        let mut tool = tool();
        tool.build();
        let commands = tool.get_subcommands();
        for command in commands.flat_map(|one| [one].into_iter().chain(one.get_subcommands())) {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            for argument in command.get_arguments() {
                let name = format!("{} {}", command.get_name(), argument.get_id());
                assert!(argument.get_help().is_some(), "{name}");
            }
        }
    }

    #[test]
    fn no_text_is_a_request_to_the_formatter() {
        assert_eq!(escaped("`.a` \\ -b\n'c"), "\\&.a \\e \\-b\n\\&'c");
    }
}
