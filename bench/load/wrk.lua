-- Sends prebuilt requests one after another, on whichever connection is free.
-- Arguments: the file of requests; milliseconds of warm-up; the number of requests to stop after, fewer than
-- there are (0: they are sent again and again); how many connections there are.
-- On stderr it says "steady N" after the warm-up, in which N answers came, and "end" when it stops.
-- The result is one line of JSON on stdout.

local ffi = require('ffi')
ffi.cdef [[
  typedef struct { long seconds; long nanoseconds; } clock_time;
  int clock_gettime(int clock, clock_time *time);
]]
local realtime, monotonic = 0, 1
local time = ffi.new('clock_time')

local function milliseconds(clock)
  ffi.C.clock_gettime(clock, time)
  return tonumber(time.seconds) * 1000 + tonumber(time.nanoseconds) / 1e6
end

-- A UUIDv7 of RFC 9562: 48 bits of Unix time in milliseconds, then random bits.
local function freshKey()
  local ms, random = milliseconds(realtime), math.random
  return string.format('%08x-%04x-7%03x-%04x-%06x%06x', math.floor(ms / 65536), math.floor(ms % 65536),
    random(0, 0xfff), random(0x8000, 0xbfff), random(0, 0xffffff), random(0, 0xffffff))
end

local keyPlace = '00000000-0000-7000-8000-000000000000'
local lengthDigits = 8
local text, isKeyed, warmUpEnd, warmUp, stopAfter, connections
local at, begun = 1, 0

function init(args)
  local file = assert(io.open(args[1], 'rb'))
  text = file:read('*a')
  file:close()
  isKeyed = text:find(keyPlace, 1, true) ~= nil
  warmUp, stopAfter, connections = tonumber(args[2]), tonumber(args[3]), tonumber(args[4])
  math.randomseed(milliseconds(realtime) % 2 ^ 31)
end

function request()
  if warmUp then
    local now = milliseconds(monotonic)
    warmUpEnd = warmUpEnd or now + warmUp
    if now >= warmUpEnd then
      -- All connections but the one that asks now wait for an answer.
      io.stderr:write(string.format('steady %d\n', begun - (connections - 1)))
      warmUp = nil
    end
  end
  begun = begun + 1
  if begun == stopAfter then
    -- Until the loop has ended each connection may ask once more: there are requests left for that.
    io.stderr:write('end\n')
    wrk.thread:stop()
  end
  if at > #text then at = 1 end
  local first = at + lengthDigits
  at = first + tonumber(text:sub(at, first - 1))
  local bytes = text:sub(first, at - 1)
  local place = isKeyed and bytes:find(keyPlace, 1, true)
  if not place then return bytes end
  return bytes:sub(1, place - 1) .. freshKey() .. bytes:sub(place + #keyPlace)
end

-- No percentile beyond the median: wrk counts the first requests too, which wait for the handshakes of all.
function done(summary, latency)
  local errors = summary.errors
  io.stdout:write(string.format(
    '{"requests":%d,"p50Microseconds":%d,"errors":{"connect":%d,"read":%d,"write":%d,"timeout":%d,"status":%d}}\n',
    summary.requests, latency:percentile(50), errors.connect, errors.read, errors.write, errors.timeout,
    errors.status))
end
