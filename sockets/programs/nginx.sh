#!/bin/sh
# nginx: long and short answers to curl and wrk, in the clear and by TLS, whole and in parts; as a
# proxy before itself, which passes files both ways on as they come.
# shellcheck source=sockets/programs/common.sh
. "$(dirname "$0")/common.sh"
needs nginx curl wrk openssl

port=$(free_port)
secure=$(free_port)
proxy=$(free_port)

configure() {
    mkdir "$work/pages"
    mkdir -m 777 "$work/pages/sent"
    data "$work/pages/long" 20000000
    data "$work/pages/short" 600
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=test" \
        -addext "subjectAltName=IP:$ADDRESS" -keyout "$work/key" -out "$work/certificate" \
        2>/dev/null
    cat >"$work/conf" <<CONF
worker_processes 2;
pid $work/pid;
error_log $work/errors.log warn;
events { worker_connections 512; }
http {
    access_log $work/access;
    client_body_temp_path $work/body;
    proxy_temp_path $work/proxy;
    fastcgi_temp_path $work/fastcgi;
    uwsgi_temp_path $work/uwsgi;
    scgi_temp_path $work/scgi;
    sendfile ${sendfile:-on};
    keepalive_requests 1000000;
    server {
        listen $ADDRESS:$port;
        listen $ADDRESS:$secure ssl;
        ssl_certificate $work/certificate;
        ssl_certificate_key $work/key;
        root $work/pages;
        location /sent/ {
            dav_methods PUT;
            client_max_body_size 0;
        }
    }
    upstream behind {
        server $ADDRESS:$port;
        keepalive 4;
    }
    server {
        listen $ADDRESS:$proxy;
        client_max_body_size 0;
        location / {
            proxy_pass http://behind;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_buffering off;
            proxy_request_buffering off;
        }
    }
}
CONF
}

web() {
    serve server "$port" nginx -p "$work" -c "$work/conf" -e "$work/errors.log" -g 'daemon off;'
}

# fetch WANTED CURL-ARGUMENT...
fetch() {
    wanted="$1"
    shift
    client curl -sS --fail --cacert "$work/certificate" -o "$work/got" "$@" || fail "curl $*"
    alike "$work/got" "$wanted" "curl $*"
}

check() {
    configure
    web
    for url in "http://$ADDRESS:$port" "https://$ADDRESS:$secure"; do
        fetch "$work/pages/long" "$url/long"
        fetch "$work/pages/long" --limit-rate 20M "$url/long"
        head -c 3000000 "$work/pages/long" | tail -c 2000000 >"$work/part"
        fetch "$work/part" -r 1000000-2999999 "$url/long"
        many "$url"
        verified_load "$url"
    done
    [ "$SIDES" != both ] || pass_on
    by_rings 50000000
}

# Files go both ways through the proxy, which adds its sockets to an epoll before they connect. Both
# ends of those are nginx's.
pass_on() {
    for i in 1 2 3; do
        client curl -sS --fail -T "$work/pages/long" "http://$ADDRESS:$proxy/sent/$i" ||
            fail "curl -T, file $i"
        alike "$work/pages/sent/$i" "$work/pages/long" "file $i through the proxy"
        fetch "$work/pages/long" --limit-rate 40M "http://$ADDRESS:$proxy/sent/$i"
    done
}

# 300 pages by one connection, then by 20 at once.
many() {
    for way in "" "-Z --parallel-max 20"; do
        mkdir "$work/many"
        # The way is words.
        # shellcheck disable=SC2086
        client curl -sS --fail --cacert "$work/certificate" $way \
            -o "$work/many/#1" "$1/short?[1-300]" 2>"$work/curl.log" || fail "curl $way $1"
        equal "$(find "$work/many" -type f | wc -l)" 300 "pages by curl $way"
        for one in "$work/many"/*; do
            cmp -s "$one" "$work/pages/short" || fail "curl $way: a short page differs"
        done
        rm -r "$work/many"
    done
}

# Each answer is compared.
verified_load() {
    cat >"$work/compare.lua" <<LUA
local file = io.open("$work/pages/short", "rb")
local wanted = file:read("*a")
wrong, right = 0, 0
local threads = {}
function setup(thread) table.insert(threads, thread) end
function response(status, headers, body)
    if status == 200 and body == wanted then right = right + 1 else wrong = wrong + 1 end
end
function done(summary)
    local all, bad = 0, 0
    for _, thread in ipairs(threads) do
        all, bad = all + thread:get("right"), bad + thread:get("wrong")
    end
    local e = summary.errors
    print(string.format("right=%d wrong=%d errors=%d", all, bad,
        e.connect + e.read + e.write + e.timeout))
end
LUA
    client wrk -t 2 -c 40 -d 1s -s "$work/compare.lua" "$1/short" >"$work/wrk" || fail "wrk $1"
    grep -q '^right=[1-9][0-9]* wrong=0 errors=0$' "$work/wrk" ||
        fail "wrk $1: $(grep right= "$work/wrk")"
}

# When one worker is killed in the middle of answers, and when both are, others go on.
kills() {
    configure
    web
    master=$pid
    wait_until "two workers are there" has_children "$master" 2
    for killed in 1 2; do
        begin "wrk$killed" wrk -t 2 -c 40 -d 2s "http://$ADDRESS:$port/short"
        wrk=$pid
        rm -f "$work/slow"
        begin "slow$killed" curl -sS --limit-rate 1M -o "$work/slow" "http://$ADDRESS:$port/long"
        slow=$pid
        wait_until "answers are on their way" test -s "$work/slow"
        # One of the two has the slow answer.
        workers=$(pgrep -P "$master" | head -n "$killed")
        # Numbers are words.
        # shellcheck disable=SC2086
        kill -9 $workers
        for worker in $workers; do
            wait_until "worker $worker is killed" over "$worker"
        done
        wait_until "other workers are there" has_children "$master" 2
        finishes "$wrk" "wrk while workers are killed"
        awk '/requests in/ { exit $1 < 1000 }' "$work/wrk$killed.log" ||
            fail "few answers: $(cat "$work/wrk$killed.log")"
        [ "$killed" -eq 1 ] || fails "$slow" "an answer of a killed worker"
        stop "$slow"
        fetch "$work/pages/long" "http://$ADDRESS:$port/long"
        many "http://$ADDRESS:$port"
    done
    by_rings 10000000
}

figures() {
    [ "$OVER" = tcp ] || return 0
    configure
    sed -i 's/access_log .*;/access_log off;/' "$work/conf"
    web
    for page in short long; do
        client wrk -t 2 -c 32 -d "${SECONDS_EACH}s" "http://$ADDRESS:$port/$page" >"$work/wrk"
        if [ "$page" = short ]; then
            awk '/^Requests\/sec/ { print "wrk/600B", $2, "req/s" }' "$work/wrk"
        else
            awk '/^Requests\/sec/ { print "wrk/20MB", $2 * 20, "MB/s" }' "$work/wrk"
        fi
    done
    client wrk -t 2 -c 32 -d "${SECONDS_EACH}s" -H 'Connection: close' \
        "http://$ADDRESS:$port/short" | awk '/^Requests\/sec/ { print "wrk/close", $2, "req/s" }'
}

main "$@"
