/*
 * Ayre for C and C++: put and get, atomics, notifications, messages, queues, handlers and
 * collectives between processes.
 * @generated from capi/src by `cargo xtask header`.
 *
 * Results. A function returns AYRE_OK or a number that is not negative, or else an error code,
 * which is negative. ayre_strerror has the meaning of a code, and ayre_detail what the last error
 * of the thread was about. A code from AYRE_BUSY_MESSAGES to AYRE_BUSY_LAST says that there is no
 * room right now: the call had no effect, so call ayre_progress and try again. All other errors
 * are final.
 *
 * Handles. Each has a function that closes it. A handle that is NULL, was closed, or is of another
 * kind is an error. A port is to be closed last or first, as you like.
 *
 * Memory. A pointer is valid for the length beside it. Text ends with a zero byte and is UTF-8.
 * Where a pointer may be NULL, its function says so. Lengths are in bytes, and times in
 * microseconds.
 *
 * Threads. A port and its handles are used by one thread at a time. Different ports can be used by
 * different threads.
 *
 * Blocking. A function that may wait says "Blocks". All others return at once.
 *
 * Handlers. They run in the functions that say so, on the caller's thread. Meanwhile the port is in
 * use, and its functions say AYRE_HANDLE_IN_USE.
 */

#ifndef AYRE_H
#define AYRE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/**
 * Notify this port when the operation has completed.
 */
#define AYRE_REQUESTER 1

/**
 * Notify the port where the data lands: the target of a put, this port after a get.
 */
#define AYRE_COMPLETER 2

/**
 * Notify the port where data was read: the target of a get or atomic.
 */
#define AYRE_RESPONDER 4

/**
 * The kind of an operation, in notifications: a put.
 */
#define AYRE_PUT 1

/**
 * A get.
 */
#define AYRE_GET 2

/**
 * A put of a word.
 */
#define AYRE_PUT_WORD 3

/**
 * A notification without data.
 */
#define AYRE_NOTIFY 4

/**
 * An atomic without a result.
 */
#define AYRE_ATOMIC 5

/**
 * An atomic with a result.
 */
#define AYRE_FETCH 6

/**
 * A deposit message.
 */
#define AYRE_DEPOSIT 7

/**
 * The reply of a deposit message.
 */
#define AYRE_REPLY 8

/**
 * The condition of a compare-and-swap or fetch-compare-and-add did not hold: the status of its
 * notification. Nothing was written.
 */
#define AYRE_DECLINED 15

/**
 * An atomic adds the operand to the word.
 */
#define AYRE_ADD 1

/**
 * Bitwise and.
 */
#define AYRE_AND 2

/**
 * Bitwise or.
 */
#define AYRE_OR 3

/**
 * Bitwise exclusive or.
 */
#define AYRE_XOR 4

/**
 * The lesser of two unsigned numbers.
 */
#define AYRE_MIN_UNSIGNED 5

/**
 * The greater of two unsigned numbers.
 */
#define AYRE_MAX_UNSIGNED 6

/**
 * The lesser of two signed numbers.
 */
#define AYRE_MIN_SIGNED 7

/**
 * The greater of two signed numbers.
 */
#define AYRE_MAX_SIGNED 8

/**
 * The word becomes the operand.
 */
#define AYRE_SWAP 9

/**
 * The word becomes the operand if it equals `compare`.
 */
#define AYRE_COMPARE_SWAP 10

/**
 * Fetch-compare-and-add: the operand is added if the word, signed, is at most `compare`. The
 * result is the new word.
 */
#define AYRE_FCAA 11

/**
 * The most arguments of a call.
 */
#define AYRE_ARGUMENTS_MAX 8

/**
 * The cause of a message that was not run: its destination has no such handler, or another one by
 * this id.
 */
#define AYRE_DROPPED_UNKNOWN 1

/**
 * It has fewer arguments than its handler takes, or a longer payload than its destination takes.
 */
#define AYRE_DROPPED_MALFORMED 2

/**
 * The handler has failed: it has returned another number than 0, or has panicked.
 */
#define AYRE_DROPPED_FAILED 3

/**
 * Waits for all members.
 */
#define AYRE_BARRIER 1

/**
 * Copies the root's values to all members.
 */
#define AYRE_BROADCAST 2

/**
 * Combines the values of all members at the root.
 */
#define AYRE_REDUCE 3

/**
 * Combines the values of all members at all of them.
 */
#define AYRE_ALLREDUCE 4

/**
 * Copies each member's values to the root.
 */
#define AYRE_GATHER 5

/**
 * Copies a part of the root's values to each member.
 */
#define AYRE_SCATTER 6

/**
 * Copies each member's values to all members.
 */
#define AYRE_ALLGATHER 7

/**
 * Exchanges parts between all members.
 */
#define AYRE_ALLTOALL 8

/**
 * Combines the values of the members up to each one.
 */
#define AYRE_SCAN 9

/**
 * Combines the values of all members, a part at each of them.
 */
#define AYRE_REDUCE_SCATTER 10

/**
 * The type of a value: `int8_t`.
 */
#define AYRE_I8 1

/**
 * `uint8_t`, or any byte.
 */
#define AYRE_U8 2

/**
 * `int16_t`.
 */
#define AYRE_I16 3

/**
 * `uint16_t`.
 */
#define AYRE_U16 4

/**
 * `int32_t`.
 */
#define AYRE_I32 5

/**
 * `uint32_t`.
 */
#define AYRE_U32 6

/**
 * `int64_t`.
 */
#define AYRE_I64 7

/**
 * `uint64_t`.
 */
#define AYRE_U64 8

/**
 * `float`.
 */
#define AYRE_F32 9

/**
 * `double`.
 */
#define AYRE_F64 10

/**
 * Combines two numbers: the smaller one.
 */
#define AYRE_COMBINE_MIN 1

/**
 * The greater one.
 */
#define AYRE_COMBINE_MAX 2

/**
 * The sum; integers wrap.
 */
#define AYRE_COMBINE_SUM 3

/**
 * The product; integers wrap.
 */
#define AYRE_COMBINE_PROD 4

/**
 * 1 if either is not 0, else 0.
 */
#define AYRE_COMBINE_LOR 5

/**
 * 1 if neither is 0, else 0.
 */
#define AYRE_COMBINE_LAND 6

/**
 * Bitwise or, of integers.
 */
#define AYRE_COMBINE_BOR 7

/**
 * Bitwise and, of integers.
 */
#define AYRE_COMBINE_BAND 8

/**
 * 1 if exactly one is not 0, else 0.
 */
#define AYRE_COMBINE_LXOR 9

/**
 * Bitwise exclusive or, of integers.
 */
#define AYRE_COMBINE_BXOR 10

/**
 * The holder may send messages that carry instructions of their own.
 */
#define AYRE_PROGRAM 32

/**
 * Messages may use a register's value.
 */
#define AYRE_REGISTER_READ 1

/**
 * Messages may change it.
 */
#define AYRE_REGISTER_WRITE 2

/**
 * Only endpoints of this host reach the endpoint.
 */
#define AYRE_LOCAL 1

/**
 * Bytes of the text of an address, its zero byte included.
 */
#define AYRE_ADDRESS_TEXT 129

/**
 * The kind of a completion: a message was sent, and its buffer is the program's again.
 */
#define AYRE_SENT 1

/**
 * A message is in the buffer of a receive.
 */
#define AYRE_RECEIVED 2

/**
 * A receive was cancelled.
 */
#define AYRE_CANCELLED 3

/**
 * A write is done at the target.
 */
#define AYRE_WRITTEN 4

/**
 * The bytes that were read are in the buffer.
 */
#define AYRE_READ_DONE 5

/**
 * An atomic is done at the target, and its result is in the buffer.
 */
#define AYRE_UPDATED 6

/**
 * The most pieces of memory that an operation of an endpoint has.
 */
#define AYRE_ENDPOINT_IOV 4

/**
 * The type of a number in an endpoint's memory, beside `AYRE_I8` to `AYRE_F64`: complex, of two
 * `float`, the real part first.
 */
#define AYRE_C32 11

/**
 * Complex, of two `double`.
 */
#define AYRE_C64 12

/**
 * The effect of an atomic on a number in an endpoint's memory, beside `AYRE_COMBINE_MIN` to
 * `AYRE_COMBINE_BXOR`: none. It has no operand.
 */
#define AYRE_COMBINE_READ 11

/**
 * The number becomes the operand.
 */
#define AYRE_COMBINE_WRITE 12

/**
 * It becomes the operand if the comparand is equal to it.
 */
#define AYRE_COMBINE_CSWAP 13

/**
 * If the comparand is not equal to it.
 */
#define AYRE_COMBINE_CSWAP_NE 14

/**
 * If the comparand is less, or equal.
 */
#define AYRE_COMBINE_CSWAP_LE 15

/**
 * If the comparand is less.
 */
#define AYRE_COMBINE_CSWAP_LT 16

/**
 * If the comparand is greater, or equal.
 */
#define AYRE_COMBINE_CSWAP_GE 17

/**
 * If the comparand is greater.
 */
#define AYRE_COMBINE_CSWAP_GT 18

/**
 * Its bits become those of the operand where the comparand's are 1.
 */
#define AYRE_COMBINE_MSWAP 19

/**
 * All went well.
 */
#define AYRE_OK 0

/**
 * Busy: the receiver has not taken this port's earlier messages. Make progress and try again, as
 * after each code from here to `AYRE_BUSY_LAST`.
 */
#define AYRE_BUSY_MESSAGES -1

/**
 * Busy: the target has not taken this port's earlier operations.
 */
#define AYRE_BUSY_REQUESTS -2

/**
 * Busy: the notification queue of this port is full. Read it.
 */
#define AYRE_BUSY_NOTIFICATIONS -3

/**
 * Busy: too many operations on this peer are pending.
 */
#define AYRE_BUSY_OUTSTANDING -4

/**
 * Busy: the consumer has not taken this port's earlier records.
 */
#define AYRE_BUSY_QUEUE -5

/**
 * Busy: the other endpoint has not answered the request to connect.
 */
#define AYRE_BUSY_CONNECTING -6

/**
 * Busy: another access holds the depot's lock, or its owner has frozen it.
 */
#define AYRE_BUSY_DEPOT -7

/**
 * Busy: messages of handlers that wait for room fill the messenger's limit.
 */
#define AYRE_BUSY_OVERFLOW -8

/**
 * Busy: messages that wait for the peer fill the channel's limit.
 */
#define AYRE_BUSY_CHANNEL -9

/**
 * Busy: too many messages to a group wait for their place in the order.
 */
#define AYRE_BUSY_MULTICAST -10

/**
 * Busy: the stream has no room, because a later stage is slow.
 */
#define AYRE_BUSY_STREAM -11

/**
 * The last code of those that say busy.
 */
#define AYRE_BUSY_LAST AYRE_BUSY_STREAM

/**
 * Fault: no such key at the target. A fault is final: the call never succeeds as it is.
 */
#define AYRE_FAULT_UNKNOWN_KEY -33

/**
 * Fault: the key was revoked.
 */
#define AYRE_FAULT_STALE_KEY -34

/**
 * Fault: the capability lacks the right that the operation needs.
 */
#define AYRE_FAULT_RIGHTS -35

/**
 * Fault: the range leaves the capability's range.
 */
#define AYRE_FAULT_BOUNDS -36

/**
 * Fault: the address is not a multiple of the width.
 */
#define AYRE_FAULT_ALIGNMENT -37

/**
 * Fault: the peer has left or died.
 */
#define AYRE_FAULT_PEER_DEAD -38

/**
 * Fault: it is empty or contradicts itself, or the peer sent invalid records.
 */
#define AYRE_FAULT_MALFORMED -39

/**
 * Fault: the message or record is longer than its limit.
 */
#define AYRE_FAULT_TOO_LONG -40

/**
 * Fault: no peer of this port, or a handle of another port.
 */
#define AYRE_FAULT_FOREIGN_HANDLE -41

/**
 * Fault: the peer was started anew.
 */
#define AYRE_FAULT_PEER_RESTARTED -42

/**
 * Fault: the inlet has stopped at an earlier message.
 */
#define AYRE_FAULT_STOPPED -43

/**
 * Fault: the inlet has stopped at this message.
 */
#define AYRE_FAULT_HELD -44

/**
 * Fault: the message asks for the program of the depot's owner.
 */
#define AYRE_FAULT_EXCEPTION -45

/**
 * Fault: the connection was refused.
 */
#define AYRE_FAULT_REFUSED -46

