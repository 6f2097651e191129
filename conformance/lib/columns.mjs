// The peers of the matrix: how each is installed, started, and what it can do.

import { join } from 'node:path';
import { CACHE, chromium, command, go, goProgram, npm, python, versionIn, webSocket } from './install.mjs';
import { BrowserPuppet, ProcessPuppet } from './puppet.mjs';

const TRANSPORTS = { websocket: ['websocket'], polling: ['polling'], upgrade: ['polling', 'websocket'] };

// raw: events are sent by hand; order: keeps the order of arrival; null, binary: can send such payloads; reconnect: comes
// back by itself after a loss, goodbye: after the server said goodbye; text: passes JSON text on unread; subscribe: has a subscription that the broker serves; legacy: 0.2.x.
const RAW = ['raw', 'order', 'null', 'binary', 'reconnect', 'goodbye', 'subscribe'];

function socketIoClient(major) {
    const name = `socket.io-client-${major}`;
    return Object.keys(TRANSPORTS).map((transport) => ({
        peer: `socket.io-client ${major}`, transport, features: new Set(RAW), transports: TRANSPORTS[transport],
        version: async () => versionIn(await npm('js'), name),
        start: async ({ verbose }) => new ProcessPuppet('node', [join(await npm('js'), 'peer.js'), name], { verbose }),
    }));
}

const pythonVersion = async (name) => (await command(await python(), ['-c', `import importlib.metadata as m; print(m.version('${name}'))`])).trim();

const pythonSocketIo = Object.keys(TRANSPORTS).map((transport) => ({
    peer: 'python-socketio', transport, transports: TRANSPORTS[transport],
    features: new Set(RAW.filter((feature) => feature !== 'goodbye' || transport !== 'polling')),
    version: () => pythonVersion('python-socketio'),
    start: async ({ verbose }) => new ProcessPuppet(await python(), [join(CACHE, 'python/peer.py')], { verbose }),
}));

const pythonLibrary = {
    peer: 'tyo-mq-client (PyPI)', transport: 'websocket', features: new Set(['reconnect', 'goodbye', 'subscribe']),
    version: () => pythonVersion('tyo-mq-client'),
    start: async ({ verbose }) => new ProcessPuppet(await python(), [join(CACHE, 'python/library.py')], { verbose }),
};

const npmLibrary = {
    peer: 'tyo-mq (npm)', transport: 'websocket', features: new Set(['legacy', 'order']),
    version: async () => versionIn(await npm('tyo-mq-npm'), 'tyo-mq'),
    start: async ({ verbose }) => new ProcessPuppet('node', [join(await npm('tyo-mq-npm'), 'peer.js')], { verbose }),
};

const goPeer = {
    peer: 'Go', transport: 'websocket', features: new Set([...RAW, 'text']), transports: TRANSPORTS.websocket,
    async version() {
        await go();
        return /go(\S+) /.exec(await command(await goProgram(join(CACHE, 'go')), ['version'], { env: { GOTOOLCHAIN: 'local' } }))[1];
    },
    start: async ({ verbose }) => new ProcessPuppet(await go(), [], { verbose }),
};

const browser = Object.keys(TRANSPORTS).map((transport) => ({
    peer: 'Chromium', transport, features: new Set(RAW), transports: TRANSPORTS[transport],
    // Of the browser the major version alone: the distribution's updates are not this project's changes.
    version: async () => `${/ (\d+)\./.exec(await command(await chromium(), ['--version']))[1]}, socket.io-client ${versionIn(await npm('js'), 'socket.io-client-4')}`,
    async start({ verbose }) {
        const js = await npm('js');
        const files = { '/': join(CACHE, '../peers/browser/page.html'), '/puppet.js': join(js, 'puppet.js'), '/socket.io.js': join(js, 'node_modules/socket.io-client-4/dist/socket.io.min.js') };
        return BrowserPuppet.start({ program: await chromium(), files, WebSocketServer: (await webSocket()).WebSocketServer, verbose });
    },
}));

const byPeer = [...socketIoClient(4), ...socketIoClient(3), ...socketIoClient(2), ...pythonSocketIo, pythonLibrary, npmLibrary, goPeer, ...browser];

export const COLUMNS = byPeer.map((column) => ({ ...column, name: `${column.peer} ${column.transport}` }));
export const BASELINE = COLUMNS[0];
