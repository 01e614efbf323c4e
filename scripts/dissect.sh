#!/bin/sh
# Shows the frames of a capture, or, without one, checks that Wireshark's dissector reads the frames
# of vectors/frame.txt as the specification does. Needs tshark (and text2pcap, which comes with it).
#
# usage: scripts/dissect.sh [FILE [OPTION of tshark]...]
set -eu
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)

for tool in tshark text2pcap; do
    if ! command -v "$tool" >/dev/null; then
        echo "dissect: $tool is missing; on Debian: apt-get install tshark" >&2
        exit 1
    fi
done

dissect() {
    # What tshark says about the user that it runs as is not about the capture.
    tshark -X "lua_script:$here/ayre.lua" -r "$@" 2>"$scratch/said" || {
        cat "$scratch/said" >&2
        exit 1
    }
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

if [ $# -gt 0 ]; then
    dissect "$@"
    exit
fi

# One line for each frame: how its header reads, whether its payload is whole, the record in it, and
# its bytes. To the vectors' own frames comes one with a record in it, whose CRC is wrong for that.
vectors() {
    awk '
        function line(header, n, frame, good, record, i) {
            for (i = 2; i <= n - 3; i++) printf "%s ", header[i]
            printf "%s %s %s\n", good, record, frame
        }
        $1 == "encode" {
            n = split($0, header, " ")
            payload = header[n - 2] == "-" ? "" : header[n - 2]
            line(header, n, header[n] payload, 1, "-")
            if (header[2] == "data" && length(payload) == 48) {
                line(header, n, header[n] "04000c0099000000" "0102030405060708090a0b0c00000000", 0,
                    "4:12:0x00000099")
            }
        }' "$here/../vectors/frame.txt"
}

hexdump_of() {
    awk '{
        frame = $NF
        printf "0000"
        for (at = 1; at < length(frame); at += 2) printf " %s", substr(frame, at, 2)
        print "\n"
    }'
}

# Numbers as tshark writes them, as the vectors do: hexadecimal, without zeros in front.
normal() {
    awk -F'\t' '
        BEGIN {
            split("data open accept resync reset probe close piece", kinds, " ")
            split("posted non-posted response", channels, " ")
        }
        function plain(number) {
            if (number == "") return "-"
            if (number ~ /^0x/) {
                sub(/^0x0*/, "", number)
                return number == "" ? "0" : number
            }
            return sprintf("%x", number)
        }
        # Bytes, the lowest first, as one number.
        function number(bytes, digits, at) {
            for (at = 1; at < length(bytes); at += 2) digits = substr(bytes, at, 2) digits
            return plain("0x" digits)
        }
        function is(truth) { return truth == 1 || truth == "True" }
        {
            printf "%s %s %x", kinds[$1], channels[$2 + 1], is($3) + 2 * is($4) + 8 * is($5)
            for (i = 6; i <= 18; i++) printf " %s", plain($i)
            printf " %s %s", channels[$19 + 1], number($20)
            for (i = 21; i <= 24; i++) printf " %s", plain($i)
            printf " %s %s\n", is($25), $26 == "" ? "-" : $26 ":" $27 ":" $28
        }'
}

vectors >"$scratch/vectors"
hexdump_of <"$scratch/vectors" >"$scratch/hexdump"
text2pcap -q -u 7000,7001 "$scratch/hexdump" "$scratch/frames.pcap" 2>/dev/null

fields=""
for field in kind channel flags.early flags.nack flags.answer path to generation token packet seq \
    stamp ack.0 ack.1 ack.2 \
    limit.0 limit.1 limit.2 sack.channel sack echo held echo.path late payload.good \
    record.kind record.length record.tag; do
    fields="$fields -e ayre.$field"
done
# shellcheck disable=SC2086 # a list of options
dissect "$scratch/frames.pcap" -Y ayre -T fields $fields >"$scratch/fields"
normal <"$scratch/fields" >"$scratch/read"
sed 's/ [^ ]*$//' "$scratch/vectors" >"$scratch/meant"

if ! diff "$scratch/meant" "$scratch/read"; then
    echo "dissect: Wireshark reads frames otherwise than they are meant" >&2
    exit 1
fi
echo "dissect: $(wc -l <"$scratch/meant") frames read as they are meant"
