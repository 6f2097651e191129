// One connection of a peer, as a scenario uses it. Two kinds with the same verbs: raw (the broker's events are sent by
// hand through a Socket.IO client) and library (a published broker library is called).

import { CHUNK_UNITS, WAIT_MS, within } from './limits.mjs';
import { picture } from './values.mjs';

let connections = 0;

class Session {
    constructor(puppet, url) {
        this.puppet = puppet;
        this.url = url;
        this.conn = `c${++connections}`;
        this.records = [];
        this.waiting = new Set();
        puppet.sessions.set(this.conn, this);
    }

    command(fields) {
        this.puppet.send(JSON.stringify({ ...fields, conn: this.conn }));
    }

    receive(report, line) {
        this.add({ event: report.event, args: report.args, line });
    }

    add(record) {
        this.records.push(record);
        for (const check of [...this.waiting]) check();
    }

    /** The first thing that `find` makes of the records, those already there included. */
    until(what, find, limitMs = WAIT_MS) {
        const picked = new Promise((resolve, reject) => {
            const check = () => {
                try {
                    const found = find(this.records);
                    if (found === undefined) return;
                    this.waiting.delete(check);
                    resolve(found);
                } catch (error) {
                    this.waiting.delete(check);
                    reject(error);
                }
            };
            this.waiting.add(check);
            check();
        });
        return within(picked, limitMs, () => `${what} (seen: ${picture(this.records.map((r) => r.event))})`);
    }

    /** The arguments of the n-th record of this event. */
    event(name, nth = 1, limitMs = WAIT_MS) {
        return this.until(`${name}${nth > 1 ? ` no. ${nth}` : ''}`, (records) => records.filter((r) => r.event === name)[nth - 1]?.args, limitMs);
    }

    seen(name) {
        return this.records.filter((r) => r.event === name).map((r) => r.args);
    }

    async close() {
        if (this.closed) return;
        this.closed = true;
        this.command({ do: 'close' });
        await this.event('$closed');
        this.puppet.sessions.delete(this.conn);
    }
}

export class RawSession extends Session {
    acks = new Map();
    transfers = new Map();

    static async open(puppet, url, transports) {
        const session = new RawSession(puppet, url);
        session.command({ do: 'open', url, transports });
        await session.connected(1);
        return session;
    }

    /** Resolves at the n-th connection of this session. */
    async connected(nth) {
        const [id, transport] = await this.event('$connect', nth);
        this.id = id;
        this.transport = transport;
    }

    receive(report, line) {
        if (report.ack !== undefined) {
            this.acks.get(report.ack)?.(report.args);
            this.acks.delete(report.ack);
            return;
        }
        super.receive(report, line);
        if (report.event === 'CONSUME_CHUNK') this.#assemble(report.args[0]);
    }

