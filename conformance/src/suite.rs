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
                a_put_buffer_can_be_reused_at_once, immediate_put_stores_a_word;
            visibility:
                only_a_flush_tells;
            strided:
                strided_bounds_cover_all_rows, rows_do_not_land_on_each_other;
            notifications:
                a_notification_needs_only_a_connection, notifications_come_in_posted_order,
                a_bounded_number_of_polls_finds_pending_notifications,
                a_wait_without_time_is_a_poll, flush_takes_no_notifications;
            atomics:
                the_owner_performs_atomics, atomics_are_aligned;
            messages:
                every_length_arrives, lengths_are_limited, a_full_lane_is_busy_and_loses_no_record,
                a_short_buffer_leaves_the_message, a_receive_without_time_is_a_poll,
                unread_messages_do_not_delay_operations_or_notifications;
            queues:
                every_length_arrives, lengths_are_limited, a_full_lane_is_busy_and_loses_no_record,
                a_short_buffer_leaves_the_record, a_wait_without_time_is_a_poll,
                handles_are_of_their_port, records_of_a_removed_producer_are_not_delivered;
            batches:
                a_batch_is_posted_in_order, a_prepared_batch_has_no_effect_before_it_is_posted,
                a_batch_is_posted_whole_or_not, a_batch_that_never_fits_is_too_long;
            bounds:
                an_operation_that_exceeds_its_capability_is_refused, parts_overlap;
            handles:
                a_capability_is_of_its_port, a_region_is_of_its_port, a_grant_is_of_its_port,
                an_unknown_peer_is_a_foreign_handle, names_find_capabilities,
                one_name_gives_one_after_the_other, faults_have_an_order,
                capabilities_can_be_narrowed, the_mode_is_agreed, a_second_loopback_is_refused;
            regions:
                memory_is_zeroed, grants_stay_inside, deregistering_revokes,
                a_deregistered_region_cannot_be_shared_or_used;
            revocation:
                each_operation_under_way_completes_once, a_region_can_be_shared_again;
            room:
                own_notifications_are_bounded, unread_notifications_refuse_more,
                the_table_is_bounded, refusals_and_faults_are_counted,
                offers_to_a_peer_that_does_not_accept_are_bounded, posting_does_not_wait;
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
                notification_classes_raise_the_notifications_of_the_table,
                a_notification_is_128_bits, a_long_put_is_notified_once_at_its_end,
                a_fault_is_one_requester_notification;
            atomics:
                atomics_agree_with_the_model, shorthands_are_atomics, fcaa_compares_signed;
            locks:
                steps_walk_the_word, a_handle_holds_once;
            epochs:
                steps_out_of_turn_decline;
            oracle:
                lists_agree_with_the_oracle;
            bounds:
                a_capability_covers_only_the_granted_range;
            rights:
                each_right_is_needed, notifying_is_a_right,
                a_capability_without_rights_permits_no_operation, a_sealed_region_is_for_reading;
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
                a_get_after_a_message_sees_earlier_writes,
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
                a_flooding_sender_does_not_starve_others;
            queues:
                producers_do_not_mix, a_flooding_producer_does_not_starve_others;
            handles:
                names_are_of_a_pair;
            revocation:
                a_put_does_not_land_after_revocation;
            room:
                one_peers_notifications_stop_no_other, unread_notifications_delay_no_operation;
            notifications:
                polls_in_turn_find_every_peer;
            death:
                later_calls_fault, a_fault_goes_before_busy,
                each_operation_under_way_completes_once,
                operations_executed_before_a_death_do_not_fault, the_last_answer_is_returned,
                blocked_calls_return, waits_end, accepting_ends,
                records_published_before_a_death_are_delivered, leaving_flushes,
                a_wait_ends_with_the_last_peer,
                arrived_messages_are_received_before_news_of_the_last_death,
                a_number_can_be_used_again, a_death_does_not_disturb_traffic_between_survivors;
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
                answers_are_appended, answers_give_operands,
                declined_and_faulted_messages_are_not_replied_to, replies_fault,
                a_held_reply_waits_for_its_owner, replies_wait_for_a_thaw,
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
                memory_comes_before_the_handler, a_death_drops_incomplete_messages;
            liars:
                peers_that_break_the_message_protocol_are_disconnected,
                a_peer_that_breaks_the_group_protocol_is_disconnected,
                a_member_that_forges_multicast_records_is_disconnected,
                arbitrary_records_cause_no_panic_and_no_stray_write, a_landing_is_for_writing;
            channels:
                messages_arrive_by_all_channels, a_full_channel_does_not_delay_other_channels,
                a_channel_of_higher_priority_is_run_first, channels_of_one_priority_share_by_weight,
                short_messages_pass_long_ones, one_channel_is_polled,
                messages_without_a_channel_are_run_beside_full_channels,
                senders_learn_of_messages_without_a_handler,
                a_death_drops_messages_that_wait_for_the_peer,
                a_peer_that_breaks_the_channel_protocol_is_disconnected;
            streams:
                a_slow_sink_stops_its_source, polls_notice_deaths;
            stream_liars:
                a_peer_that_breaks_the_stream_protocol_is_disconnected,
                a_peer_that_asks_without_end_and_reads_no_answer_is_disconnected;
        }
    };
    // Messengers that wait for each other, each in a thread of its own.
    (messengers, [$($then:tt)+], $($given:tt)*) => {
        $($then)+! { $($given)*
            active:
                handlers_receive_all_arguments_and_payloads_in_order, a_panic_harms_its_message,
                replies_are_replied_to, a_flush_ends, a_sync_runs_all_messages_sent_before_it,
                a_sync_ends_when_others_leave, all_peers_progress_while_all_flood,
                long_messages_do_not_mix,
                a_peer_that_reads_nothing_does_not_take_the_room_of_others;
            liars:
                a_long_call_ends_with_its_peer;
            channels:
                replies_are_sent_over_channels;
            storm:
                every_question_comes_back;
            collectives:
                every_schedule_agrees_with_the_oracle, groups_do_not_mix, collectives_overlap,
                later_collectives_leave_room_for_earlier_ones, lengths_differ,
                handlers_run_meanwhile, a_full_lane_delays_a_barrier,
                portions_that_arrive_early_wait_for_their_collective,
                members_that_call_different_collectives_are_detected, death_ends_collectives,
                nonsense_is_refused;
            adaptive:
                groups_that_adapt_agree_with_the_oracle, a_busy_link_is_avoided,
                a_member_that_begins_to_adapt_announces_its_link_loads_at_once,
                a_recording_counts_only_bytes_sent_during_the_call, recordings_tell_the_last_calls;
            multicast:
                members_see_one_order, long_messages_keep_the_order,
                a_leaving_member_has_seen_all_messages_of_its_views, members_that_die_are_removed,
                non_members_send_through_a_member, joining_may_be_refused,
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
