/* Misuse of messengers: of handlers, collectives, channels, streams and multicast. */
#include "misuse.h"

#include <stdint.h>
#include <string.h>

/* What a handler of a port has seen, by which it tries what handlers may not do. */
struct seen {
    ayre_port *port;
    ayre_token *token;
    uint32_t id;
    int runs;
};

static int handler(void *user, ayre_token *token, const uint64_t *arguments, size_t count,
                   const void *payload, size_t len) {
    struct seen *seen = user;
    uint64_t again[1] = {0};
    EXPECT(count == 1 && len == 4 && memcmp(payload, "four", 4) == 0);
    EXPECT(ayre_token_source(token) == 0);
    seen->token = token;
    seen->runs++;
    FAILS(ayre_poll(seen->port), AYRE_HANDLE_IN_USE);
    FAILS(ayre_call(seen->port, 0, seen->id, arguments, 1, payload, len), AYRE_HANDLE_IN_USE);
    FAILS(ayre_port_close(seen->port), AYRE_HANDLE_IN_USE);
    FAILS(ayre_messenger_stop(seen->port), AYRE_HANDLE_IN_USE);
    FAILS(ayre_token_reply(token, seen->id, NULL, 1, payload, len), AYRE_INVALID);
    FAILS(ayre_token_reply(token, seen->id, arguments, 1, NULL, 4), AYRE_INVALID);
    FAILS(ayre_token_reply(token, 3, arguments, 1, payload, len), AYRE_INVALID);
    FAILS(ayre_token_send(token, 77, seen->id, arguments, 1, payload, len),
          AYRE_FAULT_FOREIGN_HANDLE);
    if (arguments[0] == 1) {
        FAILS(ayre_token_reply(token, seen->id, again, 1, payload, len), AYRE_OK);
    }
    return arguments[0] == 2;
}

static void no_messenger(struct all *all) {
    ayre_messenger_options odd = {0, 5000, 0};
    ayre_dropped_call failure;
    FAILS(ayre_messenger_start(NULL, NULL), AYRE_BAD_HANDLE);
    FAILS(ayre_messenger_stop(NULL), AYRE_BAD_HANDLE);
    FAILS(ayre_register_handler(NULL, "name", 0, handler, NULL), AYRE_BAD_HANDLE);
    FAILS(ayre_call(NULL, 0, 40, NULL, 0, NULL, 0), AYRE_BAD_HANDLE);
    FAILS(ayre_wait(NULL, 0), AYRE_BAD_HANDLE);
    FAILS(ayre_token_source(NULL), AYRE_BAD_HANDLE);
    FAILS(ayre_token_reply(NULL, 40, NULL, 0, NULL, 0), AYRE_BAD_HANDLE);
    FAILS(ayre_token_source((ayre_token *)all->port), AYRE_BAD_HANDLE);
    FAILS(ayre_register_handler(all->port, "name", 0, handler, NULL), AYRE_INVALID);
    EXPECT(strstr(ayre_detail(), "ayre_messenger_start") != NULL);
    FAILS(ayre_poll(all->port), AYRE_INVALID);
    FAILS(ayre_sync(all->port), AYRE_INVALID);
    FAILS(ayre_call(all->port, all->own, 40, NULL, 0, NULL, 0), AYRE_INVALID);
    FAILS(ayre_failures(all->port, &failure, 1), AYRE_INVALID);
    FAILS(ayre_messenger_start(all->port, &odd), AYRE_INVALID);
    FAILS(ayre_send(all->port, all->own, 0, "still a port", 12), AYRE_OK);
    char text[12];
    ayre_message message;
    FAILS(ayre_recv(all->port, text, sizeof text, &message, -1), 1);
    FAILS(ayre_handler_id(NULL), AYRE_INVALID);
}

/* A call has failed, and another one gets no handler. Both are told of at both ends, and what finds
 * no room is there the next time. */
static void take_failures(ayre_port *port, ayre_peer own, uint32_t id) {
    ayre_dropped_call failures[5];
    int count = 0;
    FAILS(ayre_call(port, own, id, NULL, 0, "x", 1), AYRE_OK);
    for (int round = 0; round < 1000; round++) {
        EXPECT(ayre_poll(port) >= 0);
    }
    FAILS(ayre_failures(port, NULL, 1), AYRE_INVALID);
    FAILS(ayre_failures(port, failures, 0), 0);
    while (count < 5 && ayre_failures(port, &failures[count], 1) == 1) {
        EXPECT(failures[count].handler == id && failures[count].is_ours == count % 2);
        EXPECT(failures[count].cause ==
               (count < 2 ? AYRE_DROPPED_FAILED : AYRE_DROPPED_MALFORMED));
        count++;
    }
    EXPECT(count == 4);
}

