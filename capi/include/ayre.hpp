/*
 * Ayre for C++17 and later, over ayre.h: handles that close themselves, containers as buffers, and
 * lambdas as handlers. All of it is in this header. Programs link the library for C.
 *
 * Functions have the names, units, blocking and thread rules of those in ayre.h, and its constants
 * and structures. Where there is no method, as for depots, streams and endpoints, call ayre.h:
 * `raw()` has the handle.
 *
 * Results. A function that can fail returns a `result`. Its `value()` is the value, or throws an
 * `ayre::error`. Where exceptions are off (-fno-exceptions), `value()` of a failure writes it to
 * the standard error stream and aborts: ask `ok()` first. Busy is a result like any other one.
 *
 * Handles. They are moved, and not copied. Their destructors close them, in any order.
 *
 * Buffers. A call takes an object, an array or a container whose elements can be copied as bytes
 * and are no pointers. A literal text has its zero byte with it.
 *
 * Handlers. A handler is anything that can be called with an `ayre::call &`. The port keeps it until
 * it is closed, so objects that it uses live longer than the port. A handler that throws, or that
 * returns a number other than 0, has failed, and its caller is told.
 */
#ifndef AYRE_HPP
#define AYRE_HPP

#include <ayre.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#if __cplusplus >= 202002L
#include <span>
#endif

namespace ayre {

/// The failure of a call, as text with what it was about.
class error : public std::runtime_error {
  public:
    /// The last failure of this thread, whose code this is.
    explicit error(int code)
        : std::runtime_error(ayre_detail()), code_(code), peer_(ayre_error_peer()) {}

    /// A code of ayre.h.
    int code() const noexcept { return code_; }
    /// The peer that it is about, or -1.
    int peer() const noexcept { return peer_; }

