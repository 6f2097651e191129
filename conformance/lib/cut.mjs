// A TCP relay that can be cut: what a client sees when the network goes away and comes back.

import { connect, createServer } from 'node:net';
import { WAIT_MS, within } from './limits.mjs';

export class Cut {
    static async to(port) {
        const relay = new Cut();
        relay.sockets = new Set();
        relay.polls = new Set();
        relay.server = createServer((client) => relay.#join(client, connect(port, '127.0.0.1')));
        await new Promise((resolve, reject) => relay.server.on('error', reject).listen(0, '127.0.0.1', resolve));
        relay.url = `http://127.0.0.1:${relay.server.address().port}`;
        return relay;
    }

    #join(client, server) {
        client.on('data', (data) => this.#poll(client, data.subarray(0, 4).toString('latin1') === 'GET '));
        server.on('data', () => this.#poll(client, false));
        for (const [one, other] of [[client, server], [server, client]]) {
            this.sockets.add(one);
            one.setNoDelay(true);
            one.on('error', () => {});
            one.on('close', () => { this.sockets.delete(one); this.#poll(client, false); other.destroy(); });
            one.pipe(other);
        }
    }

    #poll(client, pending) {
        if (pending) this.polls.add(client);
        else this.polls.delete(client);
        if (pending) this.polled?.();
    }

    /** Resolves when a GET without an answer is on its way: a polling client is lost only while it polls. */
    pendingPoll() {
        const pending = new Promise((resolve) => {
            this.polled = resolve;
            if (this.polls.size) resolve();
        });
        return within(pending, WAIT_MS, 'a poll');
    }

    /** Ends every connection at once, without a goodbye. */
    cut() {
        for (const socket of this.sockets) socket.destroy();
    }

    close() {
        this.server.close();
        this.cut();
    }
}
