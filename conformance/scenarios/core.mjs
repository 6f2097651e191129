// What a client may rely on from a broker without storage. `needs` names the features (lib/columns.mjs) a peer must have.

import { CHUNK_UNITS, SESSION_MS } from '../lib/limits.mjs';
import { holds, picture, same } from '../lib/values.mjs';
import { LARGE, PAYLOADS, SPELLINGS } from './payloads.mjs';

const BURST = 500;

/** One consumer with one subscription to one producer. */
async function pair(world, event, options) {
    const consumer = await world.consumer('c');
    const producer = await world.producer('p');
    return { consumer, producer, inbox: await consumer.subscribe(producer.name, event, options) };
}

/** Each value produced, received and compared before the next one. */
async function roundTrips(world, { producer, inbox }, event, values) {
    for (const [i, value] of values.entries()) {
        producer.produce(event, value);
        same((await inbox.take(i + 1))[i].message, value, `value no. ${i + 1}`);
    }
    await world.drain(producer, inbox.session);
    same(inbox.all.length, values.length, 'number of deliveries');
}

const payloads = (name) => ({
    name: `payload-${name}`,
    needs: ['subscribe', ...(['null', 'binary'].includes(name) ? [name] : [])],
    run: async (world) => roundTrips(world, await pair(world, 'Pay'), 'Pay', PAYLOADS[name]),
});

export const core = [
    { name: 'connect', needs: ['raw'], run: connect },
    { name: 'pub-sub', needs: ['subscribe'], run: pubSub },
    ...Object.keys(PAYLOADS).map(payloads),
    { name: 'payload-1mb', needs: ['subscribe'], run: large },
    { name: 'payload-spelling', needs: ['text'], run: spelling },
    { name: 'order', needs: ['raw', 'order'], run: order },
    { name: 'json-strings', needs: ['raw'], run: jsonStrings },
    { name: 'two-consumers', needs: ['subscribe'], run: twoConsumers },
    { name: 'any-producer', needs: ['subscribe'], run: anyProducer },
    { name: 'all-events', needs: ['raw'], run: allEvents },
    { name: 'unsubscribe', needs: ['raw'], run: unsubscribe },
    { name: 'confirm', needs: ['raw'], run: confirm },
    { name: 'recipients', needs: ['raw'], run: recipients },
    { name: 'duplicate-name', needs: ['raw'], run: duplicateName },
    { name: 'presence', needs: ['raw'], run: presence },
    { name: 'topics', needs: ['subscribe'], run: topics },
    { name: 'group', needs: ['subscribe'], run: group },
    { name: 'broadcast-realm', needs: ['raw'], run: broadcastRealm },
    { name: 'broadcast-heard', needs: ['subscribe'], run: broadcastHeard },
    { name: 'broadcast-group', needs: ['subscribe'], run: broadcastGroup },
    { name: 'chunks-out', needs: ['raw'], run: chunksOut },
    { name: 'chunks-in', needs: ['raw'], run: chunksIn },
    { name: 'malformed', needs: ['raw'], run: malformed },
    { name: 'quit', needs: ['raw'], run: quit },
    { name: 'same-name-again', needs: ['subscribe'], run: sameNameAgain },
    { name: 'reconnect', needs: ['reconnect'], run: reconnect },
    { name: 'broker-restart', needs: ['goodbye'], run: brokerRestart },
    { name: 'meets-baseline', needs: ['subscribe'], run: meetsBaseline },
    { name: 'legacy-publish', needs: ['legacy'], run: legacyPublish },
    { name: 'legacy-broadcast', needs: ['legacy'], run: legacyBroadcast },
];

async function connect(world) {
    const session = await world.open();
    await upgraded(world, session);
    const [reply] = await session.call('PING', { app_id: 'x', pong: 'mine' });
    same(typeof reply, 'string', 'type of the PING reply');
    const { timestamp, ...rest } = JSON.parse(reply);
    same(rest, { app_id: 'x', pong: 'PONG' }, 'PING reply');
    holds(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(timestamp), `timestamp ${timestamp}`);
}

/** Resolves when the session uses the last of its transports. */
async function upgraded(world, session) {
    const final = world.column.transports.at(-1);
    if (session.transport !== final) same((await session.event('$upgrade'))[0], final, 'transport after the upgrade');
}

