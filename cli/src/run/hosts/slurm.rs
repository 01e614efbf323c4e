//! The hosts of a Slurm allocation.

use std::env;

use anyhow::{Context, Result, ensure};

use super::placement::{Host, check_name};

/// More hosts than a job can have ranks need not be written out.
const HOSTS_MAX: usize = ayre::PEERS_MAX;

/// The hosts of the allocation around this process and how many tasks each has; none outside.
pub(super) fn allocation() -> Result<Option<Vec<Host>>> {
    let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let Some(nodes) = variable("SLURM_JOB_NODELIST").or_else(|| variable("SLURM_NODELIST")) else {
        return Ok(None);
    };
    let names = expand(&nodes).with_context(|| format!("the list of nodes `{nodes}`"))?;
    names.iter().try_for_each(|name| check_name(name))?;
    let tasks = match (variable("SLURM_TASKS_PER_NODE"), variable("SLURM_NTASKS")) {
        (Some(text), _) => per_node(&text).with_context(|| format!("the tasks `{text}`"))?,
        (None, Some(text)) => {
            let tasks: usize = text.parse().with_context(|| format!("the tasks `{text}`"))?;
            spread(tasks, names.len())
        }
        (None, None) => vec![1; names.len()],
    };
    ensure!(tasks.len() >= names.len(), "Slurm tells the tasks of {} nodes only", tasks.len());
    let host = |(name, tasks)| Host { name, slots: Some(tasks) };
    Ok(Some(names.into_iter().zip(tasks).filter(|(_, tasks)| *tasks > 0).map(host).collect()))
}

fn spread(tasks: usize, nodes: usize) -> Vec<u16> {
    let of = |node| tasks / nodes + usize::from(node < tasks % nodes);
    (0..nodes).map(|node| u16::try_from(of(node)).unwrap_or(u16::MAX)).collect()
}

/// Expands Slurm's way to write hosts: `n[01-03,7]-ib,m2`.
fn expand(list: &str) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for item in items(list)? {
        expand_item(item, "", &mut names)?;
    }
    Ok(names)
}

/// Cuts at commas outside of brackets.
fn items(list: &str) -> Result<Vec<&str>> {
    let (mut items, mut begin, mut is_inside) = (Vec::new(), 0, false);
    for (at, letter) in list.char_indices() {
        match letter {
            '[' | ']' => {
                ensure!(is_inside == (letter == ']'), "its brackets do not match");
                is_inside = letter == '[';
            }
            ',' if !is_inside => {
                items.push(&list[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    ensure!(!is_inside, "its brackets do not match");
    items.push(&list[begin..]);
    ensure!(items.iter().all(|item| !item.is_empty()), "a name is missing");
    Ok(items)
}

/// Expands the first bracket of `item`, which `before` stands in front of, then those behind it.
fn expand_item(item: &str, before: &str, names: &mut Vec<String>) -> Result<()> {
    let Some((head, rest)) = item.split_once('[') else {
        ensure!(names.len() < HOSTS_MAX, "it has more than {HOSTS_MAX} hosts");
        names.push(format!("{before}{item}"));
        return Ok(());
    };
    let (ranges, tail) = rest.split_once(']').context("its brackets do not match")?;
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (from, to) = (number(first)?, number(last)?);
        ensure!(from <= to, "the range {range} is empty");
        for value in from..=to {
            // Leading zeros are part of a name.
            let before = format!("{before}{head}{value:0width$}", width = first.len());
            expand_item(tail, &before, names)?;
        }
    }
    Ok(())
}

fn number(text: &str) -> Result<u64> {
    let is_number = (1..=18).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    ensure!(is_number, "`{text}` is not a number");
    Ok(text.parse()?)
}

/// Expands Slurm's counts by node: `2(x3),1`.
fn per_node(text: &str) -> Result<Vec<u16>> {
    let mut counts = Vec::new();
    for item in text.split(',') {
        let (count, times) = match item.split_once("(x") {
            Some((count, times)) => {
                (count, number(times.strip_suffix(')').context("a bracket is missing")?)?)
            }
            None => (item, 1),
        };
        let count = u16::try_from(number(count)?).context("so many tasks on one node")?;
        ensure!(times <= HOSTS_MAX as u64, "it has more than {HOSTS_MAX} hosts");
        counts.extend(std::iter::repeat_n(count, times as usize));
        ensure!(counts.len() <= HOSTS_MAX, "it has more than {HOSTS_MAX} hosts");
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_nodes_are_written_out() {
        for (list, names) in [
            ("n1", "n1"),
            ("n[01-03,7],m2", "n01 n02 n03 n7 m2"),
            ("a,b-1,c.d", "a b-1 c.d"),
            ("n[8-11]", "n8 n9 n10 n11"),
            ("n[098-101]", "n098 n099 n100 n101"),
            ("r[1-2]n[1,3]-ib,x", "r1n1-ib r1n3-ib r2n1-ib r2n3-ib x"),
        ] {
            assert_eq!(expand(list).unwrap().join(" "), names, "{list}");
        }
    }

    #[test]
    fn a_malformed_node_list_is_refused() {
        for list in [
            "",
            "a,",
            ",a",
            "n[",
            "n]",
            "n[]",
            "n[1-]",
            "n[3-1]",
            "n[a-b]",
            "n[1",
            "n[[1]]",
            "n[1-99999]",
            "n[1-2][1-9999]",
            "n[+1-2]",
            "n[0-99999999999999999999]",
        ] {
            assert!(expand(list).is_err(), "{list}");
        }
    }

    #[test]
    fn tasks_are_counted_by_node() {
        assert_eq!(per_node("2(x3),1").unwrap(), [2, 2, 2, 1]);
        assert_eq!(per_node("16").unwrap(), [16]);
        for text in ["", "x", "2(x", "2(x3", "2(3)", "1,", "70000", "1(x99999)", "1(x)"] {
            assert!(per_node(text).is_err(), "{text}");
        }
        assert_eq!(spread(5, 2), [3, 2]);
    }
}