/**
 * Fault: there is no memory for more unexpected messages.
 */
#define AYRE_FAULT_NO_MEMORY -48

/**
 * Fault: the program has interrupted the call. No function for C returns it.
 */
#define AYRE_FAULT_INTERRUPTED -49

/**
 * The next message or record is longer than the buffer. It stays where it is.
 */
#define AYRE_TOO_LONG -64

/**
 * A wait has ended with the death of a peer. Each peer is reported once.
 */
#define AYRE_PEER_DIED -65

/**
 * The time of a call is over.
 */
#define AYRE_TIMED_OUT -66

/**
 * A system call has failed: `ayre_errno` has its number.
 */
#define AYRE_SYSTEM -80

/**
 * A peer sent what no correct peer sends.
 */
#define AYRE_PROTOCOL -81

/**
 * The peer has refused the connection, or refuses as the member of a group.
 */
#define AYRE_REFUSED -82

/**
 * This side has refused the connection.
 */
#define AYRE_REJECTED -83

/**
 * The two sides speak different versions.
 */
#define AYRE_VERSION_DIFFERS -84

/**
 * Another process listens at the path.
 */
#define AYRE_IN_USE -85

/**
 * The peer has left or died during set-up.
 */
#define AYRE_PEER_LEFT -86

/**
 * The environment of the process lacks something, or a variable is wrong.
 */
#define AYRE_ENVIRONMENT -87

/**
 * There is too little memory.
 */
#define AYRE_NO_MEMORY -88

/**
 * No link can be opened with the endpoint of another host.
 */
#define AYRE_NO_LINK -89

/**
 * All UDP ports that may be used are taken.
 */
#define AYRE_PORTS_TAKEN -90

/**
 * A table is full.
 */
#define AYRE_EXHAUSTED -91

/**
 * The call contradicts itself or a stated limit.
 */
#define AYRE_INVALID -92

/**
 * There is no peer of this number.
 */
#define AYRE_NO_PEER -93

/**
 * Members of a group call different collectives: `ayre_error_mismatch` has the difference.
 */
#define AYRE_MISMATCH -96

/**
 * Another member has given the group up. Its own error says why.
 */
#define AYRE_GIVEN_UP -97

/**
 * The port is no member of the group, or is leaving it.
 */
#define AYRE_NO_MEMBER -98

/**
 * A member is not connected with this port, or the door has died or is no peer.
 */
#define AYRE_UNREACHABLE -99

/**
 * The door has gone: the message may have been delivered, or not.
 */
#define AYRE_UNKNOWN_OUTCOME -100

/**
 * The stream has failed: a stage has returned another number than 0, or has panicked. With this
 * and the next ones, `ayre_error_peer` is the port where it failed.
 */
#define AYRE_STREAM_STAGE_FAILED -101

/**
 * The stream has failed: there is no stage of this name.
 */
#define AYRE_STREAM_UNKNOWN_STAGE -102

/**
 * The stream has failed: no entry says where an item goes, or where the stream goes on.
 */
#define AYRE_STREAM_NOWHERE -103

/**
 * The stream has failed: the next stream is fed already.
 */
#define AYRE_STREAM_TAKEN -104

/**
 * The stream has failed: there is no room for it.
 */
#define AYRE_STREAM_FULL -105

/**
 * The stream has failed: the next port is not connected.
 */
#define AYRE_STREAM_UNREACHABLE -106

/**
 * The stream has failed: a port has died.
 */
#define AYRE_STREAM_PEER_DIED -107

/**
 * The stream has failed: its source has given it up.
 */
#define AYRE_STREAM_CANCELLED -108

/**
 * A handle is NULL, was closed, or is of another kind.
 */
#define AYRE_BAD_HANDLE -112

/**
 * A handle is in use: by another thread, or by the call that has called this function.
 */
#define AYRE_HANDLE_IN_USE -113

/**
 * The library has found a fault of its own. The port may be unusable.
 */
#define AYRE_INTERNAL -114

/**
 * A port refuses to change its directory of entries: only the port itself, or the one that has set
 * the entry, may do this. `ayre_error_peer` names the port.
 */
#define AYRE_ENTRY_DENIED -117

/**
 * It refuses: there is no room for an entry.
 */
#define AYRE_ENTRY_FULL -118

/**
 * It refuses: the destination of the entry is fed already, or the entry is in use.
 */
#define AYRE_ENTRY_TAKEN -119

/**
 * It refuses: there is no such entry.
 */
#define AYRE_ENTRY_UNKNOWN -120

/**
 * One member has to do with all others.
 */
#define AYRE_SCHEDULE_STAR 1

/**
 * Along a binomial tree.
 */
#define AYRE_SCHEDULE_TREE 2

/**
 * In rounds, with partners twice as far away each time.
 */
#define AYRE_SCHEDULE_DOUBLING 3

/**
 * Each block goes the shortest way.
 */
#define AYRE_SCHEDULE_SPREAD 4

/**
 * Along neighbours, block by block.
 */
#define AYRE_SCHEDULE_RING 5

/**
 * Get.
 */
#define AYRE_READ 1

/**
 * Put.
 */
#define AYRE_WRITE 2

/**
 * Atomics.
 */
#define AYRE_UPDATE 4

/**
 * Notifications at the owner, along with an operation.
 */
#define AYRE_MAY_NOTIFY 16

/**
 * All rights.
 */
#define AYRE_ALL_RIGHTS 63

/**
 * The region is sealed: no other process will ever be able to write it.
 */
#define AYRE_SEALED 1

/**
 * The longest message in bytes. Up to 56 bytes travel in one cache line.
 */
#define AYRE_MESSAGE_MAX 1024

/**
 * Peers access this port's memory themselves: for processes that trust each other not to break
 * the protocol.
 */
#define AYRE_DIRECT 0

/**
 * This port performs the operations of its peers, and checks each.
 */
#define AYRE_MEDIATED 1

/**
 * The longest item in bytes.
 */
#define AYRE_ITEM_MAX (1 << 20)

/**
 * A stage gets an item.
 */
#define AYRE_STAGE_ITEM 0

/**
 * The stream has ended: all items have come.
 */
#define AYRE_STAGE_CLOSED 1

/**
 * All items on this way have come: an entry was cleared or replaced.
 */
#define AYRE_STAGE_CUT 2

/**
 * The stream has failed: more was to come.
 */
#define AYRE_STAGE_FAILED 3

/**
 * The lock is not held by this structure.
 */
#define AYRE_FREE 0

/**
 * Any number of processes may hold the lock in this mode.
 */
#define AYRE_SHARED 1

/**
 * One process alone holds it.
 */
#define AYRE_EXCLUSIVE 2

/**
 * The owner opens its window.
 */
#define AYRE_EPOCH_POST 0

/**
 * The origin begins to access it.
 */
#define AYRE_EPOCH_START 1

/**
 * The origin has ended; its operations are flushed first.
 */
#define AYRE_EPOCH_COMPLETE 2

/**
 * The owner closes its window.
 */
#define AYRE_EPOCH_WAIT 3

/**
 * A depot: registers and stored instructions for deposit messages.
 */
typedef struct ayre_depot ayre_depot;

/**
 * A port that others find by its address, and whose messages go to the receives that match them.
 * An endpoint is used by one thread at a time, and makes progress in its calls only.
 *
 * A buffer that was posted belongs to the library until the operation's completion is taken, or
 * the endpoint is closed: do not change, read or free it before.
 */
typedef struct ayre_endpoint ayre_endpoint;

/**
 * The stream that a stage runs for, by which it emits items. It is valid until the stage returns:
 * a later use is an error.
 */
typedef struct ayre_flow ayre_flow;

/**
 * A part of a region that its owner has shared with a peer, and can revoke.
 */
typedef struct ayre_grant ayre_grant;

/**
 * A group of processes that do collectives together, at one of its members.
 */
typedef struct ayre_group ayre_group;

/**
 * One peer's access to a depot, at the depot's owner.
 */
typedef struct ayre_inlet ayre_inlet;

/**
 * A membership of a port in a group.
 */
typedef struct ayre_membership ayre_membership;

/**
 * One process's interface to its peers. A port is used by one thread at a time. A program with
 * several threads that communicate opens one for each. `ayre_messenger_start` makes a messenger of
 * it, for handlers and all that is built on them.
 */
typedef struct ayre_port ayre_port;

/**
 * The consumer's end of a queue.
 */
typedef struct ayre_queue ayre_queue;

/**
 * Memory of this process that peers can access once it is shared.
 */
typedef struct ayre_region ayre_region;

/**
 * A peer's depot, as far as it lets this port send messages to it.
 */
typedef struct ayre_remote_inlet ayre_remote_inlet;

/**
 * A producer's end of a queue.
 */
typedef struct ayre_remote_queue ayre_remote_queue;

/**
 * Memory of a peer, as far as the peer has shared it.
 */
typedef struct ayre_remote_region ayre_remote_region;

/**
 * A collective that was started.
 */
typedef struct ayre_request ayre_request;

/**
 * The source of a stream. `ayre_stream_finish` ends the stream.
 */
typedef struct ayre_stream ayre_stream;

/**
 * A call that a handler runs for, by which it replies. It is valid until the handler returns: a
 * later use is an error.
 */
typedef struct ayre_token ayre_token;

/**
 * Limits of a messenger. 0 stands for the usual limit, and NULL for all of them.
 */
typedef struct ayre_messenger_options {
    /**
     * Bytes of messages of handlers that may wait for room: usually 16 MiB.
     */
    size_t overflow;
    /**
     * Bytes of memory for each peer that sends long messages: a power of two from 4 KiB to 16 MiB.
     */
    size_t landing;
    /**
     * Bytes of the longest payload that is accepted: usually 64 MiB, which is the most.
     */
    size_t longest;
} ayre_messenger_options;

/**
 * A handler: `count` arguments and `len` bytes of payload, which are valid until it returns. A
 * payload of no bytes may be NULL.
 *
 * `user` is the pointer that was registered. The handler runs on the thread that calls
 * `ayre_poll`, `ayre_wait`, or a function that says that it runs handlers. It returns 0. Another
 * number says that it has failed: the message is reported to its sender as
 * `AYRE_DROPPED_FAILED`.
 *
 * In a handler the port is in use: its functions return `AYRE_HANDLE_IN_USE`, so use the token. A
 * handler neither leaves by `longjmp` nor throws: an exception of C++ ends the process.
 */
typedef int (*ayre_handler)(void *user,
                            struct ayre_token *token,
                            const uint64_t *arguments,
                            size_t count,
                            const void *payload,
                            size_t len);

/**
 * The number of a peer of a port; in a job, its rank.
 */
typedef uint16_t ayre_peer;

/**
 * A message whose handler was not run, or has failed, here or at a peer.
 */
typedef struct ayre_dropped_call {
    /**
     * The peer: its sender, or its destination if `is_ours`.
     */
    ayre_peer peer;
    /**
     * The id of the handler.
     */
    uint32_t handler;
    /**
     * `AYRE_DROPPED_UNKNOWN`, `AYRE_DROPPED_MALFORMED` or `AYRE_DROPPED_FAILED`.
     */
    int cause;
    /**
     * 1 if this port has sent the message.
     */
    int is_ours;
} ayre_dropped_call;

/**
 * The options of a channel at this end.
 */
typedef struct ayre_channel_options {
    /**
     * 0 to 7. Channels of higher priority always come first.
     */
    uint8_t priority;
    /**
     * The share among channels of the same priority, 1 to 16.
     */
    uint8_t weight;
    /**
     * Bytes of messages that may wait here for one peer. One message always fits.
     */
    size_t room;
} ayre_channel_options;

/**
 * A collective and its values, for `ayre_collective_do` and `ayre_collective_start`. Zero the
 * members that it does not use.
 */
typedef struct ayre_collective {
    /**
     * `AYRE_BARRIER` to `AYRE_REDUCE_SCATTER`.
     */
    uint32_t collective;
    /**
     * The type of the values, `AYRE_I8` to `AYRE_F64`.
     */
    uint32_t number;
    /**
     * How values are combined, `AYRE_COMBINE_MIN` to `AYRE_COMBINE_BXOR`.
     */
    uint32_t combine;
    /**
     * The member that is the root, by its place in the group.
     */
    uint32_t root;
    /**
     * The values that are read, of a gather, scatter, allgather or alltoall.
     */
    const void *from;
    /**
     * Their number.
     */
    size_t from_count;
    /**
     * The values that are changed. They and those that are read do not overlap.
     */
    void *into;
    /**
     * Their number.
     */
    size_t into_count;
    /**
     * The number of values of each member, the same at all members, for a gather, scatter or
     * allgather. NULL if all have equally many.
     */
    const size_t *lens;
    /**
     * The number of values to each member, for an alltoall, with `in_lens`. NULL as before.
     */
    const size_t *out_lens;
    /**
     * The number of values from each member.
     */
    const size_t *in_lens;
} ayre_collective;

