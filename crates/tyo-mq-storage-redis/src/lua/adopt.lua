-- Takes a stretch of a queue into our books: places apart, expiries known, the clock behind it.
-- ARGV: prefix, realm, queue, score behind which, how many, now in ms, how long Redis keeps what expired in ms.
-- Answers: how many, and the last score.

make_way()
local r, q, now, kept = ARGV[2], ARGV[3], tonumber(ARGV[6]), tonumber(ARGV[7])
local found, last = members(P .. ':index:' .. r .. ':' .. q, tonumber(ARGV[4]), tonumber(ARGV[5]))
for i = 1, #found, 2 do
  local left = redis.call('PTTL', P .. ':message:' .. found[i])
  if left ~= -1 then
    local at = now
    if left > 0 then
      at = now + left - kept
    end
    redis.call('ZADD', P .. ':expiry:' .. r, 'NX', string.format('%.0f', at), q .. ':' .. found[i])
  end
end
if last > tonumber(redis.call('GET', KEYS[1]) or '0') then
  redis.call('SET', KEYS[1], exact(last))
end
return { #found / 2, exact(last) }