async function pubSub(world) {
    const { producer, inbox } = await pair(world, 'Order-Placed');
    producer.produce('Order-Placed', { n: 7 });
    producer.produce('Other', 'not for this subscription');
    await world.exactly(inbox, producer, [{ n: 7 }]);
    const [delivered] = inbox.all;
    same(delivered.from, producer.name, 'from');
    same(delivered.raw, { event: 'Order-Placed', message: { n: 7 }, from: producer.name }, 'delivered object');
}

async function large(world) {
    await roundTrips(world, await pair(world, 'Large'), 'Large', Object.values(LARGE));
}

async function spelling(world) {
    const { producer, inbox } = await pair(world, 'Spell');
    for (const [i, text] of SPELLINGS.entries()) {
        producer.emitText('PRODUCE', `{"event":"Spell","message":${text},"from":${JSON.stringify(producer.name)}}`);
        const { line } = (await inbox.take(i + 1))[i].record;
        holds(line.includes(`"message":${text},"from"`), `${text} arrived as ${line.slice(0, 200)}`);
    }
}

/** A burst right after the connection, so that it meets the upgrade where there is one. */
async function order(world) {
    const { producer, inbox } = await pair(world, 'Burst');
    const numbers = Array.from({ length: BURST }, (_, i) => i);
    numbers.forEach((n) => producer.produce('Burst', n));
    await world.exactly(inbox, producer, numbers);
}

async function jsonStrings(world) {
    const [consumer, producer] = [await world.open(), await world.open()];
    [consumer.name, producer.name] = [world.name('c'), world.name('p')];
    consumer.emit('CONSUMER', JSON.stringify({ name: consumer.name }));
    consumer.emit('SUBSCRIBE', JSON.stringify({ event: 'e', producer: producer.name, consumer: consumer.name }));
    await consumer.fence();
    producer.emit('PRODUCER', JSON.stringify({ name: producer.name }));
    producer.emit('PRODUCE', JSON.stringify({ event: 'e', message: '{"a":1}', from: producer.name }));
    const [delivered] = await consumer.event(`CONSUME-${`${producer.name}-e`.toLowerCase()}`);
    same(delivered, { event: 'e', message: '{"a":1}', from: producer.name }, 'delivered object');
}

async function twoConsumers(world) {
    const producer = await world.producer('p');
    const consumers = [await world.consumer('c1'), await world.consumer('c2')];
    const inboxes = await Promise.all(consumers.map((consumer) => consumer.subscribe(producer.name, 'e')));
    const sent = [1, 'two', { three: 3 }];
    sent.forEach((message) => producer.produce('e', message));
    for (const inbox of inboxes) await world.exactly(inbox, producer, sent);
}

async function anyProducer(world) {
    const consumer = await world.consumer('c');
    const inbox = await consumer.subscribe('TYO-MQ-ALL', 'Any-Event');
    const producers = [await world.producer('p1'), await world.producer('p2')];
    for (const [i, producer] of producers.entries()) {
        producer.produce('any-EVENT', producer.name);
        same((await inbox.take(i + 1))[i].from, producer.name, 'from');
    }
    await world.exactly(inbox, producers[1], producers.map((producer) => producer.name));
}

async function allEvents(world) {
    const { consumer, producer, inbox } = await pair(world, 'TM-ALL');
    ['one', 'two'].forEach((event) => producer.produce(event, event));
    await producer.fence();
    await consumer.fence();
    const key = `CONSUME-${producer.name.toLowerCase()}`;
    same(consumer.seen(`${key}-TM-ALL`).map(([delivered]) => delivered.event), ['one', 'two'], 'under TM-ALL');
    same(inbox.all.map((delivered) => delivered.event), ['one', 'two'], 'under tm-all');
}

async function unsubscribe(world) {
    const { consumer, producer, inbox } = await pair(world, 'e');
    const kept = await consumer.subscribe(producer.name, 'kept');
    producer.produce('e', 1);
    await inbox.take(1);
    const [reply] = await consumer.call('UNSUBSCRIBE', `${producer.name}-e`.toLowerCase());
    same(reply, { ok: true, removed: 1 }, 'reply');
    producer.produce('e', 2);
    producer.produce('kept', 3);
    await world.exactly(inbox, producer, [1]);
    await world.exactly(kept, producer, [3]);
}

async function confirm(world) {
    const { producer, inbox } = await pair(world, 'e');
    const produce = (fields) => producer.call('PRODUCE', { from: producer.name, message: 1, ...fields });
    const [reply] = await produce({ event: 'e' });
    same([reply.ok, typeof reply.msg_id, reply.routed, reply.queued], [true, 'string', 1, 0], `reply ${picture(reply)}`);
    const [nobody] = await produce({ event: 'nobody-listens' });
    same([nobody.ok, nobody.routed, nobody.queued], [true, 0, 0], `reply ${picture(nobody)}`);
    const [refused] = await produce({ event: 5 });
    same([refused.ok, refused.code], [false, 400], `reply ${picture(refused)}`);
    await world.exactly(inbox, producer, [1]);
}