/**
 * An instruction, as `ayre_assemble` gives it.
 */
typedef struct ayre_stored {
    /**
     * The instruction.
     */
    uint64_t word;
    /**
     * Its operand, where the message does not bring it.
     */
    uint64_t operand;
    /**
     * 1 if messages may enter here.
     */
    int enters;
} ayre_stored;

/**
 * Bytes from `start` to before `end`.
 */
typedef struct ayre_range {
    /**
     * The first one.
     */
    size_t start;
    /**
     * Behind the last one.
     */
    size_t end;
} ayre_range;

/**
 * The access that a peer gets to a depot.
 */
typedef struct ayre_inlet_options {
    /**
     * `AYRE_WRITE`, `AYRE_READ`, `AYRE_MAY_NOTIFY` and `AYRE_PROGRAM`, or-ed.
     */
    uint32_t rights;
    /**
     * The first register of those that the peer's messages may name, and the one behind the last.
     */
    uint16_t registers[2];
    /**
     * The first instruction of those that they may enter, and the one behind the last.
     */
    uint16_t entries[2];
    /**
     * The longest data in bytes.
     */
    uint16_t longest;
    /**
     * 1 if the inlet stops at a message that faults, so that the owner decides.
     */
    uint16_t holds;
} ayre_inlet_options;

/**
 * A deposit message.
 */
typedef struct ayre_deposit_message {
    /**
     * 0: it enters a stored instruction. 1: it carries `instruction`.
     */
    int carries;
    /**
     * The instruction that it carries: the `word` of an `ayre_stored`.
     */
    uint64_t instruction;
    /**
     * The stored instruction that it enters.
     */
    uint16_t entry;
    /**
     * The registers that it names for x, y and z.
     */
    uint8_t registers[3];
    /**
     * The operand that it brings.
     */
    uint64_t operand;
    /**
     * A bit for each word of four bytes of the data that is written or read; all ones for all.
     */
    uint64_t mask;
    /**
     * The data; may be NULL if there is none.
     */
    const void *data;
    /**
     * Its length in bytes.
     */
    size_t len;
} ayre_deposit_message;

/**
 * The notifications that an operation raises. NULL stands for none.
 */
typedef struct ayre_options {
    /**
     * `AYRE_REQUESTER`, `AYRE_COMPLETER` and `AYRE_RESPONDER`, or-ed. Those that do not apply to
     * the operation are ignored.
     */
    uint32_t classes;
    /**
     * The tag of the notifications.
     */
    uint32_t tag;
    /**
     * Their value. A get or atomic has a result in its place.
     */
    uint64_t value;
} ayre_options;

/**
 * The reply to a deposit message, which is deposited at its sender's.
 */
typedef struct ayre_deposit_reply {
    /**
     * The inlet of this port over which it comes.
     */
    struct ayre_inlet *inlet;
    /**
     * The message. Its data is what the answer brings.
     */
    struct ayre_deposit_message message;
    /**
     * Bytes that are read for it.
     */
    size_t len;
    /**
     * 1 if the value that the answer gives becomes its operand.
     */
    int takes_value;
    /**
     * The tag of the notification that its test raises.
     */
    uint32_t tag;
    /**
     * The value of that notification.
     */
    uint64_t value;
} ayre_deposit_reply;

/**
 * A message at which an inlet has stopped.
 */
typedef struct ayre_held_message {
    /**
     * The fault of the message.
     */
    int cause;
    /**
     * 0: it enters a stored instruction. 1: it carries one. 2: it only asks whether the inlet
     * runs.
     */
    int carries;
    /**
     * The instruction that it carries.
     */
    uint64_t instruction;
    /**
     * The stored instruction that it enters.
     */
    uint16_t entry;
    /**
     * The registers that it names.
     */
    uint8_t registers[3];
    /**
     * 1 if it brings data.
     */
    uint8_t brings;
    /**
     * 1 if its sender wants an answer.
     */
    uint8_t is_answered;
    /**
     * Its operand.
     */
    uint64_t operand;
    /**
     * Its mask.
     */
    uint64_t mask;
    /**
     * The tag that its sender gave it.
     */
    uint32_t tag;
    /**
     * Bytes of its data, or that it wants to read.
     */
    uint16_t len;
    /**
     * The value that its sender gave it.
     */
    uint64_t value;
} ayre_held_message;

/**
 * Another endpoint, as this one names it. 0 is none.
 */
typedef uint64_t ayre_remote;

/**
 * The messages that a receive takes.
 */
typedef struct ayre_pattern {
    /**
     * Their sender, or `AYRE_ANY`.
     */
    ayre_remote source;
    /**
     * Their tag.
     */
    uint64_t tag;
    /**
     * The bits of the tag that may differ.
     */
    uint64_t ignored;
} ayre_pattern;

/**
 * A message that was received, or that waits to be.
 */
typedef struct ayre_received {
    /**
     * The sender.
     */
    ayre_remote source;
    /**
     * Its tag.
     */
    uint64_t tag;
    /**
     * The length of the message in bytes.
     */
    uint64_t len;
    /**
     * How many of them are in the buffer: fewer, where there was no room.
     */
    uint64_t placed;
} ayre_received;

/**
 * The end of an operation that was posted.
 */
typedef struct ayre_completion {
    /**
     * As the program gave it.
     */
    void *context;
    /**
     * `AYRE_SENT` and the others.
     */
    uint32_t kind;
    /**
     * `AYRE_OK`, or the code of a fault.
     */
    int status;
    /**
     * Of a message that was received.
     */
    struct ayre_received received;
} ayre_completion;

/**
 * A place in the memory of another endpoint.
 */
typedef struct ayre_remote_address {
    /**
     * The endpoint.
     */
    ayre_remote remote;
    /**
     * The key under which it has exposed the memory.
     */
    uint64_t key;
    /**
     * The first byte, counted from the beginning of that memory.
     */
    uint64_t offset;
} ayre_remote_address;

/**
 * An atomic on numbers in an endpoint's memory. They need not be aligned.
 */
typedef struct ayre_endpoint_atomic {
    /**
     * Its effect: `AYRE_COMBINE_MIN` to `AYRE_COMBINE_MSWAP`. Not every type has each.
     */
    uint32_t combine;
    /**
     * The type of the numbers: `AYRE_I8` to `AYRE_C64`.
     */
    uint32_t number;
    /**
     * How many numbers. Operands and comparands have at most 1024 bytes together.
     */
    size_t count;
    /**
     * An operand for each, but for `AYRE_COMBINE_READ`.
     */
    const void *operands;
    /**
     * A comparand for each, of `AYRE_COMBINE_CSWAP` to `AYRE_COMBINE_MSWAP`.
     */
    const void *comparands;
    /**
     * Room for the numbers that were there before; NULL if they are not wanted.
     */
    void *before;
} ayre_endpoint_atomic;

/**
 * A collective that was recorded.
 */
typedef struct ayre_recorded_call {
    /**
     * The number of the collective in its group, the same at all members.
     */
    uint32_t number;
    /**
     * `AYRE_BARRIER` to `AYRE_REDUCE_SCATTER`.
     */
    uint32_t collective;
    /**
     * `AYRE_SCHEDULE_STAR` to `AYRE_SCHEDULE_RING`.
     */
    uint32_t schedule;
    /**
     * The start of the call, in nanoseconds since the recording began.
     */
    uint64_t begin_ns;
    /**
     * The duration at this member, in nanoseconds.
     */
    uint64_t time_ns;
    /**
     * Bytes of the vector, or of a block.
     */
    size_t bytes;
} ayre_recorded_call;

/**
 * The load of the link to a member during a recorded call: zeros for this member and for those on
 * this host.
 */
typedef struct ayre_link_use {
    /**
     * Frames with a payload that the link sent during the call, for any user of the link.
     */
    uint64_t sent;
    /**
     * Frames that waited to be sent or acknowledged when the call began.
     */
    uint32_t waiting;
    /**
     * The smoothed round trip at the end of the call, in nanoseconds.
     */
    uint64_t round_trip_ns;
} ayre_link_use;

/**
 * The parameters of a collective that must be equal at all members.
 */
typedef struct ayre_call_shape {
    /**
     * `AYRE_BARRIER` to `AYRE_REDUCE_SCATTER`; 0 if it is not known.
     */
    uint32_t collective;
    /**
     * `AYRE_SCHEDULE_STAR` to `AYRE_SCHEDULE_RING`.
     */
    uint32_t schedule;
    /**
     * The root.
     */
    uint32_t root;
    /**
     * How values are combined; 0 if they are not.
     */
    uint32_t combine;
    /**
     * Their type; 0 if they are not combined.
     */
    uint32_t number;
    /**
     * Bytes of the vector; 0 where members have blocks.
     */
    uint64_t bytes;
} ayre_call_shape;

/**
 * How the collectives of two members differ.
 */
typedef struct ayre_mismatch {
    /**
     * The other member.
     */
    ayre_peer peer;
    /**
     * Bytes of its values that were due.
     */
    uint32_t due;
    /**
     * Bytes that have come.
     */
    uint32_t came;
    /**
     * The collective of this member.
     */
    struct ayre_call_shape ours;
    /**
     * The collective of the other one.
     */
    struct ayre_call_shape theirs;
} ayre_mismatch;

/**
 * An atomic on a word.
 */
typedef struct ayre_atomic_op {
    /**
     * Bytes of the word: 4 or 8.
     */
    uint8_t width;
    /**
     * Its effect: `AYRE_ADD` to `AYRE_FCAA`.
     */
    uint8_t op;
    /**
     * The operand.
     */
    uint64_t operand;
    /**
     * The other operand of `AYRE_COMPARE_SWAP` and `AYRE_FCAA`.
     */
    uint64_t compare;
} ayre_atomic_op;

/**
 * The result of an atomic.
 */
typedef struct ayre_fetched {
    /**
     * The word before, or after an `AYRE_FCAA`.
     */
    uint64_t value;
    /**
     * 1 if the word was changed, 0 if the condition did not hold.
     */
    int success;
} ayre_fetched;

/**
 * Names an entry of a peer's table of capabilities.
 */
typedef struct ayre_key {
    /**
     * The generation of the entry.
     */
    uint32_t generation;
    /**
     * The entry.
     */
    uint16_t slot;
} ayre_key;

/**
 * A message that was received; its bytes are in the buffer.
 */
typedef struct ayre_message {
    /**
     * The sender. After `AYRE_PEER_DIED` it is the peer that has died.
     */
    ayre_peer source;
    /**
     * The sender's tag.
     */
    uint32_t tag;
    /**
     * The length in bytes. After `AYRE_TOO_LONG` it is the length of the next message.
     */
    size_t len;
} ayre_message;

/**
 * The bounds of a group, which are equal at all members. NULL stands for 64 and 8.
 */
typedef struct ayre_multicast_options {
    /**
     * Messages that a member may still lack, 1 or more. Further ones wait.
     */
    uint16_t window;
    /**
     * Messages of one member that have no place in the order yet, 1 or more.
     */
    uint16_t requests;
} ayre_multicast_options;

/**
 * A change of a group's members. All members get it at the same place among the messages.
 */
typedef struct ayre_change {
    /**
     * 1 if this port is no member any more, or has not become one: the rest is zero then.
     */
    int is_ended;
    /**
     * The number of the view in the group, from 1.
     */
    uint64_t number;
    /**
     * The place of the view among all messages and views of the group.
     */
    uint64_t ticket;
    /**
     * All members, in the order in which they joined.
     */
    const ayre_peer *members;
    /**
     * Their number.
     */
    size_t members_count;
    /**
     * The members that were in no view before.
     */
    const ayre_peer *joined;
    /**
     * Their number.
     */
    size_t joined_count;
} ayre_change;

/**
 * A function that runs at changes of a group's members, under the rules of an `ayre_handler`. The
 * change is valid until it returns. `user` is the pointer that was given with it; it is used until
 * the membership ends or the port closes.
 */
typedef void (*ayre_on_change)(void *user, const struct ayre_change *change);

/**
 * A part of a region of this process, as the local end of an operation. Its data is not copied on
 * its way.
 */
