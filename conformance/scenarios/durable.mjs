// What a client may rely on from a broker with storage and acknowledgements.

import { WAIT_MS } from '../lib/limits.mjs';
import { holds, picture, same } from '../lib/values.mjs';
import { LARGE, PAYLOADS } from './payloads.mjs';

const ACK = { durable: true, ack: true, ack_timeout: '200ms', retry: { max_attempts: 3, delay: '50ms' } };
const SLOW_ACK = { ...ACK, ack_timeout: '60s' };
const BACKLOG = 300;

export const durable = [
    { name: 'durable-replay', needs: ['subscribe'], run: replay },
    { name: 'durable-payloads', needs: ['raw'], run: replayedPayloads },
    { name: 'durable-order', needs: ['raw'], run: backlogInOrder },
    { name: 'durable-topic', needs: ['subscribe'], run: replayedTopic },
    { name: 'durable-restart', needs: ['raw', 'goodbye'], run: restarted },
    { name: 'plain-not-replayed', needs: ['subscribe'], run: plainIsNotReplayed },
    { name: 'guaranteed', needs: ['subscribe'], run: guaranteed },
    { name: 'ttl', needs: ['raw'], run: ttl },
    { name: 'confirm-queued', needs: ['raw'], run: confirmQueued },
    { name: 'auto-ack', needs: ['subscribe'], run: autoAck },
    { name: 'manual-ack', needs: ['raw'], run: manualAck },
    { name: 'ack-refusals', needs: ['raw'], run: ackRefusals },
    { name: 'ack-after-reconnect', needs: ['raw'], run: ackAfterReconnect },
    { name: 'retry', needs: ['raw'], run: retry },
    { name: 'dead-letter', needs: ['raw'], run: deadLetter },
    { name: 'group-ack', needs: ['raw'], run: groupAck },
    { name: 'unsubscribe-durable', needs: ['raw'], run: unsubscribeDurable },
];

/** A consumer that subscribed with `options` and has left, and the producer. */
async function away(world, event, options, role = 'c') {
    const producer = await world.producer('p');
    const consumer = await world.consumer(role);
    await consumer.subscribe(producer.name, event, options);
    await world.leave(consumer);
    return producer;
}

async function back(world, producer, event, options, role = 'c') {
    const consumer = await world.consumer(role);
    return { consumer, inbox: await consumer.subscribe(producer.name, event, options) };
}

/** Resolves when the broker has taken what this producer sent so far. */
async function taken(world, producer) {
    await world.drain(producer, await world.baseline().consumer(`taken-${world.opened.length}`));
}

async function replay(world) {
    const producer = await away(world, 'e', { durable: true });
    [1, 2, 3].forEach((n) => producer.produce('e', n));
    await taken(world, producer);
    const { consumer, inbox } = await back(world, producer, 'e', { durable: true });
    producer.produce('e', 4);
    await world.exactly(inbox, producer, [1, 2, 3, 4]);
    for (const { raw } of inbox.all) holds(!('msgId' in raw) && !('msg_id' in raw), `a msgId without ack: ${picture(raw)}`);
    await world.leave(consumer);
    const second = await back(world, producer, 'e', { durable: true });
    await world.exactly(second.inbox, producer, []);
}

async function replayedPayloads(world) {
    const values = [...Object.values(PAYLOADS).flat(), LARGE['1mb-unicode']];
    const producer = await away(world, 'e', { durable: true });
    values.forEach((value) => producer.produce('e', value));
    await taken(world, producer);
    const { inbox } = await back(world, producer, 'e', { durable: true });
    await world.exactly(inbox, producer, values);
}

async function backlogInOrder(world) {
    const producer = await away(world, 'e', { durable: true });
    const numbers = Array.from({ length: 2 * BACKLOG }, (_, i) => i);
    numbers.slice(0, BACKLOG).forEach((n) => producer.produce('e', n));
    await taken(world, producer);
    const returning = back(world, producer, 'e', { durable: true });
    numbers.slice(BACKLOG).forEach((n) => producer.produce('e', n));
    const { inbox } = await returning;
    await world.exactly(inbox, producer, numbers);
}

async function replayedTopic(world) {
    const pattern = `${world.name('t')}/+`;
    const consumer = await world.consumer('c');
    await consumer.subscribe('TYO-MQ-ALL', pattern, { topic: true, durable: true });
    await world.leave(consumer);
    const producer = await world.producer('p');
    ['a', 'b'].forEach((level) => producer.produce(`${world.name('t')}/${level}`, level));
    await taken(world, producer);
    const again = await world.consumer('c');
    const inbox = await again.subscribe('TYO-MQ-ALL', pattern, { topic: true, durable: true });
    await world.exactly(inbox, producer, ['a', 'b']);
}

