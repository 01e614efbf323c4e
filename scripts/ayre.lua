-- Shows the frames of Ayre's links (spec/91) in Wireshark and tshark:
--
--   tshark -X lua_script:scripts/ayre.lua -r FILE        or copy it to Wireshark's plugin folder
--
-- A datagram of UDP is taken for a frame when its header has the right version and CRC, whatever its
-- ports are. The preference "UDP port" takes all datagrams of a port for frames, damaged ones too.
local ayre = Proto("ayre", "Ayre link")

local HEADER_BYTES = 96
local HEAD_BYTES = 8
local VERSION = 1
local ECHO = 4

local KINDS = {
    [1] = "data", [2] = "open", [3] = "accept", [4] = "resync", [5] = "reset", [6] = "probe",
    [7] = "close",
}
local CHANNELS = { [0] = "posted", [1] = "non-posted", [2] = "response" }
local RECORDS = {
    [1] = "command", [2] = "response", [3] = "message", [4] = "queue record", [5] = "control",
    [6] = "part of a queue record", [7] = "filler", [8] = "bytes of the ring",
}

local f = {
    version = ProtoField.uint8("ayre.version", "Version", base.DEC, nil, 0x0f),
    kind = ProtoField.uint8("ayre.kind", "Kind", base.DEC, KINDS, 0xf0),
    channel = ProtoField.uint8("ayre.channel", "Channel", base.DEC, CHANNELS, 0x03),
    flags = ProtoField.uint8("ayre.flags", "Flags", base.HEX, nil, 0xfc),
    early = ProtoField.bool("ayre.flags.early", "Early", 8, nil, 0x04),
    nack = ProtoField.bool("ayre.flags.nack", "Misses a frame", 8, nil, 0x08),
    echo_flag = ProtoField.bool("ayre.flags.echo", "Echo", 8, nil, 0x10),
    path = ProtoField.uint8("ayre.path", "Path"),
    length = ProtoField.uint16("ayre.length", "Payload length"),
    to = ProtoField.uint32("ayre.to", "To", base.HEX),
    generation = ProtoField.uint32("ayre.generation", "Generation", base.HEX),
    token = ProtoField.uint64("ayre.token", "Token", base.HEX),
    packet = ProtoField.uint64("ayre.packet", "Packet", base.HEX_DEC),
    seq = ProtoField.uint32("ayre.seq", "Number", base.DEC),
    stamp = ProtoField.uint32("ayre.stamp", "Stamp", base.DEC),
    sack_channel = ProtoField.uint8("ayre.sack.channel", "Sack of channel", base.DEC, CHANNELS),
    sack = ProtoField.bytes("ayre.sack", "Sack, lowest byte first"),
    echo = ProtoField.uint32("ayre.echo", "Echo", base.DEC),
    held = ProtoField.uint32("ayre.held", "Held (ns)", base.DEC),
    echo_path = ProtoField.uint8("ayre.echo.path", "Echo of path"),
    payload_crc = ProtoField.uint32("ayre.payload.crc", "CRC of the payload", base.HEX),
    payload_good = ProtoField.bool("ayre.payload.good", "Payload is whole"),
    crc = ProtoField.uint32("ayre.crc", "CRC of the header", base.HEX),
    good = ProtoField.bool("ayre.good", "Header is whole"),
    payload = ProtoField.bytes("ayre.payload", "Payload"),
    record = ProtoField.bytes("ayre.record", "Record"),
    record_kind = ProtoField.uint8("ayre.record.kind", "Kind", base.DEC, RECORDS),
    record_length = ProtoField.uint16("ayre.record.length", "Length"),
    record_tag = ProtoField.uint32("ayre.record.tag", "Tag", base.HEX),
    record_bytes = ProtoField.bytes("ayre.record.bytes", "Bytes"),
}
for number, name in pairs(CHANNELS) do
    f["ack" .. number] = ProtoField.uint32("ayre.ack." .. number, "Ack, " .. name, base.DEC)
    f["limit" .. number] = ProtoField.uint32("ayre.limit." .. number, "Limit, " .. name, base.DEC)
