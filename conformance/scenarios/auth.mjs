// What a client may rely on from a broker that admits only whom it knows, and how it becomes known. Each scenario has a
// broker of its own.

import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { holds, picture, same } from '../lib/values.mjs';

const ADMIN = 'probe-admin';
const BOTH = { token: 'probe-acme-both' };
const REALMS = {
    acme: { required: true },
    beta: { required: true },
    open: { required: false },
    keyed: { required: true, key: 'probe-key', require_acceptance: false },
};
const TOKENS = [
    { token: BOTH.token, realm: 'acme', role: 'both' },
    { token: 'probe-acme-cons', realm: 'acme', role: 'consumer' },
    { token: 'probe-beta-both', realm: 'beta', role: 'both' },
    { token: ADMIN, realm: '*', role: 'admin' },
];

export const auth = [
    { name: 'auth-token', needs: ['subscribe'], run: token },
    { name: 'auth-bad-token', needs: ['subscribe'], run: badToken },
    { name: 'auth-role', needs: ['subscribe'], run: wrongRole },
    { name: 'auth-open-realm', needs: ['subscribe'], run: openRealm },
    { name: 'auth-realm-key', needs: ['subscribe'], run: realmKey },
    { name: 'auth-implicit', needs: ['subscribe'], run: implicit },
    { name: 'auth-lenient', needs: ['raw'], run: (world) => outsider(world, false, []) },
    { name: 'auth-strict', needs: ['raw'], run: (world) => outsider(world, true, [401, 401]) },
    { name: 'auth-again', needs: ['raw'], run: again },
    { name: 'auth-isolation', needs: ['subscribe'], run: isolation },
    { name: 'auth-revoked', needs: ['raw'], run: revoked },
    { name: 'approval', needs: ['subscribe'], run: approval },
    { name: 'rejection', needs: ['subscribe'], run: rejection },
];

/** A broker with these realms and tokens. */
function guarded(world, { realms, ...more } = {}) {
    return world.ownBroker({ auth: { enabled: true, auto_admin_token: false, realms: { ...REALMS, ...realms }, tokens: TOKENS, ...more } });
}

/** Two sessions with the same rights, and a message between them. */
async function talk(world, auth, granted) {
    const consumer = await world.consumer('c', { auth });
    const producer = await world.producer('p', { auth });
    if (granted) for (const session of [consumer, producer]) same(session.seen('AUTH_OK'), [[granted]], 'AUTH_OK');
    const inbox = await consumer.subscribe(producer.name, 'e');
    producer.produce('e', { n: 1 });
    await world.exactly(inbox, producer, [{ n: 1 }]);
    return { consumer, producer, inbox };
}

async function token(world) {
    await guarded(world);
    await talk(world, BOTH, { realm: 'acme', role: 'both' });
}

/** A refusal ends nothing: the same socket may try again. */
async function badToken(world) {
    await guarded(world);
    const { session, code } = await world.refused('consumer', 'bad', { token: 'nobody-s-token' });
    same(code, 401, 'code');
    if (!world.can('raw')) return;
    session.emit('AUTHENTICATION', BOTH);
    same((await session.event('AUTH_OK'))[0], { realm: 'acme', role: 'both' }, 'AUTH_OK');
}

async function wrongRole(world) {
    await guarded(world);
    const { session, code } = await world.refused('producer', 'p', { token: 'probe-acme-cons' });
    same((await session.event('AUTH_OK'))[0], { realm: 'acme', role: 'consumer' }, 'AUTH_OK');
    same(code, 403, 'code');
    if (!world.can('raw')) return;
    const [reply] = await session.call('PRODUCE', { event: 'e', message: 1, from: session.name });
    same([reply.ok, reply.code], [false, 403], `reply ${picture(reply)}`);
    await session.consumer(world.name('c'));
    const producer = await world.producer('admitted', { auth: BOTH });
    const inbox = await session.subscribe(producer.name, 'e');
    producer.produce('e', 'to whom may only listen');
    await world.exactly(inbox, producer, ['to whom may only listen']);
}

async function openRealm(world) {
    await guarded(world);
    await talk(world, { realm: 'open' }, { realm: 'open', role: 'both' });
}

async function realmKey(world) {
    await guarded(world);
    const role = { realm: 'keyed', role: 'both' };
    for (const key of ['another-key', undefined]) same((await world.refused('consumer', `bad-${key}`, { ...role, key })).code, 401, `code for the key ${key}`);
    await talk(world, { ...role, key: 'probe-key' }, role);
}

/** Clients that know nothing of authentication are in `default` when it is open, and stay there. */
async function implicit(world) {
    await guarded(world, { realms: { default: { required: false } } });
    const { consumer, producer, inbox } = await talk(world);
    if (!world.can('raw')) return;
    consumer.emit('AUTHENTICATION', BOTH);
    same((await consumer.event('AUTH_FAIL'))[0].code, 403, 'code for a token afterwards');
    producer.produce('e', 'still there');
    await world.exactly(inbox, producer, [{ n: 1 }, 'still there']);
}