/** What was confirmed is there after a restart of a broker with a file, and the subscription with it. */
async function restarted(world) {
    await world.ownBroker({ storage: 'sqlite', storage_options: { filename: 'messages.sqlite' } });
    const producer = await away(world, 'e', { durable: true });
    const values = [1, ...PAYLOADS.unicode, ...PAYLOADS.binary];
    for (const message of values) same((await producer.call('PRODUCE', { event: 'e', message, from: producer.name }))[0].queued, 1, 'queued');
    await world.broker.restart();
    await producer.connected(2);
    await producer.producer(producer.name);
    same((await producer.call('PRODUCE', { event: 'e', message: 'after the restart', from: producer.name }))[0].queued, 1, 'queued after the restart');
    const { inbox } = await back(world, producer, 'e', { durable: true });
    await world.exactly(inbox, producer, [...values, 'after the restart']);
}

async function plainIsNotReplayed(world) {
    const producer = await away(world, 'e', {});
    producer.produce('e', 'lost');
    await taken(world, producer);
    const { inbox } = await back(world, producer, 'e', {});
    producer.produce('e', 'live');
    await world.exactly(inbox, producer, ['live']);
}

async function guaranteed(world) {
    const producer = await away(world, 'e', {});
    producer.produce('e', 'lost');
    producer.produce('e', 'kept', { guaranteed: true });
    await taken(world, producer);
    const { inbox } = await back(world, producer, 'e', {});
    await world.exactly(inbox, producer, ['kept']);
}

async function ttl(world) {
    const producer = await away(world, 'e', { durable: true });
    const lifetimes = [['0', 0], ['-1', -1], ['never', 'never'], ['60', 60], ['90s', '90s'], ['nonsense', 'nonsense']];
    lifetimes.forEach(([message, value]) => producer.produce('e', message, { ttl: value }));
    producer.produce('e', 'lifespan 0', { lifespan: 0 });
    producer.produce('e', 'lifespan -1', { lifespan: -1 });
    await taken(world, producer);
    const { inbox } = await back(world, producer, 'e', { durable: true });
    await world.exactly(inbox, producer, ['-1', 'never', '60', '90s', 'nonsense', 'lifespan -1']);
}

async function confirmQueued(world) {
    const producer = await away(world, 'e', { durable: true });
    const [reply] = await producer.call('PRODUCE', { event: 'e', message: 1, from: producer.name });
    same([reply.ok, reply.routed, reply.queued], [true, 1, 1], `reply ${picture(reply)}`);
}

/** The library acknowledges by itself; of a raw peer the scenario does, as such a library would. */
async function autoAck(world) {
    const producer = await world.producer('p');
    const consumer = await world.consumer('c');
    consumer.hear('ACK_OK');
    const inbox = await consumer.subscribe(producer.name, 'e', SLOW_ACK);
    producer.produce('e', 'x');
    const [{ raw }] = await inbox.take(1);
    same([typeof raw.msgId, raw.msg_id, raw.delivery_attempt], ['string', raw.msgId, 1], 'msgId, msg_id and delivery_attempt');
    if (world.can('raw')) consumer.emit('ACK', { msgId: raw.msgId });
    same((await consumer.event('ACK_OK'))[0], { ok: true, msgId: raw.msgId }, 'ACK_OK');
    await world.leave(consumer);
    const second = await back(world, producer, 'e', SLOW_ACK);
    await world.exactly(second.inbox, producer, []);
}

async function manualAck(world) {
    const producer = await world.producer('p');
    const consumer = await world.consumer('c');
    const inbox = await consumer.subscribe(producer.name, 'e', { ...ACK, ack: undefined, manual_ack: true });
    producer.produce('e', 'x');
    const [first, second] = await inbox.take(2);
    same([first.raw.delivery_attempt, second.raw.delivery_attempt], [1, 2], 'attempts');
    const [reply] = await consumer.call('ACK', { msg_id: first.raw.msgId });
    same(reply, { ok: true, msgId: first.raw.msgId }, 'reply');
    const seen = inbox.all.length;
    producer.produce('e', 'y');
    await inbox.find('the third attempt of the next message', ({ message, raw }) => message === 'y' && raw.delivery_attempt === 3);
    same(inbox.messages.filter((message) => message === 'x').length, seen, 'deliveries of what was acknowledged');
}

async function ackRefusals(world) {
    const producer = await world.producer('p');
    const consumer = await world.consumer('c');
    const other = await world.consumer('other');
    const inbox = await consumer.subscribe(producer.name, 'e', SLOW_ACK);
    producer.produce('e', 'x');
    const [{ raw }] = await inbox.take(1);
    const code = async (session, ...args) => (await session.call('ACK', ...args))[0].code;
    same(await code(consumer, { msgId: 'msg-unknown' }), 404, 'code for an unknown id');
    same(await code(consumer, {}), 400, 'code for no id');
    same(await code(consumer, null), 400, 'code for null');
    same(await code(consumer, 'no json'), 400, 'code for a string that is no JSON');
    same(await code(other, { msgId: raw.msgId }), 403, 'code for another socket');
    same((await consumer.call('ACK', JSON.stringify({ id: raw.msgId })))[0], { ok: true, msgId: raw.msgId }, 'reply to the right one');
    same(await code(consumer, { msgId: raw.msgId }), 404, 'code for the second time');
    same(consumer.seen('ACK_FAIL').length, 5, 'ACK_FAIL events');
}

