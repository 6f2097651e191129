// Engine.IO protocol revision 4 against an echo server (pingInterval 300 ms, pingTimeout 200 ms, maxPayload 1e6).

import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { Wire, closeAll, post, postInvalid, request, untilGone } from './wire.mjs';

const PATH = '/engine.io/?EIO=4';
const POLL = `${PATH}&transport=polling`;
const WS = `${PATH}&transport=websocket`;
const SEPARATOR = '\x1e';
const HANDSHAKE_KEYS = ['maxPayload', 'pingInterval', 'pingTimeout', 'sid', 'upgrades'];

function checkHandshake(packet, upgrades) {
    assert.equal(packet[0], '0');
    const handshake = JSON.parse(packet.slice(1));
    assert.deepEqual(Object.keys(handshake).sort(), HANDSHAKE_KEYS);
    assert.equal(typeof handshake.sid, 'string');
    assert.deepEqual(handshake, { sid: handshake.sid, upgrades, pingInterval: 300, pingTimeout: 200, maxPayload: 1000000 });
    return handshake;
}

async function openPolling() {
    const { sid } = checkHandshake((await request(POLL)).body, ['websocket']);
    return `${POLL}&sid=${sid}`;
}

async function openWebSocket({ pong = true } = {}) {
    const wire = new Wire(WS);
    wire.filter = (message) => pong && message === '2' && (wire.send('3'), true);
    checkHandshake(await wire.next(), []);
    return wire;
}

/** Polls until `count` packets that are no ping have come; answers the pings. */
async function poll(path, count) {
    const packets = [];
    while (packets.length < count) {
        const { status, body } = await request(path);
        assert.equal(status, 200);
        for (const packet of body.split(SEPARATOR)) {
            if (packet === '2') await post(path, '3');
            else packets.push(packet);
        }
    }
    return packets;
}

afterEach(closeAll);

describe('polling handshake', () => {
    it('polling: opens a session', async () => {
        const { status, headers, body } = await request(POLL);
        assert.equal(status, 200);
        assert.match(headers.get('content-type'), /^text\/plain; ?charset=utf-8$/i);
        checkHandshake(body, ['websocket']);
    });
    it('polling: gives every session an id of its own', async () => {
        const [one, two] = [await openPolling(), await openPolling()];
        assert.notEqual(one, two);
    });
    it('polling: refuses an unknown revision with code 5', async () => {
        for (const version of ['&EIO=abc', '&EIO=', '']) {
            const { status, body } = await request(`/engine.io/?transport=polling${version}`);
            assert.deepEqual([status, JSON.parse(body).code], [400, 5]);
        }
    });
    it('polling: refuses an unknown transport with code 0', async () => {
        for (const transport of ['', '&transport=abc', '&transport=']) {
            const { status, body } = await request(PATH + transport);
            assert.deepEqual([status, JSON.parse(body).code], [400, 0]);
        }
    });
    it('polling: refuses an unknown session with code 1', async () => {
        for (const method of ['GET', 'POST']) {
            const { status, body } = await request(`${POLL}&sid=unknown`, { method });
            assert.deepEqual([status, JSON.parse(body).code], [400, 1]);
        }
    });
    it('polling: refuses a handshake by POST or PUT with code 2', async () => {
        for (const method of ['POST', 'PUT']) {
            const { status, body } = await request(POLL, { method });
            assert.deepEqual([status, JSON.parse(body).code], [400, 2]);
        }
    });
});

describe('websocket handshake', () => {
    it('websocket: opens a session', async () => {
        await openWebSocket();
    });
    it('websocket: refuses an unknown revision', async () => {
        for (const version of ['&EIO=abc', '']) assert.equal(await new Wire(`/engine.io/?transport=websocket${version}`).untilRefused(), 400);
    });
    it('websocket: refuses an unknown transport', async () => {
        for (const transport of ['', '&transport=abc']) assert.equal(await new Wire(PATH + transport).untilRefused(), 400);
    });
    it('websocket: refuses an unknown session', async () => {
        assert.equal(await new Wire(`${WS}&sid=unknown`).untilRefused(), 400);
    });
    it('websocket: a plain GET for it is refused', async () => {
        assert.equal((await request(WS)).status, 400);
    });
});

describe('messages over polling', () => {
    it('polling: echoes one packet', async () => {
        const path = await openPolling();
        const { status, body } = await post(path, '4hello');
        assert.deepEqual([status, body], [200, 'ok']);
        assert.deepEqual(await poll(path, 1), ['4hello']);
    });
    it('polling: echoes several packets in order', async () => {
        const path = await openPolling();
        const packets = ['4test1', '4test2', '4', '4test☃3 😀'];
        await post(path, packets.join(SEPARATOR));
        assert.deepEqual(await poll(path, 4), packets);
    });
    it('polling: echoes binary as base64', async () => {
        const path = await openPolling();
        await post(path, ['4text', 'bAQIDBA==', 'b'].join(SEPARATOR));
        assert.deepEqual(await poll(path, 3), ['4text', 'bAQIDBA==', 'b']);
    });
    it('polling: a poll waits for its packet', async () => {
        const path = await openPolling();
        const pending = poll(path, 1);
        await post(path, '4later');
        assert.deepEqual(await pending, ['4later']);
    });
    it('polling: an invalid packet ends the session', async () => {
        for (const body of ['abc', '9', '4ok' + SEPARATOR + 'abc']) {
            await postInvalid(await openPolling(), body);
        }
    });
    it('polling: a second poll ends the session', async () => {
        const path = await openPolling();
        const answers = await Promise.all([request(path), request(path)]);
        const [lost, kept] = answers.sort((a, b) => b.status - a.status);
        assert.deepEqual([lost.status, kept.status, kept.body], [400, 200, '1']);
        assert.equal((await request(path)).status, 400);
    });
    it('polling: a payload over the limit is refused with 413', async () => {
        const path = await openPolling();
        const status = await post(path, '4' + 'x'.repeat(1000000)).then((r) => r.status, () => 413);
        assert.equal(status, 413);
    });
    it('polling: a payload at the limit is echoed', async () => {
        const path = await openPolling();
        const packet = '4' + 'x'.repeat(999999);
        await post(path, packet);
        assert.deepEqual(await poll(path, 1), [packet]);
    });
});

