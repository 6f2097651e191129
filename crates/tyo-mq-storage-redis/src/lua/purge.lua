-- Forgets a stretch of a queue (kind "queue") or of a realm's dead letters (kind "letters").
-- ARGV: prefix, realm, kind, queue, how many. Answers how many were found.

local r, q = ARGV[2], ARGV[4]
local zset = P .. ':dlq:' .. r
if ARGV[3] == 'queue' then
  zset = P .. ':index:' .. r .. ':' .. q
end
local found = redis.call('ZRANGE', zset, 0, tonumber(ARGV[5]) - 1)
for _, id in ipairs(found) do
  if ARGV[3] == 'queue' then
    forget(r, q, id)
  else
    redis.call('DEL', P .. ':dlq:message:' .. id)
    redis.call('ZREM', zset, id)
  end
end
return #found
