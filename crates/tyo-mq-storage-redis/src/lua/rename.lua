-- rename
-- Puts everything of a realm under another name. ARGV: prefix, old realm, new realm, both names as JSON texts, then the
-- queues. What is under the new name already stays. Done twice, it does nothing the second time.

local old, new = ARGV[2], ARGV[3]

-- Joins two keys of one kind with the command that unites them, or just renames.
local function move(kind, rest, merge)
  local from, to = P .. kind .. old .. rest, P .. kind .. new .. rest
  if redis.call('EXISTS', from) == 0 then
    return
  end
  if redis.call('EXISTS', to) == 0 then
    redis.call('RENAME', from, to)
    return
  end
  merge(from, to)
  redis.call('DEL', from)
end

local function unite(from, to)
  redis.call('ZUNIONSTORE', to, 2, to, from, 'AGGREGATE', 'MAX')
end

local function copy(from, to)
  local cursor = '0'
  repeat
    local found = redis.call('HSCAN', from, cursor, 'COUNT', 500)
    cursor = found[1]
    for i = 1, #found[2], 2 do
      redis.call('HSET', to, found[2][i], found[2][i + 1])
    end
  until cursor == '0'
end

for i = 6, #ARGV do
  move(':index:', ':' .. ARGV[i], unite)
  move(':attempts:', ':' .. ARGV[i], copy)
end
move(':expiry:', '', unite)
move(':subscriptions:', '', copy)

local count = tonumber(redis.call('HGET', P .. ':counts', old) or '0')
if count ~= 0 then
  redis.call('HINCRBY', P .. ':counts', new, count)
end
redis.call('HDEL', P .. ':counts', old)

-- A dead letter says itself of which realm it is: before its message, which may be anything.
local was, is = '"realm":' .. ARGV[4], '"realm":' .. ARGV[5]
local place = 0
repeat
  local found = redis.call('ZRANGE', P .. ':dlq:' .. old, place, place + 499)
  for _, id in ipairs(found) do
    local key = P .. ':dlq:message:' .. id
    local text = redis.call('GET', key)
    local first, last = string.find(text or '', was, 1, true)
    if first then
      redis.call('SET', key, string.sub(text, 1, first - 1) .. is .. string.sub(text, last + 1))
    end
  end
  place = place + #found
until #found == 0
move(':dlq:', '', unite)
return 'ok'
