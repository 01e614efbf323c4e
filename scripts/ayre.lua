-- Shows the frames of Ayre's links (spec/91) in Wireshark and tshark:
--
--   scripts/dissect.sh FILE                      or copy this file to Wireshark's plugin folder
--
-- A datagram of UDP is taken for a frame when its header has the right version and CRC, whatever its
-- ports are. The preference "UDP port" takes all datagrams of a port for frames, damaged ones too.
local ayre = Proto("ayre", "Ayre link")

local VERSION = 1
local HEAD_BYTES = 8

local KINDS = {
    [1] = "data", [2] = "open", [3] = "accept", [4] = "resync", [5] = "reset", [6] = "probe",
    [7] = "close", [8] = "piece",
}
local CHANNELS = { [0] = "posted", [1] = "non-posted", [2] = "response" }
local RECORDS = {
    [1] = "command", [2] = "response", [3] = "message", [4] = "queue record", [5] = "control",
    [6] = "part of a queue record", [7] = "filler", [8] = "bytes of the ring",
}

-- The header as the picture of spec/91 has it, from byte 0 on. Each field: its name, where it lies,
-- how many bytes, what it is called, how it is shown, and what its values or which its bits are.
-- A field with `only` means something only in frames with that flag. Everything below looks up here
-- where a field lies.
local HEADER = {
    { "version", 0, 1, "Version", base.DEC, mask = 0x0f },
    { "kind", 0, 1, "Kind", base.DEC, values = KINDS, mask = 0xf0 },
    { "channel", 1, 1, "Channel", base.DEC, values = CHANNELS, mask = 0x03 },
    { "flags", 1, 1, "Flags", base.HEX, mask = 0xfc },
    { "path", 2, 1, "Path", base.DEC },
    { "echo.path", 3, 1, "Echo of path", base.DEC, only = "echo" },
    { "length", 4, 2, "Payload length", base.DEC },
    { "sack.channel", 6, 1, "Sack of channel", base.DEC, values = CHANNELS },
    { "late", 7, 1, "Waited for a look (32768 ns)", base.DEC, only = "echo" },
    { "to", 8, 4, "To", base.HEX },
    { "generation", 12, 4, "Generation", base.HEX },
    { "token", 16, 8, "Token", base.HEX },
    { "packet", 24, 8, "Packet", base.HEX_DEC },
    { "seq", 32, 4, "Number", base.DEC },
    { "stamp", 36, 4, "Stamp", base.DEC },
    { "ack.0", 40, 4, "Ack, posted", base.DEC },
    { "ack.1", 44, 4, "Ack, non-posted", base.DEC },
    { "ack.2", 48, 4, "Ack, response", base.DEC },
    { "limit.0", 52, 4, "Limit, posted", base.DEC },
    { "limit.1", 56, 4, "Limit, non-posted", base.DEC },
    { "limit.2", 60, 4, "Limit, response", base.DEC },
    { "sack", 64, 16, "Sack, lowest byte first" },
    { "echo", 80, 4, "Echo", base.DEC, only = "echo" },
    { "held", 84, 4, "Held (ns)", base.DEC, only = "echo" },
    { "payload.crc", 88, 4, "CRC of the payload", base.HEX },
    { "crc", 92, 4, "CRC of the header", base.HEX },
}
-- Bits of the field `flags`, by their place in its byte.
local FLAGS = {
    { "early", 0x04, "Early" },
    { "nack", 0x08, "Misses a frame" },
    { "echo", 0x10, "Echo" },
    { "answer", 0x20, "Answers the other side's" },
}

local NUMBERS = { ProtoField.uint8, ProtoField.uint16, nil, ProtoField.uint32,
    [8] = ProtoField.uint64 }
local HEADER_BYTES = 0
local f, place = {}, {}
for _, field in ipairs(HEADER) do
    local name, at, bytes, text, shown = table.unpack(field)
    local number = NUMBERS[bytes]
    if number then
        f[name] = number("ayre." .. name, text, shown, field.values, field.mask)
    else
        f[name] = ProtoField.bytes("ayre." .. name, text)
    end
    place[name] = { at, bytes }
    HEADER_BYTES = math.max(HEADER_BYTES, at + bytes)
end
for _, flag in ipairs(FLAGS) do
    f["flags." .. flag[1]] = ProtoField.bool("ayre.flags." .. flag[1], flag[3], 8, nil, flag[2])
