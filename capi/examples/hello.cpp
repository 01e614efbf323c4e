/* Two ranks write a greeting into each other's memory.
 *
 *   make install PREFIX=/usr/local && ldconfig
 *   c++ -std=c++17 -o hello capi/examples/hello.cpp $(pkg-config --cflags --libs ayre)
 *   ayre run -n 2 -- ./hello
 */
#include <ayre.hpp>
#include <cstdio>

int main() {
    ayre::port port = ayre::port::join().value(); /* one of those that `ayre run` started */
    auto peer = static_cast<ayre_peer>(port.rank() ^ 1);

    ayre::region region = port.alloc(4096).value(); /* memory that others may reach */
    ayre::grant grant = port.share(peer, region, {0, 4096}, AYRE_ALL_RIGHTS, 0).value();
    ayre::remote_region remote = port.accept_region(peer, 0).value(); /* and theirs */

    port.put(remote, 0, "hello, neighbour", {AYRE_COMPLETER, 0, 0}).value();
    port.wait_notification().value(); /* their put has landed in our memory */
    std::printf("rank %d: %s\n", port.rank(), region.as<char>().data());
    port.leave().value();
}