  private:
    int code_;
    int peer_;
};

/// The code of a failure.
struct failure {
    int code;
};

namespace detail {

[[noreturn]] inline void fail(int code) {
#ifdef __cpp_exceptions
    throw error(code);
#else
    std::fprintf(stderr, "ayre: %s (%d)\n", ayre_detail(), code);
    std::abort();
#endif
}

} // namespace detail

/// The outcome of a call: a value, or a failure.
template <class T> class [[nodiscard]] result {
  public:
    result(T value) : value_(std::move(value)) {}
    result(failure why) noexcept : code_(why.code) {}

    bool ok() const noexcept { return code_ == AYRE_OK; }
    /// There is no room right now, and the call had no effect. Make progress, and try again.
    bool is_busy() const noexcept { return code_ < 0 && code_ >= AYRE_BUSY_LAST; }
    /// `AYRE_OK`, or the code of the failure.
    int code() const noexcept { return code_; }
    /// The failure. Its text is that of the thread's last one, so ask before the next call.
    ayre::error error() const { return ayre::error(code_); }
    T value() && { return std::move(value()); }
    T &value() & {
        if (!ok()) {
            detail::fail(code_);
        }
        return *value_;
    }

  private:
    std::optional<T> value_;
    int code_ = AYRE_OK;
};

/// The outcome of a call without a value.
struct nothing {};
using status = result<nothing>;
/// The ticket of an operation.
using posted = result<int64_t>;

/// Elements behind each other, in memory of others. A `std::span` can be made of it.
template <class T> class span {
  public:
    constexpr span() noexcept = default;
    constexpr span(T *first, size_t count) noexcept : data_(first), size_(count) {}
    /// The elements of an array or a container.
    template <class C, class E = std::remove_pointer_t<decltype(std::data(std::declval<C &>()))>,
              class = std::enable_if_t<std::is_convertible_v<E (*)[], T (*)[]>>>
    constexpr span(C &of) noexcept : data_(std::data(of)), size_(std::size(of)) {}
    /// Elements in braces. They last for one call.
    template <class U = T, class = std::enable_if_t<std::is_const_v<U>>>
    constexpr span(std::initializer_list<std::remove_const_t<U>> of) noexcept
        : span(std::data(of), of.size()) {}

    constexpr T *data() const noexcept { return data_; }
    constexpr size_t size() const noexcept { return size_; }
    constexpr T *begin() const noexcept { return data_; }
    constexpr T *end() const noexcept { return data_ + size_; }
    constexpr T &operator[](size_t at) const { return data_[at]; }

  private:
    T *data_ = nullptr;
    size_t size_ = 0;
};

using arguments = span<const uint64_t>;
using options = ayre_options;
using std::chrono::microseconds;
/// The time of a call that waits for ever.
inline constexpr microseconds for_ever{-1};

namespace detail {

template <class T, class = void> inline constexpr bool is_container = false;
template <class T>
inline constexpr bool is_container<
    T, std::void_t<decltype(std::data(std::declval<T &>()), std::size(std::declval<T &>()))>> =
    true;

/// The elements of a container, or an object as its own only element.
template <class T> auto elements(T &&of) noexcept {
    using plain = std::remove_reference_t<T>;
    if constexpr (is_container<plain>) {
        return span<std::remove_pointer_t<decltype(std::data(of))>>(std::data(of), std::size(of));
    } else {
        static_assert(std::is_lvalue_reference_v<T>, "the object is gone after the call");
        return span<plain>(&of, 1);
    }
}

/// The bytes of elements: `Void` is `void` or `const void`.
template <class Void> struct bytes {
    bytes(Void *first, size_t count) noexcept : data(first), size(count) {}
    template <class E> bytes(span<E> of) noexcept : data(of.data()), size(of.size() * sizeof(E)) {
        static_assert(std::is_trivially_copyable_v<E> && !std::is_pointer_v<E>,
                      "elements of this type cannot be copied as bytes to another process");
    }

    Void *data;
    size_t size;
};

/// The results of calls.
struct results {
    static status done(int64_t code) noexcept { return filled(code, nothing{}); }
    template <class T> static result<T> number(int64_t code) noexcept {
        return filled(code, static_cast<T>(code));
    }
    static posted ticket(int64_t code) noexcept { return filled(code, code); }
    /// A structure that the call has filled.
    template <class T> static result<T> filled(int64_t code, T with) noexcept {
        return code < 0 ? result<T>(failure{static_cast<int>(code)}) : result<T>(with);
    }
    /// The next one of what comes: the code is 0 if there is none.
    template <class T> static result<std::optional<T>> next(int code, const T &with) noexcept {
        return filled(code, code == 0 ? std::optional<T>() : std::optional<T>(with));
    }
    /// An object for the handle that a call gives out by its last argument.
    template <class H, class Call, class... With> static result<H> made(Call call, With... with) {
        typename H::c_type *raw = nullptr;
        int code = call(with..., &raw);
        return code < 0 ? result<H>(failure{code}) : result<H>(H(raw));
    }
    /// An object that keeps the port, which is the first argument.
    template <class H, class Call, class... With>
    static result<H> made_at(Call call, ayre_port *port, With... with) {
        typename H::c_type *raw = nullptr;
        int code = call(port, with..., &raw);
        return code < 0 ? result<H>(failure{code}) : result<H>(H(raw, port));
    }
};

/// A handle that is closed by `Close`.
template <class T, int (*Close)(T *)> class handle : protected results {
  public:
    using c_type = T;
    explicit handle(T *from) noexcept : raw_(from) {}
    /// The handle, for functions of ayre.h. It stays this object's.
    T *raw() const noexcept { return raw_.get(); }
    /// The handle, which the caller is to close.
    T *release() noexcept { return raw_.release(); }

  private:
    struct closer {
        void operator()(T *raw) const noexcept { Close(raw); }
    };
    std::unique_ptr<T, closer> raw_;
};

} // namespace detail

/// Bytes that a call reads.
struct const_buffer : detail::bytes<const void> {
    const_buffer(const void *first, size_t count) noexcept : bytes(first, count) {}
    template <class T> const_buffer(const T &from) noexcept : bytes(detail::elements(from)) {}
};

/// Bytes that a call writes.
struct mutable_buffer : detail::bytes<void> {
    mutable_buffer(void *first, size_t count) noexcept : bytes(first, count) {}
    template <class T, class = std::enable_if_t<!std::is_base_of_v<bytes, std::decay_t<T>>>>
    mutable_buffer(T &&into) noexcept : bytes(detail::elements(std::forward<T>(into))) {}
};

/// The usual options of a port.
inline ayre_config config() noexcept {
    ayre_config usual{};
    ayre_config_init(&usual, sizeof usual);
    return usual;
}

/// An atomic on a word of type `T`, of 4 or 8 bytes: `atomic<uint64_t>(AYRE_ADD, 1)`.
template <class T> constexpr ayre_atomic_op atomic(int op, T operand, T compare = T()) noexcept {
    static_assert(std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "4 or 8 bytes");
    using word = std::make_unsigned_t<T>;
    return {sizeof(T), static_cast<uint8_t>(op), static_cast<word>(operand),
            static_cast<word>(compare)};
}

/// Memory of this process that peers can access once it is shared.
class region : public detail::handle<ayre_region, &ayre_region_close> {
  public:
    using handle::handle;

