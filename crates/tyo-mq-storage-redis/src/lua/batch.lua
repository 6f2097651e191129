-- Operations in order. ARGV: prefix, now in ms, how many scores, then for each operation its letter and its arguments.
-- Each answers a text: a score, "ok", or "E" and what went wrong. Without scores no operation takes room.
-- On a server that is full those that take room fail, and all others succeed.

local now, at, out = tonumber(ARGV[2]), 4, {}
local score, full

local function told(problem)
  if type(problem) == 'table' then
    return problem.err
  end
  return tostring(problem)
end

-- It is the first write, so it finds out whether there is room.
if tonumber(ARGV[3]) > 0 then
  local fine, first = pcall(reserve, now, tonumber(ARGV[3]))
  if fine then
    score = first - STEP
  else
    full = told(first)
    if not string.find(full, 'OOM ', 1, true) then
      error(first, 0)
    end
  end
end
make_way()

local function take_room()
  if full then
    error(full, 0)
  end
end

local function take()
  local value = ARGV[at]
  at = at + 1
  return value
end

local function next_score()
  if full then
    return reserve(now, 1)
  end
  score = score + STEP
  return score
end

local ops = {}

function ops.E(r, q, id, json, expires, pexpireat, attempts)
  take_room()
  local own = next_score()
  keep(r, q, id, json, expires, pexpireat, attempts, own)
  return exact(own)
end

function ops.R(r, q, id)
  forget(r, q, id)
  return 'ok'
end

function ops.A(r, q, id, attempts)
  if redis.call('ZSCORE', P .. ':index:' .. r .. ':' .. q, id) then
    redis.call('HSET', P .. ':attempts:' .. r .. ':' .. q, id, attempts)
  end
  return 'ok'
end

function ops.D(r, q, id, json)
  local own = next_score()
  forget(r, q, id)
  redis.call('SET', P .. ':dlq:message:' .. id, json)
  redis.call('ZADD', P .. ':dlq:' .. r, exact(own), id)
  return 'ok'
end

function ops.S(r, field, json)
  take_room()
  redis.call('HSET', P .. ':subscriptions:' .. r, field, json)
  return 'ok'
end

function ops.U(r, field)
  redis.call('HDEL', P .. ':subscriptions:' .. r, field)
  return 'ok'
end

-- A dead letter that still is as it was read goes back.
function ops.Q(r, q, id, json, expires, pexpireat, letter)
  local own = next_score()
  if redis.call('GET', P .. ':dlq:message:' .. id) ~= letter then
    return 'none'
  end
  redis.call('DEL', P .. ':dlq:message:' .. id)
  redis.call('ZREM', P .. ':dlq:' .. r, id)
  keep(r, q, id, json, expires, pexpireat, '0', own)
  return 'ok'
end

function ops.K(r, id)
  local known = redis.call('DEL', P .. ':dlq:message:' .. id)
  redis.call('ZREM', P .. ':dlq:' .. r, id)
  return known == 1 and 'ok' or 'none'
end

local counts = { E = 7, R = 3, A = 4, D = 4, S = 3, U = 2, Q = 7, K = 2 }

while at <= #ARGV do
  local letter = take()
  local args = {}
  for i = 1, counts[letter] do
    args[i] = take()
  end
  local fine, answer = pcall(ops[letter], unpack(args))
  if not fine then
    answer = 'E' .. told(answer)
  end
  out[#out + 1] = answer
end
return out
