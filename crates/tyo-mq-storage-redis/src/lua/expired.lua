-- Takes or lists expired messages of a realm. ARGV: prefix, realm, now in ms, how many, "take" or "list".
-- Answers: how many members were looked at; then queue and 1 for each one taken, or queue, id and text (empty if gone) for
-- each one listed.

local r = ARGV[2]
local zset = P .. ':expiry:' .. r
local found = redis.call('ZRANGEBYSCORE', zset, '-inf', ARGV[3], 'LIMIT', 0, ARGV[4])
local out = { #found }
for _, member in ipairs(found) do
  local key, consumer, id = string.match(member, '^([^:]*):([^:]*):(.*)$')
  if not id then
    redis.call('ZREM', zset, member)
  else
    local q = key .. ':' .. consumer
    if ARGV[5] == 'take' then
      if forget(r, q, id) == 1 then
        out[#out + 1] = q
        out[#out + 1] = 1
      end
    elseif redis.call('ZSCORE', P .. ':index:' .. r .. ':' .. q, id) then
      out[#out + 1] = q
      out[#out + 1] = id
      out[#out + 1] = redis.call('GET', P .. ':message:' .. id) or ''
    else
      redis.call('ZREM', zset, member)
    end
  end
end
return out