    #assemble({ transferId, event, index, total, data }) {
        const parts = this.transfers.get(transferId) ?? [];
        this.transfers.set(transferId, parts);
        parts[index] = data;
        if (Object.keys(parts).length < total) return;
        this.transfers.delete(transferId);
        this.add({ event, args: [JSON.parse(parts.join(''))], chunks: parts.map((part) => part.length) });
    }

    emit(event, ...args) {
        this.command({ do: 'emit', event, args });
    }

    /** Resolves when the broker has admitted this session, rejects when it refuses. */
    async authenticate(payload) {
        this.emit('AUTHENTICATION', payload);
        return this.until('AUTH_OK', (records) => {
            const refusal = records.find((record) => record.event === 'AUTH_FAIL');
            if (refusal) throw new Error(`AUTH_FAIL ${picture(refusal.args[0])}`);
            return records.find((record) => record.event === 'AUTH_OK')?.args[0];
        });
    }

    /** Sends `text`, JSON of one argument, without reading it here. */
    emitText(event, text) {
        this.puppet.send(`{"do":"emit","conn":"${this.conn}","event":${JSON.stringify(event)},"args":[${text}]}`);
    }

    call(event, ...args) {
        const ack = this.lastAck = (this.lastAck ?? 0) + 1;
        const reply = new Promise((resolve) => this.acks.set(ack, resolve));
        this.command({ do: 'emit', event, args, ack });
        return within(reply, WAIT_MS, `the reply to ${event}`);
    }

    /** Everything sent before has been handled when this resolves. */
    fence() {
        return this.call('PING', {});
    }

    hear() {}          // a raw session hears everything

    async consumer(name, fields = {}) {
        this.name = name;
        this.emit('CONSUMER', { name, id: name, consumer_id: name, ...fields });
        await this.fence();
    }

    async producer(name, fields = {}) {
        this.name = name;
        this.noticeId = fields.id ?? this.id;
        this.emit('PRODUCER', { name, ...fields });
        await this.fence();
    }

    /** `options.topic`: the event is a pattern, of any producer unless one is named. */
    async subscribe(producer, event, { topic, ...options } = {}) {
        const mode = topic ? { mode: 'topic' } : {};
        this.emit('SUBSCRIBE', { event, producer, consumer: this.name, consumer_id: this.name, ...mode, ...options });
        await this.fence();
        const name = `CONSUME-${`${producer}-${event}`.toLowerCase()}`;
        return new Inbox(this, (record) => record.event === name && { ...record.args[0], raw: record.args[0], record });
    }

    produce(event, message, options = {}) {
        const request = { event, message, from: this.name, ...options };
        const text = JSON.stringify(request);
        if (text.length <= CHUNK_UNITS) {
            this.emit('PRODUCE', request);
            return;
        }
        const transferId = `${this.conn}-${this.transfersSent = (this.transfersSent ?? 0) + 1}`;
        const total = Math.ceil(text.length / CHUNK_UNITS);
        for (let index = 0; index < total; index++)
            this.emit('PRODUCE_CHUNK', { transferId, index, total, data: text.slice(index * CHUNK_UNITS, (index + 1) * CHUNK_UNITS) });
    }

    broadcast(event, message, { group } = {}) {
        const target = group ? { broadcast: 'group', group } : { broadcast: 'realm' };
        this.emit('PRODUCE', { event, message, from: this.name, method: 'broadcast', ...target });
    }
}

export class LibrarySession extends Session {
    tags = 0;

    /** A connection that may still be refused. */
    static async start(puppet, url, kind, name, auth) {
        const session = new LibrarySession(puppet, url);
        session.name = name;
        session.command({ do: kind, name, url, auth });
        return session;
    }

    static async open(puppet, url, kind, name, auth) {
        const session = await LibrarySession.start(puppet, url, kind, name, auth);
        await session.event('$connect');
        if (kind === 'consumer') session.fences = await session.#listenTo(`fence-${name}`, 'fence', {});
        return session;
    }

    until(what, find, limitMs) {
        return super.until(what, (records) => {
            const failed = records.find((r) => r.event === '$failed');
            if (failed) throw new Error(`the library raised ${failed.args[0]}`);
            return find(records);
        }, limitMs);
    }

    /** A message of its own that comes back: what this socket sent before has been handled. */
    async fence() {
        const message = this.fenced = (this.fenced ?? 0) + 1;
        this.command({ do: 'send', event: 'PRODUCE', args: [{ event: 'fence', message, from: `fence-${this.name}` }] });
        await this.fences.find(`fence ${message}`, (delivered) => delivered.message === message);
    }

    hear(event) {
        this.command({ do: 'listen', event });
    }

    async subscribe(producer, event, { topic, ...options } = {}) {
        const inbox = await this.#listenTo(producer, event, options, topic);
        await this.fence();
        return inbox;
    }

    async #listenTo(producer, event, options, topic = false) {
        const tag = `t${++this.tags}`;
        this.command({ do: 'subscribe', producer, event, options, topic, tag });
        return new Inbox(this, ({ event: name, args }) => name === '$message' && args[0] === tag
            && { message: args[1], from: args[2], event: args[3]?.event, raw: args[3] });
    }

    produce(event, message, options = {}) {
        this.command({ do: 'produce', event, message, options });
    }

    broadcast(event, message, { group } = {}) {
        this.command({ do: 'broadcast', event, message, group });
    }

    /** Sends one event as it is, beside the library's functions. */
    emit(event, ...args) {
        this.command({ do: 'send', event, args });
    }
}

/** What one subscription has received, in the order of arrival. */
export class Inbox {
    constructor(session, read) {
        this.session = session;
        this.read = read;
    }

    get all() {
        return this.session.records.map(this.read).filter(Boolean);
    }

    get messages() {
        return this.all.map((delivered) => delivered.message);
    }

    /** The first `n` deliveries. */
    take(n) {
        return this.session.until(`${n} deliveries`, () => (this.all.length >= n ? this.all.slice(0, n) : undefined));
    }

    find(what, test) {
        return this.session.until(what, () => this.all.find(test));
    }
}
