#!/bin/sh
# CPython's own tests of sockets and of what stands on them: both ends are often one process.
# shellcheck source=sockets/programs/common.sh
. "$(dirname "$0")/common.sh"
python=/usr/bin/python3
needs "$python"
"$python" -c 'import test.test_socket' 2>/dev/null ||
    { say "missing: test of $("$python" --version)" && told=yes && exit 77; }

# Most of their time they wait.
modules="test_asynchat test_asyncio.test_events test_asyncio.test_sendfile
    test_asyncio.test_server test_asyncio.test_sock_lowlevel test_asyncio.test_ssl
    test_asyncio.test_sslproto test_asyncio.test_streams test_asyncio.test_unix_events
    test_asyncore test_epoll test_ftplib test_httplib test_httpservers test_poplib test_select
    test_selectors test_smtplib test_socket test_ssl test_urllib2_localnet test_wsgiref test_xmlrpc"
patience=170

check() {
    chained=yes
    cat >"$work/left-out" <<'WORDS'
# Hangs without the library, too, where the kernel has a vsock and nobody at its other end.
test.test_socket.ThreadedVSOCKSocketStreamTest.*
# Wants the sender to be held up by small buffers as its peer closes; a ring takes all there is.
test.test_asyncio.test_sendfile.*.test_sendfile_close_peer_in_the_middle_of_receiving
WORDS
    # The modules are words.
    # shellcheck disable=SC2086
    tests -j 6 $modules
    # These say that they need a network, and are content with this host.
    tests -u network test_socketserver
    by_rings 50000000
}

# tests OPTION... MODULE...
tests() {
    client "$python" -m test --tempdir "$work" --ignorefile "$work/left-out" --timeout 100 "$@" \
        >"$work/test.log" 2>&1 ||
        fail "$(grep -a -m 5 -E '^(FAIL|ERROR): |Timeout' "$work/test.log" | tr '\n' ' ')"
}

figures() { :; }

main "$@"
