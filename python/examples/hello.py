"""Two processes greet each other: each puts its greeting into the memory of the other one."""

import ayre


def main() -> None:
    """Greet the other rank, and print its greeting."""
    with ayre.join() as port:
        peer = port.rank ^ 1
        region = port.alloc(4096)
        port.share(peer, region)
        remote = port.accept_region(peer)
        port.put(remote, 0, b"hello, neighbour", ayre.Classes.COMPLETER)
        port.wait_notification()
        print(f"rank {port.rank}: {region.read(0, 16).decode()}")


if __name__ == "__main__":
    main()
