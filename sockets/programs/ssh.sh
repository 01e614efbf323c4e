#!/bin/sh
# OpenSSH: files by ssh and by scp, both ways, a port that is forwarded, and an exit status.
# shellcheck source=sockets/programs/common.sh
. "$(dirname "$0")/common.sh"
needs /usr/sbin/sshd ssh scp ssh-keygen socat

port=$(free_port)

daemon() {
    mkdir -p /run/sshd
    ssh-keygen -q -t ed25519 -N '' -f "$work/host"
    ssh-keygen -q -t ed25519 -N '' -f "$work/user"
    cp "$work/user.pub" "$work/authorized"
    chmod 600 "$work/authorized"
    cat >"$work/sshd_config" <<CONF
Port $port
ListenAddress $ADDRESS
HostKey $work/host
AuthorizedKeysFile $work/authorized
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
Subsystem sftp internal-sftp
MaxStartups 100
CONF
    cat >"$work/config" <<CONF
Host there
HostName $ADDRESS
Port $port
User $(id -un)
IdentityFile $work/user
IdentitiesOnly yes
UserKnownHostsFile $work/known
StrictHostKeyChecking no
LogLevel ERROR
ControlPath none
CONF
    serve server "$port" /usr/sbin/sshd -D -e -f "$work/sshd_config"
}

shell() { client ssh -F "$work/config" "$@"; }

check() {
    daemon
    data "$work/file" 20000000
    equal "$(shell there echo hello)" hello "a command's output"
    status=0
    shell there exit 7 || status=$?
    equal "$status" 7 "a command's exit status"

    shell there cat "$work/file" >"$work/got" || fail "ssh cat"
    alike "$work/got" "$work/file" "a file from there"
    shell there "cat >$work/put" <"$work/file" || fail "ssh cat >"
    alike "$work/put" "$work/file" "a file to there"
    client scp -q -F "$work/config" there:"$work/file" "$work/copied" || fail "scp from there"
    alike "$work/copied" "$work/file" "scp from there"
    client scp -q -F "$work/config" "$work/file" there:"$work/brought" || fail "scp to there"
    alike "$work/brought" "$work/file" "scp to there"

    # What is forwarded takes two more connections, of which the daemon makes one.
    chained=yes
    far=$(free_port)
    serve far "$far" socat "TCP-LISTEN:$far,bind=$ADDRESS,fork,reuseaddr" "OPEN:$work/file,rdonly"
    client ssh -F "$work/config" -W "$ADDRESS:$far" there </dev/null >"$work/through" ||
        fail "ssh -W"
    alike "$work/through" "$work/file" "what a forwarded connection brings"
    # The daemon hands each connection to another program, and so it stays TCP. What it forwards is
    # a connection of its own.
    by_rings 10000000
}

# The other end hears of it when one is killed, and the daemon goes on.
kills() {
    daemon
    server=$pid
    data "$work/file" 3000000
    for victim in client server; do
        begin "$victim" ssh -F "$work/config" there yes
        reading=$pid
        wait_until "output comes" long "$victim" 100000
        if [ "$victim" = client ]; then
            kill_child "$reading"
        else
            pkill -9 -P "$server"
            fails "$reading" "the client hears of the killed server"
        fi
        : >"$work/$victim.log"
        wait_until "the server's part ends" has_children "$server" 0
    done
    shell there cat "$work/file" >"$work/got" || fail "ssh cat"
    alike "$work/got" "$work/file" "a file from there, in the end"
    shell there "cat >$work/put" <"$work/file" || fail "ssh cat >"
    alike "$work/put" "$work/file" "a file to there, in the end"
    by_rings 0
}

figures() {
    [ "$OVER" = tcp ] || return 0
    daemon
    head -c 200000000 /dev/zero >"$work/file"
    from=$(date +%s%N)
    shell there cat "$work/file" >/dev/null
    echo "$from $(date +%s%N)" | awk '{ print "cat/200MB", 200 / (($2 - $1) / 1e9), "MB/s" }'
}

main "$@"