typedef struct ayre_part {
    /**
     * The region.
     */
    const struct ayre_region *region;
    /**
     * The first byte.
     */
    size_t offset;
    /**
     * How many bytes.
     */
    size_t len;
} ayre_part;

/**
 * Rows of a matrix, at both ends.
 */
typedef struct ayre_rows {
    /**
     * Bytes of a row.
     */
    uint64_t row_len;
    /**
     * Rows.
     */
    uint64_t rows;
    /**
     * Bytes from the beginning of a row to that of the next one, in local memory.
     */
    uint64_t local_stride;
    /**
     * Bytes from the beginning of a row to that of the next one, in remote memory.
     */
    uint64_t remote_stride;
} ayre_rows;

/**
 * The options of a port. Fill it by `ayre_config_init`, then change what you like.
 */
typedef struct ayre_config {
    /**
     * Bytes of this structure, by which the library knows the version of the header.
     */
    size_t size;
    /**
     * `AYRE_DIRECT` or `AYRE_MEDIATED`. A connection is direct only where both ports choose that.
     */
    uint32_t mode;
    /**
     * The number by which peers know this port. A job gives its own.
     */
    uint32_t number;
    /**
     * Polls of a blocking wait before it yields.
     */
    uint32_t spin_polls;
    /**
     * Yields before it sleeps.
     */
    uint32_t spin_yields;
    /**
     * The longest time that connecting and accepting may take, in microseconds.
     */
    uint64_t setup_timeout_us;
    /**
     * For how long a revocation waits for a peer inside an operation, in microseconds.
     */
    uint64_t revoke_grace_us;
    /**
     * For how long closing may deliver posted operations to other hosts, in microseconds.
     */
    uint64_t linger_us;
} ayre_config;

/**
 * A notification.
 */
typedef struct ayre_notification {
    /**
     * The other port. After `AYRE_PEER_DIED` it is the peer that has died.
     */
    ayre_peer source;
    /**
     * `AYRE_REQUESTER`, `AYRE_COMPLETER` or `AYRE_RESPONDER`.
     */
    uint8_t class_;
    /**
     * The kind of the operation: `AYRE_PUT` to `AYRE_REPLY`.
     */
    uint8_t operation;
    /**
     * `AYRE_OK`, `AYRE_DECLINED`, or a fault.
     */
    int32_t status;
    /**
     * The tag of the operation.
     */
    uint32_t tag;
    /**
     * The value of the operation, or its result.
     */
    uint64_t value;
} ayre_notification;

/**
 * A record that was taken; its bytes are in the buffer.
 */
typedef struct ayre_record {
    /**
     * The producer. After `AYRE_PEER_DIED` it is the peer that has died.
     */
    ayre_peer source;
    /**
     * The length in bytes. After `AYRE_TOO_LONG` it is the length of the next record.
     */
    size_t len;
} ayre_record;

/**
 * The input of a stage.
 */
typedef struct ayre_stage_input {
    /**
     * `AYRE_STAGE_ITEM`, or the end of the stream: `AYRE_STAGE_CLOSED`, `AYRE_STAGE_CUT` or
     * `AYRE_STAGE_FAILED`. At its end a stage may still emit items; after a failure they are lost.
     */
    int kind;
    /**
     * The bytes of an item.
     */
    const void *item;
    /**
     * Their number.
     */
    size_t len;
    /**
     * The reason of a failure: `AYRE_STREAM_STAGE_FAILED` to `AYRE_STREAM_CANCELLED`.
     */
    int why;
    /**
     * The port where it failed; after a death, the port that died.
     */
    ayre_peer at;
} ayre_stage_input;

/**
 * A stage, under the rules of an `ayre_handler`. The input is valid until it returns. It returns
 * 0. Another number ends the stream with `AYRE_STREAM_STAGE_FAILED`.
 */
typedef int (*ayre_stage)(void *user,
                          struct ayre_flow *flow,
                          const struct ayre_stage_input *input);

/**
 * The name of a stream at a port: the port that feeds it there, and a number.
 */
typedef struct ayre_stream_name {
    /**
     * The port that feeds the stream.
     */
    ayre_peer peer;
    /**
     * Its number.
     */
    uint32_t number;
} ayre_stream_name;

/**
 * A stage of a pipeline.
 */
typedef struct ayre_hop {
    /**
     * The port of the stage: it may be the one of the hop before, or this port.
     */
    ayre_peer peer;
    /**
     * The name under which it is registered there.
     */
    const char *stage;
    /**
     * The arguments that it gets.
     */
    uint64_t arguments[4];
} ayre_hop;

/**
 * An entry of a forwarding directory: the next port of a stream, and the stage there.
 */
typedef struct ayre_entry {
    /**
     * The next port, and the number of the stream there.
     */
    struct ayre_stream_name to;
    /**
     * The name of the stage there.
     */
    const char *stage;
    /**
     * The arguments that it gets.
     */
    uint64_t arguments[4];
    /**
     * 1 if the stage is not the last one: without an entry there, the stream fails.
     */
    int goes_on;
    /**
     * 1 if the entry is removed after the first stream that has used it.
     */
    int is_once;
} ayre_entry;

/**
 * An operation of a batch. Its kind says which members count; zero the others.
 */
typedef struct ayre_operation {
    /**
     * `AYRE_PUT`, `AYRE_PUT_WORD`, `AYRE_ATOMIC` or `AYRE_NOTIFY`.
     */
    uint8_t kind;
    /**
     * The remote region of all but a notification.
     */
    const struct ayre_remote_region *remote;
    /**
     * The place in it.
     */
    uint64_t offset;
    /**
     * The bytes of a put, if `part.region` is NULL.
     */
    const void *from;
    /**
     * Their number.
     */
    size_t len;
    /**
     * The part of a region that is put, if its region is not NULL.
     */
    struct ayre_part part;
    /**
     * The word of `AYRE_PUT_WORD`.
     */
    uint64_t word;
    /**
     * The atomic.
     */
    struct ayre_atomic_op atomic;
    /**
     * The notifications.
     */
    struct ayre_options options;
} ayre_operation;

/**
 * A lock in a word of eight bytes of a remote region, which is 0 at first. Each user has a
 * structure of its own, and fills it: `struct ayre_lock lock = {remote, 0, 8, AYRE_FREE};`
 *
 * A process that dies while it holds the lock leaves it held. The owner of the word may store
 * zero when it has learned of the death.
 */
typedef struct ayre_lock {
    /**
     * The remote region with the word.
     */
    const struct ayre_remote_region *word;
    /**
     * Where the word is: a multiple of eight.
     */
    uint64_t offset;
    /**
     * How many processes use the lock at most: the same number at all of them.
     */
    uint32_t processes;
    /**
     * How this structure holds the lock: the library sets it.
     */
    int held;
} ayre_lock;

/**
 * A source of messages: any endpoint.
 */
#define AYRE_ANY 0

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Makes a messenger of a port: it calls handlers of its peers, and runs its own. Does not block.
 *
 * The handle stays the port's, for everything but short messages, which belong to handlers from
 * now on: `ayre_send` and `ayre_recv` return `AYRE_INVALID`. A port that is a messenger already
 * stays as it is.
 */
int ayre_messenger_start(struct ayre_port *port,
                         const struct ayre_messenger_options *options);

/**
 * Makes a port of a messenger again. Its handlers, groups and streams end; messages that wait for
 * room are lost, unless `ayre_messenger_flush` has sent them. Does not block.
 */
int ayre_messenger_stop(struct ayre_port *port);

/**
 * Registers a handler of `arguments` arguments under a name of 1 to 64 bytes. Each peer is told of
 * it before the next message. Returns its id, which is the same at all processes.
 *
 * `user` goes to each run of the handler. It is used until the port closes.
 */
int64_t ayre_register_handler(struct ayre_port *port,
                              const char *name,
                              size_t arguments,
                              ayre_handler run,
                              void *user);

/**
 * Registers a handler under an id from 32 to 255, on which the processes have agreed. Peers can
 * call it before any name is announced. The rest is as for `ayre_register_handler`.
 */
int ayre_register_static_handler(struct ayre_port *port,
                                 uint32_t id,
                                 size_t arguments,
                                 ayre_handler run,
                                 void *user);

/**
 * The id of a handler's name, whether or not a handler is registered under it.
 */
int64_t ayre_handler_id(const char *name);

/**
 * 1 if a peer has announced a handler of this id and this number of arguments.
 */
int ayre_is_announced(struct ayre_port *port, ayre_peer peer, uint32_t handler, size_t arguments);

/**
 * Calls a handler of a peer, by its id, with `count` arguments and `len` bytes of payload, at most
 * 64 MiB. Blocks until the message has room, and runs handlers meanwhile.
 *
 * `arguments` may be NULL if there are none, and `payload` if it has no bytes. Both may be used
 * again when the call returns. A handler that the peer does not have is no error here: see
 * `ayre_failures`.
 */
int ayre_call(struct ayre_port *port,
              ayre_peer to,
              uint32_t handler,
              const uint64_t *arguments,
              size_t count,
              const void *payload,
              size_t len);

/**
 * Calls a handler as `ayre_call` does, with at most 1024 bytes, arguments included, if there is
 * room: else it is busy. Does not block, and runs no handler.
 */
int ayre_try_call(struct ayre_port *port,
                  ayre_peer to,
                  uint32_t handler,
                  const uint64_t *arguments,
                  size_t count,
                  const void *payload,
                  size_t len);

/**
 * Runs the handlers of messages that have come. Does not block. Returns how many have run.
 */
int ayre_poll(struct ayre_port *port);

/**
 * Waits until handlers have run, for `timeout_us` microseconds; for ever if that is negative.
 * Returns how many have run.
 *
 * `AYRE_TIMED_OUT`, or `AYRE_PEER_DIED`, once for each peer: `ayre_error_peer` names it.
 */
int ayre_wait(struct ayre_port *port, int64_t timeout_us);

/**
 * Waits until all living peers have begun as many syncs as this port. Blocks, and runs handlers
 * meanwhile. Then all handlers that peers had registered before are known here, and all messages
 * that they had sent before have been run.
 */
int ayre_sync(struct ayre_port *port);

/**
 * Waits until all messages are sent that handlers have sent, and those by channels. Blocks, and
 * runs handlers meanwhile. A program that will not poll for a while calls it first.
 */
int ayre_messenger_flush(struct ayre_port *port);

/**
 * Takes messages whose handlers were not run, the oldest first, at most `room` of them. Returns
 * how many were taken: as many as `room` says that there may be more. Does not block. The last
 * 1024 are kept.
 */
int ayre_failures(struct ayre_port *port, struct ayre_dropped_call *calls, size_t room);

/**
 * The sender of the message that a handler runs for.
 */
int ayre_token_source(struct ayre_token *token);

/**
 * Calls a handler of the sender of the message that a handler runs for. The rest is as for
 * `ayre_token_send`.
 */
int ayre_token_reply(struct ayre_token *token,
                     uint32_t handler,
                     const uint64_t *arguments,
                     size_t count,
                     const void *payload,
                     size_t len);

/**
 * Calls a handler of any peer, out of a handler. Does not block: a message without room is kept
 * and sent later, in order. `AYRE_BUSY_OVERFLOW` where those that are kept have reached the limit
 * of the messenger.
 */
int ayre_token_send(struct ayre_token *token,
                    ayre_peer to,
                    uint32_t handler,
                    const uint64_t *arguments,
                    size_t count,
                    const void *payload,
                    size_t len);

/**
 * Opens a channel at this end, for all peers: a number from 1 to 255, which both ends know. Sends
 * nothing, and does not block. `options` replace those of an earlier call; NULL stands for
 * priority 0, weight 1 and 1 MiB.
 */
int ayre_channel_open(struct ayre_port *port,
                      uint8_t channel,
                      const struct ayre_channel_options *options);

/**
 * Calls a handler by a channel. Blocks until the message is sent or has room in the channel's
 * queue, and runs handlers meanwhile. The rest is as for `ayre_call`.
 */
int ayre_channel_call(struct ayre_port *port,
                      uint8_t by,
                      ayre_peer to,
                      uint32_t handler,
                      const uint64_t *arguments,
                      size_t count,
                      const void *payload,
                      size_t len);

/**
 * Calls a handler by a channel, if the message can be sent or has room in the channel's queue:
 * else `AYRE_BUSY_CHANNEL`. Does not block, and runs no handler. A message may have any length.
 */