static void calls(struct all *all) {
    struct seen seen = {all->port, NULL, 0, 0};
    ayre_port *port = all->port;
    uint64_t words[9] = {0};
    char big[1020] = {0};
    FAILS(ayre_messenger_start(port, NULL), AYRE_OK);
    FAILS(ayre_messenger_start(port, NULL), AYRE_OK);
    FAILS(ayre_send(port, all->own, 0, "x", 1), AYRE_INVALID);
    FAILS(ayre_try_recv(port, words, 8, &(ayre_message){0}), AYRE_INVALID);
    FAILS(ayre_register_handler(port, NULL, 1, handler, &seen), AYRE_INVALID);
    FAILS(ayre_register_handler(port, "", 1, handler, &seen), AYRE_INVALID);
    FAILS(ayre_register_handler(port, "nine", 9, handler, &seen), AYRE_INVALID);
    FAILS(ayre_register_handler(port, "null", 1, NULL, &seen), AYRE_INVALID);
    FAILS(ayre_register_static_handler(port, 31, 1, handler, &seen), AYRE_INVALID);
    int64_t id = ayre_register_handler(port, "handler", 1, handler, &seen);
    EXPECT(id == ayre_handler_id("handler"));
    FAILS(ayre_register_handler(port, "handler", 1, handler, &seen), AYRE_INVALID);
    seen.id = (uint32_t)id;
    FAILS(ayre_call(port, 77, seen.id, words, 1, "four", 4), AYRE_FAULT_FOREIGN_HANDLE);
    FAILS(ayre_call(port, all->own, 3, words, 1, "four", 4), AYRE_INVALID);
    FAILS(ayre_call(port, all->own, seen.id, NULL, 1, "four", 4), AYRE_INVALID);
    FAILS(ayre_call(port, all->own, seen.id, words, 9, "four", 4), AYRE_INVALID);
    FAILS(ayre_call(port, all->own, seen.id, words, 1, NULL, 4), AYRE_INVALID);
    FAILS(ayre_try_call(port, all->own, seen.id, words, 1, big, 1020), AYRE_FAULT_TOO_LONG);
    FAILS(ayre_wait(port, 0), AYRE_TIMED_OUT);
    for (words[0] = 0; words[0] < 3; words[0]++) {
        FAILS(ayre_call(port, all->own, seen.id, words, 1, "four", 4), AYRE_OK);
        EXPECT(ayre_wait(port, -1) > 0);
        FAILS(ayre_token_source(seen.token), AYRE_BAD_HANDLE);
        FAILS(ayre_token_reply(seen.token, seen.id, words, 1, "four", 4), AYRE_BAD_HANDLE);
    }
    while (seen.runs < 4) {
        EXPECT(ayre_wait(port, -1) > 0);
    }
    take_failures(port, all->own, seen.id);
    FAILS(ayre_messenger_stop(port), AYRE_OK);
    FAILS(ayre_poll(port), AYRE_INVALID);
    FAILS(ayre_token_source(seen.token), AYRE_BAD_HANDLE);
}

static void null_groups(struct all *all) {
    double value = 1;
    ayre_collective what = {0};
    ayre_mismatch details;
    FAILS(ayre_group_of_all(NULL, "all", &(ayre_group *){NULL}), AYRE_BAD_HANDLE);
    FAILS(ayre_group_of_all(all->port, "all", NULL), AYRE_INVALID);
    FAILS(ayre_group_of_all(all->port, "all", &(ayre_group *){NULL}), AYRE_INVALID);
    EXPECT(strstr(ayre_detail(), "ayre_messenger_start") != NULL);
    FAILS(ayre_group_barrier(all->port, NULL), AYRE_BAD_HANDLE);
    FAILS(ayre_allreduce(all->port, NULL, &value, 1, AYRE_F64, AYRE_COMBINE_SUM),
          AYRE_BAD_HANDLE);
    FAILS(ayre_collective_do(all->port, NULL, &what), AYRE_BAD_HANDLE);
    FAILS(ayre_collective_do(all->port, NULL, NULL), AYRE_INVALID);
    FAILS(ayre_request_test(all->port, NULL), AYRE_BAD_HANDLE);
    FAILS(ayre_request_wait(all->port, NULL), AYRE_BAD_HANDLE);
    FAILS(ayre_group_close(NULL), AYRE_OK);
    FAILS(ayre_request_close(NULL), AYRE_OK);
    FAILS(ayre_error_mismatch(&details), 0);
    FAILS(ayre_error_peer(), -1);
}

