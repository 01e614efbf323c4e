//! Settings by UCX's names. Most of them mean nothing here, and are accepted.

use std::env;
use std::fmt::Write as _;

/// The version of UCX whose interface this is.
pub(crate) const VERSION: (u32, u32, u32) = (1, 22, 0);

/// Names that programs set, without `UCX_`, and the values that they have here.
const KNOWN: &[(&str, &str)] = &[
    ("ADDRESS_DEBUG_INFO", "n"),
    ("ALLOC_PRIO", "md:sysv,md:posix,thp,md:*,mmap,heap"),
    ("CM_USE_ALL_DEVICES", "y"),
    ("DC_MLX5_TX_POLICY", "dcs_quota"),
    ("ERROR_SIGNALS", "SIGILL,SIGSEGV,SIGBUS,SIGFPE"),
    ("HANDLE_ERRORS", "none"),
    ("IB_GPU_DIRECT_RDMA", "try"),
    ("IB_PCI_RELAXED_ORDERING", "auto"),
    ("IB_REG_METHODS", "auto"),
    ("KEEPALIVE_INTERVAL", "20.00s"),
    ("LOG_LEVEL", "warn"),
    ("MAX_EAGER_LANES", "auto"),
    ("MAX_EAGER_RAILS", "1"),
    ("MAX_RMA_RAILS", "1"),
    ("MAX_RNDV_LANES", "auto"),
    ("MAX_RNDV_RAILS", "2"),
    ("MEMTYPE_CACHE", "try"),
    ("MEM_EVENTS", "try"),
    ("MODULE_DIR", ""),
    ("NET_DEVICES", "all"),
    ("NUM_EPS", "auto"),
    ("PROTO_ENABLE", "y"),
    ("PROTO_INFO", "n"),
    ("RCACHE_ENABLE", "try"),
    ("RNDV_SCHEME", "auto"),
    ("RNDV_THRESH", "auto"),
    ("SEG_SIZE", "8k"),
    ("SHM_DEVICES", "all"),
    ("SOCKADDR_TLS_PRIORITY", "tcp,sockcm"),
    ("TCP_CM_REUSEADDR", "n"),
    ("TLS", "all"),
    ("UNIFIED_MODE", "n"),
    ("USE_MT_MUTEX", "n"),
    ("WARN_UNUSED_ENV_VARS", "y"),
    ("ZCOPY_THRESH", "auto"),
];

/// Names and values.
#[derive(Clone, Debug)]
pub(crate) struct Config(Vec<(&'static str, String)>);

impl Config {
    /// Reads the environment: `PREFIX_UCX_NAME` before `UCX_NAME`.
    pub(crate) fn of_environment(prefix: Option<&str>) -> Self {
        let of = |name: &str| env::var(name).ok();
        let value = |name| {
            let own = prefix.and_then(|prefix| of(&format!("{prefix}_UCX_{name}")));
            own.or_else(|| of(&format!("UCX_{name}")))
        };
        let all = KNOWN
            .iter()
            .map(|(name, usual)| (*name, value(name).unwrap_or_else(|| (*usual).to_owned())));
        Self(all.collect())
    }

    /// Sets a value. False for a name that is not known.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> bool {
        let known = self.0.iter_mut().find(|(known, _)| *known == name);
        known.map(|(_, kept)| value.clone_into(kept)).is_some()
    }

    /// Lines `UCX_NAME=value`.
    pub(crate) fn lines(&self) -> String {
        self.0.iter().fold(String::new(), |mut lines, (name, value)| {
            let _ = writeln!(lines, "UCX_{name}={value}");
            lines
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_are_kept_and_others_refused() {
        let mut config = Config::of_environment(Some("NOBODYS"));
        assert!(config.lines().contains("UCX_TLS=all\n"));
        assert!(config.set("TLS", "self"));
        assert!(config.lines().contains("UCX_TLS=self\n"));
        assert!(!config.set("UCX_TLS", "self") && !config.set("NOTHING", ""));
        assert!(KNOWN.is_sorted(), "users look for names");
    }
}
