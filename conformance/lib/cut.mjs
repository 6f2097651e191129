// A TCP relay that can be cut: what a client sees when the network goes away and comes back.

import { connect, createServer } from 'node:net';

export class Cut {
    static async to(port) {
        const relay = new Cut();
        relay.sockets = new Set();
        relay.server = createServer((client) => relay.#join(client, connect(port, '127.0.0.1')));
        await new Promise((resolve, reject) => relay.server.on('error', reject).listen(0, '127.0.0.1', resolve));
        relay.url = `http://127.0.0.1:${relay.server.address().port}`;
        return relay;
    }

    #join(client, server) {
        for (const [one, other] of [[client, server], [server, client]]) {
            this.sockets.add(one);
            one.setNoDelay(true);
            one.on('error', () => {});
            one.on('close', () => { this.sockets.delete(one); other.destroy(); });
            one.pipe(other);
        }
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
