# shellcheck shell=sh
# Read by the scripts of this folder. Each says what it `needs`, and has two functions: `check`
# fails unless a program's results are right, `figures` prints a line `NAME VALUE UNIT` for each
# number; some have `kills`, too: programs are killed, and others must find that out and go on. In
# the end a script calls `main "$@"`. The environment says how:
#
#   LIBRARY   what programs load beforehand, or `none` (the default)
#   SIDES     who loads it: both (the default), server, client
#   RINGS     `no` where the library has no rings to report, so that nobody asks for them
#   OVER      `unix` for AF_UNIX, from programs that can
#   ADDRESS   where servers listen, 127.0.0.1 unless said
#   SERVER_NETNS, CLIENT_NETNS    the network namespaces that both sides run in
#   SECONDS_EACH    how long a program measures where it can be told, 2 unless said
#   SUMMARY   a file that gets the summary of figures
#   KEEP      keeps the folder, and says which
set -eu

: "${LIBRARY:=none}" "${SIDES:=both}" "${RINGS:=yes}" "${OVER:=tcp}" "${ADDRESS:=127.0.0.1}"
: "${SERVER_NETNS:=}" "${CLIENT_NETNS:=}" "${SECONDS_EACH:=2}" "${KEEP:=}" "${SUMMARY:=}"
# Seconds for a wait, and for a client that gives no answer.
deadline=20
patience=60

name=$(basename "$0" .sh)
work=$(mktemp -d)
# Some servers give up their rights, and must still find their files and report.
chmod 755 "$work"
report="$work/report"
: >"$report"
chmod 666 "$report"
# Processes to stop, the newest first.
running=
# Words that programs are run by: as another user, see `become`.
as=
# Whether the failure has been told.
told=
# Set where a server is another's client: it may have rings with that one, whoever else has none.
chained=
# Set where a server forks for each connection, and so has no links with other hosts.
forks=

case "$SIDES" in
both) server_library="$LIBRARY" client_library="$LIBRARY" ;;
server) server_library="$LIBRARY" client_library=none ;;
client) server_library=none client_library="$LIBRARY" ;;
*) echo "$name: SIDES is both, server or client" >&2 && exit 2 ;;
esac

say() { echo "$name: $*"; }

