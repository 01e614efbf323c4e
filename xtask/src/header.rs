//! The header of the library for C, against the sources that it is made of, and its binary
//! interface, against its list.
mod abi;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// The library's folder, and in it the header and how it is made.
const FOLDER: &str = "capi";
const HEADER: &str = "include/ayre.h";
const CONFIG: &str = "cbindgen.toml";

/// The types by which the library tells pointers of C apart, of `capi/src/border.rs`.
const POINTERS: [&str; 7] = ["In_", "Out_", "Bytes", "Buffer", "Text", "TextBuffer", "User"];

/// Says whether the header is the one that its sources give; with `write`, writes it anew.
pub(crate) fn run(root: &Path, write: bool) -> Result<bool> {
    let folder = root.join(FOLDER);
    let config = cbindgen::Config::from_file(folder.join(CONFIG)).map_err(anyhow::Error::msg)?;
    let bindings = cbindgen::generate_with_config(&folder, config)?;
    let mut made = Vec::new();
    bindings.write(&mut made);
    let made = with_pointers(&String::from_utf8(made)?);
    let path = folder.join(HEADER);
    let is_kept = abi::check(root, &folder, &made, write)?;
    if write {
        fs::write(&path, &made).with_context(|| path.display().to_string())?;
        return Ok(is_kept);
    }
    let is_made = fs::read_to_string(&path).is_ok_and(|header| header == made);
    if !is_made {
        println!("{FOLDER}/{HEADER}: it is not what its sources give: cargo xtask header --write");
    }
    Ok(is_made && is_kept)
}

/// The header with plain pointers: `Out_ayre_port port` becomes `struct ayre_port *port`.
fn with_pointers(header: &str) -> String {
    let named: Vec<_> = header.lines().filter_map(pointer).collect();
    // A type's documentation stands in a paragraph with it.
    let is_kept = |text: &&str| !text.lines().any(|line| pointer(line).is_some());
    let paragraphs: Vec<_> = header.split("\n\n").filter(is_kept).collect();
    let plain = |line: &str| match line.trim_start().starts_with(['*', '/']) {
        true => line.to_owned(),
        false => named.iter().fold(line.to_owned(), |line, (name, pointer)| {
            let named = [' ', '('].map(|before| format!("{before}{name} "));
            let [space, bracket] = named;
            line.replace(&space, &format!(" {pointer}")).replace(&bracket, &format!("({pointer}"))
        }),
    };
    paragraphs.join("\n\n").lines().map(plain).map(|line| line + "\n").collect()
}

/// The name and the meaning of a type of pointers, if a line defines one.
fn pointer(line: &str) -> Option<(&str, &str)> {
    let definition = line.strip_prefix("typedef ")?.strip_suffix(';')?;
    let (meaning, name) = definition.split_at(definition.rfind('*')? + 1);
    let is_one =
        |kind: &str| if kind.ends_with('_') { name.starts_with(kind) } else { name == kind };
    POINTERS.into_iter().any(is_one).then_some((name, meaning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_pointers_become_pointers() {
        let types = "typedef struct a *Out_a;\n\ntypedef const void *Bytes;";
        let header = format!("/* Bytes of it. */\n\n{types}\n\nint f(Out_a one,\n  Bytes from);\n");
        let plain = "/* Bytes of it. */\n\nint f(struct a *one,\n  const void *from);\n";
        assert_eq!(with_pointers(&header), plain);
    }
}