int ayre_channel_try_call(struct ayre_port *port,
                          uint8_t by,
                          ayre_peer to,
                          uint32_t handler,
                          const uint64_t *arguments,
                          size_t count,
                          const void *payload,
                          size_t len);

/**
 * Calls a handler of any peer by a channel, out of a handler. Does not block. `AYRE_BUSY_CHANNEL`
 * if the channel's queue to that peer has no room.
 */
int ayre_token_send_by(struct ayre_token *token,
                       uint8_t by,
                       ayre_peer to,
                       uint32_t handler,
                       const uint64_t *arguments,
                       size_t count,
                       const void *payload,
                       size_t len);

/**
 * Stops running messages of a channel. When its window is full, further ones stay at their
 * senders. Other channels go on.
 */
int ayre_channel_hold(struct ayre_port *port, uint8_t by);

/**
 * Runs messages of a held channel again, first those that have come meanwhile.
 */
int ayre_channel_release(struct ayre_port *port, uint8_t by);

/**
 * Runs messages that have come by a channel, held or not, and those without a channel. Does not
 * block. Returns how many handlers have run.
 */
int ayre_channel_poll(struct ayre_port *port, uint8_t by);

/**
 * The bytes of messages that wait here for a peer by a channel.
 */
int64_t ayre_channel_backlog(struct ayre_port *port, uint8_t by, ayre_peer peer);

/**
 * Does a collective. Blocks until it is done at this member, and runs handlers meanwhile.
 *
 * All members of a group begin its collectives in the same order, also those that are started.
 * Errors: `AYRE_INVALID` without effect; else `AYRE_PEER_DIED`, `AYRE_MISMATCH` or
 * `AYRE_GIVEN_UP`, after which the group does no further collective.
 */
int ayre_collective_do(struct ayre_port *port, const struct ayre_group *group, const struct ayre_collective *what);

/**
 * Starts a collective, which goes on whenever the port polls, and gives out a request for it. Does
 * not block.
 *
 * The values belong to the library until `ayre_request_wait` has returned, or the port is closed.
 * Until then the program does not change those that are read, nor use those that are changed.
 */
int ayre_collective_start(struct ayre_port *port,
                          const struct ayre_group *group,
                          const struct ayre_collective *what,
                          struct ayre_request **request);

/**
 * 1 if a started collective has ended at this member, well or with an error. Does not block, and
 * makes no progress: `ayre_poll` does.
 */
int ayre_request_test(struct ayre_port *port,
                      struct ayre_request *request);

/**
 * Waits until a started collective has ended at this member. Blocks, and runs handlers meanwhile.
 * Returns as `ayre_collective_do` does. The request is closed, also after an error.
 */
int ayre_request_wait(struct ayre_port *port,
                      struct ayre_request *request);

/**
 * Closes the handle of a request whose port was closed. One that nobody waits for goes on. NULL is
 * ignored.
 */
int ayre_request_close(struct ayre_request *request);

/**
 * Waits until all members of a group have called this. Blocks, and runs handlers meanwhile, as all
 * collectives do. Errors are those of `ayre_collective_do`.
 */
int ayre_group_barrier(struct ayre_port *port,
                       const struct ayre_group *group);

/**
 * Copies `count` values of the member `root` to all members. Blocks.
 */
int ayre_broadcast(struct ayre_port *port,
                   const struct ayre_group *group,
                   uint32_t root,
                   void *values,
                   size_t count,
                   uint32_t number);

/**
 * Combines `count` values of all members, number by number. The member `root` gets the result. The
 * values of the others are undefined afterwards. Blocks.
 */
int ayre_reduce(struct ayre_port *port,
                const struct ayre_group *group,
                uint32_t root,
                void *values,
                size_t count,
                uint32_t number,
                uint32_t combine);

/**
 * Combines `count` values of all members, number by number. All members get the result. Blocks.
 */
int ayre_allreduce(struct ayre_port *port,
                   const struct ayre_group *group,
                   void *values,
                   size_t count,
                   uint32_t number,
                   uint32_t combine);

/**
 * Combines `count` values, number by number. Each member gets the result of the members up to
 * itself, its own values included. Blocks.
 */
int ayre_scan(struct ayre_port *port,
              const struct ayre_group *group,
              void *values,
              size_t count,
              uint32_t number,
              uint32_t combine);

/**
 * Combines `count` values of all members, number by number. Of n members, member m gets the
 * results from m count / n to (m + 1) count / n, at their places in `values`. Its other values are
 * undefined afterwards. Blocks.
 */
int ayre_reduce_scatter(struct ayre_port *port,
                        const struct ayre_group *group,
                        void *values,
                        size_t count,
                        uint32_t number,
                        uint32_t combine);

/**
 * Copies the `count` values of each member to `all` at the member `root`, in the order of the
 * members. `all` has room for them all; at the others it may be NULL. Blocks.
 */
int ayre_gather(struct ayre_port *port,
                const struct ayre_group *group,
                uint32_t root,
                const void *own,
                size_t count,
                void *all,
                uint32_t number);

/**
 * Copies a part of `all` at the member `root` to each member, `count` values, in the order of the
 * members. At the others `all` may be NULL. Blocks.
 */
int ayre_scatter(struct ayre_port *port,
                 const struct ayre_group *group,
                 uint32_t root,
                 const void *all,
                 void *own,
                 size_t count,
                 uint32_t number);

/**
 * Copies the `count` values of each member to `all` at all members, in the order of the members.
 * Blocks.
 */
int ayre_allgather(struct ayre_port *port,
                   const struct ayre_group *group,
                   const void *own,
                   size_t count,
                   void *all,
                   uint32_t number);

/**
 * Exchanges parts of `count` values between all members: part m of `out` goes to member m, and
 * part m of `come` comes from member m. Blocks.
 */
int ayre_alltoall(struct ayre_port *port,
                  const struct ayre_group *group,
                  const void *out,
                  void *come,
                  size_t count,
                  uint32_t number);

/**
 * Reads instructions from text, one a line or with newlines between, such as
 * `entry; decline if r0 >= r2; write [r0 wrapped]; r0 += r1`. Writes at most `room` of them.
 * Returns how many there are.
 */
int64_t ayre_assemble(const char *lines, struct ayre_stored *instructions, size_t room);

/**
 * Makes a depot, with all registers 0 and no instructions.
 */
int ayre_create_depot(struct ayre_port *port, struct ayre_depot **depot);

/**
 * Closes the handle of a depot; one that is frozen is thawed. NULL is ignored.
 */
int ayre_depot_close(struct ayre_depot *depot);

/**
 * Reads a register. The memory that the message wrote that has set it is visible.
 */
int ayre_depot_register(struct ayre_depot *depot, uint8_t register_, uint64_t *value);

/**
 * Sets a register. `AYRE_BUSY_DEPOT` while the depot is frozen, or in use for long.
 */
int ayre_depot_set_register(struct ayre_depot *depot, uint8_t register_, uint64_t value);

/**
 * Sets how messages may use the registers from `first` to `last` that they name:
 * `AYRE_REGISTER_READ` and `AYRE_REGISTER_WRITE`, or-ed.
 */
int ayre_depot_protect(struct ayre_depot *depot, uint8_t first, uint8_t last, uint8_t protection);

/**
 * Stores instructions, the first one at place `at`.
 */
int ayre_depot_store(struct ayre_depot *depot,
                     uint8_t at,
                     const struct ayre_stored *instructions,
                     size_t count);

/**
 * Removes the instructions from place `first` to `last`.
 */
int ayre_depot_erase(struct ayre_depot *depot, uint8_t first, uint8_t last);

/**
 * Keeps all messages out until `ayre_depot_thaw`: registers and memory stay as they are.
 */
int ayre_depot_freeze(struct ayre_depot *depot);

/**
 * Sets a register of a depot that is frozen.
 */
int ayre_depot_set_frozen(struct ayre_depot *depot, uint8_t register_, uint64_t value);

/**
 * Lets messages in again.
 */
int ayre_depot_thaw(struct ayre_depot *depot);

/**
 * Lets a peer send messages to a depot, over a range of a region, under a name that it uses in
 * `ayre_accept_inlet`.
 */
int ayre_share_inlet(struct ayre_port *port,
                     ayre_peer peer,
                     struct ayre_depot *depot,
                     const struct ayre_region *region,
                     struct ayre_range range,
                     const struct ayre_inlet_options *access,
                     uint64_t name,
                     struct ayre_inlet **inlet);

/**
 * Takes an inlet back, and closes it. No message comes by it after the call. Blocks for peers
 * inside an operation. Returns 1 if the region's contents were moved, else 0.
 */
int ayre_revoke_inlet(struct ayre_port *port, struct ayre_inlet *inlet);

/**
 * Closes the handle of an inlet. The peer keeps its access. NULL is ignored.
 */
int ayre_inlet_close(struct ayre_inlet *inlet);

/**
 * Accepts the inlet that a peer has shared, or shares soon, under a name. Blocks.
 */
int ayre_accept_inlet(struct ayre_port *port,
                      ayre_peer peer,
                      uint64_t name,
                      struct ayre_remote_inlet **inlet);

/**
 * Lets an inlet that had stopped take messages again, after its owner has let it run. Blocks.
 */
int ayre_rejoin_inlet(struct ayre_port *port, struct ayre_remote_inlet *inlet);

/**
 * Closes the handle of a peer's inlet. NULL is ignored.
 */
int ayre_remote_inlet_close(struct ayre_remote_inlet *inlet);

/**
 * Sends a deposit message. Does not block: its data may be changed when the call returns. Returns
 * the ticket, or an error.
 */
int64_t ayre_deposit(struct ayre_port *port,
                     struct ayre_remote_inlet *to,
                     const struct ayre_deposit_message *message,
                     const struct ayre_options *with);

/**
 * Sends a deposit message whose answer is deposited here. Does not block. Returns the ticket, or
 * an error.
 */
int64_t ayre_deposit_with_reply(struct ayre_port *port,
                                struct ayre_remote_inlet *to,
                                const struct ayre_deposit_message *message,
                                const struct ayre_deposit_reply *reply,
                                const struct ayre_options *with);

/**
 * Sends a deposit message, and brings its answer: the value that the instruction gives, and `len`
 * bytes that it reads. Blocks. Returns 1, or 0 if an instruction has declined the message.
 */
int ayre_deposit_fetch(struct ayre_port *port,
                       struct ayre_remote_inlet *to,
                       const struct ayre_deposit_message *message,
                       void *into,
                       size_t len,
                       uint64_t *value);

/**
 * The message at which an inlet has stopped, and its data, of which `room` bytes are copied to
 * `data`. Returns 1 if there is one, 0 while the inlet runs.
 */
int ayre_inlet_held(struct ayre_inlet *inlet,
                    struct ayre_held_message *message,
                    void *data,
                    size_t room);

/**
 * Executes the message at which an inlet has stopped, and lets the inlet run again unless that
 * faults again. Returns 1 if a test of the message holds, which replaces its notification, else 0.
 */
int ayre_inlet_resume(struct ayre_inlet *inlet);

/**
 * Drops the message at which an inlet has stopped, and lets the inlet run again.
 */
int ayre_inlet_skip(struct ayre_inlet *inlet);

/**
 * Drops the message at which an inlet has stopped, if it has. Sets the registers to 0 that
 * messages may write, and lets the inlet run again.
 */
int ayre_inlet_reset(struct ayre_inlet *inlet);

/**
 * Opens an endpoint as the user's variables `AYRE_*` say. `flags` is 0 or `AYRE_LOCAL`. Does not
 * block.
 */
int ayre_endpoint_open(uint32_t flags,
                       struct ayre_endpoint **endpoint);

/**
 * Closes an endpoint. Blocks at most for a second, while what was sent to other hosts is
 * delivered. All buffers are the program's again then. NULL is ignored.
 */
int ayre_endpoint_close(struct ayre_endpoint *endpoint);

/**
 * Writes where others find the endpoint, as text to be passed on by any means, into `text`, which
 * has `AYRE_ADDRESS_TEXT` bytes. A process that knows the address may send to the endpoint.
 */
int ayre_endpoint_address(struct ayre_endpoint *endpoint,
                          char *text,
                          size_t room);

/**
 * Names the endpoint at an address, and begins to connect with it. Does not block.
 */
int ayre_endpoint_remote(struct ayre_endpoint *endpoint, const char *address, ayre_remote *remote);

/**
 * Forgets a remote. Returns 0 if operations under way use it, or if it is unknown, else 1.
 */
int ayre_endpoint_forget(struct ayre_endpoint *endpoint, ayre_remote remote);