static void wrong_collectives(ayre_port *port, ayre_group *group) {
    double all[4] = {1, 2, 3, 4};
    char *odd = (char *)all + 1;
    ayre_peer twice[2] = {0, 0};
    ayre_peer other = 7;
    ayre_group *none = NULL;
    FAILS(ayre_group_of(port, "twice", twice, 2, &none), AYRE_INVALID);
    FAILS(ayre_group_of(port, "other", &other, 1, &none), AYRE_INVALID);
    FAILS(ayre_group_of(port, "none", NULL, 1, &none), AYRE_INVALID);
    FAILS(ayre_group_of_all(port, NULL, &none), AYRE_INVALID);
    FAILS(ayre_group_of_all(port, "all", &none), AYRE_INVALID);
    EXPECT(none == NULL);
    FAILS(ayre_allreduce(port, group, NULL, 1, AYRE_F64, AYRE_COMBINE_SUM), AYRE_INVALID);
    FAILS(ayre_allreduce(port, group, odd, 1, AYRE_F64, AYRE_COMBINE_SUM), AYRE_INVALID);
    FAILS(ayre_allreduce(port, group, all, SIZE_MAX, AYRE_F64, AYRE_COMBINE_SUM), AYRE_INVALID);
    FAILS(ayre_allreduce(port, group, all, 4, 0, AYRE_COMBINE_SUM), AYRE_INVALID);
    FAILS(ayre_allreduce(port, group, all, 4, 11, AYRE_COMBINE_SUM), AYRE_INVALID);
    FAILS(ayre_allreduce(port, group, all, 4, AYRE_F64, 0), AYRE_INVALID);
    FAILS(ayre_allreduce(port, group, all, 4, AYRE_F64, 300), AYRE_INVALID);
    FAILS(ayre_allreduce(port, group, all, 4, AYRE_F64, AYRE_COMBINE_BOR), AYRE_INVALID);
    FAILS(ayre_broadcast(port, group, 1, all, 4, AYRE_F64), AYRE_INVALID);
    FAILS(ayre_allgather(port, group, all, 4, all, AYRE_F64), AYRE_INVALID);
    FAILS(ayre_allgather(port, group, all, 2, &all[1], AYRE_F64), AYRE_INVALID);
    FAILS(ayre_gather(port, group, 0, all, SIZE_MAX / 4, &all[2], AYRE_F64), AYRE_INVALID);
    FAILS(ayre_group_fix_schedule(port, group, 99, AYRE_SCHEDULE_STAR), AYRE_INVALID);
    FAILS(ayre_group_fix_schedule(port, group, AYRE_ALLREDUCE, 99), AYRE_INVALID);
    FAILS(ayre_group_fix_schedule(port, group, AYRE_ALLTOALL, AYRE_SCHEDULE_STAR), AYRE_INVALID);
    /* And the group is as it was. */
    FAILS(ayre_allreduce(port, group, all, 4, AYRE_F64, AYRE_COMBINE_SUM), AYRE_OK);
    FAILS(ayre_allgather(port, group, all, 2, &all[2], AYRE_F64), AYRE_OK);
    EXPECT(all[0] == 1 && all[2] == 1 && all[3] == 2);
    FAILS(ayre_group_members(port, group, NULL, 0), 1);
}

