-- Reads a page. ARGV: prefix, realm, queue, score behind which, how many, bytes after which to stop, now in ms.
-- Answers: score of the last member looked at, whether none stands behind it, then id, score, attempts and text of each message.

local r, q = ARGV[2], ARGV[3]
local index = P .. ':index:' .. r .. ':' .. q
local limit, max_bytes = tonumber(ARGV[5]), tonumber(ARGV[6])
local found, last = members(index, tonumber(ARGV[4]), limit)
local out, bytes = { '', 0 }, 0
for i = 1, #found, 2 do
  local id = found[i]
  local json = redis.call('GET', P .. ':message:' .. id)
  last = tonumber(found[i + 1])
  if json then
    bytes = bytes + #json
    local attempts = redis.call('HGET', P .. ':attempts:' .. r .. ':' .. q, id)
    out[#out + 1] = id
    out[#out + 1] = exact(last)
    out[#out + 1] = attempts or ''
    out[#out + 1] = json
    if bytes >= max_bytes then
      break
    end
  else
    -- It expired. The sweep is to find it, and to tell.
    make_way()
    redis.call('ZADD', P .. ':expiry:' .. r, 'NX', ARGV[7], q .. ':' .. id)
  end
end
out[1] = exact(last)
if redis.call('ZCOUNT', index, '(' .. exact(last), '+inf') == 0 then
  out[2] = 1
end
return out
