/* The layer for C++ on a port with a loopback: each kind of call once, and failures as results. */
#include <array>
#include <ayre.hpp>
#include <cstdio>
#include <cstring>

static int failures = 0;

static void expect(bool holds, const char *text, int line) {
    if (!holds) {
        std::fprintf(stderr, "line %d: %s\n", line, text);
        failures++;
    }
}
#define EXPECT(holds) expect((holds), #holds, __LINE__)

static std::string detail_of(int code) { return ayre::error(code).what(); }

static void memory(ayre::port &port, ayre_peer own) {
    ayre::region region = port.alloc(4096).value();
    ayre::span<std::uint64_t> words = region.as<std::uint64_t>();
    EXPECT(words.size() == 512 && region.as<char>().size() == 4096);
    ayre::grant grant = port.share(own, region, {0, 4096}, AYRE_ALL_RIGHTS, 1).value();
    ayre::remote_region remote = port.accept_region(own, 1).value();
    EXPECT(remote.size() == 4096);

    std::vector<std::uint64_t> numbers = {1, 2, 3};
    port.put(remote, 8, numbers, {AYRE_COMPLETER, 7, 70}).value();
    ayre_notification note = port.wait_notification().value();
    EXPECT(note.tag == 7 && note.value == 70 && words[1] == 1 && words[3] == 3);
    EXPECT(!port.poll_notification().value().has_value());
    std::array<std::uint64_t, 3> back{};
    port.get(remote, 8, back).value();
    EXPECT(back[0] == 1 && back[2] == 3);
    double half = 0.5;
    double same = 0;
    port.put(remote, 0, half).value();
    port.get(remote, 0, same).value();
    EXPECT(same == 0.5);
    port.put_word(remote, 0, 40).value();
    EXPECT(port.fetch_add(remote, 0, 2).value() == 40 && words[0] == 42);
    auto swap = ayre::atomic<std::int32_t>(AYRE_COMPARE_SWAP, -5, 42);
    EXPECT(port.fetch(remote, 0, swap).value().success == 1);
    EXPECT(region.as<std::int32_t>()[0] == -5 && region.as<std::int32_t>()[1] == 0);
    port.put_part(remote, 64, region.part(8, 24)).value();
    port.update(remote, 64, ayre::atomic<std::uint64_t>(AYRE_ADD, 10)).value();
    port.flush(own).value();
    EXPECT(words[8] == 11 && words[10] == 3);
    port.get_part(remote, 8, region.part(800, 8)).value();
    port.flush(own).value();
    EXPECT(words[100] == 1);

    auto beyond = port.put(remote, 4090, numbers);
    EXPECT(!beyond.ok() && beyond.code() == AYRE_FAULT_BOUNDS && !beyond.is_busy());
    ayre::remote_region narrow = remote.narrow({0, 8}, AYRE_READ).value();
    EXPECT(port.put(narrow, 0, half).code() == AYRE_FAULT_RIGHTS);
    EXPECT(!port.revoke(std::move(grant)).value());
    EXPECT(grant.raw() == nullptr); // NOLINT(bugprone-use-after-move,clang-analyzer-*)
    EXPECT(port.get(remote, 8, back).code() == AYRE_FAULT_STALE_KEY);
    EXPECT(port.accept_region(99, 1).code() == AYRE_NO_PEER);
}

static void locks(ayre::port &port, ayre_peer own) {
    ayre::region region = port.alloc(4096).value();
    ayre::grant grant = port.share(own, region, {0, 4096}, AYRE_ALL_RIGHTS, 2).value();
    ayre::remote_region remote = port.accept_region(own, 2).value();
    ayre::lock other(port, remote, 0, 2);
    {
        ayre::lock lock(port, remote, 0, 2);
        lock.take().value();
        EXPECT(!other.try_take().value());
    }
    EXPECT(other.try_take(AYRE_SHARED).value());
    other.release().value();
}

static void messages(ayre::port &port, ayre_peer own) {
    char buffer[64];
    EXPECT(!port.try_recv(buffer).value().has_value());
    port.send(own, 5, std::string("short")).value();
    ayre_message message = port.recv(buffer, std::chrono::seconds(10)).value();
    EXPECT(message.tag == 5 && message.len == 5 && std::memcmp(buffer, "short", 5) == 0);
    int sent = 0;
    ayre::status full = port.send(own, 0, sent);
    for (; full.ok(); full = port.send(own, 0, sent)) {
        sent++;
    }
    EXPECT(full.is_busy() && full.code() == AYRE_BUSY_MESSAGES);
    for (int at = 0; at < sent; at++) {
        port.recv(buffer).value();
    }

    ayre::queue queue = port.create_queue(4096).value();
    port.share_queue(own, queue, 3).value();
    ayre::remote_queue producer = port.accept_queue(own, 3).value();
    EXPECT(!port.dequeue(queue, buffer).value().has_value());
    port.enqueue(producer, sent).value();
    int taken = 0;
    EXPECT(port.dequeue_wait(queue, taken).value().len == sizeof taken && taken == sent);
}

