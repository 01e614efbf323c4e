//! Collectives of a group, on numbers in buffers. `ayre/_groups.py` has their methods, which take
//! arrays.
use crate::active::Messenger;
use crate::buffer::Room;
use crate::error::{Failure, Outcome};
use crate::value::Peer;
use ayre::collective::{Collectives, Combine, GroupError, PendingCollective, Request, Summand};
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};
use zerocopy::{FromBytes, IntoBytes, KnownLayout};

/// A collective without its values, as `ayre._groups` gives it: a tuple.
#[derive(Clone, Debug)]
struct Form {
    /// The name of the collective.
    name: String,
    /// The type of the values, as numpy names it without the byte order.
    number: String,
    /// The number of an operation, from 1 for the minimum to 10 for the exclusive or; 0 for none.
    combine: u8,
    /// The place of the root in the group.
    root: usize,
}

impl<'py> FromPyObject<'_, 'py> for Form {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (name, number, combine, root) = object.extract()?;
        Ok(Self { name, number, combine, root })
    }
}

/// Makes a call for values of a type.
macro_rules! typed {
    ($number:expr, $of:ident => $call:expr) => {
        typed!($number, $of => $call; "i1" i8, "u1" u8, "i2" i16, "u2" u16, "i4" i32, "u4" u32,
            "i8" i64, "u8" u64, "f4" f32, "f8" f64)
    };
    ($number:expr, $of:ident => $call:expr; $($name:literal $number_type:ty),+) => {
        match $number {
            $($name => {
                type $of = $number_type;
                $call
            })+
            _ => Err(Failure::argument("the numbers are i1 to i8, u1 to u8, f4 or f8")),
        }
    };
}

/// A group of processes that do collectives together, at one of its members.
#[pyclass(frozen, subclass, module = "ayre._ayre", name = "Group")]
#[derive(Debug)]
pub(crate) struct Group {
    /// The messenger that has made it.
    #[pyo3(get)]
    messenger: Py<Messenger>,
    group: ayre::collective::Group,
    /// The members, in their order.
    #[pyo3(get)]
    members: Vec<u16>,
}

#[pymethods]
impl Group {
    /// Makes a group of these members, this port among them; of this port and all its peers, in the
    /// order of their numbers, where none are given. All members make it under the same name of 1
    /// to 64 bytes, with the same members in the same order. Sends nothing, and does not block.
    #[new]
    #[pyo3(signature = (messenger, name, members=None))]
    fn new(messenger: Py<Messenger>, name: &str, members: Option<Vec<Peer>>) -> Outcome<Self> {
        let port = Python::attach(|py| messenger.get().port.clone_ref(py));
        let (group, members) = port.get().with_messenger(|messenger| {
            let mut at = messenger.collectives();
            let group = match members {
                None => at.group_of_all(name)?,
                Some(members) => {
                    let members: Vec<_> = members.iter().map(|member| member.0).collect();
                    at.group(name, &members)?
                }
            };
            let members = at.members(group)?.iter().map(|member| member.0).collect();
            Ok::<_, Failure>((group, members))
        })?;
        Ok(Self { messenger, group, members })
    }

    /// Does a collective: reads the numbers of `own`, and changes those of `into`. Blocks until it
    /// is done at this member, and runs handlers meanwhile.
    #[pyo3(signature = (form, own=None, into=None))]
    fn _do(
        &self,
        py: Python<'_>,
        form: Form,
        own: Option<&Bound<'_, PyAny>>,
        into: Option<&Bound<'_, PyAny>>,
    ) -> Outcome<()> {
        let (mut reading, mut changing) = (Room::new(), Room::new());
        let own = own.map_or(Ok(&[][..]), |own| reading.bytes(own))?;
        let into = into.map_or(Ok(&mut [][..]), |into| changing.one_piece(into))?;
        self.messenger.get().port.get().with_messenger(|messenger| {
            py.detach(|| {
                let mut at = messenger.collectives();
                if form.name == "barrier" {
                    return Ok(at.barrier(&mut (), self.group)?);
                }
                typed!(&*form.number, Of => complete::<Of>(at, self.group, &form, (own, into)))
            })
        })
    }

    /// Starts a collective, which goes on whenever the messenger polls, on copies of the numbers.
    /// Does not block.
    #[pyo3(signature = (form, own=None, into=None))]
    fn _start(
        slf: &Bound<'_, Self>,
        form: Form,
        own: Option<&Bound<'_, PyAny>>,
        into: Option<&Bound<'_, PyAny>>,
    ) -> Outcome<Pending> {
        let (mut reading, mut changing) = (Room::new(), Room::new());
        let own = own.map_or(Ok(&[][..]), |own| reading.bytes(own))?;
        let into = into.map_or(Ok(&[][..]), |into| changing.bytes(into))?;
        let this = slf.get();
        let started = this.messenger.get().port.get().with_messenger(|messenger| {
            let mut at = messenger.collectives();
            if form.name == "barrier" {
                let pending = at.start(this.group, Request::barrier())?;
                return Ok::<Box<dyn Started>, Failure>(Box::new(pending));
            }
            typed!(&*form.number, Of => {
                let (own, into) = (owned::<Of>(own)?, owned::<Of>(into)?);
                let request = match &*form.name {
                    "gather" => Request::gather(form.root, own, into),
                    "scatter" => Request::scatter(form.root, own, into),
                    "allgather" => Request::allgather(own, into),
                    "alltoall" => Request::alltoall(own, into),
                    _ => vector(&form, into)?,
                };
                let pending = at.start(this.group, request)?;
                Ok::<Box<dyn Started>, Failure>(Box::new(pending))
            })
        })?;
        Ok(Pending { group: slf.clone().unbind(), started: Mutex::new(Some(started)) })
    }

