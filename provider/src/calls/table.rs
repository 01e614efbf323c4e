//! How a table of calls is declared: a row for each, which says what it asks an endpoint for.

use crate::ep::{Note, Reported};
use std::ffi::c_void;

/// How a program hears of an operation.
#[inline(always)]
pub(super) fn note(context: *mut c_void, reported: Reported) -> Note {
    Note { context: context as usize, reported }
}

/// Declares the calls of a table on endpoints and their aliases. What of a row follows the names of
/// its arguments is an [`Outcome`](crate::error::Outcome).
macro_rules! calls {
    ($(#[$meta:meta])* $calls:ident: $ops:ident, otherwise $rest:expr; $(
        $slot:ident($ep:ident, $($name:ident: $type:ty),* $(,)?) $body:block
    )*) => {
        $(#[$meta])*
        pub(super) struct $calls<H>(std::marker::PhantomData<H>);

        #[allow(clippy::too_many_arguments, reason = "C says how many there are")]
        impl<H: $crate::ep::Handle> $calls<H> {
            pub(super) const OPS: &'static $ops = &$ops { $($slot: Some(Self::$slot),)* ..$rest };

            $(
                /// # Safety
                /// As the manual page says: the endpoint is open, what is described in memory is
                /// there, and the memory is the call's until its operation has ended; what is
                /// injected, until it returns.
                unsafe extern "C" fn $slot($ep: *mut FidEp, $($name: $type),*) -> isize {
                    // SAFETY: the caller's promise, for all that the row does.
                    unsafe {
                        let $ep = $crate::sys::object::Object::<FidEp, H>::at($ep);
                        $crate::error::posted(
                            #[inline(always)]
                            || -> $crate::error::Outcome { $body },
                        )
                    }
                }
            )*
        }
    };
}
pub(super) use calls;
