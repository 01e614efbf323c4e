//! Tables of functions, in which what is not implemented refuses.

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
                        <$result as $crate::abi::tables::Refusal>::REFUSAL
                    }
                    Some(refuse)
                },)*
            };

            pub const LAYOUT: ayre_guest::layout::Layout = ayre_guest::layout::Layout {
                name: $c,
                size: size_of::<$name>(),
                align: align_of::<$name>(),
                members: &[
                    ayre_guest::layout::Member {
                        name: "size",
                        offset: 0,
                        size: size_of::<usize>(),
                        since: 0,
                    },
                    $(ayre_guest::layout::Member {
                        name: stringify!($slot),
                        offset: std::mem::offset_of!($name, $slot),
                        size: size_of::<usize>(),
                        since: 0 $(+ ayre_guest::layout::version($major, $minor))?,
                    },)*
                ],
            };
        })*

        pub(crate) const $all: &[ayre_guest::layout::Layout] = &[$($name::LAYOUT,)*];
    };
}

pub(super) use ops_tables;