    /// The memory as elements of a type. `ayre_region_address` says how to use it beside peers.
    template <class T> span<T> as() const noexcept {
        static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 8, "not for regions");
        int64_t len = ayre_region_len(raw());
        return {static_cast<T *>(ayre_region_address(raw())),
                len < 0 ? 0 : static_cast<size_t>(len) / sizeof(T)};
    }
    result<ayre_fetched> atomic(size_t offset, const ayre_atomic_op &what) const {
        ayre_fetched made{};
        int code = ayre_region_atomic(raw(), offset, &what, &made);
        return filled(code, made);
    }
    ayre_part part(size_t offset, size_t len) const noexcept { return {raw(), offset, len}; }
};

/// Memory of a peer, as far as the peer has shared it.
class remote_region : public detail::handle<ayre_remote_region, &ayre_remote_region_close> {
  public:
    using handle::handle;

    size_t size() const noexcept { return static_cast<size_t>(ayre_remote_region_len(raw())); }
    result<remote_region> narrow(ayre_range range, uint32_t rights) const {
        return made<remote_region>(ayre_narrow, raw(), range, rights);
    }
};

/// A part of a region that was shared with a peer, for `port::revoke`.
using grant = detail::handle<ayre_grant, &ayre_grant_close>;
/// The consumer's end of a queue.
using queue = detail::handle<ayre_queue, &ayre_queue_close>;
/// A producer's end of a queue.
using remote_queue = detail::handle<ayre_remote_queue, &ayre_remote_queue_close>;

/// A call that a handler runs for. It is valid until the handler returns.
class call : detail::results {
  public:
    call(ayre_token *token, ayre::arguments with, span<const std::byte> payload) noexcept
        : token_(token), arguments_(with), payload_(payload) {}

    ayre_token *raw() const noexcept { return token_; }
    ayre_peer source() const noexcept { return static_cast<ayre_peer>(ayre_token_source(token_)); }
    ayre::arguments arguments() const noexcept { return arguments_; }
    span<const std::byte> payload() const noexcept { return payload_; }
    status reply(uint32_t handler, ayre::arguments with, const_buffer bytes = {nullptr, 0}) {
        return done(
            ayre_token_reply(token_, handler, with.data(), with.size(), bytes.data, bytes.size));
    }
    status send(ayre_peer to, uint32_t handler, ayre::arguments with,
                const_buffer bytes = {nullptr, 0}) {
        return done(
            ayre_token_send(token_, to, handler, with.data(), with.size(), bytes.data, bytes.size));
    }

  private:
    ayre_token *token_;
    ayre::arguments arguments_;
    span<const std::byte> payload_;
};

