#!/bin/sh
# PyTorch's gloo: collectives of four processes, each of which has connections to all others.
# shellcheck source=sockets/programs/common.sh
. "$(dirname "$0")/common.sh"
python=/usr/bin/python3
needs "$python"
"$python" -c 'import torch.distributed as d; assert d.is_gloo_available()' 2>/dev/null ||
    { say "missing: torch with gloo" && told=yes && exit 77; }

port=$(free_port)
ranks=4

programs() {
    cat >"$work/rank.py" <<'PY'
import os, sys, time, torch, torch.distributed as dist

rank, ranks, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
torch.set_num_threads(1)
dist.init_process_group("gloo", rank=rank, world_size=ranks)
everyone = ranks * (ranks - 1) // 2

def same(got, wanted, words):
    assert torch.equal(got, wanted), f"{words}: {got} instead of {wanted}"

def check():
    for size in [1, 1000, 300000, 2000000]:
        base = torch.arange(size, dtype=torch.int64)
        numbers = base * (rank + 1)
        dist.all_reduce(numbers)
        same(numbers, base * (everyone + ranks), f"all_reduce of {size}")
        sent = torch.full_like(base, 7) if rank == 1 else torch.zeros_like(base)
        dist.broadcast(sent, 1)
        same(sent, torch.full_like(base, 7), f"broadcast of {size}")
        parts = [torch.zeros_like(base) for _ in range(ranks)]
        dist.all_gather(parts, base + rank)
        for other, part in enumerate(parts):
            same(part, base + other, f"all_gather of {size}")
        # Round a ring: each has the number of the one before.
        got = torch.zeros_like(base)
        sending = dist.isend(base - rank, (rank + 1) % ranks)
        dist.recv(got, (rank - 1) % ranks)
        sending.wait()
        same(got, base - (rank - 1) % ranks, f"send and recv of {size}")
    for turn in range(2000):
        number = torch.tensor([turn + rank])
        dist.all_reduce(number)
        assert number.item() == turn * ranks + everyone, f"turn {turn}"

def measure(name, size):
    numbers, turns = torch.zeros(size), 0
    going = torch.ones(1)
    end = time.monotonic() + seconds
    while going.item():
        for _ in range(10):
            dist.all_reduce(numbers)
        turns += 10
        going[0] = float(time.monotonic() < end)
        dist.broadcast(going, 0)
    if rank == 0:
        print(f"all_reduce/{name}", turns / seconds, "1/s")

if seconds:
    measure("64B", 16)
    measure("4MB", 1 << 20)
else:
    check()
dist.barrier()
PY
}

# ranks_run SECONDS: the first is the server of names; the odd ones are clients.
ranks_run() {
    programs
    chained=yes
    export MASTER_ADDR="$ADDRESS" MASTER_PORT="$port" OMP_NUM_THREADS=1
    # A host's name means the host itself, and no other reaches it there.
    [ -z "$SERVER_NETNS" ] || export GLOO_SOCKET_IFNAME=eth0
    all=
    for rank in $(seq 0 $((ranks - 1))); do
        by=$([ $((rank % 2)) -eq 0 ] && echo start || echo begin)
        "$by" "rank$rank" "$python" "$work/rank.py" "$rank" "$ranks" "$1"
        all="$all $pid"
    done
    deadline="$patience"
    for pid in $all; do
        finishes "$pid" "rank $pid"
    done
}

check() {
    ranks_run 0
    by_rings 100000000
}

figures() {
    [ "$OVER" = tcp ] || return 0
    ranks_run "$SECONDS_EACH"
    cat "$work/rank0.log"
}

main "$@"
