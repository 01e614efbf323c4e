//! The control groups of this process and their limits on memory and processors. A container is a
//! control group, and so is a job of a batch system.
//!
//! A process is in one group of each hierarchy, and the limits of all groups above that hold, too.
//! Where `/proc` gives a path that is not mounted here, as in a container, the root of the mounted
//! hierarchy is the container's group.
use std::fs;
use std::path::{Path, PathBuf};

/// The folder where hierarchies are mounted.
const MOUNTED_AT: &str = "/sys/fs/cgroup";

/// The groups of this process for one resource, innermost first.
#[derive(Debug)]
pub(super) struct Groups {
    /// Groups of the second version.
    pub(super) unified: Vec<PathBuf>,
    /// Groups of the first version.
    pub(super) of_controller: Vec<PathBuf>,
}

impl Groups {
    /// The groups for a controller such as `memory`.
    pub(super) fn of(controller: &str) -> Self {
        let listed = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Self::found(&listed, Path::new(MOUNTED_AT), controller)
    }

    /// The groups in `listed`, lines of `number:controllers:path`.
    pub(super) fn found(listed: &str, mounted_at: &Path, controller: &str) -> Self {
        let mut groups = Self { unified: Vec::new(), of_controller: Vec::new() };
        for line in listed.lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(names), Some(path)) = (parts.next(), parts.next()) else { continue };
            if names.is_empty() {
                let mixed = mounted_at.join("unified");
                let root = if mixed.is_dir() { mixed } else { mounted_at.to_owned() };
                groups.unified = with_those_above(&root, path);
            } else if names.split(',').any(|name| name == controller) {
                let roots = [names, controller].map(|name| mounted_at.join(name));
                if let Some(root) = roots.iter().find(|root| root.is_dir()) {
                    groups.of_controller = with_those_above(root, path);
                }
            }
        }
        groups
    }
}

fn with_those_above(root: &Path, path: &str) -> Vec<PathBuf> {
    let own = root.join(path.trim_start_matches('/'));
    own.ancestors().take_while(|folder| folder.starts_with(root)).map(Path::to_owned).collect()
}

/// The text of a file of a group, if it exists.
pub(super) fn said(group: &Path, file: &str) -> Option<String> {
    fs::read_to_string(group.join(file)).ok().map(|text| text.trim().to_owned())
}

/// The number in a file of a group; None for other texts, such as "max".
pub(super) fn number(group: &Path, file: &str) -> Option<u64> {
    said(group, file)?.parse().ok()
}

#[cfg(all(test, not(loom)))]
pub(super) mod tests {
    use super::*;

    /// A folder with files, which is removed with this.
    pub(in super::super) struct Mounted(PathBuf);

    impl Mounted {
        pub(in super::super) fn new(name: &str, files: &[(&str, &str)]) -> Self {
            let root = std::env::temp_dir().join(format!("ayre-{name}-{}", std::process::id()));
            for (path, text) in files {
                let path = root.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Self(root)
        }

        pub(in super::super) fn groups(&self, listed: &str, controller: &str) -> Groups {
            Groups::found(listed, &self.0, controller)
        }
    }

    impl Drop for Mounted {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn groups_are_found_with_those_above_them() {
        let files = [("cpu,cpuacct/a/b/x", ""), ("memory/x", ""), ("unified/x", "")];
        let mounted = Mounted::new("groups", &files);
        let listed = "9:name=systemd:/\n4:cpu,cpuacct:/a/b\n3:memory:/not/here\n0::/u\n";
        let of = |controller| mounted.groups(listed, controller);
        let under = |paths: &[&str]| paths.iter().map(|path| mounted.0.join(path)).collect();
        let cpu: Vec<PathBuf> = under(&["cpu,cpuacct/a/b", "cpu,cpuacct/a", "cpu,cpuacct"]);
        let memory: Vec<PathBuf> = under(&["memory/not/here", "memory/not", "memory"]);
        assert_eq!((of("cpu").of_controller, of("memory").of_controller), (cpu, memory));
        let unified: Vec<PathBuf> = under(&["unified/u", "unified"]);
        assert_eq!(of("memory").unified, unified);
        assert!(of("pids").of_controller.is_empty());
        assert!(mounted.groups("", "cpu").unified.is_empty());
    }
}
