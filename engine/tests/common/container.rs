//! The effects of a container on a process: namespaces of its own, another user, no `/proc`,
//! refused system calls.
//!
//! Namespaces and mounts are there before the process starts, by `unshare` of util-linux. The user
//! changes, and calls are refused, once it runs: another user may not be able to reach its file.
use super::family::{Family, Process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Says to a process which user and which groups it is to have.
const USER: &str = "AYRE_TEST_USER";
/// Says to a process which calls are to be refused to it, behind the error.
const DENIED: &str = "AYRE_TEST_DENIED";

/// A container; by default one that changes nothing.
#[derive(Clone, Debug, Default)]
pub struct Container {
    name: String,
    /// Options of `unshare`; without any it is not run.
    options: Vec<&'static str>,
    /// The shell's commands before it starts the program.
    before: Vec<String>,
    user: Option<String>,
    denied: Option<String>,
}

impl Container {
    /// The host itself.
    pub fn none() -> Self {
        Self { name: "the host".into(), ..Self::default() }
    }

    /// Its name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn and(mut self, name: &str, options: &[&'static str]) -> Self {
        self.name = if self.options.is_empty() && self.user.is_none() && self.denied.is_none() {
            name.to_owned()
        } else {
            format!("{}, {name}", self.name)
        };
        self.options.extend(options);
        self
    }

    /// Process numbers of its own, and a `/proc` that shows them.
    pub fn pid(self) -> Self {
        self.and("own process numbers", &["--pid", "--fork", "--kill-child", "--mount-proc"])
    }

    /// Users of its own, of whom only root is one of the host's.
    pub fn user(self) -> Self {
        self.and("own users", &["--user", "--map-root-user"])
    }

    /// Mounts of its own, and an empty `/tmp`.
    ///
    /// # Panics
    /// Where that hides this program.
    pub fn mounts(mut self) -> Self {
        let program = std::env::current_exe().expect("this program");
        assert!(!program.starts_with("/tmp"), "containers hide /tmp: build outside of it");
        self.before.push("mount -t tmpfs none /tmp".into());
        self.and("own mounts", &["--mount"])
    }

    /// Sets the bytes of each folder where memory files could be.
    pub fn with_room(mut self, shared: &str, others: &str) -> Self {
        for (size, folder) in [(shared, "/dev/shm"), (others, "/tmp")] {
            self.before.push(format!("mount -t tmpfs -o size={size} none {folder}"));
        }
        self.and(&format!("room for {shared} and {others} bytes"), &["--mount"])
    }

    /// Name, System V objects and clocks of its own.
    pub fn names_and_clocks(self) -> Self {
        let options = ["--uts", "--ipc", "--time", "--boottime=100000", "--fork", "--kill-child"];
        self.and("own names and clocks", &options)
    }

    /// No `/proc`.
    pub fn no_proc(mut self) -> Self {
        self.before.push("mount -t tmpfs none /proc".into());
        self.and("no /proc", &["--mount"])
    }

    /// A `/proc` that shows each user its own processes only.
    pub fn hidepid(mut self) -> Self {
        self.before.push("mount -t proc -o hidepid=2 proc /proc".into());
        self.and("hidepid", &["--mount"])
    }

    /// The network is its own.
    pub fn network(self) -> Self {
        self.and("own network", &["--net"])
    }

    /// Another user, and its groups, the first of which is its own.
    pub fn user_and_groups(self, user: u32, groups: &[u32]) -> Self {
        let mut this = self.and(&format!("user {user}"), &[]);
        let numbers = [user].iter().chain(groups).map(u32::to_string).collect::<Vec<_>>();
        this.user = Some(numbers.join(" "));
        this
    }

    /// The memory of a control group.
    pub fn within(mut self, group: &MemoryGroup) -> Self {
        self.before.push(format!("echo $$ > {}", group.0.join("cgroup.procs").display()));
        self.and("limited memory", &[])
    }

    /// These calls of the system are refused with this error.
    pub fn denying(self, errno: i32, calls: &[i64]) -> Self {
        let mut this = self.and(&format!("{} calls refused by {errno}", calls.len()), &[]);
        let numbers = calls.iter().map(i64::to_string).collect::<Vec<_>>();
        this.denied = Some(format!("{errno} {}", numbers.join(" ")));
        this
    }

    /// The command that starts this program in it, for this test alone, but for its user and its
    /// refused calls.
    pub fn words(&self, family: &Family) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        if !self.options.is_empty() {
            words.push("unshare".into());
            words.extend(self.options.iter().map(|&option| option.into()));
        }
        if !self.before.is_empty() {
            let steps = self.before.join(" && ");
            words.extend(["sh".into(), "-c".into(), format!("{steps} && exec \"$@\""), "-".into()]);
        }
        words.extend(family.words());
        words
    }

    /// Starts a process of a test in it.
    pub fn start(&self, family: &Family, prepare: impl FnOnce(&mut Command)) -> Process {
        let words = self.words(family);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        family.start_command(command, |command| {
            let said = [(USER, &self.user), (DENIED, &self.denied)];
            command.envs(said.into_iter().filter_map(|(name, said)| Some((name, said.as_ref()?))));
            prepare(command);
        })
    }
}

