//! `ayre tune`: measures the methods of moving many bytes on this machine, and stores from where on
//! each is the fastest.

mod measure;

use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use ayre::tuning::{ActiveTuning, Measured, Method, Tuning, Use, active, file_of_user};

use self::measure::{Effort, measure};

/// The arguments of `ayre tune`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print the cut-offs that are in effect and where they come from; measure nothing
    #[arg(long, conflicts_with_all = ["reset", "file", "dry_run", "quick"])]
    print: bool,
    /// Remove the file of this user; measure nothing
    #[arg(long, conflicts_with_all = ["file", "dry_run", "quick"])]
    reset: bool,
    /// Store the cut-offs here, and not in the file of this user (/etc/ayre/tuning.toml: for all)
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
    /// Measure and print, and store nothing
    #[arg(long)]
    dry_run: bool,
    /// Few repetitions: a first look
    #[arg(long)]
    quick: bool,
}

/// Measures and stores, or what else was asked for.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if args.print {
        let ActiveTuning { tuning, origin } = active()?;
        print!("# {origin}\n{tuning}");
        return Ok(ExitCode::SUCCESS);
    }
    if args.reset {
        let path = file_of_user().context("neither XDG_CONFIG_HOME nor HOME is set")?;
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| path.display().to_string());
            }
            _ => println!("{}: removed", path.display()),
        }
        return Ok(ExitCode::SUCCESS);
    }
    let path = args.file.clone().or_else(file_of_user);
    let path = path.context("neither XDG_CONFIG_HOME nor HOME is set: --file says where")?;
    let effort = if args.quick { Effort::QUICK } else { Effort::FULL };
    let mut results = Results::default();
    for of in Use::MEASURED {
        let rows = measure(of, effort)?;
        print!("{}", table(of, &rows));
        results.add(of, rows);
    }
    print!("\n{}", results.tuning);
    if !args.dry_run {
        store(&path, &results.text())?;
        println!("stored in {}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// The measurements, and the cut-offs that follow from them.
#[derive(Default)]
struct Results {
    tuning: Tuning,
    measured: Vec<(Use, Vec<Measured>)>,
}

impl Results {
    fn add(&mut self, of: Use, rows: Vec<Measured>) {
        self.tuning = std::mem::take(&mut self.tuning).with_measured(of, &rows);
        self.measured.push((of, rows));
    }

    /// The file: the cut-offs, and what they were taken from as comments.
    fn text(&self) -> String {
        let mut text = String::from(
            "# By which method Ayre moves how many bytes here, measured by `ayre tune`.\n\
             # The last step that begins at no more bytes counts.\n",
        );
        text += &self.tuning.to_string();
        for (of, rows) in &self.measured {
            table(*of, rows).lines().for_each(|line| text += &format!("# {line}\n"));
        }
        text
    }
}

/// Medians in microseconds, and the fastest method of each size.
// spec: INJ-5
fn table(of: Use, rows: &[Measured]) -> String {
    let mut text = format!("{:8}{:>10}", of.name(), "bytes");
    of.methods().iter().for_each(|method| text += &format!("{:>14}", method.name()));
    text += "   fastest\n";
    for row in rows {
        let _ = write!(text, "{:8}{:>10}", "", row.bytes);
        for method in of.methods() {
            let time = row.times.iter().find(|(measured, _)| measured == method);
            let time = time.map_or_else(String::new, |(_, time)| format!("{:.2} us", time / 1e3));
            let _ = write!(text, "{time:>14}");
        }
        let _ = writeln!(text, "   {}", Method::name(row.best(of)));
    }
    text
}

/// Whole or not at all: ports may be reading it.
fn store(path: &Path, text: &str) -> Result<()> {
    let at = || path.display().to_string();
    let Some((folder, name)) = path.parent().zip(path.file_name()) else {
        bail!("{}: not the path of a file", at());
    };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    fs::create_dir_all(folder).with_context(at)?;
    let fresh = folder.join(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
    let stored = fs::write(&fresh, text).and_then(|()| fs::rename(&fresh, path));
    if stored.is_err() {
        // What was not renamed is of no use.
        let _ = fs::remove_file(&fresh);
    }
    stored.with_context(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: INJ-3, INJ-5
    #[test]
    fn the_tuning_file_contains_the_measurements() {
        let row = |bytes, cached: f64, streaming: f64| Measured {
            bytes,
            times: vec![(Method::Cached, cached), (Method::Streaming, streaming)],
        };
        let rows = vec![row(1024, 100.0, 200.0), row(1 << 20, 90_000.0, 50_250.0)];
        let mut results = Results::default();
        results.add(Use::Put, rows.clone());
        let text = results.text();
        assert_eq!(text.parse(), Ok(Tuning::new().with_measured(Use::Put, &rows)));
        assert!(text.contains("put = [{ from = 1048576, method = \"streaming\" }]"), "{text}");
        assert!(text.contains("90.00 us      50.25 us   streaming"), "{text}");
    }

    #[test]
    fn a_file_is_stored_whole() {
        let folder = std::env::temp_dir().join(format!("ayre-tune-{}", std::process::id()));
        let path = folder.join("a/b/tuning.toml");
        store(&path, "first").unwrap();
        store(&path, "second").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "second");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        assert!(store(&path.join("below"), "third").is_err());
        fs::remove_dir_all(&folder).unwrap();
    }
}
