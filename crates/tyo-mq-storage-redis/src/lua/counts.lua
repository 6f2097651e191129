-- Writes how many messages the realms have. ARGV: prefix, then realm and count of each.

make_way()
redis.call('DEL', P .. ':counts')
for i = 2, #ARGV, 2 do
  redis.call('HSET', P .. ':counts', ARGV[i], ARGV[i + 1])
end
return 'ok'
