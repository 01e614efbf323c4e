//! The file of cut-offs, and the places where it is looked for.
use super::{Step, Tuning, Use};
use crate::error::SetupError;
use crate::{settings, text_file};
use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The file for all users of the machine.
const SYSTEM: &str = "/etc/ayre/tuning.toml";

/// The reason why a file cannot be used for cut-offs.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TuningError(String);

crate::error::debug_is_display!(TuningError);

/// The origin of cut-offs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TuningOrigin {
    /// No file: the cut-offs of [`Tuning::new`].
    BuiltIn,
    /// This file.
    File(PathBuf),
    /// The built-in cut-offs: this file exists but cannot be used, for the given reason.
    Ignored(PathBuf, TuningError),
}

/// The cut-offs of a port whose program has not set any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveTuning {
    /// The cut-offs.
    pub tuning: Tuning,
    /// Their origin.
    pub origin: TuningOrigin,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    #[serde(default)]
    put: Vec<Step>,
    #[serde(default)]
    get: Vec<Step>,
    #[serde(default)]
    message: Vec<Step>,
    #[serde(default)]
    receive: Vec<Step>,
}

impl FromStr for Tuning {
    type Err = TuningError;

    // spec: INJ-3
    fn from_str(text: &str) -> Result<Self, TuningError> {
        let wrong = |error: toml::de::Error| TuningError(error.to_string().trim_end().to_owned());
        let Content { put, get, message, receive } = toml::from_str(text).map_err(wrong)?;
        let uses = Use::ALL.into_iter().zip([put, get, message, receive]);
        uses.into_iter().try_fold(Self::new(), |tuning, (of, steps)| {
            let with = tuning.with_steps(of, steps);
            with.map_err(|why| TuningError(format!("{}: {why}", of.name())))
        })
    }
}

impl Display for Tuning {
    // spec: INJ-3
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for of in Use::ALL {
            let steps = self.steps(of).iter().map(|Step { from, method }| {
                format!("{{ from = {from}, method = \"{}\" }}", method.name())
            });
            writeln!(f, "{} = [{}]", of.name(), steps.collect::<Vec<_>>().join(", "))?;
        }
        Ok(())
    }
}

/// The path of this user's tuning file. `None` if the user has no folder for such files.
// spec: INJ-4
pub fn file_of_user() -> Option<PathBuf> {
    let named = |name| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    let config = named("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
    let config = config.or_else(|| Some(named("HOME")?.join(".config")))?;
    Some(config.join("ayre/tuning.toml"))
}

/// The cut-offs of a port whose program has not set any. They come from the first of these that
/// exists: the file that `AYRE_TUNING` names, the user's file, the machine's file, the built-in
/// values. It needs the Cargo feature `tuning`.
///
/// # Errors
/// [`SetupError::Environment`] where the file that the variable names cannot be used.
// spec: INJ-4
pub fn active() -> Result<ActiveTuning, SetupError> {
    let files = file_of_user().into_iter().chain([PathBuf::from(SYSTEM)]);
    match settings::tuning() {
        None => Ok(first_of(files)),
        Some(value) if value == "none" || value.is_empty() => {
            Ok(ActiveTuning::built_in(TuningOrigin::BuiltIn))
        }
        Some(path) => named(Path::new(&path)),
    }
}

/// Reads the file that the user has named; a mistake in it is an error.
fn named(path: &Path) -> Result<ActiveTuning, SetupError> {
    let wrong = |why: &dyn Display| settings::wrong_tuning(&path.display(), why);
    let text = text_file::read(path).map_err(|error| wrong(&error))?;
    let tuning = text.parse().map_err(|error| wrong(&error))?;
    Ok(ActiveTuning { tuning, origin: TuningOrigin::File(path.to_owned()) })
}

/// Reads the first file that exists. One that cannot be used is reported, and stops no program.
fn first_of(files: impl Iterator<Item = PathBuf>) -> ActiveTuning {
    for path in files {
        match text_file::read(&path) {
            Err(error) if is_missing(&error) => {}
            Err(error) => {
                let why = TuningError(error.to_string());
                return ActiveTuning::built_in(TuningOrigin::Ignored(path, why));
            }
            Ok(text) => {
                return match text.parse() {
                    Ok(tuning) => ActiveTuning { tuning, origin: TuningOrigin::File(path) },
                    Err(why) => ActiveTuning::built_in(TuningOrigin::Ignored(path, why)),
                };
            }
        }
    }
    ActiveTuning::built_in(TuningOrigin::BuiltIn)
}

fn is_missing(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}

impl ActiveTuning {
    fn built_in(origin: TuningOrigin) -> Self {
        Self { tuning: Tuning::new(), origin }
    }
}

impl Display for TuningOrigin {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => write!(f, "built in"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Ignored(path, why) => {
                let why = why.0.replace('\n', " ");
                write!(f, "built in; {} is ignored: {why}", path.display())
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::Method;
    use super::*;

    fn tuned() -> Tuning {
        let steps = vec![
            Step { from: 65536, method: Method::Streaming },
            Step { from: 1 << 20, method: Method::Cached },
        ];
        let tuning = Tuning::new().with_steps(Use::Put, steps).unwrap();
        let steps = vec![Step { from: 1 << 24, method: Method::Kernel }];
        tuning.with_steps(Use::Message, steps).unwrap()
    }

    // spec: INJ-3
    #[test]
    fn a_written_value_is_parsed_back_equal() {
        for tuning in [Tuning::new(), tuned()] {
            assert_eq!(tuning.to_string().parse(), Ok(tuning));
        }
        assert_eq!("# nothing\n".parse(), Ok(Tuning::new()));
    }

    // spec: INJ-3
    #[test]
    fn nonsense_is_refused_with_its_reason() {
        for (text, why) in [
            ("put = 3", "put"),
            ("puts = []", "puts"),
            ("put = [{ from = -1, method = \"cached\" }]", "from"),
            ("put = [{ from = 1, method = \"fast\" }]", "fast"),
            ("put = [{ from = 1, method = \"cached\", to = 2 }]", "to"),
            ("get = [{ from = 1, method = \"kernel\" }]", "get: a method"),
            ("\0", "1"),
        ] {
            let error = text.parse::<Tuning>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    // spec: INJ-4
    #[test]
    fn the_first_tuning_file_is_used_and_a_bad_one_is_ignored() {
        let folder = std::env::temp_dir().join(format!("ayre-tuning-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let [good, bad, none] = ["good", "bad", "none"].map(|name| folder.join(name));
        std::fs::write(&good, tuned().to_string()).unwrap();
        std::fs::write(&bad, "put = 3").unwrap();
        let of = |files: &[&PathBuf]| first_of(files.iter().map(|path| (*path).clone()));
        let right = ActiveTuning { tuning: tuned(), origin: TuningOrigin::File(good.clone()) };
        assert_eq!(of(&[&good, &bad]), right);
        assert_eq!(of(&[&none, &good]), right);
        assert_eq!(of(&[&none]), ActiveTuning::built_in(TuningOrigin::BuiltIn));
        let ignored = of(&[&bad, &good]);
        assert_eq!(ignored.tuning, Tuning::new());
        assert!(ignored.origin.to_string().contains("is ignored"), "{}", ignored.origin);
        assert_eq!(named(&good).unwrap(), right);
        for path in [&bad, &none] {
            let error = named(path).unwrap_err().to_string();
            assert!(error.contains("AYRE_TUNING=") && error.contains("ayre-tuning-"), "{error}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
