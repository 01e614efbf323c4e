//! The cut-offs of a machine: measured, stored, shown, taken away.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ayre::tuning::Tuning;
use serde_json::Value;

/// A user with a folder of his own.
struct User {
    home: PathBuf,
}

impl User {
    fn new(name: &str) -> Self {
        let home = std::env::temp_dir().join(format!("ayre-tune-{name}-{}", std::process::id()));
        fs::create_dir_all(&home).unwrap();
        Self { home }
    }

    fn file(&self) -> PathBuf {
        self.home.join("config/ayre/tuning.toml")
    }

    fn ayre(&self, arguments: &[&str], variable: Option<&Path>) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ayre"));
        command.args(arguments).env("XDG_CONFIG_HOME", self.home.join("config"));
        match variable {
            Some(path) => command.env("AYRE_TUNING", path),
            None => command.env_remove("AYRE_TUNING"),
        };
        command.output().unwrap()
    }

    fn says(&self, arguments: &[&str], variable: Option<&Path>) -> String {
        let output = self.ayre(arguments, variable);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Where `ayre info` says that cut-offs come from.
    fn origin(&self, variable: Option<&Path>) -> String {
        let report: Value =
            serde_json::from_str(&self.says(&["info", "--json"], variable)).unwrap();
        report["tuning"]["origin"].as_str().unwrap().to_owned()
    }
}

impl Drop for User {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.home).unwrap();
    }
}

// spec: INJ-3, INJ-4
#[test]
fn the_file_in_effect_is_shown_and_taken_away() {
    let user = User::new("shown");
    let file = user.file();
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let steps = "put = [{ from = 4096, method = \"streaming\" }]\n";
    fs::write(&file, steps).unwrap();
    let shown = user.says(&["tune", "--print"], None);
    assert!(shown.contains(&file.display().to_string()) && shown.contains(steps), "{shown}");
    assert_eq!(user.origin(None), file.display().to_string());
    assert_eq!(user.origin(Some(Path::new("none"))), "built in");
    fs::write(&file, "put = 3").unwrap();
    assert!(user.origin(None).contains("is ignored: "), "{}", user.origin(None));
    assert!(user.origin(Some(&file)).contains("no port can be opened"));
    let refused = user.ayre(&["tune", "--print"], Some(&file));
    let why = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && why.contains("AYRE_TUNING="), "{why}");
    for _ in 0..2 {
        user.says(&["tune", "--reset"], None);
        assert!(!file.exists());
    }
}

// spec: INJ-3, INJ-5
#[test]
fn measured_tunings_are_stored() {
    let user = User::new("measured");
    let shown = user.says(&["tune", "--quick"], None);
    let stored = fs::read_to_string(user.file()).unwrap();
    let tuning: Tuning = stored.parse().unwrap();
    assert!(shown.contains(&tuning.to_string()), "{shown}");
    assert_eq!(user.origin(None), user.file().display().to_string());
    // Three uses, fifteen sizes each, of which one is no long message.
    let rows = stored.lines().filter(|line| line.starts_with("# ") && line.contains(" us "));
    assert_eq!(rows.count(), 44, "{stored}");
}
