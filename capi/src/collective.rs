//! Collectives of a group of processes.
use crate::border::{self, Buffer, Bytes, In, Out};
use crate::error::{Failure, Outcome, flag, status};
use crate::group::{NO_COLLECTIVE, ayre_group, with_group};
use crate::interface::Made;
use crate::place::handle;
use crate::port::ayre_port;
use ayre::collective::{
    Collectives, Combine, Group, GroupError, PendingCollective, Request, Summand,
};
use std::ffi::c_int;

/// A collective that was started.
pub struct ayre_request(#[allow(dead_code, reason = "opaque")] Made<Box<dyn Pending>>);
handle!(ayre_request of Made<Box<dyn Pending>>);

/// Waits for all members.
pub const AYRE_BARRIER: u32 = 1;
/// Copies the root's values to all members.
pub const AYRE_BROADCAST: u32 = 2;
/// Combines the values of all members at the root.
pub const AYRE_REDUCE: u32 = 3;
/// Combines the values of all members at all of them.
pub const AYRE_ALLREDUCE: u32 = 4;
/// Copies each member's values to the root.
pub const AYRE_GATHER: u32 = 5;
/// Copies a part of the root's values to each member.
pub const AYRE_SCATTER: u32 = 6;
/// Copies each member's values to all members.
pub const AYRE_ALLGATHER: u32 = 7;
/// Exchanges parts between all members.
pub const AYRE_ALLTOALL: u32 = 8;
/// Combines the values of the members up to each one.
pub const AYRE_SCAN: u32 = 9;
/// Combines the values of all members, a part at each of them.
pub const AYRE_REDUCE_SCATTER: u32 = 10;

/// The type of a value: `int8_t`.
pub const AYRE_I8: u32 = 1;
/// `uint8_t`, or any byte.
pub const AYRE_U8: u32 = 2;
/// `int16_t`.
pub const AYRE_I16: u32 = 3;
/// `uint16_t`.
pub const AYRE_U16: u32 = 4;
/// `int32_t`.
pub const AYRE_I32: u32 = 5;
/// `uint32_t`.
pub const AYRE_U32: u32 = 6;
/// `int64_t`.
pub const AYRE_I64: u32 = 7;
/// `uint64_t`.
pub const AYRE_U64: u32 = 8;
/// `float`.
pub const AYRE_F32: u32 = 9;
/// `double`.
pub const AYRE_F64: u32 = 10;

/// Combines two numbers: the smaller one.
pub const AYRE_COMBINE_MIN: u32 = 1;
/// The greater one.
pub const AYRE_COMBINE_MAX: u32 = 2;
/// The sum; integers wrap.
pub const AYRE_COMBINE_SUM: u32 = 3;
/// The product; integers wrap.
pub const AYRE_COMBINE_PROD: u32 = 4;
/// 1 if either is not 0, else 0.
pub const AYRE_COMBINE_LOR: u32 = 5;
/// 1 if neither is 0, else 0.
pub const AYRE_COMBINE_LAND: u32 = 6;
/// Bitwise or, of integers.
pub const AYRE_COMBINE_BOR: u32 = 7;
/// Bitwise and, of integers.
pub const AYRE_COMBINE_BAND: u32 = 8;
/// 1 if exactly one is not 0, else 0.
pub const AYRE_COMBINE_LXOR: u32 = 9;
/// Bitwise exclusive or, of integers.
pub const AYRE_COMBINE_BXOR: u32 = 10;

/// A collective and its values, for `ayre_collective_do` and `ayre_collective_start`. Zero the
/// members that it does not use.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ayre_collective {
    /// `AYRE_BARRIER` to `AYRE_REDUCE_SCATTER`.
    pub collective: u32,
    /// The type of the values, `AYRE_I8` to `AYRE_F64`.
    pub number: u32,
    /// How values are combined, `AYRE_COMBINE_MIN` to `AYRE_COMBINE_BXOR`.
    pub combine: u32,
    /// The member that is the root, by its place in the group.
    pub root: u32,
    /// The values that are read, of a gather, scatter, allgather or alltoall.
    pub from: Bytes,
    /// Their number.
    pub from_count: usize,
    /// The values that are changed. They and those that are read do not overlap.
    pub into: Buffer,
    /// Their number.
    pub into_count: usize,
    /// The number of values of each member, the same at all members, for a gather, scatter or
    /// allgather. NULL if all have equally many.
    pub lens: In<usize>,
    /// The number of values to each member, for an alltoall, with `in_lens`. NULL as before.
    pub out_lens: In<usize>,
    /// The number of values from each member.
    pub in_lens: In<usize>,
}

