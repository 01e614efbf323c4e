#!/bin/sh
# Python: http.server and urllib, with files there and back; an echo of asyncio's, and of threads'.
# shellcheck source=sockets/programs/common.sh
. "$(dirname "$0")/common.sh"
needs python3

# The interpreter itself: the command may be a script that chooses one.
python=$(python3 -c 'import sys; print(sys.executable)')
port=$(free_port)

programs() {
    cat >"$work/web.py" <<'PY'
import http.server, sys

class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_PUT(self):
        with open(self.translate_path(self.path), "wb") as file:
            file.write(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *words):
        pass

address, port, folder = sys.argv[1:]
server = http.server.ThreadingHTTPServer
server.request_queue_size = 100
server((address, int(port)), lambda *a: Handler(*a, directory=folder)).serve_forever()
PY
    cat >"$work/browse.py" <<'PY'
import http.client, sys, threading, urllib.request

address, port, folder = sys.argv[1:]
url = f"http://{address}:{port}/"
long = open(folder + "/long", "rb").read()
short = open(folder + "/short", "rb").read()

assert urllib.request.urlopen(url + "long").read() == long, "GET of a long file"
put = urllib.request.Request(url + "put", data=long, method="PUT")
assert urllib.request.urlopen(put).status == 201
assert urllib.request.urlopen(url + "put").read() == long, "what PUT has left"

# Requests by one connection. Over TCP each waits 40 ms: the server sends twice without being asked.
connection = http.client.HTTPConnection(address, int(port))
for _ in range(25):
    connection.request("GET", "/short")
    assert connection.getresponse().read() == short, "GET of a short file"

# Connections at once.
wrong = []
def fetch():
    for _ in range(20):
        if urllib.request.urlopen(url + "short").read() != short:
            wrong.append(1)
threads = [threading.Thread(target=fetch) for _ in range(10)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not wrong, "GETs at once"
PY
    cat >"$work/echo.py" <<'PY'
import asyncio, signal, sys

async def echo(reader, writer):
    while block := await reader.read(65536):
        writer.write(block)
        await writer.drain()
    writer.close()

async def main():
    server = await asyncio.start_server(echo, sys.argv[1], int(sys.argv[2]))
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
    server.close()

asyncio.run(main())
PY
    cat >"$work/threads.py" <<'PY'
import socketserver, sys

class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while block := self.request.recv(65536):
            self.request.sendall(block)

class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 100

Server((sys.argv[1], int(sys.argv[2])), Echo).serve_forever()
PY
    cat >"$work/talk.py" <<'PY'
import asyncio, hashlib, os, socket, sys, threading, time

address, port, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])

async def stream(size):
    reader, writer = await asyncio.open_connection(address, port)
    sent, got = hashlib.sha256(), hashlib.sha256()
    async def send():
        left = size
        while left:
            block = os.urandom(min(left, 50000))
            sent.update(block)
            writer.write(block)
            await writer.drain()
            left -= len(block)
        writer.write_eof()
    sender = asyncio.create_task(send())
    count = 0
    while block := await reader.read(65536):
        got.update(block)
        count += len(block)
    await sender
    writer.close()
    assert count == size, f"{count} bytes of {size} came back"
    assert got.digest() == sent.digest(), "other bytes came back"

async def streams():
    await asyncio.gather(*(stream(size) for size in [1, 1000, 3000000] * 10))

def exactly(connection, size):
    parts = b""
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        assert part, "the end came early"
        parts += part
    return parts

def turns(count):
    connection = socket.create_connection((address, port))
    connection.settimeout(30)
    for i in range(count):
        message = os.urandom(1 + i * 7 % 3000)
        connection.sendall(message)
        assert exactly(connection, len(message)) == message, "another message came back"
    connection.shutdown(socket.SHUT_WR)
    assert connection.recv(1) == b"", "the end"
    connection.close()

failed = []
def guarded():
    try:
        turns(300)
    except BaseException as error:
        failed.append(error)

def measure():
    connection = socket.create_connection((address, port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    count, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        connection.sendall(b"x" * 64)
        exactly(connection, 64)
        count += 1
    print(count / seconds)

if seconds:
    measure()
else:
    asyncio.run(streams())
    turns(2000)
    threads = [threading.Thread(target=guarded) for _ in range(10)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert not failed, failed
PY
    mkdir "$work/pages"
    data "$work/pages/long" 20000000
    data "$work/pages/short" 600
}

check() {
    programs
    serve web "$port" "$python" "$work/web.py" "$ADDRESS" "$port" "$work/pages"
    client "$python" "$work/browse.py" "$ADDRESS" "$port" "$work/pages" || fail "urllib"
    for kind in echo threads; do
        port=$(free_port)
        serve "$kind" "$port" "$python" "$work/$kind.py" "$ADDRESS" "$port"
        client "$python" "$work/talk.py" "$ADDRESS" "$port" 0 || fail "talk with $kind.py"
    done
    by_rings 60000000
}

figures() {
    [ "$OVER" = tcp ] || return 0
    programs
    for kind in echo threads; do
        port=$(free_port)
        serve "$kind" "$port" "$python" "$work/$kind.py" "$ADDRESS" "$port"
        client "$python" "$work/talk.py" "$ADDRESS" "$port" "$SECONDS_EACH" |
            awk -v kind="$kind" '{ print "turns/" kind, $1, "1/s" }'
    done
}

main "$@"