    fn __len__(&self) -> usize {
        self.members.len()
    }
}

fn combine(form: &Form) -> Outcome<Combine> {
    Combine::from_code(form.combine)
        .filter(|_| form.combine <= 10)
        .ok_or_else(|| Failure::argument("there is no such operation"))
}

/// The request of a collective that changes the vector of each member.
fn vector<'a, T: Summand>(
    form: &Form,
    values: impl Into<ayre::collective::Values<'a, T>>,
) -> Outcome<Request<'a, T>> {
    Ok(match &*form.name {
        "broadcast" => Request::broadcast(form.root, values),
        "reduce" => Request::reduce(form.root, combine(form)?, values),
        "allreduce" => Request::allreduce(combine(form)?, values),
        "scan" => Request::scan(combine(form)?, values),
        "reduce_scatter" => Request::reduce_scatter(combine(form)?, values),
        _ => return Err(Failure::argument("there is no collective of this name")),
    })
}

fn complete<T: Summand + KnownLayout>(
    mut at: Collectives<'_, ()>,
    group: ayre::collective::Group,
    form: &Form,
    (own, into): (&[u8], &mut [u8]),
) -> Outcome<()> {
    let own = numbers(own)?;
    let into = match into {
        [] => &mut [],
        into => <[T]>::mut_from_bytes(into).map_err(|_| misaligned())?,
    };
    match &*form.name {
        // As programs call it for short values.
        "allreduce" => at.allreduce(&mut (), group, combine(form)?, into)?,
        "gather" => at.gather(&mut (), group, form.root, (own, into))?,
        "scatter" => at.scatter(&mut (), group, form.root, (own, into))?,
        "allgather" => at.allgather(&mut (), group, own, into)?,
        "alltoall" => at.alltoall(&mut (), group, own, into)?,
        _ => at.complete(&mut (), group, vector(form, into)?)?,
    }
    Ok(())
}

fn owned<T: Summand + KnownLayout + Clone>(bytes: &[u8]) -> Outcome<Vec<T>> {
    Ok(numbers::<T>(bytes)?.to_vec())
}

/// The numbers of a buffer. One without bytes has no place that could be right.
fn numbers<T: Summand + KnownLayout>(bytes: &[u8]) -> Outcome<&[T]> {
    match bytes {
        [] => Ok(&[]),
        bytes => <[T]>::ref_from_bytes(bytes).map_err(|_| misaligned()),
    }
}

fn misaligned() -> Failure {
    Failure::argument("the numbers are whole, and lie at a multiple of their size")
}

/// A started collective on values of any type.
trait Started: Send {
    /// Whether it has ended.
    fn is_finished(&self, at: &Collectives<'_, ()>) -> bool;
    /// Waits for its end. Copies what was changed.
    fn finish(
        self: Box<Self>,
        at: &mut Collectives<'_, ()>,
        into: &mut [u8],
    ) -> Result<(), GroupError>;
}

impl<T: Summand> Started for PendingCollective<T> {
    fn is_finished(&self, at: &Collectives<'_, ()>) -> bool {
        at.is_finished(self)
    }

    fn finish(
        self: Box<Self>,
        at: &mut Collectives<'_, ()>,
        into: &mut [u8],
    ) -> Result<(), GroupError> {
        let values = at.finish(&mut (), *self)?;
        // As many as the request was given, or none.
        let bytes = values.as_slice().as_bytes();
        let count = bytes.len().min(into.len());
        into[..count].copy_from_slice(&bytes[..count]);
        Ok(())
    }
}

/// A started collective.
#[pyclass(frozen, module = "ayre._ayre", name = "Pending")]
pub(crate) struct Pending {
    group: Py<Group>,
    started: Mutex<Option<Box<dyn Started>>>,
}

#[pymethods]
impl Pending {
    /// Whether the collective has ended at this member, well or with an error. Makes progress, runs
    /// handlers, and does not block.
    fn test(&self) -> Outcome<bool> {
        self.group.get().messenger.get().port.get().with_messenger(|messenger| {
            messenger.poll(&mut ());
            let started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
            let at = messenger.collectives();
            Ok::<_, Failure>(started.as_ref().is_none_or(|started| started.is_finished(&at)))
        })
    }

    /// Waits until the collective has ended at this member, and copies its result to `into`.
    #[pyo3(signature = (into=None))]
    fn wait(&self, py: Python<'_>, into: Option<&Bound<'_, PyAny>>) -> Outcome<()> {
        let mut changing = Room::new();
        let into = into.map_or(Ok(&mut [][..]), |into| changing.one_piece(into))?;
        self.group.get().messenger.get().port.get().with_messenger(|messenger| {
            let started = self.started.lock().unwrap_or_else(PoisonError::into_inner).take();
            let started =
                started.ok_or_else(|| Failure::closed("the collective was waited for already"))?;
            py.detach(|| started.finish(&mut messenger.collectives(), into)).map_err(Failure::from)
        })
    }
}
