//! Layouts of declarations, as a C compiler reports them in a test.

/// A version of the interface, as `FI_VERSION(major, minor)` packs it.
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
    /// How long the structure is in headers of a version, which end before what came later.
    pub fn size_at(&self, version: u32) -> usize {
        let there = self.members.iter().filter(|member| member.since <= version);
        let end = there.map(|member| member.offset + member.size).max().unwrap_or(0);
        end.next_multiple_of(self.align)
    }
}

/// The value of a slot without an implementation.
pub(super) trait Refusal {
    /// "Not supported", in the words of the type.
    const REFUSAL: Self;
}

impl Refusal for i32 {
    const REFUSAL: Self = -super::errno::ENOSYS;
}

impl Refusal for isize {
    const REFUSAL: Self = -(super::errno::ENOSYS as Self);
}

impl Refusal for u64 {
    const REFUSAL: Self = 0;
}

impl Refusal for *const std::ffi::c_char {
    const REFUSAL: Self = c"not supported".as_ptr();
}

/// Declares structures of C, and what a C compiler should say of them.
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
            pub const LAYOUT: $crate::abi::layout::Layout = $crate::abi::layout::Layout {
                name: $c,
                size: size_of::<$name>(),
                align: align_of::<$name>(),
                members: &[$($crate::abi::layout::Member {
                    name: stringify!($field),
                    offset: std::mem::offset_of!($name, $field),
                    size: size_of::<$type>(),
                    since: 0 $(+ $crate::abi::layout::version($major, $minor))?,
                },)*],
            };
        })*

        pub(in crate::abi) const $all: &[$crate::abi::layout::Layout] = &[$($name::LAYOUT,)*];
    };
}

/// Declares tables of functions, each with a constant in which every slot refuses.
macro_rules! ops_tables {
    ($all:ident: $($(#[$meta:meta])* struct $name:ident = $c:literal {
        $($slot:ident($($type:ty),* $(,)?) -> $result:ty
            $(= since($major:literal, $minor:literal))?;)*
    })*) => {
        $($(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        pub struct $name {
            pub size: usize,
            $(pub $slot: Option<unsafe extern "C" fn($($type),*) -> $result>,)*
        }

        impl $name {
            /// A table of which every slot refuses.
            pub const REFUSING: Self = Self {
                size: size_of::<Self>(),
                $($slot: {
                    #[allow(clippy::too_many_arguments, reason = "C says how many there are")]
                    extern "C" fn refuse($(_: $type),*) -> $result {
                        <$result as $crate::abi::layout::Refusal>::REFUSAL
                    }
                    Some(refuse)
                },)*
            };

            pub const LAYOUT: $crate::abi::layout::Layout = $crate::abi::layout::Layout {
                name: $c,
                size: size_of::<$name>(),
                align: align_of::<$name>(),
                members: &[
                    $crate::abi::layout::Member {
                        name: "size",
                        offset: 0,
                        size: size_of::<usize>(),
                        since: 0,
                    },
                    $($crate::abi::layout::Member {
                        name: stringify!($slot),
                        offset: std::mem::offset_of!($name, $slot),
                        size: size_of::<usize>(),
                        since: 0 $(+ $crate::abi::layout::version($major, $minor))?,
                    },)*
                ],
            };
        })*

        pub(in crate::abi) const $all: &[$crate::abi::layout::Layout] = &[$($name::LAYOUT,)*];
    };
}

pub(super) use {c_structs, ops_tables};
