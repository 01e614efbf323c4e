#!/bin/sh
# Node: its http, with bodies there and back, and its net, with streams that end one side first.
# shellcheck source=sockets/programs/common.sh
. "$(dirname "$0")/common.sh"
needs node

port=$(free_port)
plain=$(free_port)

programs() {
    cat >"$work/server.js" <<'JS'
const http = require("http"), net = require("net");
const [address, port, plain] = process.argv.slice(2);
net.createServer({ allowHalfOpen: true }, (socket) => socket.pipe(socket))
    .listen(Number(plain), address);
http.createServer((request, response) => {
    if (request.url === "/short") return response.end("short");
    request.pipe(response);
}).listen(Number(port), address);
process.on("SIGTERM", () => process.exit(0));
JS
    cat >"$work/client.js" <<'JS'
const assert = require("assert"), crypto = require("crypto"), http = require("http");
const net = require("net");
const [host, port, plain, seconds] = process.argv.slice(2);
const agent = new http.Agent({ keepAlive: true, maxSockets: 10 });

function request(path, body) {
    return new Promise((resolve, reject) => {
        const method = body ? "POST" : "GET";
        const one = http.request({ host, port, path, method, agent }, (response) => {
            const parts = [];
            response.on("data", (part) => parts.push(part));
            response.on("end", () => resolve(Buffer.concat(parts)));
            response.on("error", reject);
        });
        one.on("error", reject);
        one.end(body);
    });
}

function stream(size) {
    return new Promise((resolve, reject) => {
        const sent = crypto.randomBytes(size), parts = [];
        const socket = net.connect({ host, port: plain, allowHalfOpen: true });
        socket.on("data", (part) => parts.push(part));
        socket.on("error", reject);
        socket.on("end", () => {
            assert(Buffer.concat(parts).equals(sent), `${size} bytes came back otherwise`);
            resolve();
        });
        socket.end(sent);
    });
}

async function check() {
    for (const size of [10, 1000, 100000, 10000000]) {
        const body = crypto.randomBytes(size);
        assert((await request("/echo", body)).equals(body), `a body of ${size} bytes`);
    }
    const pages = await Promise.all(Array.from({ length: 2000 }, () => request("/short")));
    assert(pages.every((page) => page.toString() === "short"), "2000 short pages");
    await Promise.all([1, 1000, 65536, 1000000, 5000000].flatMap((n) => [stream(n), stream(n)]));
}

async function measure() {
    const end = Date.now() + seconds * 1000;
    let count = 0;
    await Promise.all(Array.from({ length: 10 }, async () => {
        while (Date.now() < end) {
            await request("/short");
            count++;
        }
    }));
    console.log(count / seconds);
}

(Number(seconds) ? measure() : check()).then(() => process.exit(0), (error) => {
    console.error(error);
    process.exit(1);
});
JS
    serve server "$port" node "$work/server.js" "$ADDRESS" "$port" "$plain"
}

check() {
    programs
    client node "$work/client.js" "$ADDRESS" "$port" "$plain" 0 || fail "the client"
    by_rings 20000000
}

figures() {
    [ "$OVER" = tcp ] || return 0
    programs
    client node "$work/client.js" "$ADDRESS" "$port" "$plain" "$SECONDS_EACH" |
        awk '{ print "http/10", $1, "req/s" }'
}

main "$@"
