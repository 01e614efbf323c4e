//! Error numbers: the system's, and libfabric's own from 256 on.

pub const EPERM: i32 = 1;
pub const ENOENT: i32 = 2;
pub const EINTR: i32 = 4;
pub const EIO: i32 = 5;
pub const E2BIG: i32 = 7;
pub const EBADF: i32 = 9;
pub const EAGAIN: i32 = 11;
pub const ENOMEM: i32 = 12;
pub const EACCES: i32 = 13;
pub const EFAULT: i32 = 14;
pub const EBUSY: i32 = 16;
pub const ENODEV: i32 = 19;
pub const EINVAL: i32 = 22;
pub const EMFILE: i32 = 24;
pub const ENOSPC: i32 = 28;
pub const ENOSYS: i32 = 38;
pub const ENOMSG: i32 = 42;
pub const ENODATA: i32 = 61;
pub const EOVERFLOW: i32 = 75;
pub const EUSERS: i32 = 87;
pub const EMSGSIZE: i32 = 90;
pub const EPROTOTYPE: i32 = 91;
pub const ENOPROTOOPT: i32 = 92;
pub const EPROTONOSUPPORT: i32 = 93;
pub const EOPNOTSUPP: i32 = 95;
pub const EADDRINUSE: i32 = 98;
pub const EADDRNOTAVAIL: i32 = 99;
pub const ECONNRESET: i32 = 104;
pub const ENOTCONN: i32 = 107;
pub const ESHUTDOWN: i32 = 108;
pub const ETIMEDOUT: i32 = 110;
pub const ECONNREFUSED: i32 = 111;
pub const EHOSTUNREACH: i32 = 113;
pub const EREMOTEIO: i32 = 121;
pub const ECANCELED: i32 = 125;
pub const EKEYREJECTED: i32 = 129;

pub const EOTHER: i32 = 256;
pub const ETOOSMALL: i32 = 257;
pub const EOPBADSTATE: i32 = 258;
pub const EAVAIL: i32 = 259;
pub const EBADFLAGS: i32 = 260;
pub const ENOEQ: i32 = 261;
pub const EDOMAIN: i32 = 262;
pub const ENOCQ: i32 = 263;
pub const ECRC: i32 = 264;
pub const ETRUNC: i32 = 265;
pub const ENOKEY: i32 = 266;
pub const ENOAV: i32 = 267;
pub const EOVERRUN: i32 = 268;
pub const ENORX: i32 = 269;
pub const ENOMR: i32 = 270;
pub const EFIREWALLADDR: i32 = 271;

/// Every name with its number, for the tests.
pub const ALL: &[(&str, i32)] = &[
    ("FI_EPERM", EPERM),
    ("FI_ENOENT", ENOENT),
    ("FI_EINTR", EINTR),
    ("FI_EIO", EIO),
    ("FI_E2BIG", E2BIG),
    ("FI_EBADF", EBADF),
    ("FI_EAGAIN", EAGAIN),
    ("FI_ENOMEM", ENOMEM),
    ("FI_EACCES", EACCES),
    ("FI_EFAULT", EFAULT),
    ("FI_EBUSY", EBUSY),
    ("FI_ENODEV", ENODEV),
    ("FI_EINVAL", EINVAL),
    ("FI_EMFILE", EMFILE),
    ("FI_ENOSPC", ENOSPC),
    ("FI_ENOSYS", ENOSYS),
    ("FI_ENOMSG", ENOMSG),
    ("FI_ENODATA", ENODATA),
    ("FI_EOVERFLOW", EOVERFLOW),
    ("FI_EMSGSIZE", EMSGSIZE),
    ("FI_ENOPROTOOPT", ENOPROTOOPT),
    ("FI_EOPNOTSUPP", EOPNOTSUPP),
    ("FI_EADDRINUSE", EADDRINUSE),
    ("FI_EADDRNOTAVAIL", EADDRNOTAVAIL),
    ("FI_ECONNRESET", ECONNRESET),
    ("FI_ENOTCONN", ENOTCONN),
    ("FI_ESHUTDOWN", ESHUTDOWN),
    ("FI_ETIMEDOUT", ETIMEDOUT),
    ("FI_ECONNREFUSED", ECONNREFUSED),
    ("FI_EHOSTUNREACH", EHOSTUNREACH),
    ("FI_EREMOTEIO", EREMOTEIO),
    ("FI_ECANCELED", ECANCELED),
    ("FI_EKEYREJECTED", EKEYREJECTED),
    ("FI_EOTHER", EOTHER),
    ("FI_ETOOSMALL", ETOOSMALL),
    ("FI_EOPBADSTATE", EOPBADSTATE),
    ("FI_EAVAIL", EAVAIL),
    ("FI_EBADFLAGS", EBADFLAGS),
    ("FI_ENOEQ", ENOEQ),
    ("FI_EDOMAIN", EDOMAIN),
    ("FI_ENOCQ", ENOCQ),
    ("FI_ECRC", ECRC),
    ("FI_ETRUNC", ETRUNC),
    ("FI_ENOKEY", ENOKEY),
    ("FI_ENOAV", ENOAV),
    ("FI_EOVERRUN", EOVERRUN),
    ("FI_ENORX", ENORX),
];
