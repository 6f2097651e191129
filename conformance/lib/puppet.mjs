// Leads one peer process (or page): sends it commands, hands its reports to the session they belong to.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { START_MS, within } from './limits.mjs';
import { Child } from './process.mjs';

class Puppet {
    sessions = new Map();

    receive(line) {
        const report = JSON.parse(line);
        this.sessions.get(report.conn)?.receive(report, line);
    }
}

/** A peer that is a process with commands on its standard input. */
export class ProcessPuppet extends Puppet {
    constructor(program, args, options = {}) {
        super();
        this.child = new Child(program, args, { ...options, onLine: (line) => this.receive(line) });
    }

    send(line) {
        if (!this.child.alive) throw new Error(`the peer ended (${this.child.exit}): ${this.child.tail.trim().slice(-300)}`);
        this.child.write(line);
    }

    stop() {
        return this.child.stop();
    }
}

const CHROMIUM_FLAGS = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-dev-shm-usage', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-extensions'];

/** A peer that is a page in Chromium, served from an origin of its own. */
export class BrowserPuppet extends Puppet {
    static async start({ program, files, WebSocketServer, verbose }) {
        const puppet = new BrowserPuppet();
        puppet.server = createServer((request, response) => {
            const file = files[request.url];
            response.writeHead(file ? 200 : 404, { 'content-type': request.url === '/' ? 'text/html' : 'text/javascript' });
            response.end(file ? readFileSync(file) : '');
        });
        await new Promise((resolve, reject) => puppet.server.on('error', reject).listen(0, '127.0.0.1', resolve));
        const controls = new WebSocketServer({ server: puppet.server, path: '/control', maxPayload: 64 * 1024 * 1024 });
        const connected = new Promise((resolve) => controls.once('connection', resolve));
        puppet.profile = mkdtempSync(join(tmpdir(), 'conformance-chromium-'));
        const url = `http://127.0.0.1:${puppet.server.address().port}/`;
        puppet.child = new Child(program, [...CHROMIUM_FLAGS, `--user-data-dir=${puppet.profile}`, url], { verbose });
        const ended = puppet.child.ended.then((why) => { throw new Error(`chromium ended (${why}): ${puppet.child.tail.trim().slice(-300)}`); });
        ended.catch(() => {});
        try {
            puppet.control = await within(Promise.race([connected, ended]), START_MS, 'the page in Chromium');
        } catch (error) {
            await puppet.stop();
            throw error;
        }
        puppet.control.on('message', (data) => puppet.receive(data.toString('utf8')));
        return puppet;
    }

    send(line) {
        if (this.control.readyState !== 1) throw new Error('the page is gone');
        this.control.send(line);
    }

    async stop() {
        this.control?.terminate();
        this.server.close();
        await this.child.stop();
        rmSync(this.profile, { recursive: true, force: true, maxRetries: 5 });
    }
}