/**
 * Posts a message of any length. Messages to one endpoint arrive in order. Does not block: a
 * completion of kind `AYRE_SENT` gives the buffer back. `AYRE_BUSY_CONNECTING` until the other
 * endpoint has answered: poll, and try again.
 */
int ayre_endpoint_send(struct ayre_endpoint *endpoint,
                       ayre_remote to,
                       uint64_t tag,
                       const void *data,
                       size_t len,
                       void *context);

/**
 * Posts a message of `count` pieces of memory, one behind the other, at most `AYRE_ENDPOINT_IOV`.
 * The rest is as for `ayre_endpoint_send`.
 */
int ayre_endpoint_sendv(struct ayre_endpoint *endpoint,
                        ayre_remote to,
                        uint64_t tag,
                        const struct iovec *data,
                        size_t count,
                        void *context);

/**
 * Posts a receive. The oldest message that matches goes into the buffer; what has no room there is
 * lost. Does not block.
 */
int ayre_endpoint_receive(struct ayre_endpoint *endpoint,
                          struct ayre_pattern pattern,
                          void *into,
                          size_t room,
                          void *context);

/**
 * Posts a receive into `count` pieces of memory, one behind the other, at most
 * `AYRE_ENDPOINT_IOV`. The rest is as for `ayre_endpoint_receive`.
 */
int ayre_endpoint_receivev(struct ayre_endpoint *endpoint,
                           struct ayre_pattern pattern,
                           const struct iovec *into,
                           size_t count,
                           void *context);

/**
 * Cancels the oldest receive with this context that has no message yet: it ends with
 * `AYRE_CANCELLED`. Returns 1 if there was one, else 0.
 */
int ayre_endpoint_cancel(struct ayre_endpoint *endpoint, void *context);

/**
 * Looks for the oldest message that matches and that no receive has taken, and leaves it there.
 * Returns 1 if there is one, else 0. Makes progress. Does not block.
 */
int ayre_endpoint_probe(struct ayre_endpoint *endpoint,
                        struct ayre_pattern pattern,
                        struct ayre_received *message);

/**
 * Makes progress, and takes the completions of operations that have ended, at most `room`, the
 * oldest first. Returns how many. Does not block.
 */
int64_t ayre_endpoint_poll(struct ayre_endpoint *endpoint,
                           struct ayre_completion *completions,
                           size_t room);

/**
 * Takes completions as `ayre_endpoint_poll` does. Waits for the first one for `timeout_us`
 * microseconds; for ever if that is negative. Returns 0 when that time is over. Blocks.
 */
int64_t ayre_endpoint_wait(struct ayre_endpoint *endpoint,
                           struct ayre_completion *completions,
                           size_t room,
                           int64_t timeout_us);

/**
 * The endpoint's descriptor for event loops, as `ayre_port_fd` is a port's. It belongs to the
 * endpoint.
 */
int ayre_endpoint_fd(struct ayre_endpoint *endpoint);

/**
 * Prepares for the program's sleep at the endpoint's descriptor. Returns 1 if the program may
 * sleep, until `ayre_endpoint_wake`; 0 if it has to poll first.
 */
int ayre_endpoint_rest(struct ayre_endpoint *endpoint);

/**
 * Ends a rest of the endpoint.
 */
int ayre_endpoint_wake(struct ayre_endpoint *endpoint);

/**
 * Exposes memory of the program to the endpoint's remotes, under a key of the program's choice.
 * `rights` are `AYRE_READ` and `AYRE_WRITE`, or-ed. The memory has to stay until
 * `ayre_endpoint_withdraw`, or until the endpoint is closed.
 */
int ayre_endpoint_expose(struct ayre_endpoint *endpoint,
                         uint64_t key,
                         void *base,
                         size_t len,
                         uint32_t rights);

/**
 * Withdraws the memory of a key: no remote touches it any more when the call returns. Returns 1 if
 * there was one, else 0.
 */
int ayre_endpoint_withdraw(struct ayre_endpoint *endpoint,
                           uint64_t key);

/**
 * Writes to memory of another endpoint. Does not block: a completion of kind `AYRE_WRITTEN` says
 * that it is done there, or refused. Operations on one endpoint, messages included, are done in
 * the order of posting.
 */
int ayre_endpoint_write(struct ayre_endpoint *endpoint,
                        struct ayre_remote_address to,
                        const void *from,
                        size_t len,
                        void *context);

/**
 * Writes `count` pieces of memory, one behind the other, at most `AYRE_ENDPOINT_IOV`. The rest is
 * as for `ayre_endpoint_write`.
 */
int ayre_endpoint_writev(struct ayre_endpoint *endpoint,
                         struct ayre_remote_address to,
                         const struct iovec *from,
                         size_t count,
                         void *context);

/**
 * Reads `len` bytes of another endpoint's memory. Does not block: they are in the buffer with the
 * completion of kind `AYRE_READ_DONE`.
 */
int ayre_endpoint_read(struct ayre_endpoint *endpoint,
                       struct ayre_remote_address from,
                       void *into,
                       size_t len,
                       void *context);

/**
 * Reads into `count` pieces of memory, one behind the other, at most `AYRE_ENDPOINT_IOV`. The rest
 * is as for `ayre_endpoint_read`.
 */
int ayre_endpoint_readv(struct ayre_endpoint *endpoint,
                        struct ayre_remote_address from,
                        const struct iovec *into,
                        size_t count,
                        void *context);

/**
 * Performs an atomic on memory of another endpoint: nothing that reaches the memory by an endpoint
 * comes in between. Does not block: a completion of kind `AYRE_UPDATED` says that it is done, or
 * refused. Operands and comparands may be used again when the call returns.
 *
 * It needs the right `AYRE_WRITE`, and `AYRE_READ` where it brings the numbers before.
 */
int ayre_endpoint_update(struct ayre_endpoint *endpoint,
                         struct ayre_remote_address at,
                         const struct ayre_endpoint_atomic *what,
                         void *context);

/**
 * The text of the last error of this thread, with what it was about. It is valid until the next
 * call of this function by the thread. Empty if no call has failed.
 */
const char *ayre_detail(void);

/**
 * The number of the system's error behind the last `AYRE_SYSTEM` or `AYRE_NO_MEMORY` of this
 * thread, as in `errno`; 0 if there was none.
 */
int ayre_errno(void);

/**
 * The peer of the last error of this thread: that has died, has refused, or does something else.
 * -1 if the error names none.
 */
int ayre_error_peer(void);

/**
 * The meaning of an error code, as text that is valid for ever.
 */
const char *ayre_strerror(int code);

/**
 * Makes a group of `members_count` members, this port among them, which is a messenger. All
 * members make it under the same name of 1 to 64 bytes, with the same members in the same order.
 * Sends nothing, and does not block.
 *
 * A group lasts as long as the messenger. The handle is closed by `ayre_group_close`.
 */
int ayre_group_of(struct ayre_port *port,
                  const char *name,
                  const ayre_peer *members,
                  size_t members_count,
                  struct ayre_group **group);

/**
 * Makes a group of this port and all its peers, in the order of their numbers. In a job this is
 * the order of the ranks. The rest is as for `ayre_group_of`.
 */
int ayre_group_of_all(struct ayre_port *port, const char *name, struct ayre_group **group);

/**
 * Closes the handle of a group. NULL is ignored.
 */
int ayre_group_close(struct ayre_group *group);

/**
 * Lists the members of a group in their order, at most `room` of them. Returns how many there are.
 */
int64_t ayre_group_members(struct ayre_port *port,
                           const struct ayre_group *group,
                           ayre_peer *peers,
                           size_t room);

/**
 * Fixes the schedule by which a group does a collective, the same one at all members: one of
 * `AYRE_SCHEDULE_STAR` to `AYRE_SCHEDULE_RING`, or 0 to leave the choice to the library. Floating
 * point sums ignore a schedule that would change their result.
 */
int ayre_group_fix_schedule(struct ayre_port *port,
                            const struct ayre_group *group,
                            uint32_t collective,
                            uint32_t schedule);

/**
 * Lets a group choose its schedules by the load of its links, whose members exchange the loads
 * after `every` calls; 0 returns to the usual schedules. Blocks until all members have called this
 * with the same number, and runs handlers meanwhile.
 */
int ayre_group_adapt(struct ayre_port *port,
                     const struct ayre_group *group,
                     uint32_t every);

/**
 * Records the last `calls` collectives of a group from now on; 0 ends the recording. Calls that do
 * not wait, or that fail, are not recorded.
 */
int ayre_group_record(struct ayre_port *port,
                      const struct ayre_group *group,
                      size_t calls);

/**
 * Lists the recorded calls of a group, the oldest first, at most `room` of them. Returns how many
 * there are. `links` gets the links of each call behind each other, one for each member; it may be
 * NULL.
 */
int64_t ayre_group_recorded(struct ayre_port *port,
                            const struct ayre_group *group,
                            struct ayre_recorded_call *calls,
                            struct ayre_link_use *links,
                            size_t room);

/**
 * Writes the recording of a group as text, for `ayre study`, into `text`, which has `room` bytes.
 * Returns the length of the text; if it is not below `room`, the text is cut.
 */
int64_t ayre_group_recording(struct ayre_port *port,
                             const struct ayre_group *group,
                             char *text,
                             size_t room);

/**
 * The details of the last error of this thread, if it was `AYRE_MISMATCH`. Returns 1 if it was,
 * else 0.
 */
int ayre_error_mismatch(struct ayre_mismatch *details);

/**
 * Allocates `len` bytes that are zero. `flags` is 0 or `AYRE_SEALED`. Close the region with
 * `ayre_region_close`.
 */
int ayre_alloc(struct ayre_port *port, size_t len, uint32_t flags, struct ayre_region **region);

/**
 * Registers `len` bytes of the program's own memory, for peers of mediated connections. `base` is
 * a multiple of eight.
 *
 * The memory has to stay until the region was deregistered.
 */
int ayre_register(struct ayre_port *port,
                  void *base,
                  size_t len,
                  struct ayre_region **region);

/**
 * Revokes all grants of a region, and lets nobody use it any more.
 */
int ayre_deregister(struct ayre_port *port, const struct ayre_region *region);

/**
 * Closes the handle of a region. Its memory goes when the port closes, or after
 * `ayre_deregister`, once no peer has it any more. NULL is ignored.
 */
int ayre_region_close(struct ayre_region *region);

/**
 * The first byte of a region, or NULL if that is no region.
 *
 * Peers may change the bytes at any time. The program orders such changes and its own accesses by
 * notifications, messages and atomics. Words that peers put or update are read with C's atomics.
 * The address holds until the region is closed, and while peers have the region.
 */
void *ayre_region_address(const struct ayre_region *region);

/**
 * The length of a region in bytes.
 */
int64_t ayre_region_len(const struct ayre_region *region);

/**
 * Performs an atomic on a word of a region of this process, atomic with respect to those of all
 * peers. `result` may be NULL.
 */
int ayre_region_atomic(const struct ayre_region *region,
                       size_t offset,
                       const struct ayre_atomic_op *what,
                       struct ayre_fetched *result);

/**
 * Shares the bytes from `start` to before `end` with a peer, under a name that it uses in
 * `ayre_accept_region`. `rights` are `AYRE_READ` and the others, or-ed. `grant` may be NULL: then
 * it cannot be revoked alone.
 */
int ayre_share(struct ayre_port *port,
               ayre_peer peer,
               const struct ayre_region *region,
               struct ayre_range range,
               uint32_t rights,
               uint64_t name,
               struct ayre_grant **grant);

/**
 * The key of a grant.
 */
int ayre_grant_key(const struct ayre_grant *grant, struct ayre_key *key);

/**
 * Takes a grant back, and closes it. No operation that uses it lands after the call. Blocks for
 * peers inside an operation. Returns 1 if a peer did not let go, so that the region's contents
 * were moved to fresh memory at the old address, else 0.
 */
int ayre_revoke(struct ayre_port *port, struct ayre_grant *grant);

/**
 * Closes the handle of a grant. The peer keeps what it was granted. NULL is ignored.
 */
int ayre_grant_close(struct ayre_grant *grant);

/**
 * Accepts the region that a peer has shared, or shares soon, under a name. Blocks.
 */
int ayre_accept_region(struct ayre_port *port,
                       ayre_peer peer,
                       uint64_t name,
                       struct ayre_remote_region **remote);

/**
 * A capability for less: for the bytes of a range, with some of the rights.
 */