static void requests(ayre_port *port, ayre_group *group, ayre_port *other) {
    uint64_t values[2] = {5, 6};
    ayre_collective sum = {0};
    ayre_request *request = NULL;
    sum.collective = 99;
    FAILS(ayre_collective_start(port, group, &sum, &request), AYRE_INVALID);
    sum.collective = AYRE_ALLREDUCE;
    sum.number = AYRE_U64;
    sum.combine = AYRE_COMBINE_SUM;
    sum.into = values;
    sum.into_count = 2;
    FAILS(ayre_collective_start(port, group, &sum, NULL), AYRE_INVALID);
    FAILS(ayre_collective_start(port, group, NULL, &request), AYRE_INVALID);
    FAILS(ayre_collective_start(port, group, &sum, &request), AYRE_OK);
    FAILS(ayre_request_test(other, request), AYRE_FAULT_FOREIGN_HANDLE);
    FAILS(ayre_request_wait(other, request), AYRE_FAULT_FOREIGN_HANDLE);
    EXPECT(ayre_request_test(port, request) >= 0);
    FAILS(ayre_request_wait(port, request), AYRE_OK);
    FAILS(ayre_request_wait(port, request), AYRE_BAD_HANDLE);
    FAILS(ayre_request_test(port, request), AYRE_BAD_HANDLE);
    EXPECT(values[0] == 5 && values[1] == 6);
}

static void groups(struct all *all, struct all *other) {
    ayre_group *group = NULL;
    ayre_group *foreign = NULL;
    null_groups(all);
    FAILS(ayre_messenger_start(all->port, NULL), AYRE_OK);
    FAILS(ayre_messenger_start(other->port, NULL), AYRE_OK);
    FAILS(ayre_group_of_all(all->port, "all", &group), AYRE_OK);
    FAILS(ayre_group_of_all(other->port, "all", &foreign), AYRE_OK);
    FAILS(ayre_group_barrier(all->port, foreign), AYRE_FAULT_FOREIGN_HANDLE);
    wrong_collectives(all->port, group);
    requests(all->port, group, other->port);
    FAILS(ayre_messenger_stop(all->port), AYRE_OK);
    FAILS(ayre_group_barrier(all->port, group), AYRE_FAULT_FOREIGN_HANDLE);
    FAILS(ayre_messenger_start(all->port, NULL), AYRE_OK);
    FAILS(ayre_group_barrier(all->port, group), AYRE_FAULT_FOREIGN_HANDLE);
    FAILS(ayre_messenger_stop(all->port), AYRE_OK);
    FAILS(ayre_group_close(group), AYRE_OK);
    FAILS(ayre_group_barrier(all->port, group), AYRE_BAD_HANDLE);
    FAILS(ayre_messenger_stop(other->port), AYRE_OK);
    FAILS(ayre_group_close(foreign), AYRE_OK);
}

static int ignore(void *user, ayre_token *token, const uint64_t *arguments, size_t count,
                  const void *payload, size_t len) {
    (void)user, (void)token, (void)arguments, (void)count, (void)payload, (void)len;
    return 0;
}

static void channels(ayre_port *port, ayre_peer own) {
    ayre_channel_options odd = {9, 1, 1000};
    int64_t id = ayre_register_handler(port, "ignore", 0, ignore, NULL);
    EXPECT(id >= 0);
    FAILS(ayre_channel_open(NULL, 1, NULL), AYRE_BAD_HANDLE);
    FAILS(ayre_channel_open(port, 0, NULL), AYRE_INVALID);
    FAILS(ayre_channel_open(port, 1, &odd), AYRE_INVALID);
    odd.priority = 0;
    odd.weight = 0;
    FAILS(ayre_channel_open(port, 1, &odd), AYRE_INVALID);
    FAILS(ayre_channel_open(port, 1, NULL), AYRE_OK);
    FAILS(ayre_channel_call(NULL, 1, own, (uint32_t)id, NULL, 0, NULL, 0), AYRE_BAD_HANDLE);
    FAILS(ayre_channel_call(port, 0, own, (uint32_t)id, NULL, 0, NULL, 0), AYRE_INVALID);
    FAILS(ayre_channel_call(port, 1, own, 3, NULL, 0, NULL, 0), AYRE_INVALID);
    FAILS(ayre_channel_call(port, 1, own, (uint32_t)id, NULL, 1, NULL, 0), AYRE_INVALID);
    FAILS(ayre_channel_try_call(port, 1, 77, (uint32_t)id, NULL, 0, NULL, 0),
          AYRE_FAULT_PEER_DEAD);
    FAILS(ayre_token_send_by(NULL, 1, own, (uint32_t)id, NULL, 0, NULL, 0), AYRE_BAD_HANDLE);
    FAILS(ayre_channel_hold(port, 0), AYRE_INVALID);
    FAILS(ayre_channel_release(NULL, 1), AYRE_BAD_HANDLE);
    FAILS(ayre_channel_poll(port, 0), AYRE_INVALID);
    FAILS(ayre_channel_backlog(port, 1, 77), 0);
    FAILS(ayre_channel_call(port, 1, own, (uint32_t)id, NULL, 0, NULL, 0), AYRE_OK);
    FAILS(ayre_wait(port, -1), 1);
}

