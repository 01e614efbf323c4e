#!/bin/sh
# Go, whose programs call the system past the library, as one end: all stays TCP.
# shellcheck source=sockets/programs/common.sh
. "$(dirname "$0")/common.sh"
PATH="$PATH:/usr/local/go/bin"
needs go curl

port=$(free_port)

server() {
    mkdir "$work/web"
    cat >"$work/web/main.go" <<'GO'
package main

import (
	"io"
	"log"
	"net"
	"net/http"
	"os"
)

func echo(listener net.Listener) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go func() {
			io.Copy(connection, connection)
			connection.(*net.TCPConn).CloseWrite()
			connection.Close()
		}()
	}
}

func main() {
	listener, err := net.Listen("tcp", os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	go echo(listener)
	http.Handle("/", http.FileServer(http.Dir(os.Args[2])))
	http.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Write(body)
	})
	log.Fatal(http.ListenAndServe(os.Args[1], nil))
}
GO
    (
        cd "$work/web"
        GOFLAGS=-mod=mod GO111MODULE=off CGO_ENABLED="$1" go build -o ../server .
    ) >"$work/build.log" 2>&1 || fail "go build"
    rm -r "$work/web"
    port=$(free_port)
    echoes=$(free_port)
    serve "server$1" "$port" "$work/server" "$ADDRESS:$port" "$work/pages" "$ADDRESS:$echoes"
}

check() {
    mkdir "$work/pages"
    data "$work/pages/long" 20000000
    data "$work/pages/short" 600
    # Static, and linked to the C library, which loads ours and is not asked.
    for linked in 0 1; do
        server "$linked"
        url="http://$ADDRESS:$port"
        client curl -sS --fail -o "$work/got" "$url/long" || fail "curl $url/long"
        alike "$work/got" "$work/pages/long" "a long page"
        client curl -sS --fail --data-binary @"$work/pages/long" -o "$work/got" "$url/echo" ||
            fail "curl $url/echo"
        alike "$work/got" "$work/pages/long" "a long body there and back"
        mkdir "$work/many"
        client curl -sS --fail -Z --parallel-max 20 -o "$work/many/#1" "$url/short?[1-300]" \
            2>"$work/curl.log" || fail "curl $url/short"
        equal "$(find "$work/many" -type f | wc -l)" 300 "pages"
        for one in "$work/many"/*; do
            cmp -s "$one" "$work/pages/short" || fail "a short page differs"
        done
        rm -r "$work/many"
        if command -v socat >/dev/null; then
            client socat -t 20 - "TCP:$ADDRESS:$echoes" <"$work/pages/long" >"$work/got" ||
                fail "socat"
            alike "$work/got" "$work/pages/long" "an echo"
        fi
    done
    by_rings 0
    equal "$(reported rings)" 0 "rings with a program that knows nothing of them"
}

figures() { :; }

main "$@"