int ayre_narrow(const struct ayre_remote_region *remote,
                struct ayre_range range,
                uint32_t rights,
                struct ayre_remote_region **narrow);

/**
 * The length of a remote region in bytes.
 */
int64_t ayre_remote_region_len(const struct ayre_remote_region *remote);

/**
 * The rights on a remote region: `AYRE_READ` and the others, or-ed.
 */
int ayre_remote_region_rights(const struct ayre_remote_region *remote);

/**
 * The peer that has shared a remote region.
 */
int ayre_remote_region_peer(const struct ayre_remote_region *remote);

/**
 * The key of a remote region.
 */
int ayre_remote_region_key(const struct ayre_remote_region *remote, struct ayre_key *key);

/**
 * Closes the handle of a remote region. NULL is ignored.
 */
int ayre_remote_region_close(struct ayre_remote_region *remote);

/**
 * Sends a message of 1 to `AYRE_MESSAGE_MAX` bytes. Does not block: the buffer may be used again
 * when the call returns. `AYRE_BUSY_MESSAGES` where the receiver has to take earlier ones first.
 */
int ayre_send(struct ayre_port *port,
              ayre_peer to,
              uint32_t tag,
              const void *data,
              size_t len);

/**
 * Sends `count` pieces of memory, one behind the other, as one message. The rest is as for
 * `ayre_send`.
 */
int ayre_sendv(struct ayre_port *port, ayre_peer to, uint32_t tag, const struct iovec *data, size_t count);

/**
 * Sends a message as `ayre_send` does, and waits for room. Blocks.
 */
int ayre_send_wait(struct ayre_port *port, ayre_peer to, uint32_t tag, const void *data, size_t len);

/**
 * Takes the next message into a buffer of `room` bytes. Returns 1 if there was one, else 0. Does
 * not block. A message that is longer than the buffer stays: `AYRE_TOO_LONG`.
 */
int ayre_try_recv(struct ayre_port *port,
                  void *into,
                  size_t room,
                  struct ayre_message *message);

/**
 * Takes the next message. Waits for it for `timeout_us` microseconds; for ever if that is
 * negative. Returns 1. The rest is as for `ayre_try_recv`.
 */
int ayre_recv(struct ayre_port *port,
              void *into,
              size_t room,
              struct ayre_message *message,
              int64_t timeout_us);

/**
 * Founds a group, whose only member is this port, under a name of 1 to 64 bytes. Others join
 * through any member. Does not block. `on_change` may be NULL.
 *
 * The port is a messenger. All processes know each other by the same numbers, as the ranks of a
 * job do. The handle is closed by `ayre_membership_close`.
 */
int ayre_multicast_found(struct ayre_port *port,
                         const char *name,
                         const struct ayre_multicast_options *bounds,
                         ayre_on_change on_change,
                         void *user,
                         struct ayre_membership **membership);

/**
 * Joins a group through one of its members, `door`. Blocks until this port is a member or is
 * refused, and runs handlers meanwhile. `on_change` first gets the view that adds this port; all
 * later messages of the group follow.
 *
 * Errors: `AYRE_REFUSED`, `AYRE_UNREACHABLE`, `AYRE_INVALID`. The rest is as for
 * `ayre_multicast_found`.
 */
int ayre_multicast_join(struct ayre_port *port,
                        const char *name,
                        ayre_peer door,
                        const struct ayre_multicast_options *bounds,
                        ayre_on_change on_change,
                        void *user,
                        struct ayre_membership **membership);

/**
 * Calls a handler at all members, this port among them, with at most 1 MiB, arguments included.
 * Blocks for room, and runs handlers meanwhile. All members run the messages and changes of the
 * group in the same order.
 */
int ayre_multicast_send(struct ayre_port *port,
                        const struct ayre_membership *to,
                        uint32_t handler,
                        const uint64_t *arguments,
                        size_t count,
                        const void *payload,
                        size_t len);

/**
 * Calls a handler at all members as `ayre_multicast_send` does, if there is room: else
 * `AYRE_BUSY_MULTICAST`. Does not block, and runs no handler.
 */
int ayre_multicast_try_send(struct ayre_port *port,
                            const struct ayre_membership *to,
                            uint32_t handler,
                            const uint64_t *arguments,
                            size_t count,
                            const void *payload,
                            size_t len);

/**
 * Calls a handler at all members of a group of which this port is none, through a member, `door`.
 * Blocks until the message has its place in the order, and runs handlers meanwhile.
 *
 * `AYRE_REFUSED` without effect; `AYRE_UNREACHABLE`; `AYRE_UNKNOWN_OUTCOME` where the door has
 * gone meanwhile.
 */
int ayre_multicast_send_through(struct ayre_port *port,
                                const char *name,
                                ayre_peer door,
                                uint32_t handler,
                                const uint64_t *arguments,
                                size_t count,
                                const void *payload,
                                size_t len);

/**
 * Calls a handler at all members of a group of this port, out of a handler. Does not block.
 * `AYRE_BUSY_MULTICAST` where there is no room.
 */
int ayre_token_multicast(struct ayre_token *token,
                         const struct ayre_membership *to,
                         uint32_t handler,
                         const uint64_t *arguments,
                         size_t count,
                         const void *payload,
                         size_t len);

/**
 * Leaves a group, behind all messages of this port. Blocks until no member needs this port any
 * more, and runs handlers meanwhile. The handle stays, and names no member.
 */
int ayre_multicast_leave(struct ayre_port *port, const struct ayre_membership *membership);

/**
 * Lists the members of a group in the order in which they joined, as this port knows them, at most
 * `room` of them. Returns how many there are: none if this port is no member.
 */
int64_t ayre_multicast_members(struct ayre_port *port,
                               const struct ayre_membership *membership,
                               ayre_peer *peers,
                               size_t room);

/**
 * Closes the handle of a membership. The port stays a member. NULL is ignored.
 */
int ayre_membership_close(struct ayre_membership *membership);

/**
 * Puts `len` bytes to the place at `offset` in a remote region. Does not block: the buffer may be
 * used again when the call returns.
 *
 * Returns the ticket of the operation, which is at least 0, or an error: busy, without effect, or
 * a fault. `options` may be NULL.
 */
int64_t ayre_put(struct ayre_port *port,
                 const struct ayre_remote_region *remote,
                 uint64_t offset,
                 const void *from,
                 size_t len,
                 const struct ayre_options *with);

/**
 * Puts `count` pieces of memory, one behind the other, as one operation. The rest is as for
 * `ayre_put`.
 */
int64_t ayre_putv(struct ayre_port *port,
                  const struct ayre_remote_region *remote,
                  uint64_t offset,
                  const struct iovec *from,
                  size_t count,
                  const struct ayre_options *with);

/**
 * Puts a part of a region. The part is read until the operation has completed: do not change it
 * before a requester notification or `ayre_flush`. The rest is as for `ayre_put`.
 */
int64_t ayre_put_part(struct ayre_port *port,
                      const struct ayre_remote_region *remote,
                      uint64_t offset,
                      const struct ayre_part *from,
                      const struct ayre_options *with);

/**
 * Puts rows of a matrix, which lie in `len` bytes from `from` on. The rest is as for `ayre_put`.
 */
int64_t ayre_put_rows(struct ayre_port *port,
                      const struct ayre_remote_region *remote,
                      uint64_t offset,
                      const void *from,
                      size_t len,
                      const struct ayre_rows *rows,
                      const struct ayre_options *with);

/**
 * Puts rows of a matrix in a part of a region. The rest is as for `ayre_put_part`.
 */
int64_t ayre_put_part_rows(struct ayre_port *port,
                           const struct ayre_remote_region *remote,
                           uint64_t offset,
                           const struct ayre_part *from,
                           const struct ayre_rows *rows,
                           const struct ayre_options *with);

/**
 * Gets `len` bytes from the place at `offset` in a remote region. Blocks until they are there.
 * Returns the ticket, or an error. `options` may be NULL.
 */
int64_t ayre_get(struct ayre_port *port,
                 const struct ayre_remote_region *remote,
                 uint64_t offset,
                 void *into,
                 size_t len,
                 const struct ayre_options *with);

/**
 * Gets into `count` pieces of memory, one behind the other, as one operation. They do not overlap.
 * The rest is as for `ayre_get`.
 */
int64_t ayre_getv(struct ayre_port *port,
                  const struct ayre_remote_region *remote,
                  uint64_t offset,
                  const struct iovec *into,
                  size_t count,
                  const struct ayre_options *with);

/**
 * Gets into a part of a region. Does not block: the data is there with the completer notification,
 * or after `ayre_flush`.
 */
int64_t ayre_get_part(struct ayre_port *port,
                      const struct ayre_remote_region *remote,
                      uint64_t offset,
                      const struct ayre_part *into,
                      const struct ayre_options *with);

/**
 * Gets rows of a matrix into `len` bytes from `into` on. The rest is as for `ayre_get`.
 */
int64_t ayre_get_rows(struct ayre_port *port,
                      const struct ayre_remote_region *remote,
                      uint64_t offset,
                      void *into,
                      size_t len,
                      const struct ayre_rows *rows,
                      const struct ayre_options *with);

/**
 * Gets rows of a matrix into a part of a region. The rest is as for `ayre_get_part`.
 */
int64_t ayre_get_part_rows(struct ayre_port *port,
                           const struct ayre_remote_region *remote,
                           uint64_t offset,
                           const struct ayre_part *into,
                           const struct ayre_rows *rows,
                           const struct ayre_options *with);

/**
 * Puts a word of eight bytes, which is never seen in part. `offset` is a multiple of eight. Does
 * not block. Returns the ticket, or an error.
 */
int64_t ayre_put_word(struct ayre_port *port,
                      const struct ayre_remote_region *remote,
                      uint64_t offset,
                      uint64_t value,
                      const struct ayre_options *with);

/**
 * Notifies a peer, behind all operations on it that were posted before. Does not block. Returns
 * the ticket, or an error.
 */
int64_t ayre_notify(struct ayre_port *port, ayre_peer peer, const struct ayre_options *with);

/**
 * Performs an atomic without a result. Does not block. Returns the ticket, or an error.
 */
int64_t ayre_update(struct ayre_port *port,
                    const struct ayre_remote_region *remote,
                    uint64_t offset,
                    const struct ayre_atomic_op *what,
                    const struct ayre_options *with);

/**
 * Performs an atomic, and brings its result. Blocks until it is there. `result` may be NULL.
 */
int ayre_fetch(struct ayre_port *port,
               const struct ayre_remote_region *remote,
               uint64_t offset,
               const struct ayre_atomic_op *what,
               const struct ayre_options *with,
               struct ayre_fetched *result);

/**
 * Adds to a word of eight bytes, and brings the word before. Blocks until it is there. `before`
 * may be NULL.
 */
int ayre_fetch_add(struct ayre_port *port,
                   const struct ayre_remote_region *remote,
                   uint64_t offset,
                   uint64_t addend,
                   uint64_t *before);

/**
 * Fills a structure of options with the usual ones: direct connections, number 0, one minute for
 * set-up.
 *
 * `size` is `sizeof(struct ayre_config)`.
 */
int ayre_config_init(struct ayre_config *config,
                     size_t size);

/**
 * Opens a port without peers. `options` may be NULL. Does not block. End it with
 * `ayre_port_close` or `ayre_port_leave`.
 */
int ayre_port_open(const struct ayre_config *options, struct ayre_port **port);

/**
 * Joins the job that `ayre run`, mpirun or Slurm has started this process in, and connects with
 * all its ranks. `options` may be NULL. Blocks until all ranks have joined.
 */
int ayre_port_join(const struct ayre_config *options, struct ayre_port **port);

/**
 * 1 if a launcher has started this process as a rank of a job, else 0.
 */
int ayre_is_launched(void);

/**
 * Closes a port: peers take it for dead. Blocks at most for `linger_us` of its options. Its other
 * handles are to be closed, too, before or after it. NULL is ignored.
 */
int ayre_port_close(struct ayre_port *port);

/**
 * Leaves all peers once what was posted and sent has arrived, and closes the port. Blocks.
 */
int ayre_port_leave(struct ayre_port *port);

/**
 * The number by which peers know this port; in a job, the rank.
 */
int ayre_port_rank(struct ayre_port *port);

/**
 * The ports of the job, this one included; 1 for a port outside of jobs.
 */
int ayre_port_size(struct ayre_port *port);

/**
 * Lists the connected peers, at most `room` of them, in ascending order. Returns how many there
 * are.
 */
