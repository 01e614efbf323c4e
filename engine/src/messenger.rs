//! The list of the features of messengers.
//!
//! A feature is a folder above `active`. It implements [`Extension`], and [`Outbound`] for its
//! sending side, which handlers reach while they run. Programs reach it by a view, which a
//! method of [`Messenger`] returns. A messenger holds the state of a feature without its name. Code
//! that knows the type of the state gets it by `messenger.features.as_mut()`.
use crate::active::outgoing::{Outbound, Outgoing, Pass};
use crate::active::{Assembly, Extension, LongHead, Messenger};
use crate::channel::{Inbox, Logical};
use crate::collective::Groups;
use crate::error::PostError;
use crate::multicast::{GroupMembers, Watchers};
use crate::stream::StreamTable;
use ayre_proto::active::long::Piece;
use ayre_proto::lane::Malformed;
use ayre_proto::units::PeerId;

#[cfg(all(test, not(loom)))]
mod tests;

/// Makes the structures of all features from lists of them. The structures call each feature in the
/// order of its list.
macro_rules! features {
    (
        outbound: { $($(#[$when_out:meta])* $way:ident: $Way:ty,)* }
        features of $S:ident: { $($(#[$when:meta])* $name:ident: $Feature:ty,)* }
    ) => {
        /// The sending sides of all features.
        #[derive(Debug, Default)]
        pub(crate) struct Outbounds { $($(#[$when_out])* $way: $Way,)* }

        /// The other state of all features.
        pub(crate) struct Features<$S> { $($(#[$when])* $name: $Feature,)* }

        $(
            $(#[$when_out])*
            impl AsRef<$Way> for Outbounds {
                #[inline(always)]
                fn as_ref(&self) -> &$Way {
                    &self.$way
                }
            }

            $(#[$when_out])*
            impl AsMut<$Way> for Outbounds {
                #[inline(always)]
                fn as_mut(&mut self) -> &mut $Way {
                    &mut self.$way
                }
            }
        )*

        $(
            $(#[$when])*
            impl<$S> AsRef<$Feature> for Features<$S> {
                #[inline(always)]
                fn as_ref(&self) -> &$Feature {
                    &self.$name
                }
            }

            $(#[$when])*
            impl<$S> AsMut<$Feature> for Features<$S> {
                #[inline(always)]
                fn as_mut(&mut self) -> &mut $Feature {
                    &mut self.$name
                }
            }
        )*

        impl<$S> Default for Features<$S> {
            fn default() -> Self {
                Self { $($(#[$when])* $name: Default::default(),)* }
            }
        }

        #[cfg(all(test, not(loom)))]
        impl<$S> Features<$S> {
            /// The number of features that take a tag.
            fn takers(tag: u32) -> usize {
                let mut takers = 0;
                $({ takers += usize::from(<$Feature as Extension<$S>>::takes(tag)); })*
                takers
            }
        }

        impl Outbound for Outbounds {
            fn send(out: &mut Outgoing, to: PeerId, pass: Pass) -> Result<(), PostError> {
                $($(#[$when_out])* <$Way>::send(out, to, pass)?;)*
                Ok(())
            }

            fn is_ready(&mut self, to: PeerId) -> bool {
                let mut any = false;
                $($(#[$when_out])* { any |= Outbound::is_ready(&mut self.$way, to); })*
                any
            }

            fn waits(&self) -> bool {
                let mut any = false;
                $($(#[$when_out])* { any |= Outbound::waits(&self.$way); })*
                any
            }

            fn drop_waiting(&mut self, to: PeerId) {
                $($(#[$when_out])* Outbound::drop_waiting(&mut self.$way, to);)*
            }

            fn on_death(&mut self, peer: PeerId) {
                $($(#[$when_out])* Outbound::on_death(&mut self.$way, peer);)*
            }

            fn heed_peers(out: &mut Outgoing) -> bool {
                let mut all = true;
                $($(#[$when_out])* { all &= <$Way>::heed_peers(out); })*
                all
            }

            #[inline]
            fn has_news(&self) -> bool {
                let mut any = false;
                $($(#[$when_out])* { any |= Outbound::has_news(&self.$way); })*
                any
            }
        }

        impl<$S> Extension<$S> for Features<$S> {
            #[inline(always)]
            fn takes(tag: u32) -> bool {
                let mut any = false;
                $($(#[$when])* { any |= <$Feature as Extension<$S>>::takes(tag); })*
                any
            }

            #[inline(always)]
            fn on_record(
                messenger: &mut Messenger<$S>,
                state: &mut $S,
                from: (PeerId, u32),
                len: usize,
            ) -> Result<usize, Malformed> {
                $($(#[$when])* if <$Feature as Extension<$S>>::takes(from.1) {
                    return <$Feature>::on_record(messenger, state, from, len);
                })*
                Err(Malformed)
            }

            fn admits(long: &LongHead<'_>) -> bool {
                $($(#[$when])* if <$Feature as Extension<$S>>::takes(long.id) {
                    return <$Feature as Extension<$S>>::admits(long);
                })*
                false
            }

            fn on_landed(
                messenger: &mut Messenger<$S>,
                state: &mut $S,
                source: PeerId,
                long: &LongHead<'_>,
                piece: Piece,
            ) -> Result<usize, Malformed> {
                $($(#[$when])* if <$Feature as Extension<$S>>::takes(long.id) {
                    return <$Feature>::on_landed(messenger, state, source, long, piece);
                })*
                Err(Malformed)
            }

            fn on_long(
                messenger: &mut Messenger<$S>,
                state: &mut $S,
                source: PeerId,
                of: (u32, &[u8]),
                payload: Vec<u8>,
            ) -> Result<usize, Malformed> {
                $($(#[$when])* if <$Feature as Extension<$S>>::takes(of.0) {
                    return <$Feature>::on_long(messenger, state, source, of, payload);
                })*
                Err(Malformed)
            }

            #[inline(always)]
            fn advance(messenger: &mut Messenger<$S>, state: &mut $S) -> usize {
                let mut ran = 0;
                $($(#[$when])* { ran += <$Feature>::advance(messenger, state); })*
                ran
            }

            #[inline(always)]
            fn is_due(messenger: &Messenger<$S>) -> bool {
                $($(#[$when])* if <$Feature as Extension<$S>>::is_due(messenger) {
                    return true;
                })*
                false
            }

            fn on_death(messenger: &mut Messenger<$S>, peer: PeerId) {
                $($(#[$when])* <$Feature as Extension<$S>>::on_death(messenger, peer);)*
            }
        }
    };
}

features! {
    outbound: {
        multicast: GroupMembers,
        channels: Logical,
        #[cfg(all(test, not(loom)))]
        echo: tests::Calls,
    }
    features of S: {
        multicast: Watchers<S>,
        channels: Inbox,
        collectives: Groups,
        streams: StreamTable<S>,
        #[cfg(all(test, not(loom)))]
        echo: tests::Echo,
    }
}

impl<S> Assembly for S {
    type Outbound = Outbounds;
    type Features = Features<S>;
}