namespace detail {

/// Runs a handler for C, which sees no exception.
template <class F>
int on_call(void *user, ayre_token *token, const uint64_t *with, size_t count, const void *payload,
            size_t len) noexcept {
    F &handler = *static_cast<F *>(user);
    call made(token, {with, count}, {static_cast<const std::byte *>(payload), len});
#ifdef __cpp_exceptions
    try {
#endif
        if constexpr (std::is_void_v<std::invoke_result_t<F &, call &>>) {
            handler(made);
            return 0;
        } else {
            return handler(made);
        }
#ifdef __cpp_exceptions
    } catch (...) {
        return 1;
    }
#endif
}

template <class E> constexpr uint32_t type_of() noexcept {
    using T = std::remove_cv_t<E>;
    static_assert(std::is_arithmetic_v<T> || std::is_same_v<T, std::byte>, "no number");
    static_assert(!std::is_same_v<T, bool> && !std::is_same_v<T, long double>, "no such number");
    if (std::is_floating_point_v<T>) {
        return sizeof(T) == 4 ? AYRE_F32 : AYRE_F64;
    }
    constexpr uint32_t of_size[] = {0, AYRE_I8, AYRE_I16, 0, AYRE_I32, 0, 0, 0, AYRE_I64};
    return of_size[sizeof(T)] + (std::is_signed_v<T> ? 0 : 1);
}

/// Numbers of a collective.
template <class Void> struct values {
    values() = default;
    template <class T, class = std::enable_if_t<!std::is_base_of_v<values, std::decay_t<T>>>>
    values(T &&of) noexcept : values(elements(std::forward<T>(of)), 0) {}
    template <class E>
    values(span<E> of, int) noexcept : first(of.data()), count(of.size()), type(type_of<E>()) {}

    Void *first = nullptr;
    size_t count = 0;
    uint32_t type = 0;
};

} // namespace detail

/// A collective and its numbers, for `group::run` and `group::start`. Numbers are in containers or
/// variables, and those in `into` are changed. `{}` stands for none, where only the root has some.
/// `at` is the root, and `by` is `AYRE_COMBINE_SUM` or another one.
struct collective : ayre_collective {
    using from = detail::values<const void>;
    using into = detail::values<void>;
    collective(uint32_t which, uint32_t at, from read, into changed, uint32_t by = 0) noexcept
        : ayre_collective{which,         changed.type,  by,      at,      read.first, read.count,
                          changed.first, changed.count, nullptr, nullptr, nullptr} {
        if (read.type != 0 && read.type != changed.type) {
            number = changed.type == 0 ? read.type : 0; // The library refuses 0.
        }
    }

    static collective barrier() { return {AYRE_BARRIER, 0, {}, {}}; }
    static collective broadcast(uint32_t at, into all) { return {AYRE_BROADCAST, at, {}, all}; }
    static collective reduce(uint32_t at, into all, uint32_t by) {
        return {AYRE_REDUCE, at, {}, all, by};
    }
    static collective allreduce(into all, uint32_t by) { return {AYRE_ALLREDUCE, 0, {}, all, by}; }
    static collective scan(into all, uint32_t by) { return {AYRE_SCAN, 0, {}, all, by}; }
    static collective reduce_scatter(into all, uint32_t by) {
        return {AYRE_REDUCE_SCATTER, 0, {}, all, by};
    }
    static collective gather(uint32_t at, from own, into all) {
        return {AYRE_GATHER, at, own, all};
    }
    static collective scatter(uint32_t at, from all, into own) {
        return {AYRE_SCATTER, at, all, own};
    }
    static collective allgather(from own, into all) { return {AYRE_ALLGATHER, 0, own, all}; }
    static collective alltoall(from out, into come) { return {AYRE_ALLTOALL, 0, out, come}; }
};

/// A collective that was started. Its values have to stay until `wait` has returned. The
/// destructor waits, too.
class request : detail::results {
  public:
    using c_type = ayre_request;
    request(ayre_request *from, ayre_port *port) noexcept : raw_(from, waiter{port}) {}