static void calls(ayre::port &port, ayre_peer own) {
    std::string came;
    std::uint64_t sum = 0;
    auto answer =
        port.register_handler("answer", 1, [&](ayre::call &call) { sum += call.arguments()[0]; })
            .value();
    auto ask =
        port.register_handler(
                "ask", 2,
                [&, answer](ayre::call &call) {
                    came.assign(reinterpret_cast<const char *>(call.payload().data()),
                                call.payload().size());
                    return call.reply(answer, {call.arguments()[0] + call.arguments()[1]}).code();
                })
            .value();
    port.call(own, ask, {40, 2}, std::string("payload")).value();
    while (sum == 0) {
        port.wait(std::chrono::seconds(60)).value();
    }
    EXPECT(sum == 42 && came == "payload");
    EXPECT(!port.register_handler("ask", 2, [](ayre::call &) {}).ok());
    EXPECT(port.try_call(own, ask, {1, 2}, std::vector<char>(2000)).code() == AYRE_FAULT_TOO_LONG);
    EXPECT(port.send(own, 0, sum).code() == AYRE_INVALID);
}

/* A handler that fails: by a number, and by an exception where there are any. */
static void failing_handlers(ayre::port &port, ayre_peer own) {
    auto fail = port.register_handler("fail", 1,
                                      [&port](ayre::call &call) -> int {
                                          EXPECT(port.poll().code() == AYRE_HANDLE_IN_USE);
#ifdef __cpp_exceptions
                                          if (call.arguments()[0] == 1) {
                                              throw std::runtime_error("thrown out of a handler");
                                          }
#endif
                                          return call.source() == 77 ? 0 : 1;
                                      })
                    .value();
    int reported = 0;
    port.call(own, fail, {0}).value();
    port.call(own, fail, {1}).value();
    for (int round = 0; round < 1000 && reported < 4; round++) {
        std::array<ayre_dropped_call, 8> dropped{};
        port.poll().value();
        int count = ayre_failures(port.raw(), dropped.data(), dropped.size());
        for (int at = 0; at < count; at++) {
            EXPECT(dropped[static_cast<std::size_t>(at)].cause == AYRE_DROPPED_FAILED);
        }
        reported += count;
    }
    EXPECT(reported == 4); // each one here, and at its sender
}

static void collectives(ayre::port &port) {
    using ayre::collective;
    ayre::group all = port.group_of_all("all").value();
    std::vector<float> halves = {0.5F, 1.5F};
    std::int16_t number = 3;
    std::array<std::int16_t, 2> numbers{};
    all.run(collective::barrier()).value();
    all.run(collective::allreduce(halves, AYRE_COMBINE_SUM)).value();
    all.run(collective::broadcast(0, number)).value();
    EXPECT(halves[1] == 1.5F && number == 3);
    all.run(collective::allgather(ayre::span<std::int16_t>(&number, 1),
                                  ayre::span<std::int16_t>(numbers.data(), 1)))
        .value();
    EXPECT(numbers[0] == 3 && numbers[1] == 0);
    ayre::request request = all.start(collective::scan(halves, AYRE_COMBINE_MAX)).value();
    request.wait().value();
    EXPECT(request.raw() == nullptr);
    { auto dropped = all.start(collective::reduce(0, halves, AYRE_COMBINE_PROD)).value(); }
    all.run(collective::reduce_scatter(number, AYRE_COMBINE_BXOR)).value();
    /* One value of each member does not fit into two, and both sides have one type. */
    EXPECT(all.run(collective::gather(0, number, numbers)).code() == AYRE_INVALID);
    EXPECT(all.run(collective::gather(0, number, halves)).code() == AYRE_INVALID);
    EXPECT(all.run(collective::scatter(0, number, {})).code() == AYRE_INVALID);
    EXPECT(all.run(collective::allreduce(number, 99)).code() == AYRE_INVALID);
    all.run(collective::alltoall(number, numbers[0])).value();
    EXPECT(all.start(collective::allreduce(number, 99)).code() == AYRE_INVALID);
}

static void errors(ayre::port &port) {
    auto absent = port.connect("/nowhere/at/all");
    EXPECT(!absent.ok() && detail_of(absent.code()).find("No such file") != std::string::npos);
    EXPECT(absent.error().code() == absent.code() && absent.error().peer() == -1);
#ifdef __cpp_exceptions
    try {
        port.connect("/nowhere/at/all").value();
        EXPECT(false);
    } catch (const ayre::error &error) {
        EXPECT(error.code() == absent.code() && std::strlen(error.what()) > 0);
    }
#endif
}

/* Handles go in any order, and a port that was moved from closes nothing. */
static void ends() {
    ayre::port port = ayre::port::open().value();
    ayre_peer own = port.connect_loopback().value();
    ayre::region region = port.alloc(64).value();
    port.start_messenger().value();
    ayre::group all = port.group_of_all("all").value();
    ayre::port moved = std::move(port);
    // NOLINTNEXTLINE(bugprone-use-after-move,clang-analyzer-*)
    EXPECT(port.raw() == nullptr && port.progress().code() == AYRE_BAD_HANDLE);
    moved.progress().value();
    port = std::move(moved);
    port.flush(own).value();
    double value = 1;
    auto request = all.start(ayre::collective::allreduce(value, AYRE_COMBINE_SUM)).value();
    port = ayre::port::open().value();
    EXPECT(request.wait().code() == AYRE_BAD_HANDLE);
}

int main() {
    ayre_config config = ayre::config();
    config.number = 3;
    ayre::port port = ayre::port::open(config).value();
    EXPECT(port.rank() == 3 && port.size() == 1);
    ayre_peer own = port.connect_loopback().value();
    memory(port, own);
    locks(port, own);
    messages(port, own);
    errors(port);
    EXPECT(port.fd() >= 0);
    port.start_messenger().value();
    calls(port, own);
    failing_handlers(port, own);
    collectives(port);
    ends();
    if (failures == 0) {
        std::puts("all as expected");
    }
    return failures == 0 ? 0 : 1;
}