async function recipients(world) {
    const producer = await world.producer('p');
    const consumers = [await world.consumer('c1'), await world.consumer('c2'), await world.consumer('c3')];
    const inboxes = await Promise.all(consumers.map((consumer) => consumer.subscribe(producer.name, 'e')));
    producer.produce('e', 'for two', { recipients: [consumers[0].name, consumers[2].name] });
    producer.produce('e', 'for all');
    for (const [i, expected] of [['for two', 'for all'], ['for all'], ['for two', 'for all']].entries()) await world.exactly(inboxes[i], producer, expected);
}

async function duplicateName(world) {
    const { consumer, producer, inbox } = await pair(world, 'e');
    const second = await world.open();
    second.emit('CONSUMER', { name: consumer.name });
    const [error] = await second.event('ERROR');
    same(error.code, -3, 'code');
    holds(/duplicate/i.test(JSON.stringify(error)), `no word of a duplicate in ${picture(error)}`);
    await second.event('$disconnect');
    producer.produce('e', 'to the holder');
    await world.exactly(inbox, producer, ['to the holder']);
}

async function presence(world) {
    const consumer = await world.consumer('c');
    const producerName = world.name('p');
    const key = `${producerName}-e`.toLowerCase();
    await consumer.subscribe(producerName, 'e');
    const producer = await world.producer('p');
    const announced = { name: consumer.name, id: consumer.name, socket: consumer.id, events: [key], online: true };
    same(await producer.event(`SUBSCRIBE-TO-${producer.noticeId}`), [announced], 'SUBSCRIBE-TO for what is there');
    same(await consumer.event(`CONNECT-${consumer.name}`), [{ event: 'CONNECT', socket: producer.id, producer: producer.name }], 'CONNECT of the producer');

    await consumer.close();
    same(await producer.event(`DISCONNECT-${producer.noticeId}`), [{ event: 'DISCONNECT', socket: consumer.id, consumer: consumer.name }], 'DISCONNECT of the consumer');

    const again = await world.consumer('c');
    same(await producer.event(`CONNECT-${producer.noticeId}`), [{ event: 'CONNECT', socket: again.id, id: again.name, consumer: again.name }], 'CONNECT of the consumer');
    await producer.close();
    same(await again.event(`DISCONNECT-${again.name}`), [{ event: 'DISCONNECT', socket: producer.id, producer: producer.name }], 'DISCONNECT of the producer');
}

async function topics(world) {
    const consumer = await world.consumer('c');
    const root = world.name('Org');
    const plus = await consumer.subscribe('TYO-MQ-ALL', `${root}/+/Status`, { topic: true });
    const hash = await consumer.subscribe('TYO-MQ-ALL', `${root}/#`, { topic: true });
    const producer = await world.producer('p');
    const sent = [`${root}/a/status`, `${root}/a/b/status`, `${root}/A/STATUS`, root, `${root}/a/other`, `x${root}/a/status`];
    sent.forEach((event) => producer.produce(event, event));
    await world.exactly(hash, producer, sent.slice(0, 5), 'under #');
    await world.exactly(plus, producer, [sent[0], sent[2]], 'under +');
    same(plus.all.map((delivered) => delivered.event), plus.messages, 'concrete topics');
}

async function group(world) {
    const producer = await world.producer('p');
    const members = [await world.consumer('w1'), await world.consumer('w2'), await world.consumer('w3')];
    const observer = await world.consumer('observer');
    const inboxes = [];
    for (const member of members) inboxes.push(await member.subscribe(producer.name, 'job', { group: world.name('g') }));
    const all = await observer.subscribe(producer.name, 'job');
    const sent = Array.from({ length: 9 }, (_, i) => i);
    sent.forEach((n) => producer.produce('job', n));
    await world.exactly(all, producer, sent, 'the observer');
    await world.drain(producer, ...members);
    same(inboxes.map((inbox) => inbox.messages.length), [3, 3, 3], 'shares');
    same(inboxes.flatMap((inbox) => inbox.messages).sort(), sent, 'the members together');
}