end
f["payload.good"] = ProtoField.bool("ayre.payload.good", "Payload is whole")
f["good"] = ProtoField.bool("ayre.good", "Header is whole")
f["payload"] = ProtoField.bytes("ayre.payload", "Payload")
f["piece"] = ProtoField.bytes("ayre.piece", "Piece")
f["piece.offset"] = ProtoField.uint16("ayre.piece.offset", "Offset")
f["piece.length"] = ProtoField.uint16("ayre.piece.length", "Length of the whole payload")
f["piece.crc"] = ProtoField.uint32("ayre.piece.crc", "CRC of the whole payload", base.HEX)
f["piece.bytes"] = ProtoField.bytes("ayre.piece.bytes", "Bytes")
f["record"] = ProtoField.bytes("ayre.record", "Record")
f["record.kind"] = ProtoField.uint8("ayre.record.kind", "Kind", base.DEC, RECORDS)
f["record.length"] = ProtoField.uint16("ayre.record.length", "Length")
f["record.tag"] = ProtoField.uint32("ayre.record.tag", "Tag", base.HEX)
f["record.bytes"] = ProtoField.bytes("ayre.record.bytes", "Bytes")
ayre.fields = f

local damaged_header = ProtoExpert.new(
    "ayre.damaged.header", "The header is damaged", expert.group.CHECKSUM, expert.severity.ERROR)
local damaged_payload = ProtoExpert.new(
    "ayre.damaged.payload", "The payload is damaged", expert.group.CHECKSUM, expert.severity.ERROR)
local malformed_record = ProtoExpert.new(
    "ayre.malformed.record", "No record, or not whole (it may be encrypted)",
    expert.group.MALFORMED, expert.severity.WARN)
ayre.experts = { damaged_header, damaged_payload, malformed_record }

ayre.prefs.port = Pref.uint("UDP port", 0, "All datagrams of this port are frames; 0 for none")

-- Lua 5.3 and later have operators for bits, which earlier ones cannot even read.
local xor = load("return function(a, b) return a ~ b end")
local shift = load("return function(a, by) return a >> by end")
local bits = bit32 or bit
xor = xor and xor() or bits.bxor
shift = shift and shift() or bits.rshift

local function unsigned(number)
    return number % 0x100000000
end

-- CRC-32C by a table, bits reflected.
local crc_table = {}
for index = 0, 255 do
    local sum = index
    for _ = 1, 8 do
        local out = sum % 2
        sum = unsigned(shift(sum, 1))
        if out == 1 then
            sum = unsigned(xor(sum, 0x82f63b78))
        end
    end
    crc_table[index] = sum
end

local function crc(range)
    local sum = 0xffffffff
    local bytes = range:bytes()
    for at = 0, bytes:len() - 1 do
        local index = unsigned(xor(sum, bytes:get_index(at))) % 256
        sum = unsigned(xor(unsigned(shift(sum, 8)), crc_table[index]))
    end
    return unsigned(xor(sum, 0xffffffff))
end

-- The bytes of a field of the header, and their value.
local function range(buffer, name)
    return buffer(place[name][1], place[name][2])
end

local function value(buffer, name)
    local bytes = range(buffer, name)
    return bytes:len() == 8 and bytes:le_uint64() or bytes:le_uint()
end

local function has(buffer, name)
    for _, flag in ipairs(FLAGS) do
        if flag[1] == name then
            return math.floor(value(buffer, "flags") / flag[2]) % 2 == 1
        end
    end
end

local function kind_of(buffer)
    return KINDS[math.floor(value(buffer, "kind") / 16)] or "?"
end

local function header_is_whole(buffer)
    return crc(buffer(0, place["crc"][1])) == value(buffer, "crc")
end

local function add_header(buffer, tree)
    for _, field in ipairs(HEADER) do
        local name = field[1]
        if not field.only or has(buffer, field.only) then
            local item = tree:add_le(f[name], range(buffer, name))
            if name == "flags" then
                for _, flag in ipairs(FLAGS) do
                    item:add_le(f["flags." .. flag[1]], range(buffer, name))
                end
            end
        end
    end
end

-- Adds the record at the front and returns its name and what lies behind it, or nothing.
local function add_record(payload, tree)
    if payload:len() < HEAD_BYTES then
        return nil
    end
    local name = RECORDS[payload(0, 1):uint()]
    local length = payload(2, 2):le_uint()
    local whole = HEAD_BYTES + math.ceil(length / 8) * 8
    if name == nil or length == 0 or whole > payload:len() then
        return nil
    end
    local record = tree:add(f.record, payload(0, whole))
    record:set_text(string.format("Record: %s, %d bytes", name, length))
    record:add_le(f["record.kind"], payload(0, 1))
    record:add_le(f["record.length"], payload(2, 2))
    record:add_le(f["record.tag"], payload(4, 4))
    record:add(f["record.bytes"], payload(HEAD_BYTES, length))
    if whole == payload:len() then
        return name, nil
    end
    return name, payload(whole):tvb()