/** `default` needs authentication: who does not authenticate never publishes, and may listen unless the broker is strict. */
async function outsider(world, strict, refusals) {
    await guarded(world, { strict });
    const [reply] = await (await world.open()).call('PRODUCE', { event: 'e', message: 1, from: 'nobody' });
    same([reply.ok, reply.code], [false, 401], `reply to PRODUCE: ${picture(reply)}`);
    const listener = await world.open();
    listener.emit('CONSUMER', { name: world.name('c') });
    const [ping] = await listener.call('PING', {});
    same(ping.code, refusals.at(-1), 'code of PING after CONSUMER');
    same(listener.seen('AUTH_FAIL').map(([refusal]) => refusal.code), refusals, 'refusals');
}

async function again(world) {
    await guarded(world);
    const { consumer, producer, inbox } = await talk(world, BOTH);
    consumer.emit('AUTHENTICATION', { token: 'probe-beta-both' });
    same((await consumer.event('AUTH_FAIL'))[0].code, 403, 'code');
    producer.produce('e', 'still in the first realm');
    await world.exactly(inbox, producer, [{ n: 1 }, 'still in the first realm']);
}

/** The same names in two realms do not meet; realm `*` observes both. */
async function isolation(world) {
    await guarded(world);
    const sides = [];
    const observer = await world.consumer('observer', { auth: { token: ADMIN } });
    const observed = await observer.subscribe(world.name('p'), 'e');
    for (const auth of [BOTH, { token: 'probe-beta-both' }]) {
        const consumer = await world.consumer('c', { auth });
        const producer = await world.producer('p', { auth });
        sides.push({ producer, inbox: await consumer.subscribe(producer.name, 'e') });
    }
    for (const [i, { producer, inbox }] of sides.entries()) {
        producer.produce('e', `of realm ${i}`);
        await world.exactly(inbox, producer, [`of realm ${i}`]);
        await observed.take(i + 1);
    }
    for (const [i, { producer, inbox }] of sides.entries()) await world.exactly(inbox, producer, [`of realm ${i}`], 'messages in the end');
    same(observed.messages, ['of realm 0', 'of realm 1'], 'observed messages');
}

async function revoked(world) {
    await guarded(world);
    const { consumer, producer } = await talk(world, BOTH);
    const other = await world.consumer('other', { auth: { token: 'probe-beta-both' } });
    const digest = createHash('sha256').update(BOTH.token).digest('hex');
    await world.manager(ADMIN).run('token', 'revoke', digest);
    for (const session of [consumer, producer]) await session.event('$disconnect');
    await other.fence();
    same((await world.refused('consumer', 'late', BOTH)).code, 401, 'code for the token afterwards');
}

/** A broker that starts in an empty folder, a realm in it, and a client that has asked to be admitted there. */
async function asked(world) {
    await world.ownBroker(null, { TYO_MQ_AUTH_ENABLED: 'true' });
    const file = join(world.broker.dir, '.env');
    holds(/^TYO_MQ_ADMIN_TOKEN="[0-9a-f]{64}"$/m.test(readFileSync(file, 'utf8')), 'no token of 64 digits in .env');
    same(statSync(file).mode & 0o777, 0o600, 'mode of .env');
    await world.manager().run('realm', 'add', 'lab');
    const auth = { token: 'a token that the client has made itself' };
    same((await world.refused('consumer', 'early', auth)).code, 401, 'code before the request');
    const client = await (world.can('raw') ? world.open() : world.consumer('asks'));
    ['AUTHORIZATION_REQUEST_OK', 'AUTHORIZATION_APPROVED', 'AUTHORIZATION_REJECTED'].forEach((event) => client.hear(event));
    client.emit('AUTHORIZATION_REQUEST', { realm: 'lab', role: 'both', client_id: 'client-1', client_name: 'A client', client_token: auth.token });
    const [{ request_id: id, ...reply }] = await client.event('AUTHORIZATION_REQUEST_OK');
    same(reply, { ok: true, status: 'pending' }, 'reply to the request');
    const { requests } = await world.manager().run('request', 'list');
    same(requests.map((it) => [it.request_id, it.realm, it.role, it.client_id, it.client_name]), [[id, 'lab', 'both', 'client-1', 'A client']], 'waiting requests');
    holds(!JSON.stringify(requests).includes(auth.token), 'the list shows the token');
    return { auth, client, id };
}

async function approval(world) {
    const { auth, client, id } = await asked(world);
    await world.manager().run('request', 'approve', id);
    same((await client.event('AUTHORIZATION_APPROVED'))[0], { request_id: id, realm: 'lab', role: 'both' }, 'AUTHORIZATION_APPROVED');
    same((await world.manager().run('request', 'list')).requests, [], 'requests that wait afterwards');
    const { consumer, producer } = await talk(world, auth, { realm: 'lab', role: 'both' });
    for (const session of [client, consumer, producer]) await session.close();
    await world.broker.restart();
    await talk(world, auth, { realm: 'lab', role: 'both' });
}

async function rejection(world) {
    const { auth, client, id } = await asked(world);
    await world.manager().run('request', 'reject', id, '--reason', 'not today');
    same((await client.event('AUTHORIZATION_REJECTED'))[0], { request_id: id, reason: 'not today' }, 'AUTHORIZATION_REJECTED');
    same((await world.refused('consumer', 'late', auth)).code, 401, 'code afterwards');
}