async function broadcastRealm(world) {
    const producer = await world.producer('p');
    const consumer = await world.consumer('c');
    const stranger = await world.open();
    producer.broadcast('News', { n: 1 });
    await producer.fence();
    await Promise.all([consumer.fence(), stranger.fence()]);
    const name = producer.name.toLowerCase();
    const expected = ['CONSUME-News', `CONSUME-${name}-news`, 'CONSUME-tyo-mq-all-news', `CONSUME-${name}-TM-ALL`].sort();
    for (const session of [consumer, producer]) {
        const heard = session.records.filter((record) => record.event.startsWith('CONSUME-'));
        same(heard.map((record) => record.event).sort(), expected, 'names');
        for (const { args } of heard) same(args, [{ event: 'News', message: { n: 1 }, from: producer.name }], 'delivered object');
    }
    same(stranger.records.filter((record) => record.event.startsWith('CONSUME')), [], 'a socket that registered nothing');
}

async function broadcastHeard(world) {
    const { producer, inbox } = await pair(world, 'news');
    producer.broadcast('news', 'to all');
    await world.exactly(inbox, producer, ['to all']);
}

async function broadcastGroup(world) {
    const { producer, inbox } = await pair(world, 'job', { group: world.name('g') });
    const outsider = await world.consumer('outsider');
    const other = await outsider.subscribe(producer.name, 'job', { group: world.name('other') });
    producer.broadcast('job', 'to the group', { group: world.name('g') });
    await world.exactly(inbox, producer, ['to the group']);
    await world.exactly(other, producer, []);
}

async function chunksOut(world) {
    const { consumer, producer, inbox } = await pair(world, 'big');
    const whole = { event: 'big', message: '', from: producer.name };
    const fits = 'a'.repeat(CHUNK_UNITS - JSON.stringify(whole).length);
    for (const message of [fits, fits + 'b', 'é'.repeat(2 * CHUNK_UNITS)]) producer.produce('big', message);
    const delivered = await inbox.take(3);
    same(delivered.map((d) => d.message.length), [fits.length, fits.length + 1, 2 * CHUNK_UNITS], 'lengths');
    same(delivered.map((d) => d.record.chunks), [undefined, [CHUNK_UNITS, 1], [CHUNK_UNITS, CHUNK_UNITS, JSON.stringify(whole).length]], 'chunks');
    const parts = consumer.seen('CONSUME_CHUNK').map(([part]) => part);
    same(parts.map((p) => [p.index, p.total]), [[0, 2], [1, 2], [0, 3], [1, 3], [2, 3]], 'index and total');
    same(new Set(parts.map((p) => p.transferId)).size, 2, 'transfers');
    holds(parts.every((p) => p.event === `CONSUME-${`${producer.name}-big`.toLowerCase()}`), 'event of a chunk');
}

async function chunksIn(world) {
    const { producer, inbox } = await pair(world, 'big');
    const text = (message) => JSON.stringify({ event: 'big', message, from: producer.name });
    const thirds = (t) => [t.slice(0, 20), t.slice(20, 40), t.slice(40)];
    const [a, b, resent, holed] = ['first ☃', 'second 😀', 'one part sent twice', 'never whole'].map((message) => thirds(text(message)));
    const send = (transferId, parts, index) => producer.emit('PRODUCE_CHUNK', { transferId, index, total: 3, data: parts[index] });
    send('a', a, 2); send('b', b, 0); send('a', a, 0); send('b', b, 2); send('b', b, 1);
    send('resent', resent, 0); send('resent', resent, 0); send('resent', resent, 1); send('resent', resent, 2);
    send('holed', holed, 0); send('holed', holed, 2);
    send('a', a, 1);
    await world.exactly(inbox, producer, ['second 😀', 'one part sent twice', 'first ☃']);
}

async function malformed(world) {
    const session = await world.open();
    session.emit('CONSUMER', { name: 5 });
    same((await session.event('ERROR'))[0].code, -1, 'code of a name that is no string');
    session.emit('CONSUMER', null);
    same((await session.event('ERROR', 2))[0].code, -1, 'code of no payload');
    session.emit('SUBSCRIBE', null);
    same(typeof (await session.event('ERROR', 3))[0], 'string', 'answer to SUBSCRIBE without a payload');
    session.emit('SUBSCRIBE', { producer: 'x' });
    same(typeof (await session.event('ERROR', 4))[0], 'string', 'answer to SUBSCRIBE without an event');
    session.emit('HELLO', null);
    session.emit('NO-SUCH-EVENT', { any: 'thing' });
    session.emit('PRODUCE', null);
    session.emit('PRODUCE', '{not json');
    session.emit('PRODUCE_CHUNK', { transferId: 'x', index: -1, total: 1e9, data: 5 });
    session.emit('PING', 'no reply asked');
    await session.fence();
    same(session.seen('$disconnect'), [], 'disconnects');
}

