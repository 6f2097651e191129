// The broker under test: one process with a settings file of its own in a temporary folder.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { START_MS, within } from './limits.mjs';
import { Child, freePort, listening } from './process.mjs';

const SETTINGS = { http_api: { enabled: true }, storage: 'memory' };

export class Broker {
    /** `options`: settings, or null for a folder in which the broker finds nothing; env; verbose. */
    static async start(program, options = {}) {
        const broker = new Broker();
        broker.program = program;
        broker.options = options;
        broker.dir = await mkdtemp(join(tmpdir(), 'conformance-'));
        broker.port = await freePort();
        if (options.settings !== null) await writeFile(join(broker.dir, 'settings.json'), JSON.stringify({ ...SETTINGS, ...options.settings }));
        await broker.#spawn();
        return broker;
    }

    async #spawn() {
        const args = ['--settings', join(this.dir, 'settings.json'), '--host', '127.0.0.1', '--port', String(this.port)];
        this.child = new Child(this.program, args, { cwd: this.dir, env: this.options.env, verbose: this.options.verbose });
        await listening(this.child, this.port, 'the broker');
        await within(fetch(this.url), START_MS, 'an answer of the broker');     // the port is open a moment before it is served
    }

    get url() {
        return `http://127.0.0.1:${this.port}`;
    }

    /** The same port and folder, a new process. */
    async restart() {
        await this.child.stop();
        await this.#spawn();
    }

    async stop() {
        await this.child.stop();
        await rm(this.dir, { recursive: true, force: true });
    }
}

/** An example server that takes its port as the only argument. */
export async function startEcho(program, name, verbose) {
    const port = await freePort();
    const child = new Child(program, [String(port)], { env: { PORT: String(port) }, verbose });
    await listening(child, port, name);
    return { url: `http://127.0.0.1:${port}`, stop: () => child.stop() };
}
