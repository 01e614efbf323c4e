//! A driver's calls about collectives.
use super::super::super::values::Asked;
use super::super::super::words::{Words, hex, list};
use super::super::{Held, Made, done, keep, nothing};
use super::Messaging;
use crate::engine::messenger::{Member, Started};
use crate::messenger::{Groups, Owned, Recorded, Request, Values};
use ayre::collective::Number;
use ayre::collective::{Collective, Group, GroupError, Schedule, Summand};
use zerocopy::IntoBytes;

/// A collective that was begun, on whatever values.
pub(super) trait Begun {
    fn is_finished(&self, messenger: &mut Member<Held>) -> bool;
    /// The buffer that was changed.
    fn finish(
        self: Box<Self>,
        messenger: &mut Member<Held>,
        held: &mut Held,
    ) -> Result<String, GroupError>;
}

impl<T: Summand> Begun for Started<T> {
    fn is_finished(&self, messenger: &mut Member<Held>) -> bool {
        messenger.is_finished(self)
    }

    fn finish(
        self: Box<Self>,
        messenger: &mut Member<Held>,
        held: &mut Held,
    ) -> Result<String, GroupError> {
        Ok(hex(messenger.finish(held, *self)?.as_bytes()))
    }
}

/// Makes a call for values of a type.
macro_rules! typed {
    ($number:expr, $of:ident => $call:expr) => {
        typed!($number, $of => $call; I8 i8, U8 u8, I16 i16, U16 u16, I32 i32, U32 u32, I64 i64,
            U64 u64, F32 f32, F64 f64)
    };
    ($number:expr, $of:ident => $call:expr; $($name:ident $number_type:ty),+) => {
        match $number {
            $(Number::$name => {
                type $of = $number_type;
                $call
            })+
            other => panic!("no messenger has values of {other:?}"),
        }
    };
}

/// Lengths, where members have different ones.
fn lens(words: &mut Words<'_>) -> Option<Vec<usize>> {
    let count = words.limit::<usize>()?;
    Some((0..count).map(|_| words.number()).collect())
}

fn recorded(call: &Recorded) -> String {
    let Recorded { number, begin_ns, time_ns, collective, schedule, bytes, links } = call;
    let links = links.iter().map(|link| {
        let (sent, waiting, time) = (link.sent, link.waiting, link.round_trip_ns);
        format!("{sent} {waiting} {time}")
    });
    let (collective, schedule) = (*collective as u8, *schedule as u8);
    format!("{number} {begin_ns} {time_ns} {collective} {schedule} {bytes} {}", list(links))
}

/// Does a collective: what was changed.
fn collect<T: Summand>(
    messenger: &mut Member<Held>,
    held: &mut Held,
    group: Group,
    (asked, [each, out, come]): (&Asked, [Option<Vec<usize>>; 3]),
) -> Result<String, GroupError> {
    let (read, mut changed);
    let values = match asked.values::<T>() {
        Values::None => {
            messenger.barrier(held, group)?;
            return Ok(String::new());
        }
        // As programs call what is short.
        Values::Combined(combine, mut values)
            if asked.collective == Collective::Allreduce && each.is_none() =>
        {
            messenger.allreduce(held, group, combine, &mut values)?;
            return Ok(hex(values.as_bytes()));
        }
        Values::One(values) => {
            changed = values;
            Values::One(&mut changed[..])
        }
        Values::Combined(combine, values) => {
            changed = values;
            Values::Combined(combine, &mut changed[..])
        }
        Values::Two(from, values) => {
            (read, changed) = (from, values);
            Values::Two(&read[..], &mut changed[..])
        }
    };
    let out_and_in = out.as_deref().zip(come.as_deref()).map(|(out, come)| [out, come]);
    let (collective, root, lens) = (asked.collective, asked.root, each.as_deref());
    let request = Request { collective, root, values, lens, out_and_in };
    messenger.complete(held, group, request)?;
    Ok(hex(changed.as_bytes()))
}

impl Messaging {
    pub(super) fn about_groups(
        &mut self,
        call: &str,
        words: &mut Words<'_>,
        held: &mut Held,
    ) -> Made {
        let Self { messenger, groups, .. } = self;
        match call {
            "group" => {
                let name = words.name();
                let group = messenger.group(&name, &words.peers())?;
                return done(keep(groups, group));
            }
            "group_of_all" => {
                let group = messenger.group_of_all(&words.name())?;
                return done(keep(groups, group));
            }
            _ => {}
        }
        let group = groups[words.number::<usize>()];
        match call {
            "fix_schedule" => {
                let (collective, code) = (words.collective(), words.number::<u8>());
                let schedule = Schedule::ALL.into_iter().find(|one| *one as u8 == code);
                nothing(messenger.fix_schedule(group, collective, schedule)?)
            }
            "adapt" => nothing(messenger.adapt(held, group, words.limit())?),
            "record" => nothing(messenger.record(group, words.number())?),
            "recording" => done(list(messenger.recording(group).iter().map(recorded))),
            _ => done(hex(messenger.recording_text(group).as_bytes())),
        }
    }

    pub(super) fn collects(&mut self, call: &str, words: &mut Words<'_>, held: &mut Held) -> Made {
        let Self { messenger, groups, started, .. } = self;
        let place = words.number::<usize>();
        match call {
            "collect" => {
                let lens = [(); 3].map(|()| lens(words));
                let asked = Asked::read(words);
                let group = groups[place];
                typed!(asked.number, Of => {
                    done(collect::<Of>(messenger, held, group, (&asked, lens))?)
                })
            }
            "start" => {
                let asked = Asked::read(words);
                let (collective, root) = (asked.collective, asked.root);
                let begun: Box<dyn Begun> = typed!(asked.number, Of => {
                    let values = asked.values::<Of>();
                    Box::new(messenger.start(groups[place], Owned { collective, root, values })?)
                });
                done(keep(started, Some(begun)))
            }
            _ => {
                let place = &mut started[place];
                if call == "finished" {
                    let begun = place.as_ref().expect("it was not finished");
                    return done(u8::from(begun.is_finished(messenger)));
                }
                let begun = place.take().expect("it is finished once");
                done(begun.finish(messenger, held)?)
            }
        }
    }
}
