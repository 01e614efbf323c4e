#!/bin/sh
# Netty: an echo and its clients, by its own epoll and by java.nio's selector.
# shellcheck source=sockets/programs/common.sh
. "$(dirname "$0")/common.sh"
needs java javac mvn

port=$(free_port)
# What is fetched stays for the next time.
jars="$(cd "$(dirname "$0")/../.." && pwd)/target/programs/netty"

programs() {
    cat >"$work/pom.xml" <<'XML'
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>test</groupId>
  <artifactId>echo</artifactId>
  <version>0</version>
  <dependencies>
    <dependency>
      <groupId>io.netty</groupId>
      <artifactId>netty-transport-native-epoll</artifactId>
      <version>4.1.118.Final</version>
      <classifier>linux-x86_64</classifier>
    </dependency>
  </dependencies>
</project>
XML
    [ -d "$jars" ] || mvn -q -B -f "$work/pom.xml" dependency:copy-dependencies \
        -DoutputDirectory="$jars" >"$work/mvn.log" 2>&1 || fail mvn
    cat >"$work/Echo.java" <<'JAVA'
import io.netty.bootstrap.*;
import io.netty.buffer.*;
import io.netty.channel.*;
import io.netty.channel.epoll.*;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.*;
import io.netty.channel.socket.nio.*;
import java.util.*;
import java.util.concurrent.*;

public class Echo {
    static boolean isEpoll;
    static EventLoopGroup group;
    static Bootstrap client;

    public static void main(String[] words) throws Exception {
        isEpoll = words[1].equals("epoll");
        group = isEpoll ? new EpollEventLoopGroup(2) : new NioEventLoopGroup(2);
        int port = Integer.parseInt(words[3]);
        if (words[0].equals("serve")) {
            new ServerBootstrap().group(group)
                    .channel(isEpoll ? EpollServerSocketChannel.class
                            : NioServerSocketChannel.class)
                    .option(ChannelOption.SO_BACKLOG, 300)
                    .childOption(ChannelOption.ALLOW_HALF_CLOSURE, true)
                    .childHandler(each(Server::new))
                    .bind(words[2], port).sync().channel().closeFuture().sync();
        }
        client = new Bootstrap().group(group)
                .channel(isEpoll ? EpollSocketChannel.class : NioSocketChannel.class)
                .remoteAddress(words[2], port)
                .option(ChannelOption.ALLOW_HALF_CLOSURE, true);
        long seconds = Long.parseLong(words[4]);
        if (seconds > 0) {
            measure(seconds);
        } else {
            check();
        }
        System.exit(0);
    }

    static ChannelInitializer<SocketChannel> each(Callable<ChannelHandler> handler) {
        return new ChannelInitializer<>() {
            protected void initChannel(SocketChannel channel) throws Exception {
                channel.pipeline().addLast(handler.call());
            }
        };
    }

    static byte[] random(int size) {
        byte[] bytes = new byte[size];
        ThreadLocalRandom.current().nextBytes(bytes);
        return bytes;
    }

    /** Stops to read while the other end does not take what it has asked for. */
    static class Server extends ChannelInboundHandlerAdapter {
        public void channelRead(ChannelHandlerContext context, Object part) {
            context.write(part);
        }

        public void channelReadComplete(ChannelHandlerContext context) {
            context.flush();
        }

        public void channelWritabilityChanged(ChannelHandlerContext context) {
            context.channel().config().setAutoRead(context.channel().isWritable());
        }

        public void userEventTriggered(ChannelHandlerContext context, Object event) {
            if (event == ChannelInputShutdownEvent.INSTANCE) {
                context.writeAndFlush(Unpooled.EMPTY_BUFFER)
                        .addListener(ChannelFutureListener.CLOSE);
            }
        }

        public void exceptionCaught(ChannelHandlerContext context, Throwable fault) {
            context.close();
        }
    }

    /** An end of a connection that finishes a future. */
    abstract static class Client extends ChannelInboundHandlerAdapter {
        final CompletableFuture<Long> over = new CompletableFuture<>();
        byte[] sent;
        byte[] got;
        int count;

        public void channelRead(ChannelHandlerContext context, Object part) throws Exception {
            ByteBuf bytes = (ByteBuf) part;
            int size = bytes.readableBytes();
            if (count + size > got.length) {
                throw new IllegalStateException("more came back than was sent");
            }
            bytes.readBytes(got, count, size);
            bytes.release();
            count += size;
        }

        void compare() {
            if (count != sent.length || !Arrays.equals(got, sent)) {
                throw new IllegalStateException(sent.length + " bytes came back otherwise");
            }
        }

        public void exceptionCaught(ChannelHandlerContext context, Throwable fault) {
            over.completeExceptionally(fault);
            context.close();
        }

        Future<Long> start() {
            client.clone().handler(each(() -> this)).connect().addListener(done -> {
                if (!done.isSuccess()) {
                    over.completeExceptionally(done.cause());
                }
            });
            return over;
        }
    }

    /** Writes all while it reads, and ends one side first. */
    static class Stream extends Client {
        int written;

        Stream(int size) {
            sent = random(size);
            got = new byte[size];
        }

        void write(Channel channel) {
            while (written < sent.length && channel.isWritable()) {
                int size = Math.min(50000, sent.length - written);
                channel.writeAndFlush(Unpooled.wrappedBuffer(sent, written, size));
                written += size;
                if (written == sent.length) {
                    channel.writeAndFlush(Unpooled.EMPTY_BUFFER)
                            .addListener(done -> ((SocketChannel) channel).shutdownOutput());
                }
            }
        }

        public void channelActive(ChannelHandlerContext context) {
            write(context.channel());
        }

        public void channelWritabilityChanged(ChannelHandlerContext context) {
            write(context.channel());
        }

        public void userEventTriggered(ChannelHandlerContext context, Object event) {
            if (event == ChannelInputShutdownEvent.INSTANCE) {
                compare();
                context.close();
                over.complete(1L);
            }
        }
    }

    /** Sends the next message when the last has come back. */
    static class Turns extends Client {
        final long most;
        final long end;
        long turns;

        Turns(long most, long end) {
            this.most = most;
            this.end = end;
        }

        void turn(ChannelHandlerContext context) {
            sent = random(most == Long.MAX_VALUE ? 64 : 1 + (int) (turns * 37 % 3000));
            got = new byte[sent.length];
            count = 0;
            context.writeAndFlush(Unpooled.wrappedBuffer(sent));
        }

        public void channelActive(ChannelHandlerContext context) {
            turn(context);
        }

        public void channelRead(ChannelHandlerContext context, Object part) throws Exception {
            super.channelRead(context, part);
            if (count < sent.length) {
                return;
            }
            compare();
            turns++;
            if (turns < most && System.nanoTime() < end) {
                turn(context);
            } else {
                context.close();
                over.complete(turns);
            }
        }
    }

    static long all(List<Future<Long>> futures) throws Exception {
        long sum = 0;
        for (Future<Long> future : futures) {
            sum += future.get(50, TimeUnit.SECONDS);
        }
        return sum;
    }

    static void check() throws Exception {
        List<Future<Long>> futures = new ArrayList<>();
        for (int size : new int[] {1, 1000, 100000, 3000000, 10000000}) {
            futures.add(new Stream(size).start());
        }
        for (int i = 0; i < 100; i++) {
            futures.add(new Turns(200, Long.MAX_VALUE).start());
        }
        all(futures);
    }

    static void measure(long seconds) throws Exception {
        for (int clients : new int[] {1, 50}) {
            long end = System.nanoTime() + seconds * 1000000000L;
            List<Future<Long>> futures = new ArrayList<>();
            for (int i = 0; i < clients; i++) {
                futures.add(new Turns(Long.MAX_VALUE, end).start());
            }
            System.out.println("/" + clients + " " + all(futures) / (double) seconds);
        }
    }
}
JAVA
    javac -nowarn -cp "$jars/*" -d "$work" "$work/Echo.java" >"$work/javac.log" 2>&1 || fail javac
}

server() {
    serve "server-$1" "$port" java -cp "$jars/*:$work" Echo serve "$1" "$ADDRESS" "$port"
}

check() {
    programs
    for kind in epoll nio; do
        port=$(free_port)
        server "$kind"
        for with in epoll nio; do
            client java -cp "$jars/*:$work" Echo talk "$with" "$ADDRESS" "$port" 0 ||
                fail "a client by $with of a server by $kind"
        done
    done
    by_rings 50000000
}

figures() {
    [ "$OVER" = tcp ] || return 0
    programs
    for kind in epoll nio; do
        port=$(free_port)
        server "$kind"
        client java -cp "$jars/*:$work" Echo talk "$kind" "$ADDRESS" "$port" "$SECONDS_EACH" |
            awk -v kind="$kind" '{ print kind $1, $2, "1/s" }'
    done
}

main "$@"