end

local function add_records(payload, tree)
    local names = {}
    while payload ~= nil do
        local name, rest = add_record(payload, tree)
        if name == nil then
            tree:add_tvb_expert_info(malformed_record, payload())
            break
        end
        names[#names + 1] = name
        payload = rest
    end
    return table.concat(names, ", ")
end

-- Adds what a piece says of the frame that it is a part of.
local function add_piece(payload, tree)
    if payload:len() <= HEAD_BYTES then
        tree:add_proto_expert_info(malformed_record)
        return ""
    end
    local piece = tree:add(f.piece, payload)
    local offset, length = payload(0, 2):le_uint(), payload(2, 2):le_uint()
    local text = string.format("bytes %d to %d of %d", offset, offset + payload:len() - HEAD_BYTES,
        length)
    piece:set_text("Piece: " .. text)
    piece:add_le(f["piece.offset"], payload(0, 2))
    piece:add_le(f["piece.length"], payload(2, 2))
    piece:add_le(f["piece.crc"], payload(4, 4))
    piece:add(f["piece.bytes"], payload(HEAD_BYTES))
    return text
end

local function add_payload(buffer, tree)
    local length = buffer:len() - HEADER_BYTES
    local is_whole = value(buffer, "length") == length
    if length > 0 then
        local payload = buffer(HEADER_BYTES)
        is_whole = is_whole and crc(payload) == value(buffer, "payload.crc")
        tree = tree:add(f.payload, payload)
    else
        is_whole = is_whole and value(buffer, "payload.crc") == 0
    end
    tree:add(f["payload.good"], range(buffer, "payload.crc"), is_whole):set_generated()
    if not is_whole then
        tree:add_proto_expert_info(damaged_payload)
    end
    if length > 0 and kind_of(buffer) == "data" then
        return add_records(buffer(HEADER_BYTES):tvb(), tree)
    elseif length > 0 and kind_of(buffer) == "piece" then
        return add_piece(buffer(HEADER_BYTES), tree)
    end
    return ""
end

local function summary(buffer, records)
    local text = string.format("%s packet=%s", kind_of(buffer), value(buffer, "packet"))
    for _, flag in ipairs(FLAGS) do
        if flag[1] ~= "echo" and has(buffer, flag[1]) then
            text = text .. " " .. flag[1]
        end
    end
    if buffer:len() > HEADER_BYTES then
        local channel = CHANNELS[value(buffer, "channel") % 4] or "?"
        text = text .. string.format(" %s seq=%d", channel, value(buffer, "seq"))
    end
    text = text .. string.format(" ack=%d/%d/%d", value(buffer, "ack.0"),
        value(buffer, "ack.1"), value(buffer, "ack.2"))
    if records ~= "" then
        text = text .. ": " .. records
    end
    return text
end

function ayre.dissector(buffer, packet, root)
    if buffer:len() < HEADER_BYTES then
        return 0
    end
    packet.cols.protocol = "Ayre"
    local tree = root:add(ayre, buffer())
    local is_whole = header_is_whole(buffer)
    add_header(buffer, tree)
    tree:add(f.good, range(buffer, "crc"), is_whole):set_generated()
    if not is_whole then
        tree:add_proto_expert_info(damaged_header)
        packet.cols.info = "damaged header"
        return buffer:len()
    end
    local text = summary(buffer, add_payload(buffer, tree))
    packet.cols.info = text
    tree:append_text(": " .. text)
    return buffer:len()
end

ayre:register_heuristic("udp", function(buffer, packet, root)
    if buffer:len() < HEADER_BYTES or value(buffer, "version") % 16 ~= VERSION then
        return false
    end
    if not header_is_whole(buffer) then
        return false
    end
    ayre.dissector(buffer, packet, root)
    return true
end)

local taken = 0
function ayre.prefs_changed()
    local ports = DissectorTable.get("udp.port")
    if taken ~= 0 then
        ports:remove(taken, ayre)
    end
    taken = ayre.prefs.port
    if taken ~= 0 then
        ports:add(taken, ayre)
    end
end