int64_t ayre_port_peers(struct ayre_port *port, ayre_peer *peers, size_t room);

/**
 * Listens at a path, for peers of this host. Does not block.
 */
int ayre_port_listen(struct ayre_port *port, const char *path);

/**
 * Connects with the port that listens at a path. Blocks until it has accepted. Returns the peer.
 */
int ayre_port_connect(struct ayre_port *port,
                      const char *path);

/**
 * Accepts the next port that connects. Blocks. Returns the peer.
 */
int ayre_port_accept(struct ayre_port *port);

/**
 * Connects a port with itself. Returns the peer.
 */
int ayre_port_connect_loopback(struct ayre_port *port);

/**
 * Opens the port to other hosts, at the addresses of `AYRE_NET`, or all that others may reach.
 *
 * Links are encrypted by `key`, 64 hexadecimal digits that all ports share; NULL gives plain
 * links, for closed networks. Writes where the port is found, as text such as
 * `192.0.2.1:7000 [2001:db8::1]:7000`, into `addresses`, which has `room` bytes. Returns the
 * length of that text; if it is not below `room`, the text is cut.
 */
int64_t ayre_port_open_net(struct ayre_port *port, const char *key, char *addresses, size_t room);

/**
 * Connects with a port of another host. `addresses` is the text that `ayre_port_open_net` has
 * given there. Blocks until it has accepted. Returns the peer.
 */
int ayre_port_connect_net(struct ayre_port *port, const char *addresses);

/**
 * Ends a connection at once and forgets the peer, which is told.
 */
int ayre_port_disconnect(struct ayre_port *port, ayre_peer peer);

/**
 * The mode of a connection: `AYRE_DIRECT` or `AYRE_MEDIATED`.
 */
int ayre_port_mode(struct ayre_port *port, ayre_peer peer);

/**
 * 1 if the peer is alive, as far as this port knows. `ayre_progress` finds out.
 */
int ayre_port_is_alive(struct ayre_port *port, ayre_peer peer);

/**
 * Starts a thread of the library that performs the operations of mediated peers. Without it the
 * port does so in its own calls.
 */
int ayre_port_start_engine(struct ayre_port *port);

/**
 * Serves peers and takes in what has come. Does not block.
 */
int ayre_progress(struct ayre_port *port);

/**
 * Waits until all ranks of the job have come here. Blocks.
 */
int ayre_barrier(struct ayre_port *port);

/**
 * Waits until all operations on a peer have completed there. Blocks.
 */
int ayre_flush(struct ayre_port *port, ayre_peer peer);

/**
 * 1 if all operations on a peer have completed there. Does not block.
 */
int ayre_is_flushed(struct ayre_port *port, ayre_peer peer);

/**
 * Takes the next notification. Returns 1 if there was one, else 0. Does not block.
 */
int ayre_poll_notification(struct ayre_port *port, struct ayre_notification *note);

/**
 * Takes the next notification. Waits for it for `timeout_us` microseconds; for ever if that is
 * negative. Returns 1.
 */
int ayre_wait_notification(struct ayre_port *port, struct ayre_notification *note, int64_t timeout_us);

/**
 * How many calls were refused for a reason, `AYRE_BUSY_MESSAGES` to `AYRE_BUSY_CHANNEL`, and how
 * many operations have ended with a fault, `AYRE_FAULT_UNKNOWN_KEY` to `AYRE_FAULT_INTERRUPTED`.
 * With `AYRE_PROTOCOL` as the code: malformed input of peers.
 */
int64_t ayre_port_count(struct ayre_port *port,
                        int code);

/**
 * Makes a queue with `capacity` bytes for each producer.
 */
int ayre_create_queue(struct ayre_port *port, size_t capacity, struct ayre_queue **queue);

/**
 * The longest record in bytes.
 */
int64_t ayre_queue_record_max(struct ayre_queue *queue);

/**
 * Closes the consumer's handle of a queue. NULL is ignored.
 */
int ayre_queue_close(struct ayre_queue *queue);

/**
 * Lets a peer produce, under a name that it uses in `ayre_accept_queue`.
 */
int ayre_share_queue(struct ayre_port *port, ayre_peer peer, struct ayre_queue *queue, uint64_t name);

/**
 * Accepts the queue that a peer has shared, or shares soon, under a name. Blocks.
 */
int ayre_accept_queue(struct ayre_port *port,
                      ayre_peer peer,
                      uint64_t name,
                      struct ayre_remote_queue **queue);

/**
 * The longest record in bytes.
 */
int64_t ayre_remote_queue_record_max(struct ayre_remote_queue *queue);

/**
 * The peer that consumes what is enqueued here.
 */
int ayre_remote_queue_peer(struct ayre_remote_queue *queue);

/**
 * Closes a producer's handle of a queue. NULL is ignored.
 */
int ayre_remote_queue_close(struct ayre_remote_queue *queue);

/**
 * Lists the peers that produce, at most `room` of them. Returns how many there are.
 */
int64_t ayre_queue_producers(struct ayre_queue *queue, ayre_peer *peers, size_t room);

/**
 * Takes no more records of a peer.
 */
int ayre_remove_producer(struct ayre_port *port, struct ayre_queue *queue, ayre_peer peer);

/**
 * Enqueues a record. Does not block: the buffer may be used again when the call returns.
 * `AYRE_BUSY_QUEUE` where the consumer has to take earlier ones first.
 */
int ayre_enqueue(struct ayre_port *port, struct ayre_remote_queue *queue, const void *record, size_t len);

/**
 * Takes the next record into a buffer of `room` bytes. Returns 1 if there was one, else 0. Does
 * not block. A record that is longer than the buffer stays: `AYRE_TOO_LONG`.
 */
int ayre_dequeue(struct ayre_port *port,
                 struct ayre_queue *queue,
                 void *into,
                 size_t room,
                 struct ayre_record *record);

/**
 * Takes the next record. Waits for it for `timeout_us` microseconds; for ever if that is negative.
 * Returns 1. The rest is as for `ayre_dequeue`.
 */
int ayre_dequeue_wait(struct ayre_port *port,
                      struct ayre_queue *queue,
                      void *into,
                      size_t room,
                      struct ayre_record *record,
                      int64_t timeout_us);

/**
 * The port's descriptor for `poll`, `epoll` and event loops. It is readable when something has
 * come while the port rests. It belongs to the port: neither read, write nor close it.
 *
 * ```c
 * for (;;) {
 *     // Take everything: messages, notifications, records of queues.
 *     if (ayre_port_rest(port) == 1) {
 *         // The descriptor is in the epoll, with EPOLLIN.
 *         epoll_wait(loop, events, 8, -1);
 *         ayre_port_wake(port);
 *     }
 * }
 * ```
 */
int ayre_port_fd(struct ayre_port *port);

/**
 * Prepares for the program's sleep at the port's descriptor. Returns 1 if the program may sleep:
 * then the descriptor is readable as soon as something comes, until `ayre_port_wake`. Returns 0 if
 * messages, notifications or deaths are to be taken, or the port has worked for its peers.
 *
 * A messenger first runs the handlers of messages that have come. It does not look for
 * notifications: look at them, too, before the sleep.
 *
 * `ayre_recv` and `ayre_wait_notification` tell of deaths, also with a timeout of 0. The port does
 * not know the program's queues and depots: look at them after this call, before the sleep. All
 * functions may be called while the port rests.
 */
int ayre_port_rest(struct ayre_port *port);

/**
 * Ends a rest: the program takes what has come. Does nothing to a port that does not rest.
 */
int ayre_port_wake(struct ayre_port *port);

/**
 * Registers a stage under a name of 1 to 64 bytes. The port is a messenger. The stage runs in the
 * calls that run handlers. `user` goes to each run, until the port closes.
 */
int ayre_register_stage(struct ayre_port *port,
                        const char *name,
                        ayre_stage run,
                        void *user);

/**
 * Sends an item on, out of a stage, to the next stage. Does not block: items wait for room in
 * order. `AYRE_FAULT_TOO_LONG` for more than `AYRE_ITEM_MAX` bytes.
 */
int ayre_flow_emit(struct ayre_flow *flow, const void *item, size_t len);

/**
 * The four arguments of the entry that leads to a stage.
 */
int ayre_flow_arguments(struct ayre_flow *flow, uint64_t *arguments);

/**
 * The name of the stream that a stage runs for, unique at this port while the stream exists.
 */
int ayre_flow_name(struct ayre_flow *flow, struct ayre_stream_name *name);

/**
 * Lays a pipeline and opens its stream. Blocks until all ports have answered, and runs handlers
 * meanwhile.
 *
 * Errors: `AYRE_ENTRY_DENIED` to `AYRE_ENTRY_UNKNOWN` where a port refuses, and
 * `AYRE_STREAM_STAGE_FAILED` to `AYRE_STREAM_CANCELLED`. `ayre_error_peer` names the port.
 */
int ayre_stream_lay(struct ayre_port *port,
                    const struct ayre_hop *hops,
                    size_t count,
                    struct ayre_stream **stream);

/**
 * Opens a stream at its source, whose entry is in this port's directory, under this port and this
 * number. Does not block.
 */
int ayre_stream_open(struct ayre_port *port,
                     uint32_t number,
                     struct ayre_stream **stream);

/**
 * Pushes an item of at most `AYRE_ITEM_MAX` bytes. Blocks for room, and runs handlers and stages
 * meanwhile. Errors are those of a stream that has failed.
 */
int ayre_stream_push(struct ayre_port *port,
                     struct ayre_stream *stream,
                     const void *item,
                     size_t len);

/**
 * Pushes an item if there is room: else `AYRE_BUSY_STREAM`. Does not block. Runs stages of this
 * port, but no handlers.
 */
int ayre_stream_try_push(struct ayre_port *port, struct ayre_stream *stream, const void *item, size_t len);

/**
 * Ends a stream behind its last item. Blocks until all its stages have run with the end, and runs
 * handlers and stages meanwhile. The handle is closed, also after an error, which says that not
 * all items have reached the last stage.
 */
int ayre_stream_finish(struct ayre_port *port,
                       struct ayre_stream *stream);

/**
 * Cancels a stream: all its stages get the end with `AYRE_STREAM_CANCELLED`. Does not block. The
 * handle is closed.
 */
int ayre_stream_cancel(struct ayre_port *port,
                       struct ayre_stream *stream);

/**
 * Closes the handle of a stream whose port was closed. A stream does not end by it. NULL is
 * ignored.
 */
int ayre_stream_close(struct ayre_stream *stream);

/**
 * Sets or replaces an entry of the directory of the port `at`, under the name of a stream there.
 * Blocks for the answer, and runs handlers and stages meanwhile. Items that were sent before go
 * the old way. Errors are those of `ayre_stream_lay`.
 */
int ayre_set_entry(struct ayre_port *port,
                   ayre_peer at,
                   struct ayre_stream_name name,
                   const struct ayre_entry *entry);

/**
 * Clears an entry of the directory of the port `at`. The rest is as for `ayre_set_entry`.
 */
int ayre_clear_entry(struct ayre_port *port, ayre_peer at, struct ayre_stream_name name);

/**
 * Sets whether peers may set and clear entries here: 1, as at first, or 0.
 */
int ayre_let_peers_set_entries(struct ayre_port *port, int may);

/**
 * Posts several operations on one peer, in their order: all, or none where there is no room for
 * all. Does not block. Returns the ticket of the last one, or an error; 0 for no operations.
 */
int64_t ayre_post(struct ayre_port *port,
                  ayre_peer peer,
                  const struct ayre_operation *operations,
                  size_t count);

/**
 * Tries to take a lock once, `AYRE_SHARED` or `AYRE_EXCLUSIVE`. Returns 1 if it was taken, 0 if
 * not, or if this structure holds it already.
 */
int ayre_lock_try(struct ayre_port *port, struct ayre_lock *lock, int how);

/**
 * Takes a lock. Blocks until it is free.
 */
int ayre_lock_take(struct ayre_port *port, struct ayre_lock *lock, int how);

/**
 * Releases a lock, after everything that was posted to the word's owner has completed there.
 */
int ayre_lock_release(struct ayre_port *port, struct ayre_lock *lock);

/**
 * Tries one step of an access epoch on the word at `offset`, which is 0 at first. `result` has the
 * state of the word, and whether the step was possible; it may be NULL.
 */
int ayre_epoch_step(struct ayre_port *port,
                    const struct ayre_remote_region *word,
                    uint64_t offset,
                    int step,
                    struct ayre_fetched *result);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* AYRE_H */
