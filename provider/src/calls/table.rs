//! How a table of calls is declared: a row for each, which says what it asks an endpoint for.

use crate::ep::{Note, Reported};
use std::ffi::c_void;

/// How a program hears of an operation.
#[inline(always)]
pub(super) fn note(context: *mut c_void, reported: Reported) -> Note {
    Note { context: context as usize, reported }
}

/// Declares the calls of a table on endpoints and their aliases. A row ends with an
/// [`Outcome`](crate::error::Outcome), behind the names of its arguments.
///
/// Calls that send or write come in five forms, which differ in the place of the bytes and in
/// immediate data. Calls that receive or read come in two. `@out` and `@into` are rows for all
/// forms. Their names stand in this order:
///
/// | row | one piece | several | injected | with data | injected with data |
/// |---|---|---|---|---|---|
/// | `@out` | send | sendv | inject | senddata | injectdata |
/// | `@into` | recv | recvv | | | |
macro_rules! calls {
    ($(#[$meta:meta])* $calls:ident: $ops:ident, otherwise $rest:expr;
        $(@into $in1:ident $inv:ident($iep:ident, $($of:ident: $of_type:ty),*)
            |$room:ident, $context:ident| $in:expr;)?
        $(@out $out1:ident $outv:ident $inj:ident $outd:ident $injd:ident
            ($oep:ident, $($to:ident: $to_type:ty),*) by $flags:ident
            |$bytes:ident, $data:ident, $note:ident| $out:expr;)?
        $($slot:ident($ep:ident, $($name:ident: $type:ty),* $(,)?) $body:block)*
    ) => {
        $(#[$meta])*
        pub(super) struct $calls<H>(std::marker::PhantomData<H>);

        #[allow(clippy::too_many_arguments, reason = "C says how many there are")]
        impl<H: $crate::ep::Handle> $calls<H> {
            pub(super) const OPS: &'static $ops = &$ops {
                $($in1: Some(Self::$in1), $inv: Some(Self::$inv),)?
                $($out1: Some(Self::$out1), $outv: Some(Self::$outv), $inj: Some(Self::$inj),
                $outd: Some(Self::$outd), $injd: Some(Self::$injd),)?
                $($slot: Some(Self::$slot),)*
                ..$rest
            };

            $(
                call!($in1($iep, start: *mut c_void, len: usize, _desc: Desc, $($of: $of_type,)*
                    $context: Context) {
                    let $room = one(start, len);
                    $in
                });
                call!($inv($iep, iov: *const Iovec, _descs: *mut Desc, count: usize,
                    $($of: $of_type,)* $context: Context) {
                    let $room = several(iov, count);
                    $in
                });
            )?
            $(
                call!($out1($oep, start: *const c_void, len: usize, _desc: Desc,
                    $($to: $to_type,)* context: Context) {
                    let $note = note(context, $oep.sends($flags));
                    let ($bytes, $data) = (memory::from(start, len), None);
                    $out
                });
                call!($outv($oep, iov: *const Iovec, _descs: *mut Desc, count: usize,
                    $($to: $to_type,)* context: Context) {
                    let $note = note(context, $oep.sends($flags));
                    let ($bytes, $data) = (memory::pieces(iov, count), None);
                    $out
                });
                call!($inj($oep, start: *const c_void, len: usize, $($to: $to_type),*) {
                    let ($bytes, $data, $note) = (memory::injected(start, len), None, Note::NEVER);
                    $out
                });
                call!($outd($oep, start: *const c_void, len: usize, _desc: Desc, data: u64,
                    $($to: $to_type,)* context: Context) {
                    let $note = note(context, $oep.sends($flags));
                    let ($bytes, $data) = (memory::from(start, len), Some(data));
                    $out
                });
                call!($injd($oep, start: *const c_void, len: usize, data: u64,
                    $($to: $to_type),*) {
                    let ($bytes, $data) = (memory::injected(start, len), Some(data));
                    let $note = Note::NEVER;
                    $out
                });
            )?
            $(call!($slot($ep, $($name: $type),*) $body);)*
        }
    };
}
pub(super) use calls;

/// One call.
macro_rules! call {
    ($slot:ident($ep:ident, $($name:ident: $type:ty),*) $body:block) => {
        /// # Safety
        /// The manual page's contract: the endpoint is open, and the described memory is there. The
        /// memory is the call's until its operation has completed; injected memory, until it
        /// returns.
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
    };
}
pub(super) use call;
