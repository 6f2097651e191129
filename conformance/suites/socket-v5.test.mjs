// Socket.IO protocol revision 5 (over Engine.IO 4) against a server with the namespaces "/" and "/custom": "auth" is emitted
// at the connection, "message" comes back as "message-back", "message-with-ack" is acknowledged with its own arguments.

import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { Wire, closeAll, post, request } from './wire.mjs';

const WS = '/socket.io/?EIO=4&transport=websocket';
const POLL = '/socket.io/?EIO=4&transport=polling';

/** An engine connection; pings are answered. */
async function openEngine() {
    const wire = new Wire(WS);
    wire.filter = (message) => message === '2' && (wire.send('3'), true);
    assert.match(await wire.next(), /^0\{/);
    return wire;
}

async function join(wire, namespace = '', payload = '') {
    const prefix = namespace ? `${namespace},` : '';
    wire.send(`40${prefix}${payload}`);
    const answer = await wire.next();
    assert.ok(answer.startsWith(`40${prefix}{`), answer);
    const handshake = JSON.parse(answer.slice(2 + prefix.length));
    assert.deepEqual(Object.keys(handshake), ['sid']);
    assert.equal(await wire.next(), `42${prefix}["auth",${payload || '{}'}]`);
    return handshake.sid;
}

async function openMain() {
    const wire = await openEngine();
    await join(wire);
    return wire;
}

async function echoes(wire, sent, expected) {
    for (const frame of sent) wire.send(frame);
    for (const frame of expected) assert.deepEqual(await wire.next(), frame);
}

/** Polls until as many packets as wanted have come; pings are answered. */
async function poll(path, count) {
    const packets = [];
    while (packets.length < count) {
        for (const packet of (await request(path)).body.split('\x1e')) {
            if (packet === '2') await post(path, '3');
            else packets.push(packet);
        }
    }
    return packets;
}

afterEach(closeAll);

describe('connect', () => {
    it('connect: to the main namespace', async () => {
        await openMain();
    });
    it('connect: to the main namespace with a payload', async () => {
        const wire = await openEngine();
        await join(wire, '', '{"token":"123","nested":{"a":[1,null]}}');
    });
    it('connect: to a custom namespace', async () => {
        const wire = await openEngine();
        await join(wire, '/custom');
    });
    it('connect: to a custom namespace with a payload', async () => {
        const wire = await openEngine();
        await join(wire, '/custom', '{"token":"abc"}');
    });
    it('connect: to both, each with an id of its own, neither the engine\'s', async () => {
        const wire = new Wire(WS);
        wire.filter = (message) => message === '2' && (wire.send('3'), true);
        const { sid } = JSON.parse((await wire.next()).slice(1));
        const ids = [sid, await join(wire), await join(wire, '/custom')];
        assert.equal(new Set(ids).size, 3);
    });
    it('connect: over polling', async () => {
        const { sid } = JSON.parse((await request(POLL)).body.slice(1));
        const path = `${POLL}&sid=${sid}`;
        await post(path, '40');
        const [connected, auth] = await poll(path, 2);
        assert.match(connected, /^40\{"sid":"[^"]+"\}$/);
        assert.equal(auth, '42["auth",{}]');
    });
    it('connect: an unknown namespace is answered by an error, the connection stays', async () => {
        const wire = await openEngine();
        await echoes(wire, ['40/random'], ['44/random,{"message":"Invalid namespace"}']);
        await join(wire);
    });
    it('connect: an invalid packet ends the connection', async () => {
        for (const frame of ['4abc', '4', '49', '40{"unfinished']) {
            const wire = await openEngine();
            wire.send(frame);
            await wire.untilClosed();
        }
    });
    it('connect: an event before it ends the connection', async () => {
        const wire = await openEngine();
        wire.send('42["message"]');
        await wire.untilClosed();
    });
    it('connect: an event for a namespace not joined ends the connection', async () => {
        const wire = await openMain();
        wire.send('42/custom,["message"]');
        await wire.untilClosed();
    });
});

describe('disconnect', () => {
    it('disconnect: from the main namespace leaves the other', async () => {
        const wire = await openMain();
        await join(wire, '/custom');
        await echoes(wire, ['41', '42/custom,["message","still here"]'], ['42/custom,["message-back","still here"]']);
    });
    it('disconnect: from a custom namespace leaves the main one', async () => {
        const wire = await openMain();
        await join(wire, '/custom');
        await echoes(wire, ['41/custom,', '42["message","still here"]'], ['42["message-back","still here"]']);
    });
    it('disconnect: and connect again gives a fresh id', async () => {
        const wire = await openEngine();
        const first = await join(wire);
        await join(wire, '/custom');
        await echoes(wire, ['41', '42/custom,["message"]'], ['42/custom,["message-back"]']);
        assert.notEqual(await join(wire), first);
    });
    it('disconnect: an event after it ends the connection', async () => {
        const wire = await openMain();
        await join(wire, '/custom');
        await echoes(wire, ['41', '42/custom,["message"]'], ['42/custom,["message-back"]']);
        wire.send('42["message"]');
        await wire.untilClosed();
    });
});

describe('message', () => {
    it('message: arguments of every kind', async () => {
        const wire = await openMain();
        for (const args of ['', ',1,"2",{"3":[false,null]}', ',"☃ 😀 \\u0000 \\\\ \\""', ',1e21,0.10,12345678901234567890', ',{"b":1,"a":2},[],{}'])
            await echoes(wire, [`42["message"${args}]`], [`42["message-back"${args}]`]);
    });
    it('message: in a custom namespace', async () => {
        const wire = await openEngine();
        await join(wire, '/custom');
        await echoes(wire, ['42/custom,["message",1]'], ['42/custom,["message-back",1]']);
    });
    it('message: in order', async () => {
        const wire = await openMain();
        const numbers = Array.from({ length: 200 }, (_, i) => i);
        await echoes(wire, numbers.map((n) => `42["message",${n}]`), numbers.map((n) => `42["message-back",${n}]`));
    });
    it('message: with an acknowledgement', async () => {
        const wire = await openMain();
        for (const id of [0, 1, 456, 4294967296]) await echoes(wire, [`42${id}["message-with-ack",1,"2",{"3":[false]}]`], [`43${id}[1,"2",{"3":[false]}]`]);
    });
    it('message: with an acknowledgement in a custom namespace', async () => {
        const wire = await openEngine();
        await join(wire, '/custom');
        await echoes(wire, ['42/custom,7["message-with-ack"]'], ['43/custom,7[]']);
    });
    it('message: an event without a handler is ignored', async () => {
        const wire = await openMain();
        await echoes(wire, ['42["nobody-listens",1]', '42["message"]'], ['42["message-back"]']);
    });
    it('message: an acknowledgement nobody waits for is ignored', async () => {
        const wire = await openMain();
        await echoes(wire, ['4399["x"]', '42["message"]'], ['42["message-back"]']);
    });
    it('message: over polling', async () => {
        const { sid } = JSON.parse((await request(POLL)).body.slice(1));
        const path = `${POLL}&sid=${sid}`;
        await post(path, '40');
        await poll(path, 2);
        await post(path, '42["message","a"]\x1e423["message-with-ack","b"]');
        assert.deepEqual(await poll(path, 2), ['42["message-back","a"]', '433["b"]']);
    });
});

describe('binary', () => {
    const [one, two] = [Buffer.from([1, 2, 3]), Buffer.from([4, 5])];
    const args = '{"_placeholder":true,"num":0},{"list":[{"_placeholder":true,"num":1}]}';
    it('binary: a message comes back with its attachments', async () => {
        const wire = await openMain();
        await echoes(wire, [`452-["message",${args}]`, one, two], [`452-["message-back",${args}]`, one, two]);
    });
    it('binary: in a custom namespace', async () => {
        const wire = await openEngine();
        await join(wire, '/custom');
        await echoes(wire, [`451-/custom,["message",{"_placeholder":true,"num":0}]`, one], [`451-/custom,["message-back",{"_placeholder":true,"num":0}]`, one]);
    });
    it('binary: with an acknowledgement', async () => {
        const wire = await openMain();
        await echoes(wire, [`452-789["message-with-ack",${args}]`, one, two], [`462-789[${args}]`, one, two]);
    });
    it('binary: over polling', async () => {
        const { sid } = JSON.parse((await request(POLL)).body.slice(1));
        const path = `${POLL}&sid=${sid}`;
        await post(path, '40');
        await poll(path, 2);
        await post(path, '451-["message",{"_placeholder":true,"num":0}]\x1ebAQID');
        assert.deepEqual(await poll(path, 2), ['451-["message-back",{"_placeholder":true,"num":0}]', 'bAQID']);
    });
});

describe('invalid', () => {
    const ends = (name, ...frames) => it(`invalid: ${name} ends the connection`, async () => {
        for (const frame of frames) {
            const wire = await openMain();
            wire.send(frame);
            await wire.untilClosed();
        }
    });
    ends('an event without a name', '42[]', '42[null]', '42[{}]');
    ends('an event that is no array', '42{"a":1}', '42"message"');
    ends('an event that is no JSON', '42["message"', '42[message]');
    ends('a reserved event name', ...['connect', 'connect_error', 'disconnect', 'disconnecting', 'newListener', 'removeListener'].map((name) => `42["${name}"]`));
    ends('an unknown packet type', '47["message"]', '4x');
    ends('a connect error from a client', '44{"message":"x"}');
    ends('a binary frame that was not announced', Buffer.from([1]));
    it('invalid: text where an attachment is due ends the connection', async () => {
        const wire = await openMain();
        wire.send('451-["message",{"_placeholder":true,"num":0}]');
        wire.send('42["message"]');
        await wire.untilClosed();
    });
    it('invalid: one connection\'s end leaves the others', async () => {
        const [good, bad] = [await openMain(), await openMain()];
        bad.send('4abc');
        await bad.untilClosed();
        await echoes(good, ['42["message",1]'], ['42["message-back",1]']);
    });
});
