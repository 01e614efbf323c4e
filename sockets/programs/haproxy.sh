#!/bin/sh
# HAProxy between curl or wrk and nginx, by requests and by bytes: it is a server and a client.
# shellcheck source=sockets/programs/common.sh
. "$(dirname "$0")/common.sh"
needs haproxy nginx curl wrk

behind=$(free_port)
by_request=$(free_port)
by_byte=$(free_port)

both_servers() {
    mkdir "$work/pages"
    data "$work/pages/long" 20000000
    data "$work/pages/short" 600
    cat >"$work/nginx.conf" <<CONF
pid $work/pid;
error_log $work/errors.log warn;
events { worker_connections 512; }
http {
    access_log off;
    client_body_temp_path $work/body;
    proxy_temp_path $work/proxy;
    fastcgi_temp_path $work/fastcgi;
    uwsgi_temp_path $work/uwsgi;
    scgi_temp_path $work/scgi;
    keepalive_requests 1000000;
    server { listen $ADDRESS:$behind; root $work/pages; }
}
CONF
    cat >"$work/haproxy.cfg" <<CONF
global
    nbthread 2
    maxconn 500
defaults
    timeout connect 5s
    timeout client 30s
    timeout server 30s
listen requests
    mode http
    bind $ADDRESS:$by_request
    server web $ADDRESS:$behind
listen bytes
    mode tcp
    bind $ADDRESS:$by_byte
    server web $ADDRESS:$behind
CONF
    serve nginx "$behind" nginx -p "$work" -c "$work/nginx.conf" -e "$work/errors.log" \
        -g 'daemon off;'
    serve haproxy "$by_request" haproxy -db -f "$work/haproxy.cfg"
}

check() {
    chained=yes
    both_servers
    for port in $by_request $by_byte; do
        url="http://$ADDRESS:$port"
        client curl -sS --fail -o "$work/got" "$url/long" || fail "curl $url/long"
        alike "$work/got" "$work/pages/long" "$url/long"
        mkdir "$work/many"
        client curl -sS --fail -Z --parallel-max 20 -o "$work/many/#1" "$url/short?[1-300]" \
            2>"$work/curl.log" || fail "curl $url/short"
        equal "$(find "$work/many" -type f | wc -l)" 300 "pages"
        for one in "$work/many"/*; do
            cmp -s "$one" "$work/pages/short" || fail "$url: a short page differs"
        done
        rm -r "$work/many"
        client wrk -t 2 -c 40 -d 1s "$url/short" >"$work/wrk" || fail "wrk $url"
        if grep -E 'Socket errors|Non-2xx' "$work/wrk"; then fail "wrk $url"; fi
    done
    by_rings 40000000
}

figures() {
    [ "$OVER" = tcp ] || return 0
    both_servers
    client wrk -t 2 -c 32 -d "${SECONDS_EACH}s" "http://$ADDRESS:$by_request/short" |
        awk '/^Requests\/sec/ { print "http/600B", $2, "req/s" }'
    client wrk -t 2 -c 8 -d "${SECONDS_EACH}s" "http://$ADDRESS:$by_byte/long" |
        awk '/^Requests\/sec/ { print "tcp/20MB", $2 * 20, "MB/s" }'
}

main "$@"
