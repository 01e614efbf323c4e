#!/bin/sh
# Java: an echo by java.nio's selector, and clients by channels and by java.net's streams.
# shellcheck source=sockets/programs/common.sh
. "$(dirname "$0")/common.sh"
needs java javac

port=$(free_port)

programs() {
    cat >"$work/Server.java" <<'JAVA'
import java.net.*;
import java.nio.*;
import java.nio.channels.*;
import java.util.*;

/** An echo of one thread: what a connection cannot take yet, it gets when it can. */
public class Server {
    public static void main(String[] arguments) throws Exception {
        Selector selector = Selector.open();
        ServerSocketChannel listener = ServerSocketChannel.open();
        listener.bind(
                new InetSocketAddress(arguments[0], Integer.parseInt(arguments[1])), 200);
        listener.configureBlocking(false);
        listener.register(selector, SelectionKey.OP_ACCEPT);
        while (true) {
            selector.select();
            Iterator<SelectionKey> keys = selector.selectedKeys().iterator();
            while (keys.hasNext()) {
                SelectionKey key = keys.next();
                keys.remove();
                if (key.isAcceptable()) {
                    SocketChannel channel = listener.accept();
                    channel.configureBlocking(false);
                    channel.register(selector, SelectionKey.OP_READ,
                            ByteBuffer.allocateDirect(65536));
                } else {
                    echo(key);
                }
            }
        }
    }

    static void echo(SelectionKey key) throws Exception {
        SocketChannel channel = (SocketChannel) key.channel();
        ByteBuffer buffer = (ByteBuffer) key.attachment();
        boolean over = channel.read(buffer) < 0;
        buffer.flip();
        channel.write(buffer);
        boolean empty = !buffer.hasRemaining();
        boolean full = buffer.remaining() == buffer.capacity();
        buffer.compact();
        if (over && empty) {
            channel.close();
        } else {
            key.interestOps((empty ? 0 : SelectionKey.OP_WRITE)
                    | (full || over ? 0 : SelectionKey.OP_READ));
        }
    }
}
JAVA
    cat >"$work/Client.java" <<'JAVA'
import java.io.*;
import java.net.*;
import java.nio.*;
import java.nio.channels.*;
import java.util.*;
import java.util.concurrent.*;

public class Client {
    static InetSocketAddress address;

    public static void main(String[] arguments) throws Exception {
        address = new InetSocketAddress(arguments[0], Integer.parseInt(arguments[1]));
        long seconds = Long.parseLong(arguments[2]);
        if (seconds > 0) {
            long end = System.nanoTime() + seconds * 1000000000L;
            System.out.println(turns(Integer.MAX_VALUE, end) / (double) seconds);
            return;
        }
        ExecutorService pool = Executors.newCachedThreadPool();
        List<Future<?>> tasks = new ArrayList<>();
        for (int size : new int[] {1, 1000, 100000, 3000000, 10000000}) {
            tasks.add(pool.submit(() -> { channel(size); return null; }));
            tasks.add(pool.submit(() -> { stream(size); return null; }));
        }
        for (int i = 0; i < 20; i++) {
            tasks.add(pool.submit(() -> turns(500, Long.MAX_VALUE)));
        }
        for (Future<?> task : tasks) {
            try {
                task.get();
            } catch (ExecutionException error) {
                error.printStackTrace();
                System.exit(1);
            }
        }
        pool.shutdown();
    }

    static byte[] random(int size) {
        byte[] bytes = new byte[size];
        ThreadLocalRandom.current().nextBytes(bytes);
        return bytes;
    }

    static void same(byte[] got, byte[] sent) {
        if (!Arrays.equals(got, sent)) {
            throw new IllegalStateException(sent.length + " bytes came back otherwise");
        }
    }

    static void channel(int size) throws Exception {
        byte[] sent = random(size);
        ByteBuffer got = ByteBuffer.allocate(size);
        try (SocketChannel channel = SocketChannel.open(address)) {
            Thread writer = new Thread(() -> {
                try {
                    ByteBuffer buffer = ByteBuffer.wrap(sent);
                    while (buffer.hasRemaining()) {
                        channel.write(buffer);
                    }
                    channel.shutdownOutput();
                } catch (IOException error) {
                    throw new UncheckedIOException(error);
                }
            });
            writer.start();
            while (got.hasRemaining() && channel.read(got) >= 0) {
            }
            writer.join();
            same(Arrays.copyOf(got.array(), got.position()), sent);
            if (channel.read(ByteBuffer.allocate(1)) != -1) {
                throw new IllegalStateException("no end after the last byte");
            }
        }
    }

    static void stream(int size) throws Exception {
        byte[] sent = random(size);
        try (Socket socket = new Socket(address.getAddress(), address.getPort())) {
            Thread writer = new Thread(() -> {
                try {
                    socket.getOutputStream().write(sent);
                    socket.shutdownOutput();
                } catch (IOException error) {
                    throw new UncheckedIOException(error);
                }
            });
            writer.start();
            byte[] got = socket.getInputStream().readAllBytes();
            writer.join();
            same(got, sent);
        }
    }

    static int turns(int count, long end) throws Exception {
        try (Socket socket = new Socket(address.getAddress(), address.getPort())) {
            socket.setTcpNoDelay(true);
            socket.setSoTimeout(30000);
            DataInputStream in = new DataInputStream(socket.getInputStream());
            int turn = 0;
            for (; turn < count && System.nanoTime() < end; turn++) {
                byte[] sent = random(64 + (end == Long.MAX_VALUE ? turn * 11 % 3000 : 0));
                socket.getOutputStream().write(sent);
                byte[] got = new byte[sent.length];
                in.readFully(got);
                same(got, sent);
            }
            return turn;
        }
    }
}
JAVA
    javac -d "$work" "$work/Server.java" "$work/Client.java" >"$work/javac.log" 2>&1 || fail javac
    serve server "$port" java -cp "$work" Server "$ADDRESS" "$port"
}

check() {
    programs
    client java -cp "$work" Client "$ADDRESS" "$port" 0 || fail "the client"
    by_rings 20000000
}

figures() {
    [ "$OVER" = tcp ] || return 0
    programs
    client java -cp "$work" Client "$ADDRESS" "$port" "$SECONDS_EACH" |
        awk '{ print "turns/64B", $1, "1/s" }'
}

main "$@"
