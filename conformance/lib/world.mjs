// What a scenario is given: its broker, sessions of the peer under test, and the baseline peer to meet it with.

import { Broker } from './broker.mjs';
import { Cut } from './cut.mjs';
import { Manager } from './manager.mjs';
import { LibrarySession, RawSession } from './session.mjs';
import { same } from './values.mjs';

export class World {
    opened = [];
    drains = 0;

    constructor({ broker, puppet, column, scenario, baseline, manager }) {
        Object.assign(this, { broker, puppet, column, scenario, baselinePuppet: baseline, managerProgram: manager });
    }

    can(feature) {
        return this.column.features.has(feature);
    }

    /** A name that no other scenario on this broker uses. */
    name(role) {
        return `${this.scenario}-${role}`;
    }

    async #keep(opening) {
        const session = await opening;
        this.opened.push(session);
        return session;
    }

    open(url = this.broker.url) {
        return this.#keep(RawSession.open(this.puppet, url, this.column.transports));
    }

    /** `auth` is what the session authenticates with before it registers. */
    consumer(role, options) {
        return this.#registered('consumer', role, options);
    }

    producer(role, options) {
        return this.#registered('producer', role, options);
    }

    async #registered(kind, role, { url = this.broker.url, auth, ...fields } = {}) {
        const name = this.name(role);
        if (!this.can('raw')) return this.#keep(LibrarySession.open(this.puppet, url, kind, name, auth));
        const session = await this.open(url);
        if (auth) await session.authenticate(auth);
        await session[kind](name, fields);
        return session;
    }

    /** The code with which the broker refuses what this `auth` asks for, and the session. */
    async refused(kind, role, auth) {
        const name = this.name(role);
        const session = await (this.can('raw') ? this.open() : this.#keep(LibrarySession.start(this.puppet, this.broker.url, kind, name, auth)));
        if (this.can('raw') && (await session.authenticate(auth).catch(() => {})) !== undefined) session.emit(kind.toUpperCase(), { name });
        return { session, code: (await session.event('AUTH_FAIL'))[0].code };
    }

    /** The same for the baseline: socket.io-client 4 over WebSocket. */
    baseline() {
        return new Baseline(this);
    }

    keepOpen(opening) {
        return this.#keep(opening);
    }

    async cut() {
        const relay = await Cut.to(this.broker.port);
        this.relays = [...(this.relays ?? []), relay];
        return relay;
    }

    /** From here on the scenario runs against a broker of its own with these settings; null: in an empty folder. */
    async ownBroker(settings, env) {
        this.broker = this.own = await Broker.start(this.broker.program, { ...this.broker.options, settings, env });
    }

    /** tyo-mq-manager in the folder of the scenario's broker; the admin's token is in `.env` there unless it is given. */
    manager(token) {
        return new Manager(this.managerProgram, this.broker, token);
    }

    /** When this resolves, everything that `producer` sent so far has reached `consumers`, or never will. */
    async drain(producer, ...consumers) {
        const event = `drain-${++this.drains}`;
        const inboxes = await Promise.all(consumers.map((consumer) => consumer.subscribe(producer.name, event)));
        producer.produce(event, 'drained');
        await Promise.all(inboxes.map((inbox) => inbox.take(1)));
    }

    /** These messages and no others; in this order where the peer keeps one. */
    async exactly(inbox, producer, expected, what = 'messages') {
        await inbox.take(expected.length);
        await this.drain(producer, inbox.session);
        this.sameMessages(inbox.messages, expected, what);
    }

    sameMessages(actual, expected, what) {
        const order = (list) => (this.can('order') ? list : [...list].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)));
        same(order(actual), order(expected), what);
    }

    /** Closes the session and resolves when the broker has noticed. `consumer` must be a consumer. */
    async leave(consumer) {
        const watcher = await this.baseline().producer(`watch-${this.opened.length}`);
        await consumer.subscribe(watcher.name, 'watch');
        await consumer.close();
        await watcher.event(`DISCONNECT-${watcher.noticeId}`);
        await watcher.close();
    }

    async end() {
        await Promise.allSettled(this.opened.map((session) => session.close()));
        for (const relay of this.relays ?? []) relay.close();
        await this.own?.stop();
    }
}

class Baseline {
    constructor(world) {
        this.world = world;
    }

    open(url = this.world.broker.url) {
        return this.world.keepOpen(RawSession.open(this.world.baselinePuppet, url, ['websocket']));
    }

    async consumer(role, fields = {}) {
        const session = await this.open();
        await session.consumer(this.world.name(role), fields);
        return session;
    }

    async producer(role, fields = {}) {
        const session = await this.open();
        await session.producer(this.world.name(role), fields);
        return session;
    }
}
