// Engine.IO protocol revision 3 against an echo server (pingInterval 300 ms, pingTimeout 200 ms, maxPayload 1e6).

import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { Wire, closeAll, post, postInvalid, request, untilGone } from './wire.mjs';

const PATH = '/engine.io/?EIO=3';
const POLL = `${PATH}&transport=polling`;
const WS = `${PATH}&transport=websocket`;

/** Text payload: each packet after its length in UTF-16 units. */
const encode = (...packets) => packets.map((packet) => `${packet.length}:${packet}`).join('');

function decode(body) {
    const packets = [];
    for (let rest = body; rest !== '';) {
        const [, digits] = /^(\d+):/.exec(rest) ?? assert.fail(`no payload: ${rest.slice(0, 40)}`);
        const from = digits.length + 1, to = from + Number(digits);
        assert.ok(to <= rest.length, 'a length beyond the end');
        packets.push(rest.slice(from, to));
        rest = rest.slice(to);
    }
    return packets;
}

/** Binary payload: each packet after 0 (text) or 1 (binary), its length in decimal digits as bytes, and 255. */
const encodeBinary = (...packets) => Buffer.concat(packets.flatMap((packet) => {
    const isText = typeof packet === 'string';
    const data = Buffer.from(packet);
    return [Buffer.from([isText ? 0 : 1, ...String(data.length).split('').map(Number), 255]), data];
}));

function checkHandshake(packet, upgrades) {
    assert.equal(packet[0], '0');
    const { sid, upgrades: offered, pingInterval, pingTimeout } = JSON.parse(packet.slice(1));
    assert.equal(typeof sid, 'string');
    assert.deepEqual([offered, pingInterval, pingTimeout], [upgrades, 300, 200]);
    return sid;
}

async function openPolling(extra = '') {
    const [packet, ...rest] = decode((await request(POLL + extra)).body);
    assert.deepEqual(rest, []);
    return `${POLL}${extra}&sid=${checkHandshake(packet, ['websocket'])}`;
}

async function openWebSocket() {
    const wire = new Wire(WS);
    checkHandshake(await wire.next(), []);
    return wire;
}

async function poll(path) {
    const { status, body } = await request(path);
    assert.equal(status, 200);
    return decode(body);
}

const sidOf = (path) => /sid=(.*)$/.exec(path)[1];

afterEach(closeAll);

describe('handshake', () => {
    it('polling: opens a session', async () => {
        const { status, headers, body } = await request(POLL);
        assert.equal(status, 200);
        assert.match(headers.get('content-type'), /^text\/plain; ?charset=utf-8$/i);
        checkHandshake(decode(body)[0], ['websocket']);
    });
    it('polling: refuses an unknown transport', async () => {
        for (const transport of ['', '&transport=abc']) assert.equal((await request(PATH + transport)).status, 400);
    });
    it('polling: refuses an unknown session', async () => {
        assert.equal((await request(`${POLL}&sid=unknown`)).status, 400);
    });
    it('polling: refuses a handshake by POST', async () => {
        assert.equal((await post(POLL, '')).status, 400);
    });
    it('websocket: opens a session', async () => {
        await openWebSocket();
    });
    it('websocket: refuses an unknown transport', async () => {
        assert.equal(await new Wire(`${PATH}&transport=abc`).untilRefused(), 400);
    });
});

