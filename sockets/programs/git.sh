#!/bin/sh
# Git's daemon, which hands the connection to another program: clone, push and fetch.
# shellcheck source=sockets/programs/common.sh
. "$(dirname "$0")/common.sh"
needs git

port=$(free_port)
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_TERMINAL_PROMPT=0
export GIT_AUTHOR_NAME=test GIT_AUTHOR_EMAIL=test@localhost
export GIT_COMMITTER_NAME=test GIT_COMMITTER_EMAIL=test@localhost

repository() {
    git init -q --bare -b trunk "$work/there.git"
    git init -q -b trunk "$work/first"
    (
        cd "$work/first" || exit
        for i in $(seq 20); do
            seq "$((i * 100))" >"file$i"
            git add . && git commit -qm "file $i"
        done
        head -c 10000000 /dev/urandom >long
        git add . && git commit -qm "a long file"
        git push -q "$work/there.git" trunk
    )
    serve server "$port" git daemon --reuseaddr --listen="$ADDRESS" --port="$port" --export-all \
        --enable=receive-pack --base-path="$work" "$work"
    url="git://$ADDRESS:$port/there.git"
}

head_of() { git -C "$1" rev-parse trunk; }

check() {
    repository
    client git clone -q "$url" "$work/second" || fail "git clone"
    equal "$(head_of "$work/second")" "$(head_of "$work/first")" "what was cloned"
    git -C "$work/second" fsck --full >"$work/fsck.log" 2>&1 || fail "git fsck of the clone"
    alike "$work/second/long" "$work/first/long" "a long file"

    data "$work/second/more" 3000000
    git -C "$work/second" add .
    git -C "$work/second" commit -qm "one more"
    client git -C "$work/second" push -q origin trunk || fail "git push"
    equal "$(head_of "$work/there.git")" "$(head_of "$work/second")" "what was pushed"
    client git -C "$work/first" pull -q "$url" trunk || fail "git pull"
    equal "$(head_of "$work/first")" "$(head_of "$work/second")" "what was pulled"
    alike "$work/first/more" "$work/second/more" "what was pulled"
    client git clone -q --depth 1 "$url" "$work/shallow" || fail "git clone --depth 1"
    alike "$work/shallow/more" "$work/second/more" "a shallow clone"
    # The program that got the connection may know nothing of rings.
    by_rings 0
}

figures() {
    [ "$OVER" = tcp ] || return 0
    repository
    from=$(date +%s%N)
    for i in $(seq 5); do
        client git clone -q --bare "$url" "$work/clone$i"
    done
    echo "$from $(date +%s%N)" | awk '{ print "clone/10MB", 5 / (($2 - $1) / 1e9), "clones/s" }'
}

main "$@"
