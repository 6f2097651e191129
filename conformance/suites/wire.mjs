// What the three suites share: HTTP and WebSocket access with every wait bounded.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { WAIT_MS, within } from '../lib/limits.mjs';

export const URL_BASE = process.env.CONFORMANCE_URL;
const WebSocket = createRequire(join(process.env.CONFORMANCE_CACHE, 'js/package.json'))('ws');

/** Ended after each test, so that none leaves a connection to the next. */
const open = new Set();

export function closeAll() {
    for (const socket of open) socket.terminate();
    open.clear();
}

/** A WebSocket whose messages are awaited one by one; text as string, binary as Buffer. */
export class Wire {
    constructor(path) {
        this.messages = [];
        this.waiting = [];
        this.socket = new WebSocket(URL_BASE.replace('http', 'ws') + path);
        open.add(this.socket);
        this.closed = new Promise((resolve) => {
            this.socket.on('close', (code) => { resolve(code); this.#end(); });
            this.socket.on('error', () => {});
        });
        this.refused = new Promise((resolve) => this.socket.on('unexpected-response', (request, response) => { request.destroy(); resolve(response.statusCode); }));
        this.opened = new Promise((resolve) => this.socket.on('open', resolve));
        this.socket.on('message', (data, isBinary) => this.#take(isBinary ? data : data.toString('utf8')));
    }

    /** Set to a function to have some messages answered or swallowed: it returns true for those. */
    filter = () => false;

    #take(message) {
        if (this.filter(message)) return;
        const waiter = this.waiting.shift();
        if (waiter) waiter.resolve(message);
        else this.messages.push(message);
    }

    #end() {
        for (const waiter of this.waiting.splice(0)) waiter.reject(new Error('the connection was closed'));
    }

    send(message) {
        this.socket.send(message);
    }

    async next() {
        if (this.messages.length) return this.messages.shift();
        if (this.socket.readyState >= 2) throw new Error('the connection is closed');
        return within(new Promise((resolve, reject) => this.waiting.push({ resolve, reject })), WAIT_MS, 'a message');
    }

    close() {
        this.socket.close();
    }

    untilClosed() {
        return within(this.closed, WAIT_MS, 'the end of the connection');
    }

    /** The HTTP status with which the upgrade was refused. */
    untilRefused() {
        return within(this.refused, WAIT_MS, 'the refusal of the upgrade');
    }
}

export async function request(path, options = {}) {
    const response = await within(fetch(URL_BASE + path, options), WAIT_MS, `${options.method ?? 'GET'} ${path}`);
    const bytes = Buffer.from(await within(response.arrayBuffer(), WAIT_MS, `the body of ${path}`));
    return { status: response.status, headers: response.headers, bytes, body: bytes.toString('utf8') };
}

export const post = (path, body, headers = { 'content-type': 'text/plain;charset=UTF-8' }) => request(path, { method: 'POST', body, headers });

/** A POST of something invalid. What the server says to it is its own; what counts is the session's end. */
export async function postInvalid(path, body) {
    const status = await post(path, body).then((r) => r.status, () => 'closed');
    assert.ok([200, 400, 'closed'].includes(status), `answer ${status}`);
    assert.equal((await request(path)).status, 400);
}

/** Polls until the session is gone: the server answers 400, after a last `1` or not. */
export async function untilGone(path, isLast) {
    for (;;) {
        const { status, body } = await request(path);
        if (status === 400) return;
        assert.equal(status, 200);
        if (isLast(body)) break;
    }
    assert.equal((await request(path)).status, 400);
}
