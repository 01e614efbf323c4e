//! Layouts of declared structures, as a C compiler reports them in a test.
//!
//! One set of declarations serves every generation of an interface, as its structures only ever
//! grow at their ends.

pub mod headers;

/// A version of an interface as one number, which is greater for newer ones: libfabric's
/// `FI_VERSION(major, minor)`.
pub const fn version(major: u32, minor: u32) -> u32 {
    (major << 16) | minor
}

/// One member of a declared structure.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Its name in Rust; C's, but for a leading `r#`.
    pub name: &'static str,
    /// Where it begins.
    pub offset: usize,
    /// How long it is.
    pub size: usize,
    /// The version that has appended it; 0 for those of the first day.
    pub since: u32,
}

/// One declared structure.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Its name in C.
    pub name: &'static str,
    /// How long it is with all that was appended.
    pub size: usize,
    /// Its alignment, in bytes.
    pub align: usize,
    /// In their order.
    pub members: &'static [Member],
}

impl Layout {
    /// The version that has the structure first: that of its first member.
    pub fn since(&self) -> u32 {
        self.members.first().map_or(0, |member| member.since)
    }

    /// How long the structure is in headers of a version, which end before what came later.
    pub fn size_at(&self, version: u32) -> usize {
        let there = self.members.iter().filter(|member| member.since <= version);
        let end = there.map(|member| member.offset + member.size).max().unwrap_or(0);
        end.next_multiple_of(self.align)
    }
}

/// Declares structures of C, and what a C compiler should say of them.
#[macro_export]
macro_rules! c_structs {
    ($all:ident: $($(#[$meta:meta])* struct $name:ident = $c:literal {
        $($field:ident: $type:ty $(= since($major:literal, $minor:literal))?,)*
    })*) => {
        $($(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        pub struct $name {
            $(pub $field: $type,)*
        }

        impl $name {
            pub const LAYOUT: $crate::layout::Layout = $crate::layout::Layout {
                name: $c,
                size: size_of::<$name>(),
                align: align_of::<$name>(),
                members: &[$($crate::layout::Member {
                    name: stringify!($field),
                    offset: std::mem::offset_of!($name, $field),
                    size: size_of::<$type>(),
                    since: 0 $(+ $crate::layout::version($major, $minor))?,
                },)*],
            };
        })*

        pub(crate) const $all: &[$crate::layout::Layout] = &[$($name::LAYOUT,)*];
    };
}