# fail WORDS: with what servers said in the end.
fail() {
    told=yes
    say "FAILED: $*" >&2
    for log in "$work"/*.log; do
        [ ! -s "$log" ] || tail -n 5 "$log" | sed "s|^|    $(basename "$log"): |" >&2
    done
    exit 1
}

# needs TOOL...: another status than a failure's, so that the caller knows.
needs() {
    for tool in "$@"; do
        command -v "$tool" >/dev/null || { say "missing: $tool" && told=yes && exit 77; }
    done
}

# become USER: programs refuse to run as root, or give up its rights. A user's bytes go by rings to
# nobody else, so both sides are this user, who needs a key of its own.
become() {
    [ "$(id -u)" -eq 0 ] || return 0
    mkdir "$work/home"
    if [ -f "${AYRE_SOCKETS_HOSTS:-}" ]; then
        cp -p "$AYRE_SOCKETS_HOSTS" "$work/home/key"
        export AYRE_SOCKETS_HOSTS="$work/home/key"
    fi
    chown -R "$1" "$work/home"
    as="setpriv --reuid=$1 --regid=$(id -g "$1") --clear-groups env HOME=$work/home"
}

# exec_with LIBRARY|none COMMAND...: becomes the command. Nothing but the command loads the library:
# it comes last.
exec_with() {
    library="$1"
    shift
    if [ "$library" = none ]; then
        set -- -u LD_PRELOAD "$@"
    else
        set -- LD_PRELOAD="$library" AYRE_SOCKETS_REPORT="$report" "$@"
    fi
    # Words, or nothing.
    # shellcheck disable=SC2086
    exec $inside $limit $as env "$@"
}

# run_with LIBRARY|none COMMAND...: what a client runs by, for as long as is patient.
run_with() {
    (
        inside=${CLIENT_NETNS:+ip netns exec $CLIENT_NETNS}
        limit="timeout --foreground -k 5 $patience"
        exec_with "$@"
    ) || {
        status=$?
        [ "$status" -ne 124 ] || say "no answer after $patience s: $*" >&2
        return "$status"
    }
}

client() { run_with "$client_library" "$@"; }

# begin LOG COMMAND...: a client that others run beside, which reads the file `input`; `pid` is its
# number.
begin() {
    log="$work/$1.log"
    shift
    (
        inside=${CLIENT_NETNS:+ip netns exec $CLIENT_NETNS}
        limit="timeout --foreground -k 5 $patience"
        exec_with "$client_library" "$@"
    ) >"$log" 2>"$log.errors" <"${input:-/dev/null}" &
    pid=$!
    running="$pid $running"
}

# start LOG COMMAND...: a server; `pid` is its number.
start() {
    log="$work/$1.log"
    shift
    (
        inside=${SERVER_NETNS:+ip netns exec $SERVER_NETNS}
        limit=
        exec_with "$server_library" "$@"
    ) >"$log" 2>&1 </dev/null &
    pid=$!
    running="$pid $running"
}

# serve LOG PORT COMMAND...: the same, and waits until it listens.
serve() {
    served="$1" listens="$2"
    shift 2
    start "$served" "$@"
    wait_until "$served listens" listening_or_over "$pid" "$listens"
    listening "$pid" "$listens" || fail "$served has ended"
}

# wait_until WORDS COMMAND...: asks again and again whether something holds.
wait_until() {
    awaited="$1"
    shift
    last=$(($(date +%s) + deadline))
    until "$@"; do
        [ "$(date +%s)" -le "$last" ] || fail "not after $deadline s: $awaited"
        sleep 0.02
    done
}

# A zombie's sockets are gone, its number is not.
over() { ! grep -qs '^State:.[^ZX]' "/proc/$1/status"; }

# In the network that the process sees.
listening() {
    cat "/proc/$1/net/tcp" "/proc/$1/net/tcp6" 2>/dev/null |
        awk -v port=":$(printf %04X "$2")" \
            '$4 == "0A" && substr($2, length($2) - 4) == port { found = 1 } END { exit !found }'
}

listening_or_over() { listening "$@" || over "$1"; }

# Below those that the system gives to clients, and nobody's now.
free_port() {
    for candidate in $(shuf -i 10000-30000 -n 20); do
        ! grep -qE ":$(printf %04X "$candidate") [0-9A-F]+:[0-9A-F]{4} " \
            /proc/net/tcp /proc/net/tcp6 || continue
        echo "$candidate"
        return
    done
}

# stop PID: by the signal that programs end by in good order, and report.
stop() {
    over "$1" || kill "$1" 2>/dev/null || true
    wait_until "process $1 ends after SIGTERM" over "$1"
    forget "$1"
}

forget() {
    wait "$1" 2>/dev/null || true
    rest=
    for begun in $running; do
        [ "$begun" = "$1" ] || rest="$rest $begun"
    done
    running="$rest"
}

# kill_hard PID: by the signal that no program sees.
kill_hard() {
    kill -9 "$1"
    wait_until "process $1 is killed" over "$1"
    forget "$1"
}

# kill_child PID: the program that a process has begun and waits for, as clients are begun.
kill_child() {
    pkill -9 -P "$1"
    wait_until "the child of $1 is killed" over "$1"
    forget "$1"
}

# fails PID WORDS: a client that has begun comes to an end, and knows that it is no good one.
fails() {
    wait_until "$2" over "$1"
    status=0
    wait "$1" || status=$?
    [ "$status" -ne 0 ] || fail "$2: status 0"
    [ "$status" -ne 124 ] || fail "$2: not after $patience s"
    forget "$1"
}

# has_children PID COUNT: but for those that are over.
has_children() { [ "$(pgrep -c -r R,S,D -P "$1")" -eq "$2" ]; }

# long LOG LINES: so many are there, all told.
long() { [ "$(wc -l <"$work/$1.log")" -ge "$2" ]; }

# anew: the report counts from here. Processes that are killed have none, and those that come after
# must have rings.
anew() { : >"$report"; }

# left: processes that work in the folder of this script, or have a file of it.
left() {
    for process in /proc/[0-9]*; do
        [ "${process#/proc/}" != $$ ] || continue
        find "$process/cwd" "$process/fd" -lname "$work/*" 2>/dev/null | grep -q . || continue
        tr '\0' ' ' <"$process/cmdline" && echo
    done
}

nobody_left() { [ -z "$(left)" ]; }

stop_all() {
    for one in $running; do
        stop "$one"
    done
}

# Whatever has happened, nothing of it stays.
clean() {
    status=$?
    trap - EXIT
    [ "$status" -eq 0 ] || [ -n "$told" ] || say "FAILED: a command's status is $status" >&2
    for one in $running; do
        kill "$one" 2>/dev/null || true
    done
    for one in $running; do
        (wait_until "" over "$one") 2>/dev/null || kill -9 "$one" 2>/dev/null || true
    done
    if [ -n "$KEEP" ]; then say "kept: $work"; else rm -rf "$work"; fi
    exit "$status"
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# finishes PID WORDS: a client that has begun comes to a good end.
finishes() {
    wait_until "$2" over "$1"
    wait "$1" || fail "$2: status $?"
}

# equal GOT WANTED WORDS
equal() { [ "$1" = "$2" ] || fail "$3: '$1' instead of '$2'"; }

# alike FILE FILE WORDS
alike() { cmp "$1" "$2" >&2 || fail "$3: the contents differ"; }

# data FILE BYTES: bytes that nobody can guess.
data() {
    head -c "$2" /dev/urandom >"$1"
    chmod 644 "$1"
}

sum() { sha256sum <"$1" | cut -d ' ' -f 1; }

# reported FIELD: of all processes that have ended.
reported() {
    awk -v field="$1" '
        { for (i = 1; i <= NF; i++) { split($i, pair, "="); if (pair[1] == field) n += pair[2] } }
        END { printf "%.0f\n", n }
    ' "$report"
}

ring_bytes() { echo $(($(reported ring_bytes_out) + $(reported ring_bytes_in))); }

# by_rings BYTES: ends all servers, so that they report; of what came and went, counted where it
# left and where it came, at least so much took a ring: none at all need with 0. One side alone has
# no rings. Between hosts a quarter will do: connections stay TCP until both ends have met.
by_rings() {
    stop_all
    [ "$LIBRARY" != none ] && [ "$RINGS" != no ] || return 0
    if [ -n "${AYRE_SOCKETS_HOSTS:-}" ]; then
        [ -z "$forks" ] || set -- 0
        [ "$1" -lt 4 ] || set -- $(($1 / 4))
    fi
    if [ "$SIDES" != both ]; then
        [ -n "$chained" ] || equal "$(reported rings)" 0 "rings with one side alone"
        return 0
    fi
    [ "$1" -gt 0 ] || return 0
    [ "$(reported rings)" -gt 0 ] || fail "no connection has a ring: $(cat "$report")"
    [ "$(ring_bytes)" -ge "$1" ] || fail "rings had $(ring_bytes) bytes instead of $1 at least"
}

# What the driver's table has of a program.
summary() {
    tcp=$(($(reported tcp_bytes_out) + $(reported tcp_bytes_in)))
    echo "summary $(reported connections) $(reported rings) $(reported fallbacks)" \
        "$(ring_bytes) $tcp"
}

main() {
    case "${1:-}" in
    check)
        check
        stop_all
        summary
        ;;
    kills)
        kills
        stop_all
        wait_until "nobody is left of: $(left | tr '\n' ';')" nobody_left
        summary
        ;;
    figures)
        figures
        stop_all
        [ -z "$SUMMARY" ] || summary >"$SUMMARY"
        ;;
    *) echo "usage: $0 check|kills|figures" >&2 && exit 2 ;;
    esac
}
