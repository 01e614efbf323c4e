#!/bin/sh
# RabbitMQ: what one client publishes another gets, once, in order and whole.
# shellcheck source=sockets/programs/common.sh
. "$(dirname "$0")/common.sh"
# The first is a script for its own folders.
PATH="/usr/lib/rabbitmq/bin:$PATH"
python=/usr/bin/python3
needs rabbitmq-server epmd "$python"
"$python" -c 'import pika' 2>/dev/null || { say "missing: pika" && told=yes && exit 77; }

port=$(free_port)
names=$(free_port)
nodes=$(free_port)
# A node needs some seconds.
deadline=60

programs() {
    # Message N is of N or more bytes, and nobody can mistake it for another.
    cat >"$work/client.py" <<'PY'
import hashlib, pika, sys

does, address, port, first, count = sys.argv[1:3] + list(map(int, sys.argv[3:6]))

def message(number):
    if number % 500 == 499:
        return hashlib.sha256(b"%d" % number).digest() * 60000
    return b"%d " % number + hashlib.sha256(b"%d" % number).digest() * (number % 50)

connection = pika.BlockingConnection(pika.ConnectionParameters(address, port))
channel = connection.channel()
channel.queue_declare("queue", durable=True)
if does == "publish":
    # Each is confirmed, and then it is told.
    channel.confirm_delivery()
    kept = pika.BasicProperties(delivery_mode=2)
    for number in range(first, first + count):
        channel.basic_publish("", "queue", message(number), kept, mandatory=True)
        print(number, flush=True)
else:
    channel.basic_qos(prefetch_count=100)
    numbers = iter(range(first, first + count))
    number = next(numbers)
    for method, _, body in channel.consume("queue", inactivity_timeout=30):
        assert body == message(number), f"message {number} is another"
        channel.basic_ack(method.delivery_tag)
        number = next(numbers, None)
        if number is None:
            break
connection.close()
PY
}

broker() {
    programs
    become rabbitmq
    [ -z "$as" ] || chown rabbitmq "$work"
    cd "$work"
    echo "[]." >"$work/plugins"
    echo "loopback_users = none" >"$work/rabbitmq.conf"
    # The program by which nodes find each other would stay if the node began it. The node is its
    # client.
    chained=yes
    export ERL_EPMD_PORT="$names" ERL_EPMD_ADDRESS=127.0.0.1
    serve names "$names" epmd
    export RABBITMQ_NODENAME="test$port@localhost" RABBITMQ_NODE_IP_ADDRESS="$ADDRESS" \
        RABBITMQ_NODE_PORT="$port" RABBITMQ_DIST_PORT="$nodes" RABBITMQ_LOGS=- \
        RABBITMQ_MNESIA_BASE="$work/mnesia" \
        RABBITMQ_ENABLED_PLUGINS_FILE="$work/plugins" RABBITMQ_CONF_ENV_FILE=/dev/null \
        RABBITMQ_CONFIG_FILE="$work/rabbitmq.conf" RABBITMQ_GENERATED_CONFIG_DIR="$work/config"
    server
}

server() {
    serve server "$port" rabbitmq-server
    server=$pid
}

publish() { client "$python" "$work/client.py" publish "$ADDRESS" "$port" "$1" "$2"; }

consume() {
    client "$python" "$work/client.py" consume "$ADDRESS" "$port" "$1" "$2" || fail "a client"
}

check() {
    broker
    begin consumer "$python" "$work/client.py" consume "$ADDRESS" "$port" 0 2000
    consumer=$pid
    publish 0 2000 >/dev/null || fail "2000 messages"
    finishes "$consumer" "2000 messages, as they come"
    publish 2000 1000 >/dev/null || fail "1000 messages"
    consume 2000 1000
    by_rings 10000000
}

# Each message that was confirmed is there when the broker has come back.
kills() {
    broker
    begin publisher "$python" "$work/client.py" publish "$ADDRESS" "$port" 0 1000000
    publisher=$pid
    wait_until "messages are confirmed" long publisher 300
    # The server is a shell that has begun the node.
    kill_child "$server"
    fails "$publisher" "the publisher hears of the killed broker"
    anew
    server
    consume 0 "$(wc -l <"$work/publisher.log")"
    by_rings 100000
}

figures() { :; }

main "$@"