/* The last input of a stage, and what it had it from. */
struct seen_items {
    ayre_flow *flow;
    int items;
    int end;
    int answer;
};

static int stage(void *user, ayre_flow *flow, const ayre_stage_input *input) {
    struct seen_items *seen = user;
    uint64_t arguments[4];
    ayre_stream_name name;
    seen->flow = flow;
    FAILS(ayre_flow_arguments(flow, NULL), AYRE_INVALID);
    FAILS(ayre_flow_arguments(flow, arguments), AYRE_OK);
    FAILS(ayre_flow_name(flow, NULL), AYRE_INVALID);
    FAILS(ayre_flow_name(flow, &name), AYRE_OK);
    FAILS(ayre_flow_emit(flow, NULL, 1), AYRE_INVALID);
    FAILS(ayre_flow_emit(flow, arguments, SIZE_MAX), AYRE_INVALID);
    EXPECT(arguments[3] == 7);
    seen->items += input->kind == AYRE_STAGE_ITEM;
    seen->end = input->kind == AYRE_STAGE_ITEM ? seen->end : input->kind;
    return input->kind == AYRE_STAGE_ITEM ? seen->answer : 0;
}

static void streams(ayre_port *port, ayre_peer own, ayre_port *other) {
    struct seen_items seen = {NULL, 0, 0, 0};
    ayre_hop hop = {own, "stage", {0, 0, 0, 7}};
    ayre_entry entry = {{own, 5}, NULL, {0}, 0, 0};
    ayre_stream *stream = NULL;
    FAILS(ayre_register_stage(port, "stage", NULL, NULL), AYRE_INVALID);
    FAILS(ayre_register_stage(port, NULL, stage, &seen), AYRE_INVALID);
    FAILS(ayre_register_stage(port, "stage", stage, &seen), AYRE_OK);
    FAILS(ayre_register_stage(port, "stage", stage, &seen), AYRE_INVALID);
    FAILS(ayre_stream_lay(NULL, &hop, 1, &stream), AYRE_BAD_HANDLE);
    FAILS(ayre_stream_lay(port, NULL, 1, &stream), AYRE_INVALID);
    FAILS(ayre_stream_lay(port, &hop, 1, NULL), AYRE_INVALID);
    FAILS(ayre_stream_open(port, 99, &stream), AYRE_STREAM_NOWHERE);
    EXPECT(ayre_error_peer() == own && stream == NULL);
    FAILS(ayre_set_entry(port, own, (ayre_stream_name){own, 1}, NULL), AYRE_INVALID);
    FAILS(ayre_set_entry(port, own, (ayre_stream_name){own, 1}, &entry), AYRE_INVALID);
    FAILS(ayre_clear_entry(port, own, (ayre_stream_name){own, 1}), AYRE_ENTRY_UNKNOWN);
    FAILS(ayre_stream_push(port, NULL, "item", 4), AYRE_BAD_HANDLE);
    FAILS(ayre_flow_emit(NULL, "item", 4), AYRE_BAD_HANDLE);
    FAILS(ayre_stream_lay(port, &hop, 1, &stream), AYRE_OK);
    FAILS(ayre_stream_push(other, stream, "item", 4), AYRE_FAULT_FOREIGN_HANDLE);
    FAILS(ayre_stream_finish(other, stream), AYRE_FAULT_FOREIGN_HANDLE);
    FAILS(ayre_stream_push(port, stream, NULL, 4), AYRE_INVALID);
    FAILS(ayre_stream_push(port, stream, "item", 4), AYRE_OK);
    FAILS(ayre_stream_finish(port, stream), AYRE_OK);
    EXPECT(seen.items == 1 && seen.end == AYRE_STAGE_CLOSED);
    FAILS(ayre_flow_emit(seen.flow, "item", 4), AYRE_BAD_HANDLE);
    FAILS(ayre_stream_finish(port, stream), AYRE_BAD_HANDLE);
    FAILS(ayre_stream_cancel(port, stream), AYRE_BAD_HANDLE);
    FAILS(ayre_stream_lay(port, &hop, 1, &stream), AYRE_OK);
    seen.answer = 1;
    EXPECT(ayre_stream_push(port, stream, "item", 4) <= 0);
    FAILS(ayre_stream_finish(port, stream), AYRE_STREAM_STAGE_FAILED);
    FAILS(ayre_stream_lay(port, &hop, 1, &stream), AYRE_OK);
    FAILS(ayre_stream_close(stream), AYRE_OK);
    FAILS(ayre_stream_close(NULL), AYRE_OK);
}