/// A control group with so much memory for its processes together; it goes with its value, which
/// they must not outlive.
#[derive(Debug)]
pub struct MemoryGroup(PathBuf);

impl MemoryGroup {
    /// Makes one, of either version of control groups. Loud words where this system does not let
    /// this user: then nothing is tested.
    pub fn new(family: &Family, bytes: u64) -> Option<Self> {
        let name = family.directory().path().file_name().expect("a folder of the test's own");
        let roots = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"].map(Path::new);
        let root = roots.into_iter().find(|root| root.is_dir()).unwrap_or(roots[1]);
        let path = root.join(name);
        let group = fs::create_dir(&path).is_ok().then(|| Self(path));
        let limits = ["memory.limit_in_bytes", "memory.max"];
        let is_limited = |group: &Self| {
            let file = limits.map(|limit| group.0.join(limit)).into_iter().find(|it| it.exists());
            file.is_some_and(|file| fs::write(file, bytes.to_string()).is_ok())
        };
        let group = group.filter(is_limited);
        if group.is_none() {
            eprintln!("LEFT OUT: no memory group, so NOTHING was tested in it: this takes root");
        }
        group
    }

    /// The most that its processes have had together.
    pub fn peak(&self) -> Option<u64> {
        ["memory.max_usage_in_bytes", "memory.peak"].into_iter().find_map(|name| self.number(name))
    }

    fn number(&self, name: &str) -> Option<u64> {
        fs::read_to_string(self.0.join(name)).ok()?.trim().parse().ok()
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// Whether this system lets this user make containers. Loud words where it does not: then nothing
/// is tested.
pub fn may_make() -> bool {
    let words = ["--pid", "--fork", "--mount-proc", "--user", "--map-root-user", "--time", "true"];
    let made = rustix::process::geteuid().is_root()
        && Command::new("unshare").args(words).status().is_ok_and(|status| status.success());
    if !made {
        eprintln!("LEFT OUT: no containers, so NOTHING was tested in them: this takes root");
    }
    made
}

/// Does in a process what is left to be done there; it has not done anything else yet.
pub fn enter() {
    let numbers = |name| {
        let text = std::env::var(name).ok()?;
        let numbers = text.split(' ').map(|number| number.parse::<i64>().expect("a number"));
        Some(numbers.collect::<Vec<_>>())
    };
    if let Some(user) = numbers(USER) {
        become_user(user[0] as u32, &user[1..]);
    }
    if let Some(denied) = numbers(DENIED) {
        deny(denied[0] as u32, &denied[1..]);
    }
}

fn become_user(user: u32, groups: &[i64]) {
    let groups: Vec<libc::gid_t> = groups.iter().map(|group| *group as u32).collect();
    let own = groups.first().copied().unwrap_or(user);
    // SAFETY: changes the credentials of this process only, which is done with its own; the list
    // is as long as is said.
    let changed = unsafe {
        libc::setgroups(groups.len(), groups.as_ptr()) == 0
            && libc::setresgid(own, own, own) == 0
            && libc::setresuid(user, user, user) == 0
    };
    assert!(changed, "root may become anybody: {}", std::io::Error::last_os_error());
}

/// The call that makes a socket, of this family only, to be refused.
pub const fn socket_of(family: i32) -> i64 {
    libc::SYS_socket | (family as i64) << 32
}

/// Has calls of the system refused to this thread and those that it starts.
fn deny(errno: u32, calls: &[i64]) {
    const LOAD: u16 = 0x20;
    const ARGUMENT: u32 = 16;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const REFUSE: u32 = 0x0005_0000;
    const ALLOW: u32 = 0x7fff_0000;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut steps = Vec::new();
    for call in calls {
        let (number, argument) = (*call as u32, (*call >> 32) as u32);
        let skipped = if argument == 0 { 1 } else { 3 };
        steps.extend([step(LOAD, 0, 0, 0), step(JUMP_IF_EQUAL, 0, skipped, number)]);
        if argument != 0 {
            steps.extend([step(LOAD, 0, 0, ARGUMENT), step(JUMP_IF_EQUAL, 0, 1, argument)]);
        }
        steps.push(step(RETURN, 0, 0, REFUSE | errno));
    }
    steps.push(step(RETURN, 0, 0, ALLOW));
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: the kernel copies the program, which lives until then.
    let denied = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    };
    assert!(denied, "a filter: {}", std::io::Error::last_os_error());
}