    ayre_request *raw() const noexcept { return raw_.get(); }
    result<bool> test() { return number<bool>(ayre_request_test(port(), raw())); }
    status wait() {
        int code = ayre_request_wait(port(), raw());
        if (code != AYRE_HANDLE_IN_USE && code != AYRE_BAD_HANDLE) {
            raw_.release();
        }
        return done(code);
    }

  private:
    struct waiter {
        ayre_port *port;
        void operator()(ayre_request *raw) const noexcept {
            if (ayre_request_wait(port, raw) < 0) {
                ayre_request_close(raw);
            }
        }
    };
    ayre_port *port() const noexcept { return raw_.get_deleter().port; }
    std::unique_ptr<ayre_request, waiter> raw_;
};

/// A group of processes that do collectives together, at one of its members.
class group : public detail::handle<ayre_group, &ayre_group_close> {
  public:
    group(ayre_group *from, ayre_port *port) noexcept : handle(from), port_(port) {}

    /// Does a collective: `group.run(ayre::collective::allreduce(sums, AYRE_COMBINE_SUM))`. Blocks.
    status run(const collective &what) { return done(ayre_collective_do(port_, raw(), &what)); }
    /// Starts a collective. Does not block.
    result<request> start(const collective &what) {
        return made_at<request>(ayre_collective_start, port_, raw(), &what);
    }

  private:
    ayre_port *port_;
};

/// One process's interface to its peers. One thread at a time uses it, and none of its handlers.
class port : public detail::handle<ayre_port, &ayre_port_close> {
  public:
    static result<port> open(const ayre_config &with = config()) {
        return made<port>(ayre_port_open, &with);
    }
    static result<port> join(const ayre_config &with = config()) {
        return made<port>(ayre_port_join, &with);
    }
    explicit port(ayre_port *from) noexcept
        : handle(from), rank_(ayre_port_rank(from)), size_(ayre_port_size(from)) {}
    port(port &&) = default;
    port &operator=(port &&) = default;
    /// Closes the port before its handlers go.
    ~port() { ayre_port_close(release()); }

    int rank() const noexcept { return rank_; }
    int size() const noexcept { return size_; }
    /// Leaves all peers once what was posted has arrived, and closes the port. Blocks.
    status leave() {
        int code = ayre_port_leave(raw());
        if (code != AYRE_HANDLE_IN_USE) {
            release();
        }
        return done(code);
    }

    status listen(const std::string &path) { return done(ayre_port_listen(raw(), path.c_str())); }
    result<ayre_peer> connect(const std::string &path) {
        return number<ayre_peer>(ayre_port_connect(raw(), path.c_str()));
    }
    result<ayre_peer> accept() { return number<ayre_peer>(ayre_port_accept(raw())); }
    result<ayre_peer> connect_loopback() {
        return number<ayre_peer>(ayre_port_connect_loopback(raw()));
    }
    status progress() { return done(ayre_progress(raw())); }
    status barrier() { return done(ayre_barrier(raw())); }
    status flush(ayre_peer peer) { return done(ayre_flush(raw(), peer)); }
    /// The descriptor for event loops, with `rest` and `wake`.
    int fd() const noexcept { return ayre_port_fd(raw()); }
    result<bool> rest() { return number<bool>(ayre_port_rest(raw())); }
    status wake() { return done(ayre_port_wake(raw())); }

    result<region> alloc(size_t len, uint32_t flags = 0) {
        return made<region>(ayre_alloc, raw(), len, flags);
    }
    result<grant> share(ayre_peer peer, const region &what, ayre_range range, uint32_t rights,
                        uint64_t name) {
        return made<grant>(ayre_share, raw(), peer, what.raw(), range, rights, name);
    }
    /// Takes a grant back. Returns whether the contents of the region were moved. Blocks.
    result<bool> revoke(grant what) { return number<bool>(ayre_revoke(raw(), what.release())); }
    result<remote_region> accept_region(ayre_peer peer, uint64_t name) {
        return made<remote_region>(ayre_accept_region, raw(), peer, name);
    }

