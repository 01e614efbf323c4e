//! The table of all cases, and what is made of it: tests by the test runner's names, and a list.
//!
//! A line names a case: the module, and the function in it, above which stand a sentence of what
//! it holds a fabric to and the requirements that it cites. The groups say what a fabric must be
//! like.

use crate::depot::Depots;
use crate::fabric::Fabric;
use crate::messenger::Messengers;

/// Hands a group of the table over to a macro, behind what that one is given besides.
#[macro_export]
macro_rules! table {
    // What no call waits for: also of fabrics that have one thread.
    (posted, [$($then:tt)+], $($given:tt)*) => {
        $($then)+! { $($given)*
            transfers:
                put_lets_its_buffer_go, immediate_put_stores_a_word;
            visibility:
                only_a_flush_tells;
            strided:
                strided_bounds_cover_all_rows, rows_do_not_land_on_each_other;
            notifications:
                a_connection_is_enough_to_notify, notifications_come_in_posted_order,
                polls_find_what_is_pending, a_wait_without_time_is_a_poll,
                flush_takes_no_notifications;
            atomics:
                the_owner_performs_atomics, atomics_are_aligned;
            messages:
                every_length_arrives, lengths_are_limited, a_full_lane_loses_nothing,
                a_short_buffer_leaves_the_message, a_receive_without_time_is_a_poll,
                unread_messages_delay_nothing;
            queues:
                every_length_arrives, lengths_are_limited, a_full_lane_loses_nothing,
                a_short_buffer_leaves_the_record, a_wait_without_time_is_a_poll,
                handles_are_of_their_port, a_removed_producer_reaches_nobody;
            batches:
                a_batch_is_posted_in_order, an_unposted_batch_does_nothing,
                a_batch_is_posted_whole_or_not, a_batch_that_never_fits_is_too_long;
            bounds:
                what_exceeds_a_capability_is_refused, parts_overlap;
            handles:
                a_capability_is_of_its_port, a_region_is_of_its_port, a_grant_is_of_its_port,
                an_unknown_peer_is_a_foreign_handle, names_find_capabilities,
                one_name_gives_one_after_the_other, faults_have_an_order,
                capabilities_can_be_narrowed, the_mode_is_agreed, a_second_loopback_is_refused;
            regions:
                memory_is_zeroed, grants_stay_inside, deregistering_revokes,
                what_was_deregistered_is_gone;
            revocation:
                what_is_under_way_ends, a_region_can_be_shared_again;
            room:
                own_notifications_are_bounded, unread_notifications_refuse_more,
                the_table_is_bounded, refusals_and_faults_are_counted,
                what_nobody_accepts_is_bounded, posting_does_not_wait;
        }
    };
    // Calls that wait for the target's program.
    (waited, [$($then:tt)+], $($given:tt)*) => {
        $($then)+! { $($given)*
            transfers:
                put_copies_exactly, get_copies_exactly, regions_are_local_buffers,
                get_into_a_region_lands_with_its_completer, no_bytes_are_a_transfer;
            strided:
                put_strided_writes_rows, get_strided_reads_rows;
            notifications:
                classes_raise_what_the_table_says, a_notification_is_128_bits,
                a_long_put_is_notified_once_at_its_end, a_fault_is_one_requester_notification;
            atomics:
                atomics_agree_with_the_model, shorthands_are_atomics, fcaa_compares_signed;
            locks:
                steps_walk_the_word, a_handle_holds_once;
            epochs:
                steps_out_of_turn_decline;
            oracle:
                lists_agree_with_the_oracle;
            bounds:
                a_part_is_all_that_is_granted;
            rights:
                each_right_is_needed, notifying_is_a_right, no_rights_let_nothing_through,
                a_sealed_region_is_for_reading;
            regions:
                the_owner_shares_its_memory, registered_words_are_memory;
            revocation:
                other_grants_live_on, a_barrier_leaves_faults_to_flush;
        }
    };
    // What takes several ports, and so no loopback.
    (ports, [$($then:tt)+], $($given:tt)*) => {
        $($then)+! { $($given)*
            visibility:
                data_comes_before_its_completer, data_comes_before_a_later_message,
                data_comes_before_a_later_flag, bytes_under_way_are_old_or_new,
                gets_find_what_was_written_before_a_message,
                a_stream_of_puts_is_never_behind_its_signals,
                flushed_data_comes_before_a_later_record;
            concurrency:
                sums_are_exact, fetched_values_are_distinct, fcaa_keeps_a_ceiling,
                immediate_puts_do_not_tear;
            locks:
                locks_exclude, death_does_not_unlock;
            epochs:
                an_epoch_ends_with_its_data;
            messages:
                streams_of_messages_arrive, waits_miss_no_wake_up, senders_do_not_mix,
                a_flooding_sender_stops_nobody;
            queues:
                producers_do_not_mix, a_flooding_producer_stops_nobody;
            handles:
                names_are_of_a_pair;
            revocation:
                nothing_lands_after;
            room:
                one_peers_notifications_stop_no_other, unread_notifications_delay_no_operation;
            notifications:
                polls_in_turn_find_every_peer;
            death:
                later_calls_fault, a_fault_goes_before_busy, what_is_under_way_ends,
                what_was_executed_has_not_faulted, the_last_answer_is_returned,
                blocked_calls_return, waits_end, accepting_ends, what_was_published_arrives,
                leaving_flushes, a_wait_ends_with_the_last_peer, what_has_arrived_comes_first,
                a_number_can_be_used_again, survivors_go_on;
        }
    };
    // Operations that are under way for longer than their call: mediated fabrics.
    (mediated, [$($then:tt)+], $($given:tt)*) => {
        $($then)+! { $($given)*
            room:
                operations_under_way_are_bounded;
        }
    };
    // Where nobody but the case serves the target.
    (inline, [$($then:tt)+], $($given:tt)*) => {
        $($then)+! { $($given)*
            room:
                answers_not_taken_are_bounded, busy_ports_get_through, polls_serve_every_peer;
        }
    };
    // Depots, of which one port is enough; no call waits for the target's program for longer than
    // it takes to perform an operation.
    (depots, [$($then:tt)+], $($given:tt)*) => {
        $($then)+! { $($given)*
            deposits:
                appends_lie_one_behind_the_other, answers_bring_values_and_memory,
                every_executor_does_the_same, tests_notify_where_they_hold,
                a_stopped_inlet_waits_for_its_owner, owners_skip_and_reset,
                a_frozen_depot_does_not_change, a_revoked_inlet_is_stale, inlets_are_bounded,
                ended_inlets_leave_room;
            replies:
                answers_are_appended, answers_give_operands, nothing_is_deposited_for_nothing,
                replies_fault, a_held_reply_waits_for_its_owner, replies_wait_for_a_thaw,
                no_reply_after_a_revocation;
        }
    };
    // Depots that several ports reach.
    (shared_depots, [$($then:tt)+], $($given:tt)*) => {
        $($then)+! { $($given)*
            deposits:
                many_senders_share_a_queue, a_peer_that_goes_leaves_room;
        }
    };
    // Messengers that the case polls in turn: also of fabrics that have one thread.
    (polled, [$($then:tt)+], $($given:tt)*) => {
        $($then)+! { $($given)*
            active:
                names_are_the_same_everywhere, handlers_do_not_wait,
                memory_comes_before_the_handler, death_drops_what_is_not_whole;
            liars:
                liars_are_cut_off, who_lies_about_groups_is_cut_off,
                who_lies_in_a_group_is_cut_off, any_records_harm_nobody, a_landing_is_for_writing;
            channels:
                messages_arrive_by_all_channels, a_full_channel_delays_nobody,
                what_is_urgent_goes_first, weights_are_shares, short_messages_pass_long_ones,
                one_channel_is_polled, what_goes_by_no_channel_has_its_turn,
                what_nobody_handles_is_told, death_ends_what_waits,
                who_lies_about_channels_is_cut_off;
            streams:
                a_slow_sink_stops_its_source, polls_notice_deaths;
            stream_liars:
                who_lies_about_streams_is_cut_off, who_takes_no_answers_is_cut_off;
        }
    };
    // Messengers that wait for each other, each in a thread of its own.
    (messengers, [$($then:tt)+], $($given:tt)*) => {
        $($then)+! { $($given)*
            active:
                handlers_get_what_was_sent, a_panic_harms_its_message, replies_are_replied_to,
                a_flush_ends, a_sync_runs_what_came_before, a_sync_ends_when_others_leave,
                floods_get_on, long_messages_do_not_mix, who_takes_nothing_leaves_room;
            liars:
                a_long_call_ends_with_its_peer;
            channels:
                answers_go_by_channels;
            storm:
                every_question_comes_back;
            collectives:
                every_schedule_agrees_with_the_oracle, groups_do_not_mix, collectives_overlap,
                later_ones_leave_room, lengths_differ, handlers_run_meanwhile,
                a_full_lane_delays_a_barrier, early_portions_wait,
                who_does_another_thing_is_found, death_ends_collectives, nonsense_is_refused;
            adaptive:
                groups_that_adapt_agree_with_the_oracle, a_busy_link_is_avoided,
                who_begins_to_adapt_tells_at_once, what_went_before_is_not_of_the_call,
                recordings_tell_the_last_calls;
            multicast:
                members_see_one_order, long_messages_keep_the_order,
                who_leaves_has_seen_all_before, members_that_die_are_removed,
                outsiders_send_through_a_door, joining_may_be_refused,
                handlers_send_to_their_group;
            streams:
                items_go_through_all_stages, streams_do_not_mix, entries_change_while_items_flow,
                failures_are_told_at_both_ends, entries_have_owners, death_ends_streams;
        }
    };
    // What is of this engine, for any of its executors: how it maps memory.
    (library, [$($then:tt)+], $($given:tt)*) => {
        $($then)+! { $($given)*
            mappings:
                a_read_only_mapping_stays_so;
        }
    };
}