describe('messages over websocket', () => {
    it('websocket: echoes text', async () => {
        const wire = await openWebSocket();
        for (const message of ['4hello', '4', '4☃ 😀 \0']) {
            wire.send(message);
            assert.equal(await wire.next(), message);
        }
    });
    it('websocket: echoes binary', async () => {
        const wire = await openWebSocket();
        for (const message of [Buffer.from([1, 2, 3, 255]), Buffer.alloc(70000, 7)]) {
            wire.send(message);
            assert.deepEqual(await wire.next(), message);
        }
    });
    it('websocket: keeps the order of text and binary', async () => {
        const wire = await openWebSocket();
        const sent = Array.from({ length: 200 }, (_, i) => (i % 3 ? `4${i}` : Buffer.from([i])));
        sent.forEach((message) => wire.send(message));
        for (const message of sent) assert.deepEqual(await wire.next(), message);
    });
    it('websocket: an invalid packet ends the connection', async () => {
        for (const message of ['abc', '', '9', '2']) {
            const wire = await openWebSocket();
            wire.send(message);
            await wire.untilClosed();
        }
    });
    it('websocket: a message over the limit ends the connection with 1009', async () => {
        const wire = await openWebSocket();
        wire.send('4' + 'x'.repeat(1000000));
        assert.equal(await wire.untilClosed(), 1009);
    });
});

describe('heartbeat', () => {
    it('polling: pings, and goes on while pongs come', async () => {
        const path = await openPolling();
        for (let i = 0; i < 3; i++) {
            assert.equal((await request(path)).body, '2');
            assert.equal((await post(path, '3')).status, 200);
        }
    });
    it('polling: ends the session when no pong comes', async () => {
        await untilGone(await openPolling(), (body) => body === '1');
    });
    it('websocket: pings, and goes on while pongs come', async () => {
        const wire = await openWebSocket({ pong: false });
        for (let i = 0; i < 3; i++) {
            assert.equal(await wire.next(), '2');
            wire.send('3');
        }
    });
    it('websocket: ends the connection when no pong comes', async () => {
        const wire = await openWebSocket({ pong: false });
        await wire.untilClosed();
    });
});

describe('close', () => {
    it('polling: a close packet ends the session and its pending poll', async () => {
        const path = await openPolling();
        const pending = request(path);
        await post(path, '1');
        const { status, body } = await pending;
        assert.equal(status, 200);
        assert.ok(['6', '1'].includes(body), body);
        assert.equal((await request(path)).status, 400);
    });
    it('websocket: a close packet ends the connection, at the latest with the heartbeat', async () => {
        const wire = await openWebSocket({ pong: false });
        wire.send('1');
        await wire.untilClosed();
    });
});

describe('upgrade', () => {
    async function probed() {
        const path = await openPolling();
        const wire = new Wire(`${WS}&sid=${/sid=(.*)$/.exec(path)[1]}`);
        wire.filter = (message) => message === '2' && (wire.send('3'), true);
        await wire.opened;
        wire.send('2probe');
        assert.equal(await wire.next(), '3probe');
        return { path, wire };
    }
    async function upgraded() {
        const { path, wire } = await probed();
        wire.send('5');
        wire.send('4upgraded');
        assert.equal(await wire.next(), '4upgraded');
        return { path, wire };
    }
    it('upgrade: from polling to websocket', async () => {
        await upgraded();
    });
    it('upgrade: a pending poll is released with 6', async () => {
        const path = await openPolling();
        const pending = poll(path, 1);
        const wire = new Wire(`${WS}&sid=${/sid=(.*)$/.exec(path)[1]}`);
        await wire.opened;
        wire.send('2probe');
        assert.equal(await wire.next(), '3probe');
        assert.deepEqual(await pending, ['6']);
        wire.send('5');
    });
    it('upgrade: what was posted during it arrives once and in order', async () => {
        const { path, wire } = await probed();
        await post(path, '4one' + SEPARATOR + '4two');
        wire.send('5');
        wire.send('4three');
        const arrived = [];
        while (arrived.length < 3) arrived.push(await wire.next());
        assert.deepEqual(arrived, ['4one', '4two', '4three']);
    });
    it('upgrade: polling after it is refused, the websocket stays', async () => {
        const { path, wire } = await upgraded();
        assert.equal((await request(path)).status, 400);
        wire.send('4still here');
        assert.equal(await wire.next(), '4still here');
    });
    it('upgrade: a second websocket is refused or closed, the first stays', async () => {
        const { path, wire } = await upgraded();
        const second = new Wire(`${WS}&sid=${/sid=(.*)$/.exec(path)[1]}`);
        await Promise.race([second.untilClosed(), second.untilRefused()]);
        wire.send('4still here');
        assert.equal(await wire.next(), '4still here');
    });
});
