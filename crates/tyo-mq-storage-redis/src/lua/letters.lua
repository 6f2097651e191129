-- Reads dead letters of a realm. ARGV: prefix, realm, score behind which, how many, bytes after which to stop.
-- Answers: whether none stands behind the last one, then score and text of each.

local zset = P .. ':dlq:' .. ARGV[2]
local found, last = members(zset, tonumber(ARGV[3]), tonumber(ARGV[4]))
local out, bytes = { 0 }, 0
for i = 1, #found, 2 do
  local json = redis.call('GET', P .. ':dlq:message:' .. found[i])
  last = tonumber(found[i + 1])
  if json then
    bytes = bytes + #json
    out[#out + 1] = exact(last)
    out[#out + 1] = json
    if bytes >= tonumber(ARGV[5]) then
      break
    end
  else
    redis.call('ZREM', zset, found[i])
  end
end
if redis.call('ZCOUNT', zset, '(' .. exact(last), '+inf') == 0 then
  out[1] = 1
end
return out
