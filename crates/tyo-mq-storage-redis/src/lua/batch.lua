-- Operations in order. ARGV: prefix, now in ms, how many scores, then for each operation its letter and its arguments.
-- Each answers a text: a score, "ok", or "E" and what went wrong.

local score = reserve(tonumber(ARGV[2]), math.max(1, tonumber(ARGV[3]))) - STEP
local at, out = 4, {}

local function take()
  local value = ARGV[at]
  at = at + 1
  return value
end

local function next_score()
  score = score + STEP
  return score
end

local ops = {}

function ops.E(r, q, id, json, expires, pexpireat, attempts)
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
    if type(answer) == 'table' then
      answer = answer.err
    end
    answer = 'E' .. tostring(answer)
  end
  out[#out + 1] = answer
end
return out