end
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

local function header_is_whole(buffer)
    return crc(buffer(0, HEADER_BYTES - 4)) == buffer(HEADER_BYTES - 4, 4):le_uint()
end

local function add_flags(buffer, tree)
    local flags = tree:add_le(f.flags, buffer(1, 1))
    flags:add_le(f.early, buffer(1, 1))
    flags:add_le(f.nack, buffer(1, 1))
    flags:add_le(f.echo_flag, buffer(1, 1))
end

-- What one channel may send and has, in one line.
local function add_channel(buffer, tree, number)
    tree:add_le(f["ack" .. number], buffer(40 + 4 * number, 4))
    tree:add_le(f["limit" .. number], buffer(52 + 4 * number, 4))
end

local function add_header(buffer, tree)
    tree:add_le(f.version, buffer(0, 1))
    tree:add_le(f.kind, buffer(0, 1))
    tree:add_le(f.channel, buffer(1, 1))
    add_flags(buffer, tree)
    tree:add_le(f.path, buffer(2, 1))
    tree:add_le(f.length, buffer(4, 2))
    tree:add_le(f.to, buffer(8, 4))
    tree:add_le(f.generation, buffer(12, 4))
    tree:add_le(f.token, buffer(16, 8))
    tree:add_le(f.packet, buffer(24, 8))
    tree:add_le(f.seq, buffer(32, 4))
    tree:add_le(f.stamp, buffer(36, 4))
    for number = 0, 2 do
        add_channel(buffer, tree, number)
    end
    tree:add_le(f.sack_channel, buffer(6, 1))
    tree:add(f.sack, buffer(64, 16))
    if math.floor(buffer(1, 1):uint() / 4 / ECHO) % 2 == 1 then
        tree:add_le(f.echo, buffer(80, 4))
        tree:add_le(f.held, buffer(84, 4))
        tree:add_le(f.echo_path, buffer(3, 1))
    end
    tree:add_le(f.payload_crc, buffer(88, 4))
    tree:add_le(f.crc, buffer(92, 4))
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
    record:add_le(f.record_kind, payload(0, 1))
    record:add_le(f.record_length, payload(2, 2))
    record:add_le(f.record_tag, payload(4, 4))
    record:add(f.record_bytes, payload(HEAD_BYTES, length))
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

local function add_payload(buffer, tree)
    local length = buffer:len() - HEADER_BYTES
    local is_whole = buffer(4, 2):le_uint() == length
    if length > 0 then
        local payload = buffer(HEADER_BYTES)
        is_whole = is_whole and crc(payload) == buffer(80, 4):le_uint()
        tree = tree:add(f.payload, payload)
    else
        is_whole = is_whole and buffer(80, 4):le_uint() == 0
    end
    tree:add(f.payload_good, buffer(80, 4), is_whole):set_generated()
    if not is_whole then
        tree:add_proto_expert_info(damaged_payload)
    end
    if length > 0 and math.floor(buffer(0, 1):uint() / 16) == 1 then
        return add_records(buffer(HEADER_BYTES):tvb(), tree)
    end
    return ""
end

local function summary(buffer, records)
    local kind = KINDS[math.floor(buffer(0, 1):uint() / 16)] or "?"
    local channel = CHANNELS[buffer(1, 1):uint() % 4] or "?"
    local text = string.format("%s packet=%s", kind, buffer(24, 8):le_uint64())
    if buffer:len() > HEADER_BYTES then
        text = text .. string.format(" %s seq=%d", channel, buffer(32, 4):le_uint())
    end
    text = text .. string.format(" ack=%d/%d/%d", buffer(40, 4):le_uint(),
        buffer(44, 4):le_uint(), buffer(48, 4):le_uint())
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
    tree:add(f.good, buffer(HEADER_BYTES - 4, 4), is_whole):set_generated()
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
    if buffer:len() < HEADER_BYTES or buffer(0, 1):uint() % 16 ~= VERSION then
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
