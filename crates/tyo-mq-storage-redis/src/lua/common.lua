-- What every script has: names of keys, and the steps that several share.
-- KEYS[1] is the clock key and routes the script; all other keys begin with the prefix in ARGV[1].
-- Realms and queues come encoded: realm "r", queue "q" = key and consumer with a colon between.

local P = ARGV[1]
local STEP = 0.0009765625

-- A server that is full refuses what may take memory as a script's first write, and nothing after one. Whatever makes room,
-- and what is told of messages that it has, begins with this write, which takes none.
local function make_way()
  redis.call('DEL', P .. ':nothing')
end

-- Exact for every multiple of STEP below 2^43.
local function exact(score)
  return string.format('%.10f', score)
end

local function forget(r, q, id)
  local gone = redis.call('ZREM', P .. ':index:' .. r .. ':' .. q, id)
  if gone == 1 then
    redis.call('HINCRBY', P .. ':counts', r, -1)
  end
  redis.call('DEL', P .. ':message:' .. id)
  redis.call('HDEL', P .. ':attempts:' .. r .. ':' .. q, id)
  redis.call('ZREM', P .. ':expiry:' .. r, q .. ':' .. id)
  return gone
end

-- expires and pexpireat are texts, empty for never.
local function keep(r, q, id, json, expires, pexpireat, attempts, score)
  redis.call('SET', P .. ':message:' .. id, json)
  if pexpireat ~= '' then
    redis.call('PEXPIREAT', P .. ':message:' .. id, pexpireat)
  end
  if redis.call('ZADD', P .. ':index:' .. r .. ':' .. q, exact(score), id) == 1 then
    redis.call('HINCRBY', P .. ':counts', r, 1)
  end
  if attempts == '0' then
    redis.call('HDEL', P .. ':attempts:' .. r .. ':' .. q, id)
  else
    redis.call('HSET', P .. ':attempts:' .. r .. ':' .. q, id, attempts)
  end
  if expires == '' then
    redis.call('ZREM', P .. ':expiry:' .. r, q .. ':' .. id)
  else
    redis.call('ZADD', P .. ':expiry:' .. r, expires, q .. ':' .. id)
  end
end

-- Gives the first of count new scores: the milliseconds of the caller's clock, but never one that was given before.
local function reserve(now, count)
  local last = tonumber(redis.call('GET', KEYS[1]) or '0')
  local first = now
  if first <= last then
    first = last + STEP
  end
  redis.call('SET', KEYS[1], exact(first + (count - 1) * STEP))
  return first
end

-- Reads members behind a score. Equal scores, which the reference writes, are set apart first, so that a score can be a place.
local function members(zset, after, limit)
  local found = redis.call('ZRANGEBYSCORE', zset, '(' .. exact(after), '+inf', 'WITHSCORES', 'LIMIT', 0, limit)
  local seen, last, original = {}, after, after
  for i = 1, #found, 2 do
    original = tonumber(found[i + 1])
    local score = original
    if score <= last then
      score = last + STEP
      make_way()
      redis.call('ZADD', zset, exact(score), found[i])
      found[i + 1] = exact(score)
    end
    seen[found[i]] = true
    last = score
  end
  -- Those left behind must not end up before the last one.
  local place, low = last, original
  while #found > 0 do
    local left = redis.call('ZRANGEBYSCORE', zset, exact(low), exact(place), 'WITHSCORES')
    local moved = false
    for i = 1, #left, 2 do
      if not seen[left[i]] then
        seen[left[i]] = true
        moved = true
        low = tonumber(left[i + 1])
        place = place + STEP
        make_way()
        redis.call('ZADD', zset, exact(place), left[i])
      end
    end
    if not moved then
      break
    end
  end
  return found, last
end