async function quit(world) {
    const session = await world.open();
    session.emit('QUIT', session.id);
    await session.event('$disconnect');
    const other = await world.open();
    other.emit('QUIT', 'somebody else');
    await other.fence();
}

async function sameNameAgain(world) {
    const { consumer, producer, inbox } = await pair(world, 'e');
    producer.produce('e', 1);
    await inbox.take(1);
    await world.leave(consumer);
    const again = await world.consumer('c');
    const second = await again.subscribe(producer.name, 'e');
    producer.produce('e', 2);
    await world.exactly(second, producer, [2]);
}

/** The network is cut under the consumer; its library comes back by itself, and the application registers again. */
async function reconnect(world) {
    const producer = await world.baseline().producer('p');
    const relay = await world.cut();
    const consumer = await world.consumer('c', { url: relay.url });
    if (world.can('raw')) await upgraded(world, consumer);
    let inbox = await consumer.subscribe(producer.name, 'e');
    producer.produce('e', 'before');
    await inbox.take(1);
    if (world.column.transport === 'polling') {      // cut between two polls, it would be missed only when its session times out
        await relay.pendingPoll();
        await producer.fence();
    }
    relay.cut();
    await producer.event(`DISCONNECT-${producer.noticeId}`, 1, SESSION_MS);
    const seen = producer.seen(`SUBSCRIBE-TO-${producer.noticeId}`).length;
    if (world.can('raw')) {
        await consumer.connected(2);
        await consumer.consumer(consumer.name);
        inbox = await consumer.subscribe(producer.name, 'e');
    }
    await producer.event(`SUBSCRIBE-TO-${producer.noticeId}`, seen + 1);
    producer.produce('e', 'after');
    await inbox.take(2);
    same(inbox.messages, ['before', 'after'], 'messages');
}

/** The broker goes and comes back on its port; both sides come back by themselves. */
async function brokerRestart(world) {
    const producer = await world.baseline().producer('p');
    const consumer = await world.consumer('c');
    let inbox = await consumer.subscribe(producer.name, 'e');
    await world.broker.restart();
    await producer.connected(2);
    await producer.producer(producer.name);
    if (world.can('raw')) {
        await consumer.connected(2);
        await consumer.consumer(consumer.name);
        inbox = await consumer.subscribe(producer.name, 'e');
    }
    await producer.event(`SUBSCRIBE-TO-${producer.noticeId}`);
    producer.produce('e', 'after');
    same((await inbox.take(1))[0].message, 'after', 'message');
}

/** Both ways between the peer under test and socket.io-client 4 over WebSocket. */
async function meetsBaseline(world) {
    const values = [...PAYLOADS.unicode, ...PAYLOADS.numbers, ...PAYLOADS.empty, LARGE['1mb-unicode'], ...(world.can('binary') ? PAYLOADS.binary : [])];
    const [mine, theirs] = [{ producer: await world.producer('mine') }, { producer: await world.baseline().producer('theirs') }];
    const consumers = [await world.baseline().consumer('their-consumer'), await world.consumer('my-consumer')];
    mine.inbox = await consumers[0].subscribe(mine.producer.name, 'e');
    theirs.inbox = await consumers[1].subscribe(theirs.producer.name, 'e');
    await roundTrips(world, mine, 'e', values);
    await roundTrips(world, theirs, 'e', values);
}

async function legacyPublish(world) {
    const consumer = await world.baseline().consumer('c');
    const inbox = await consumer.subscribe(world.name('p'), 'Old');
    const producer = await world.producer('p');
    same((await producer.event('$subscription'))[0].name, consumer.name, 'the subscriber it is told of');
    const sent = ['from the old library', { n: [1, null, '☃'] }];
    sent.forEach((message) => producer.produce('Old', message));
    await world.exactly(inbox, producer, sent);
}

async function legacyBroadcast(world) {
    const producer = await world.baseline().producer('p');
    const consumer = await world.consumer('c');
    consumer.command({ do: 'subscribe', producer: producer.name, event: 'old', tag: 'old' });
    consumer.command({ do: 'call', event: 'PING', args: [{}] });
    await consumer.event('$reply');
    producer.broadcast('old', 'to all');
    same((await consumer.event('$message'))[1], 'to all', 'message');
}
