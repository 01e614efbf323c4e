//! `ayre sim list`: the parameters of scenarios, and the models of interfaces.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use ayre_sim::interface::{MODELS, Model};
use ayre_sim::scenario::{KEYS, Key, Kind};

use super::interface;

/// The arguments of `ayre sim list`.
#[derive(clap::Args)]
pub(super) struct Args {
    /// A parameter, a group of them, or an interface (such as extoll) to list alone
    name: Option<String>,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let is_meant =
        |key: &&Key| args.name.as_deref().is_none_or(|n| n == key.name || n == key.group);
    if let Some(model) = args.name.as_deref().and_then(Model::named) {
        crate::print(&format!("{}\n{}", interface::model(model), text(&model_keys(model))))?;
        return Ok(ExitCode::SUCCESS);
    }
    let keys: Vec<_> = KEYS.iter().filter(is_meant).collect();
    if keys.is_empty() {
        let name = args.name.as_deref().unwrap_or_default();
        let groups = groups(&KEYS.iter().collect::<Vec<_>>()).join(", ");
        let models = MODELS.iter().map(|model| model.name).collect::<Vec<_>>().join(", ");
        let error = anyhow!(
            "there is no parameter, group or interface `{name}`; the groups are {groups}; the \
             interfaces are {models}"
        );
        return Ok(crate::refused(&error));
    }
    let mut text = text(&keys);
    if args.name.as_deref().is_none_or(|name| name == "interface") {
        text += &format!("\n{}", interface::models());
    }
    crate::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The parameters of a model.
fn model_keys(model: &Model) -> Vec<&'static Key> {
    KEYS.iter().filter(|key| key.is_of(model)).collect()
}

/// The groups, in the order in which they come first.
fn groups(keys: &[&Key]) -> Vec<&'static str> {
    let mut groups = vec![];
    for key in keys {
        if !groups.contains(&key.group) {
            groups.push(key.group);
        }
    }
    groups
}

fn text(keys: &[&Key]) -> String {
    let mut text = String::new();
    for group in groups(keys) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}{group}", if text.is_empty() { "" } else { "\n" });
        for key in keys.iter().filter(|key| key.group == group) {
            text += &entry(key);
        }
    }
    text
}

/// All that there is to know of a parameter.
fn entry(key: &Key) -> String {
    let mut text = format!("  {} = {}\n      {}\n", key.name, key.default, key.meaning);
    if let Kind::Choice(choices) = key.kind {
        let width = choices.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, meaning) in choices {
            let _ = writeln!(text, "        {name:width$}  {meaning}");
        }
    } else {
        let _ = writeln!(text, "      values: {}", key.kind);
    }
    if !key.needs.is_empty() {
        let _ = writeln!(text, "      belongs to {}", key.needs_text());
    }
    let _ = writeln!(text, "      source: {}", key.source);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_listed_with_its_parameters_and_no_others() {
        let names = |model| {
            let keys = model_keys(Model::named(model).unwrap());
            keys.iter().map(|key| key.name).collect::<Vec<_>>()
        };
        let extoll = ["interface", "operation", "clock", "host", "translation", "issue"];
        assert_eq!(names("extoll"), [&["size"], &extoll[..]].concat());
        assert_eq!(names("forth"), ["size", "interface", "operation", "clock", "style", "batch"]);
        assert!(names("bus").contains(&"tags") && !names("grim").contains(&"clock"));
    }

    #[test]
    fn every_parameter_is_listed_once_with_its_default() {
        let text = text(&KEYS.iter().collect::<Vec<_>>());
        for key in KEYS {
            let heads = text.lines().filter(|line| line.starts_with(&format!("  {} = ", key.name)));
            let heads: Vec<_> = heads.collect();
            assert_eq!(heads.len(), 1, "{}", key.name);
            for topology in ["star", "torus"] {
                assert!(heads[0].contains(key.default.value(|_| topology)), "{heads:?}");
            }
        }
        assert!(text.lines().all(|line| line.chars().count() <= 160), "{text}");
    }
}