    /// Puts bytes, and returns the ticket, as the next ones do.
    posted put(const remote_region &to, uint64_t offset, const_buffer from,
               const options &with = {}) {
        return ticket(ayre_put(raw(), to.raw(), offset, from.data, from.size, &with));
    }
    posted put_part(const remote_region &to, uint64_t offset, const ayre_part &from,
                    const options &with = {}) {
        return ticket(ayre_put_part(raw(), to.raw(), offset, &from, &with));
    }
    posted put_word(const remote_region &to, uint64_t offset, uint64_t value,
                    const options &with = {}) {
        return ticket(ayre_put_word(raw(), to.raw(), offset, value, &with));
    }
    /// Gets bytes. Blocks.
    posted get(const remote_region &of, uint64_t offset, mutable_buffer into,
               const options &with = {}) {
        return ticket(ayre_get(raw(), of.raw(), offset, into.data, into.size, &with));
    }
    posted get_part(const remote_region &of, uint64_t offset, const ayre_part &into,
                    const options &with = {}) {
        return ticket(ayre_get_part(raw(), of.raw(), offset, &into, &with));
    }
    posted update(const remote_region &at, uint64_t offset, const ayre_atomic_op &what,
                  const options &with = {}) {
        return ticket(ayre_update(raw(), at.raw(), offset, &what, &with));
    }
    /// Performs an atomic, and brings its result. Blocks, as `fetch_add` does.
    result<ayre_fetched> fetch(const remote_region &at, uint64_t offset, const ayre_atomic_op &what,
                               const options &with = {}) {
        ayre_fetched made{};
        int code = ayre_fetch(raw(), at.raw(), offset, &what, &with, &made);
        return filled(code, made);
    }
    result<uint64_t> fetch_add(const remote_region &at, uint64_t offset, uint64_t addend) {
        uint64_t before = 0;
        int code = ayre_fetch_add(raw(), at.raw(), offset, addend, &before);
        return filled(code, before);
    }
    /// Posts several operations, all or none.
    posted post(ayre_peer peer, span<const ayre_operation> operations) {
        return ticket(ayre_post(raw(), peer, operations.data(), operations.size()));
    }
    posted notify(ayre_peer peer, const options &with) {
        return ticket(ayre_notify(raw(), peer, &with));
    }
    result<std::optional<ayre_notification>> poll_notification() {
        ayre_notification note{};
        int code = ayre_poll_notification(raw(), &note);
        return next(code, note);
    }
    result<ayre_notification> wait_notification(microseconds timeout = for_ever) {
        ayre_notification note{};
        int code = ayre_wait_notification(raw(), &note, timeout.count());
        return filled(code, note);
    }

    status send(ayre_peer to, uint32_t tag, const_buffer data) {
        return done(ayre_send(raw(), to, tag, data.data, data.size));
    }
    status send_wait(ayre_peer to, uint32_t tag, const_buffer data) {
        return done(ayre_send_wait(raw(), to, tag, data.data, data.size));
    }
    result<std::optional<ayre_message>> try_recv(mutable_buffer into) {
        ayre_message message{};
        int code = ayre_try_recv(raw(), into.data, into.size, &message);
        return next(code, message);
    }
    result<ayre_message> recv(mutable_buffer into, microseconds timeout = for_ever) {
        ayre_message message{};
        int code = ayre_recv(raw(), into.data, into.size, &message, timeout.count());
        return filled(code, message);
    }