describe('messages', () => {
    it('polling: echoes one packet', async () => {
        const path = await openPolling();
        const { status, body } = await post(path, encode('4hello'));
        assert.deepEqual([status, body], [200, 'ok']);
        assert.deepEqual(await poll(path), ['4hello']);
    });
    it('polling: echoes several packets in order', async () => {
        const path = await openPolling();
        await post(path, encode('4test1', '4', '4test3'));
        assert.deepEqual(await poll(path), ['4test1', '4', '4test3']);
    });
    it('polling: lengths count UTF-16 units', async () => {
        const path = await openPolling();
        await post(path, encode('4é☃', '4😀x', '4end'));
        assert.deepEqual(await poll(path), ['4é☃', '4😀x', '4end']);
    });
    it('polling: echoes binary as base64 when asked', async () => {
        const path = await openPolling('&b64=1');
        await post(path, encode('b4AQIDBA==', '4text'));
        assert.deepEqual(await poll(path), ['b4AQIDBA==', '4text']);
    });
    it('polling: echoes binary as bytes otherwise', async () => {
        const path = await openPolling();
        const body = encodeBinary(Buffer.from([4, 1, 2, 255]));
        assert.equal((await post(path, body, { 'content-type': 'application/octet-stream' })).status, 200);
        const answer = await request(path);
        assert.equal(answer.headers.get('content-type'), 'application/octet-stream');
        assert.deepEqual(answer.bytes, body);
    });
    it('polling: a payload of bytes may mix text and binary', async () => {
        const path = await openPolling();
        const body = encodeBinary('4héllo ☃', Buffer.from([4, 0, 9]), '4end');
        assert.equal((await post(path, body, { 'content-type': 'application/octet-stream' })).status, 200);
        assert.deepEqual((await request(path)).bytes, body);
    });
    it('polling: an invalid payload ends the session', async () => {
        for (const body of ['abc', '1:', '5:4ab', '-1:4', '1:9', '99999999999999999999:4']) {
            await postInvalid(await openPolling(), body);
        }
    });
    it('polling: a second poll ends the session', async () => {
        const path = await openPolling();
        const answers = await Promise.all([request(path), request(path)]);
        const [lost, kept] = answers.sort((a, b) => b.status - a.status);
        assert.deepEqual([lost.status, kept.status, kept.body], [400, 200, '1:1']);
        assert.equal((await request(path)).status, 400);
    });
    it('websocket: echoes text', async () => {
        const wire = await openWebSocket();
        for (const message of ['4hello', '4', '4☃ 😀']) {
            wire.send(message);
            assert.equal(await wire.next(), message);
        }
    });
    it('websocket: echoes binary with its leading 4', async () => {
        const wire = await openWebSocket();
        wire.send(Buffer.from([4, 1, 2, 255]));
        assert.deepEqual(await wire.next(), Buffer.from([4, 1, 2, 255]));
    });
    it('websocket: an invalid packet ends the connection', async () => {
        for (const message of ['abc', '', '9']) {
            const wire = await openWebSocket();
            wire.send(message);
            await wire.untilClosed();
        }
    });
});

describe('heartbeat', () => {
    it('polling: answers a ping', async () => {
        const path = await openPolling();
        for (let i = 0; i < 3; i++) {
            await post(path, encode('2'));
            assert.deepEqual(await poll(path), ['3']);
        }
    });
    it('polling: ends the session when no ping comes', async () => {
        await untilGone(await openPolling(), (body) => body === '1:1');
    });
    it('websocket: answers a ping', async () => {
        const wire = await openWebSocket();
        for (let i = 0; i < 3; i++) {
            wire.send('2');
            assert.equal(await wire.next(), '3');
        }
    });
    it('websocket: sends no ping, and ends the connection when none comes', async () => {
        const wire = await openWebSocket();
        await wire.untilClosed();
        assert.deepEqual(wire.messages, []);
    });
});

describe('close', () => {
    it('polling: a close packet ends the session', async () => {
        const path = await openPolling();
        const pending = request(path);
        await post(path, encode('1'));
        assert.ok(['1:6', '1:1'].includes((await pending).body));
        assert.equal((await request(path)).status, 400);
    });
    it('websocket: a close packet ends the connection, at the latest with the heartbeat', async () => {
        const wire = await openWebSocket();
        wire.send('1');
        await wire.untilClosed();
    });
});

describe('upgrade', () => {
    async function upgraded() {
        const path = await openPolling();
        const wire = new Wire(`${WS}&sid=${sidOf(path)}`);
        await wire.opened;
        wire.send('2probe');
        assert.equal(await wire.next(), '3probe');
        assert.deepEqual(await poll(path), ['6']);
        wire.send('5');
        wire.send('4upgraded');
        assert.equal(await wire.next(), '4upgraded');
        return { path, wire };
    }
    it('upgrade: from polling to websocket', async () => {
        await upgraded();
    });
    it('upgrade: polling after it is refused, the websocket stays', async () => {
        const { path, wire } = await upgraded();
        assert.equal((await request(path)).status, 400);
        wire.send('4still here');
        assert.equal(await wire.next(), '4still here');
    });
    it('upgrade: a second websocket is refused or closed, the first stays', async () => {
        const { path, wire } = await upgraded();
        const second = new Wire(`${WS}&sid=${sidOf(path)}`);
        await Promise.race([second.untilClosed(), second.untilRefused()]);
        wire.send('4still here');
        assert.equal(await wire.next(), '4still here');
    });
});