/// Makes a call for values of a type.
macro_rules! typed {
    ($number:expr, $of:ident => $call:expr) => {
        typed!($number, $of => $call; AYRE_I8 i8, AYRE_U8 u8, AYRE_I16 i16, AYRE_U16 u16,
            AYRE_I32 i32, AYRE_U32 u32, AYRE_I64 i64, AYRE_U64 u64, AYRE_F32 f32, AYRE_F64 f64)
    };
    ($number:expr, $of:ident => $call:expr; $($name:ident $number_type:ty),+) => {
        match $number {
            $($name => {
                type $of = $number_type;
                $call
            })+
            _ => Err(Failure::Argument("the type of the values is AYRE_I8 to AYRE_F64")),
        }
    };
}

impl ayre_collective {
    fn combine(&self) -> Outcome<Combine> {
        let code = u8::try_from(self.combine).ok();
        let combine = code.and_then(Combine::from_code);
        combine.ok_or(Failure::Argument("values are combined by AYRE_COMBINE_MIN or another one"))
    }

    fn has_lens(&self) -> bool {
        !self.lens.is_null() || !self.out_lens.is_null() || !self.in_lens.is_null()
    }

    fn changed<'a, T: Summand>(&self) -> Outcome<&'a mut [T]> {
        self.into.values(self.into_count)
    }

    fn both<'a, T: Summand>(&self) -> Outcome<(&'a [T], &'a mut [T])> {
        border::apart((self.from, self.from_count), (self.into, self.into_count))
    }

    /// The collective as a request of a member in a group of this many members.
    fn request<'a, T: Summand>(&self, members: usize) -> Outcome<Request<'a, T>> {
        let root = self.root as usize;
        let mut request = match self.collective {
            AYRE_BROADCAST => Request::broadcast(root, self.changed()?),
            AYRE_REDUCE => Request::reduce(root, self.combine()?, self.changed()?),
            AYRE_ALLREDUCE => Request::allreduce(self.combine()?, self.changed()?),
            AYRE_SCAN => Request::scan(self.combine()?, self.changed()?),
            AYRE_REDUCE_SCATTER => Request::reduce_scatter(self.combine()?, self.changed()?),
            AYRE_GATHER => self.both().map(|(own, all)| Request::gather(root, own, all))?,
            AYRE_SCATTER => self.both().map(|(all, own)| Request::scatter(root, all, own))?,
            AYRE_ALLGATHER => self.both().map(|(own, all)| Request::allgather(own, all))?,
            AYRE_ALLTOALL => self.both().map(|(out, come)| Request::alltoall(out, come))?,
            _ => return Err(NO_COLLECTIVE),
        };
        if !self.lens.is_null() {
            request = request.lens(self.lens.array(members)?);
        }
        if !self.out_lens.is_null() || !self.in_lens.is_null() {
            request =
                request.out_and_in(self.out_lens.array(members)?, self.in_lens.array(members)?);
        }
        Ok(request)
    }

    /// Does the collective.
    fn complete<T: Summand>(&self, mut at: Collectives<'_, ()>, group: Group) -> Outcome<()> {
        match self.collective {
            AYRE_BARRIER => at.barrier(&mut (), group)?,
            // As programs call it for short values.
            AYRE_ALLREDUCE if !self.has_lens() => {
                at.allreduce(&mut (), group, self.combine()?, self.changed::<T>()?)?;
            }
            _ => {
                let members = at.members(group)?.len();
                at.complete(&mut (), group, self.request::<T>(members)?)?;
            }
        }
        Ok(())
    }
}

/// Does a collective. Blocks until it is done at this member, and runs handlers meanwhile.
///
/// All members of a group begin its collectives in the same order, also those that are started.
/// Errors: `AYRE_INVALID` without effect; else `AYRE_PEER_DIED`, `AYRE_MISMATCH` or
/// `AYRE_GIVEN_UP`, after which the group does no further collective.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_collective_do(
    port: Out<ayre_port>,
    group: In<ayre_group>,
    what: In<ayre_collective>,
) -> c_int {
    status(|| collect(port, group, what.given()?))
}

fn collect(port: Out<ayre_port>, group: In<ayre_group>, what: &ayre_collective) -> Outcome<()> {
    with_group(port, group, |messenger, group| {
        let at = messenger.collectives();
        if what.collective == AYRE_BARRIER {
            return what.complete::<u8>(at, group);
        }
        typed!(what.number, Of => what.complete::<Of>(at, group))
    })
}