async function ackAfterReconnect(world) {
    const producer = await world.producer('p');
    const consumer = await world.consumer('c');
    const inbox = await consumer.subscribe(producer.name, 'e', SLOW_ACK);
    producer.produce('e', 'x');
    const [{ raw: first }] = await inbox.take(1);
    await world.leave(consumer);
    const second = await back(world, producer, 'e', SLOW_ACK);
    const [{ raw }] = await second.inbox.take(1);
    same([raw.msgId, raw.delivery_attempt], [first.msgId, 2], 'msgId and attempt of the replay');
    same((await second.consumer.call('ACK', { msgId: raw.msgId }))[0].ok, true, 'reply');
}

async function retry(world) {
    const producer = await world.producer('p');
    const consumer = await world.consumer('c');
    const inbox = await consumer.subscribe(producer.name, 'e', { ...ACK, retry: { ...ACK.retry, backoff: 'exponential' } });
    producer.produce('e', { n: 1 });
    const deliveries = await inbox.take(3);
    same(deliveries.map(({ raw }) => raw.delivery_attempt), [1, 2, 3], 'attempts');
    same(new Set(deliveries.map(({ raw }) => raw.msgId)).size, 1, 'ids');
    same(deliveries.map(({ message }) => message), [{ n: 1 }, { n: 1 }, { n: 1 }], 'messages');
    same((await consumer.call('ACK', { msgId: deliveries[0].raw.msgId }))[0].ok, true, 'reply');
}

async function deadLetter(world) {
    const producer = await world.producer('p');
    const consumer = await world.consumer('c');
    const inbox = await consumer.subscribe(producer.name, 'e', { ...ACK, retry: { max_attempts: 2, delay: '50ms' } });
    producer.produce('e', 'doomed');
    const { msgId } = (await inbox.take(2))[1].raw;
    const entry = await deadLetterEntry(world.broker.url, msgId);
    same([entry.event, entry.consumer, entry.producer, entry.message], [`${producer.name}-e`.toLowerCase(), consumer.name, producer.name,
        { event: 'e', message: 'doomed', from: producer.name }], 'entry');
    holds(/ack timeout/.test(entry.reason), `reason ${entry.reason}`);
    await world.exactly(inbox, producer, ['doomed', 'doomed']);
}

/** Asks until the entry is there: the broker tells nobody when it dead-letters. */
async function deadLetterEntry(url, id) {
    const until = Date.now() + WAIT_MS;
    for (;;) {
        const response = await fetch(`${url}/api/realms/default/dlq`);
        holds(response.status === 200, `status ${response.status} of the dead letters`);
        const entry = (await response.json()).entries?.find((candidate) => candidate.id === id);
        if (entry) return entry;
        holds(Date.now() < until, `no dead letter ${id} in ${WAIT_MS / 1000} s`);
    }
}

/** What a member leaves unacknowledged goes to another that is there. */
async function groupAck(world) {
    const producer = await world.producer('p');
    const options = { ...SLOW_ACK, group: world.name('g') };
    const members = [await world.consumer('w1'), await world.consumer('w2')];
    const inboxes = [await members[0].subscribe(producer.name, 'job', options), await members[1].subscribe(producer.name, 'job', options)];
    const sent = [1, 2, 3, 4];
    sent.forEach((n) => producer.produce('job', n));
    for (const inbox of inboxes) await inbox.take(2);
    for (const { raw } of inboxes[1].all) await members[1].call('ACK', { msgId: raw.msgId });
    const left = inboxes[0].messages;
    await world.leave(members[0]);
    const deliveries = await inboxes[1].take(4);
    same(deliveries.slice(2).map(({ message }) => message), left, 'what came over');
    same(inboxes[1].messages.sort(), sent, 'all of them');
}

async function unsubscribeDurable(world) {
    const producer = await world.producer('p');
    const consumer = await world.consumer('c');
    await consumer.subscribe(producer.name, 'e', { durable: true });
    same((await consumer.call('UNSUBSCRIBE', { event: 'e', producer: producer.name }))[0], { ok: true, removed: 1 }, 'reply');
    await world.leave(consumer);
    producer.produce('e', 'for nobody');
    await taken(world, producer);
    const { inbox } = await back(world, producer, 'e', { durable: true });
    await world.exactly(inbox, producer, []);
}