/// Tests of groups of cases for one fabric, in a module of its name: `suite!(direct:
/// ayre_conformance::Executor::Direct; all, ports)`. The fabric is any expression that says where
/// it is from, as it stands in modules of its own.
#[macro_export]
macro_rules! suite {
    ($(#[$about:meta])* $name:ident: $fabric:expr; $($group:ident),+) => {
        $(#[$about])*
        mod $name {
            $($crate::suite! { @group $group, $fabric })+
        }
    };
    (@group $group:ident, $fabric:expr) => {
        mod $group {
            $crate::table! { $group, [$crate::tests_of], $fabric; }
        }
    };
}

/// Tests of the named cases.
#[macro_export]
macro_rules! tests_of {
    ($fabric:expr; $($module:ident: $($case:ident),+;)+) => {
        $(mod $module {
            $(#[test]
            fn $case() {
                $crate::$module::$case($fabric);
            })+
        })+
    };
}

/// A case as a value: what it is called, which requirements it cites, and what it does.
#[derive(Clone, Copy, Debug)]
pub struct Case<F> {
    /// Group, module and function, as in a test's name.
    pub name: [&'static str; 3],
    source: &'static str,
    /// Panics where the fabric does something else than the contract says.
    pub run: fn(F),
}

impl<F> Case<F> {
    /// The requirements that the case cites, as they stand above it.
    pub fn requirements(&self) -> Vec<&'static str> {
        let head = format!("pub fn {}", self.name[2]);
        let lines: Vec<_> = self.source.lines().collect();
        let begins = |line: &&str| {
            line.strip_prefix(&head).is_some_and(|signature| signature.starts_with(['<', '(']))
        };
        let at = lines.iter().position(begins).unwrap_or(0);
        let above = lines[..at].iter().rev().map_while(|line| line.strip_prefix("// spec: "));
        above.flat_map(|line| line.split(", ")).collect()
    }
}

/// The cases of a group as a list, for drivers that do not use `#[test]`.
macro_rules! cases_of {
    ($group:ident; $($module:ident: $($case:ident),+;)+) => {
        vec![$($($crate::suite::Case {
            name: [stringify!($group), stringify!($module), stringify!($case)],
            source: include_str!(concat!(stringify!($module), ".rs")),
            run: $crate::$module::$case,
        }),+),+]
    };
}

/// All cases about ports.
pub fn cases<F: Fabric>() -> Vec<Case<F>> {
    let mut cases = vec![];
    cases.extend(crate::table! { posted, [cases_of], posted; });
    cases.extend(crate::table! { waited, [cases_of], waited; });
    cases.extend(crate::table! { ports, [cases_of], ports; });
    cases.extend(crate::table! { mediated, [cases_of], mediated; });
    cases.extend(crate::table! { inline, [cases_of], inline; });
    cases
}

/// All cases about depots.
pub fn depot_cases<F: Depots>() -> Vec<Case<F>> {
    let mut cases = vec![];
    cases.extend(crate::table! { depots, [cases_of], depots; });
    cases.extend(crate::table! { shared_depots, [cases_of], shared_depots; });
    cases
}

/// All cases about messengers.
pub fn messenger_cases<F: Messengers>() -> Vec<Case<F>> {
    let mut cases = vec![];
    cases.extend(crate::table! { polled, [cases_of], polled; });
    cases.extend(crate::table! { messengers, [cases_of], messengers; });
    cases
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Executor;
    use std::collections::{BTreeMap, BTreeSet};

    /// All that there are over traits of the suite's.
    fn all() -> Vec<Case<Executor>> {
        [cases(), depot_cases(), messenger_cases()].concat()
    }

    #[test]
    fn every_case_cites_a_requirement() {
        for case in all() {
            assert_ne!(case.requirements(), [""; 0], "{:?}", case.name);
        }
    }

    /// No function over a trait is left out of the table, and none stands there twice.
    #[test]
    fn every_case_is_in_the_table() {
        let cases = all();
        let sources: BTreeMap<_, _> =
            cases.iter().map(|case| (case.name[1], case.source)).collect();
        let mut written = BTreeSet::new();
        for (module, source) in sources {
            let heads = source.lines().filter_map(|line| line.strip_prefix("pub fn "));
            let traits = ["<F: Fabric>(fabric: F)", "<F: Depots>(fabric: F)"];
            let traits = [&traits[..], &["<F: Messengers>(fabric: F)"]].concat();
            let name = |head: &'static str| {
                traits.iter().find_map(|one| head.split_once(one)).map(|(name, _)| name)
            };
            written.extend(heads.filter_map(name).map(|name| (module, name)));
        }
        let listed: Vec<_> = cases.iter().map(|case| (case.name[1], case.name[2])).collect();
        assert_eq!(listed.len(), written.len(), "once each");
        assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), written);
    }
}