/// A started collective on values of any type.
pub trait Pending {
    /// Whether it has ended.
    fn is_finished(&self, at: &Collectives<'_, ()>) -> bool;
    /// Waits for its end.
    fn finish(self: Box<Self>, at: &mut Collectives<'_, ()>) -> Result<(), GroupError>;
}

impl<T: Summand> Pending for PendingCollective<T> {
    fn is_finished(&self, at: &Collectives<'_, ()>) -> bool {
        at.is_finished(self)
    }

    fn finish(self: Box<Self>, at: &mut Collectives<'_, ()>) -> Result<(), GroupError> {
        at.finish(&mut (), *self).map(drop)
    }
}

/// Starts a collective, which goes on whenever the port polls, and gives out a request for it. Does
/// not block.
///
/// The values belong to the library until `ayre_request_wait` has returned, or the port is closed.
/// Until then the program does not change those that are read, nor use those that are changed.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_collective_start(
    port: Out<ayre_port>,
    group: In<ayre_group>,
    what: In<ayre_collective>,
    request: Out<*mut ayre_request>,
) -> c_int {
    status(|| {
        request.hand_out(|| {
            let what = what.given()?;
            let mut port = port.held()?;
            let group = *group.shared()?.at(&port)?;
            let mut at = port.messenger()?.collectives();
            let members = at.members(group)?.len();
            let pending: Box<dyn Pending> = if what.collective == AYRE_BARRIER {
                Box::new(at.start(group, Request::barrier())?)
            } else {
                typed!(what.number, Of => {
                    let started: PendingCollective<Of> =
                        at.start(group, what.request(members)?)?;
                    Ok::<Box<dyn Pending>, Failure>(Box::new(started))
                })?
            };
            Ok(port.made(pending))
        })
    })
}

/// 1 if a started collective has ended at this member, well or with an error. Does not block, and
/// makes no progress: `ayre_poll` does.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_request_test(port: Out<ayre_port>, request: Out<ayre_request>) -> c_int {
    flag(|| {
        let (mut port, request) = (port.held()?, request.held()?);
        let pending = request.at(&port)?;
        Ok(pending.is_finished(&port.messenger()?.collectives()))
    })
}

/// Waits until a started collective has ended at this member. Blocks, and runs handlers meanwhile.
/// Returns as `ayre_collective_do` does. The request is closed, also after an error.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_request_wait(port: Out<ayre_port>, request: Out<ayre_request>) -> c_int {
    status(|| {
        let mut port = port.held()?;
        request.held()?.at(&port)?;
        let pending = request.close()?.into_thing();
        Ok(pending.finish(&mut port.messenger()?.collectives())?)
    })
}

/// Closes the handle of a request whose port was closed. One that nobody waits for goes on. NULL is
/// ignored.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_request_close(request: Out<ayre_request>) -> c_int {
    border::closed(request)
}

/// Waits until all members of a group have called this. Blocks, and runs handlers meanwhile, as all
/// collectives do. Errors are those of `ayre_collective_do`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_group_barrier(port: Out<ayre_port>, group: In<ayre_group>) -> c_int {
    status(|| collect(port, group, &about(AYRE_BARRIER, AYRE_U8)))
}

/// Copies `count` values of the member `root` to all members. Blocks.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_broadcast(
    port: Out<ayre_port>,
    group: In<ayre_group>,
    root: u32,
    values: Buffer,
    count: usize,
    number: u32,
) -> c_int {
    let about = about(AYRE_BROADCAST, number);
    status(|| collect(port, group, &ayre_collective { root, ..about.changing(values, count) }))
}

/// Combines `count` values of all members, number by number. The member `root` gets the result. The
/// values of the others are undefined afterwards. Blocks.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_reduce(
    port: Out<ayre_port>,
    group: In<ayre_group>,
    root: u32,
    values: Buffer,
    count: usize,
    number: u32,
    combine: u32,
) -> c_int {
    let about = about(AYRE_REDUCE, number).changing(values, count);
    status(|| collect(port, group, &ayre_collective { root, combine, ..about }))
}

/// Combines `count` values of all members, number by number. All members get the result. Blocks.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_allreduce(
    port: Out<ayre_port>,
    group: In<ayre_group>,
    values: Buffer,
    count: usize,
    number: u32,
    combine: u32,
) -> c_int {
    let about = about(AYRE_ALLREDUCE, number).changing(values, count);
    status(|| collect(port, group, &ayre_collective { combine, ..about }))
}