static void on_change(void *user, const ayre_change *change) {
    int *views = user;
    *views += !change->is_ended && change->members_count == 1 && change->joined_count == 1;
}

static void multicast(ayre_port *port, ayre_peer own, ayre_port *other) {
    int views = 0;
    ayre_multicast_options none = {0, 8};
    ayre_membership *group = NULL;
    uint32_t id = (uint32_t)ayre_handler_id("ignore");
    FAILS(ayre_multicast_found(NULL, "group", NULL, on_change, &views, &group), AYRE_BAD_HANDLE);
    FAILS(ayre_multicast_found(port, NULL, NULL, on_change, &views, &group), AYRE_INVALID);
    FAILS(ayre_multicast_found(port, "group", NULL, on_change, &views, NULL), AYRE_INVALID);
    FAILS(ayre_multicast_found(port, "group", &none, on_change, &views, &group), AYRE_INVALID);
    FAILS(ayre_multicast_join(port, "group", 77, NULL, on_change, &views, &group),
          AYRE_UNREACHABLE);
    EXPECT(ayre_error_peer() == 77 && group == NULL);
    FAILS(ayre_multicast_send(port, NULL, id, NULL, 0, NULL, 0), AYRE_BAD_HANDLE);
    FAILS(ayre_multicast_send_through(port, NULL, 1, id, NULL, 0, NULL, 0), AYRE_INVALID);
    FAILS(ayre_multicast_send_through(port, "group", own, id, NULL, 0, NULL, 0),
          AYRE_UNREACHABLE);
    FAILS(ayre_token_multicast(NULL, group, id, NULL, 0, NULL, 0), AYRE_BAD_HANDLE);
    FAILS(ayre_multicast_found(port, "group", NULL, on_change, &views, &group), AYRE_OK);
    FAILS(ayre_multicast_send(other, group, id, NULL, 0, NULL, 0), AYRE_FAULT_FOREIGN_HANDLE);
    FAILS(ayre_multicast_send(port, group, 3, NULL, 0, NULL, 0), AYRE_INVALID);
    FAILS(ayre_multicast_send(port, group, id, NULL, 2, NULL, 0), AYRE_INVALID);
    FAILS(ayre_multicast_send(port, group, id, NULL, 0, "x", 1), AYRE_OK);
    FAILS(ayre_multicast_try_send(port, group, id, NULL, 0, "x", 1), AYRE_OK);
    FAILS(ayre_multicast_members(port, group, NULL, 0), 1);
    FAILS(ayre_multicast_members(port, group, NULL, 1), AYRE_INVALID);
    FAILS(ayre_multicast_leave(port, group), AYRE_OK);
    FAILS(ayre_multicast_leave(port, group), AYRE_NO_MEMBER);
    FAILS(ayre_multicast_send(port, group, id, NULL, 0, "x", 1), AYRE_NO_MEMBER);
    FAILS(ayre_multicast_members(port, group, NULL, 0), 0);
    FAILS(ayre_membership_close(group), AYRE_OK);
    FAILS(ayre_multicast_leave(port, group), AYRE_BAD_HANDLE);
    EXPECT(views <= 1);
}

/* What is built on messengers, over a port that is one and over another one. */
static void views(struct all *all, struct all *other) {
    FAILS(ayre_messenger_start(all->port, NULL), AYRE_OK);
    FAILS(ayre_messenger_start(other->port, NULL), AYRE_OK);
    channels(all->port, all->own);
    streams(all->port, all->own, other->port);
    multicast(all->port, all->own, other->port);
    FAILS(ayre_messenger_stop(all->port), AYRE_OK);
    FAILS(ayre_messenger_stop(other->port), AYRE_OK);
}

void messengers(struct all *all, struct all *other) {
    no_messenger(all);
    calls(all);
    groups(all, other);
    views(all, other);
}