    result<queue> create_queue(size_t capacity) {
        return made<queue>(ayre_create_queue, raw(), capacity);
    }
    status share_queue(ayre_peer peer, const queue &what, uint64_t name) {
        return done(ayre_share_queue(raw(), peer, what.raw(), name));
    }
    result<remote_queue> accept_queue(ayre_peer peer, uint64_t name) {
        return made<remote_queue>(ayre_accept_queue, raw(), peer, name);
    }
    status enqueue(const remote_queue &to, const_buffer record) {
        return done(ayre_enqueue(raw(), to.raw(), record.data, record.size));
    }
    result<std::optional<ayre_record>> dequeue(const queue &from, mutable_buffer into) {
        ayre_record record{};
        int code = ayre_dequeue(raw(), from.raw(), into.data, into.size, &record);
        return next(code, record);
    }
    result<ayre_record> dequeue_wait(const queue &from, mutable_buffer into,
                                     microseconds timeout = for_ever) {
        ayre_record record{};
        int code =
            ayre_dequeue_wait(raw(), from.raw(), into.data, into.size, &record, timeout.count());
        return filled(code, record);
    }

    status start_messenger(const ayre_messenger_options &limits = {}) {
        return done(ayre_messenger_start(raw(), &limits));
    }
    status stop_messenger() { return done(ayre_messenger_stop(raw())); }
    /// Registers a handler, which takes a `call &` and this many arguments. Returns its id.
    template <class F>
    result<uint32_t> register_handler(const std::string &name, size_t count, F run) {
        auto kept = std::make_shared<F>(std::move(run));
        kept_.push_back(kept);
        return number<uint32_t>(
            ayre_register_handler(raw(), name.c_str(), count, &detail::on_call<F>, kept.get()));
    }
    /// Calls a handler of a peer. Blocks for room, and runs handlers meanwhile.
    status call(ayre_peer to, uint32_t handler, ayre::arguments with,
                const_buffer payload = {nullptr, 0}) {
        return done(
            ayre_call(raw(), to, handler, with.data(), with.size(), payload.data, payload.size));
    }
    status try_call(ayre_peer to, uint32_t handler, ayre::arguments with,
                    const_buffer payload = {nullptr, 0}) {
        return done(ayre_try_call(raw(), to, handler, with.data(), with.size(), payload.data,
                                  payload.size));
    }
    result<int> poll() { return number<int>(ayre_poll(raw())); }
    result<int> wait(microseconds timeout = for_ever) {
        return number<int>(ayre_wait(raw(), timeout.count()));
    }
    status sync() { return done(ayre_sync(raw())); }
    result<group> group_of_all(const std::string &name) {
        return made_at<group>(ayre_group_of_all, raw(), name.c_str());
    }
    result<group> group_of(const std::string &name, span<const ayre_peer> members) {
        return made_at<group>(ayre_group_of, raw(), name.c_str(), members.data(), members.size());
    }

  private:
    std::vector<std::shared_ptr<void>> kept_;
    int rank_;
    int size_;
};

/// A lock in a word of eight bytes of a remote region. The destructor releases it.
class lock : detail::results {
  public:
    /// All processes that use the lock name the same number of them.
    lock(port &by, const remote_region &word, uint64_t offset, uint32_t processes)
        : port_(by.raw()), lock_{word.raw(), offset, processes, AYRE_FREE} {}
    lock(const lock &) = delete;
    lock &operator=(const lock &) = delete;
    ~lock() {
        // The first attempt may tell of an earlier operation that has failed.
        for (int tries = 0; tries < 2 && lock_.held != AYRE_FREE; tries++) {
            ayre_lock_release(port_, &lock_);
        }
    }

    /// Takes the lock, `AYRE_SHARED` or `AYRE_EXCLUSIVE`. Blocks.
    status take(int how = AYRE_EXCLUSIVE) { return done(ayre_lock_take(port_, &lock_, how)); }
    result<bool> try_take(int how = AYRE_EXCLUSIVE) {
        return number<bool>(ayre_lock_try(port_, &lock_, how));
    }
    status release() { return done(ayre_lock_release(port_, &lock_)); }

  private:
    ayre_port *port_;
    ayre_lock lock_;
};

} // namespace ayre

#if __cplusplus >= 202002L
template <class T> inline constexpr bool std::ranges::enable_borrowed_range<ayre::span<T>> = true;
#endif

#endif