/// Combines `count` values, number by number. Each member gets the result of the members up to
/// itself, its own values included. Blocks.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_scan(
    port: Out<ayre_port>,
    group: In<ayre_group>,
    values: Buffer,
    count: usize,
    number: u32,
    combine: u32,
) -> c_int {
    let about = about(AYRE_SCAN, number).changing(values, count);
    status(|| collect(port, group, &ayre_collective { combine, ..about }))
}

/// Combines `count` values of all members, number by number. Of n members, member m gets the
/// results from m count / n to (m + 1) count / n, at their places in `values`. Its other values are
/// undefined afterwards. Blocks.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_reduce_scatter(
    port: Out<ayre_port>,
    group: In<ayre_group>,
    values: Buffer,
    count: usize,
    number: u32,
    combine: u32,
) -> c_int {
    let about = about(AYRE_REDUCE_SCATTER, number).changing(values, count);
    status(|| collect(port, group, &ayre_collective { combine, ..about }))
}

/// Copies the `count` values of each member to `all` at the member `root`, in the order of the
/// members. `all` has room for them all; at the others it may be NULL. Blocks.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_gather(
    port: Out<ayre_port>,
    group: In<ayre_group>,
    root: u32,
    own: Bytes,
    count: usize,
    all: Buffer,
    number: u32,
) -> c_int {
    status(|| {
        let about = about(AYRE_GATHER, number).reading(own, count);
        let count = if is_root(port, group, root)? { all_of(port, group, count)? } else { 0 };
        collect(port, group, &ayre_collective { root, ..about.changing(all, count) })
    })
}

/// Copies a part of `all` at the member `root` to each member, `count` values, in the order of the
/// members. At the others `all` may be NULL. Blocks.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_scatter(
    port: Out<ayre_port>,
    group: In<ayre_group>,
    root: u32,
    all: Bytes,
    own: Buffer,
    count: usize,
    number: u32,
) -> c_int {
    status(|| {
        let about = about(AYRE_SCATTER, number).changing(own, count);
        let count = if is_root(port, group, root)? { all_of(port, group, count)? } else { 0 };
        collect(port, group, &ayre_collective { root, ..about.reading(all, count) })
    })
}

/// Copies the `count` values of each member to `all` at all members, in the order of the members.
/// Blocks.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_allgather(
    port: Out<ayre_port>,
    group: In<ayre_group>,
    own: Bytes,
    count: usize,
    all: Buffer,
    number: u32,
) -> c_int {
    status(|| {
        let about = about(AYRE_ALLGATHER, number).reading(own, count);
        collect(port, group, &about.changing(all, all_of(port, group, count)?))
    })
}

/// Exchanges parts of `count` values between all members: part m of `out` goes to member m, and
/// part m of `come` comes from member m. Blocks.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_alltoall(
    port: Out<ayre_port>,
    group: In<ayre_group>,
    out: Bytes,
    come: Buffer,
    count: usize,
    number: u32,
) -> c_int {
    status(|| {
        let count = all_of(port, group, count)?;
        let about = about(AYRE_ALLTOALL, number).reading(out, count);
        collect(port, group, &about.changing(come, count))
    })
}

/// A collective on values of a type, without its values.
fn about(collective: u32, number: u32) -> ayre_collective {
    ayre_collective {
        collective,
        number,
        combine: 0,
        root: 0,
        from: Bytes::none(),
        from_count: 0,
        into: Buffer::none(),
        into_count: 0,
        lens: In::none(),
        out_lens: In::none(),
        in_lens: In::none(),
    }
}

impl ayre_collective {
    fn reading(self, from: Bytes, from_count: usize) -> Self {
        Self { from, from_count, ..self }
    }

    fn changing(self, into: Buffer, into_count: usize) -> Self {
        Self { into, into_count, ..self }
    }
}

/// The number of values of all members, if each has `count`.
fn all_of(port: Out<ayre_port>, group: In<ayre_group>, count: usize) -> Outcome<usize> {
    let members = with_group(port, group, |messenger, group| {
        Ok(messenger.collectives().members(group)?.len())
    })?;
    count.checked_mul(members).ok_or(Failure::Argument("no memory is that long"))
}

/// Whether this port is the member `root` of a group.
fn is_root(port: Out<ayre_port>, group: In<ayre_group>, root: u32) -> Outcome<bool> {
    with_group(port, group, |messenger, group| {
        let own = messenger.port().rank();
        let mut groups = messenger.collectives();
        let member = groups.members(group)?.get(root as usize);
        Ok(member.is_some_and(|member| member.index() == own))
    })
}
