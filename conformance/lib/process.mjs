// Child processes: started, watched, ended. Knows nothing of brokers or peers.

import { spawn } from 'node:child_process';
import { createServer, connect } from 'node:net';
import { MAX_LINE_BYTES, START_MS, STOP_MS } from './limits.mjs';

const TAIL_CHARS = 4000;
const children = new Set();

process.on('exit', () => children.forEach((child) => child.kill('SIGKILL')));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

/** The environment without what would be a setting of the broker or its manager. */
export const foreign = () => Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('TYO_MQ_')));

/** A child whose standard output is handed on line by line; `tail` is the end of what it wrote on standard error. */
export class Child {
    constructor(command, args, { cwd, env, verbose, onLine } = {}) {
        this.tail = '';
        this.exit = null;
        this.child = spawn(command, args, { cwd, env: { ...foreign(), ...env }, stdio: ['pipe', 'pipe', 'pipe'] });
        children.add(this.child);
        this.ended = new Promise((resolve) => {
            const end = (why) => {
                if (this.exit === null) this.exit = why;
                children.delete(this.child);
                resolve(this.exit);
            };
            this.child.on('error', (error) => end(error.message));
            this.child.on('close', (code, signal) => end(signal ?? `exit code ${code}`));
        });
        this.child.stdin.on('error', () => {});       // a peer that died is reported by its end
        this.child.stderr.setEncoding('utf8').on('data', (text) => {
            this.tail = (this.tail + text).slice(-TAIL_CHARS);
            if (verbose) process.stderr.write(text);
        });
        this.#readLines(onLine ?? (() => {}));
    }

    #readLines(onLine) {
        let parts = [];
        let size = 0;
        this.child.stdout.on('data', (data) => {
            let from = 0;
            for (let at; (at = data.indexOf(10, from)) >= 0; from = at + 1) {
                parts.push(data.subarray(from, at));
                onLine(Buffer.concat(parts).toString('utf8'));
                parts = [];
                size = 0;
            }
            parts.push(data.subarray(from));
            size += data.length - from;
            if (size > MAX_LINE_BYTES) this.child.kill('SIGKILL');
        });
    }

    get alive() {
        return this.exit === null;
    }

    write(line) {
        this.child.stdin.write(line + '\n');
    }

    async stop() {
        if (this.alive) this.child.kill('SIGTERM');
        const timer = setTimeout(() => this.child.kill('SIGKILL'), STOP_MS);
        await this.ended;
        clearTimeout(timer);
    }
}

export async function freePort() {
    const server = createServer();
    await new Promise((resolve, reject) => server.on('error', reject).listen(0, '127.0.0.1', resolve));
    const { port } = server.address();
    await new Promise((resolve) => server.close(resolve));
    return port;
}

const accepts = (port) => new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => { socket.destroy(); resolve(true); });
    socket.once('error', () => resolve(false));
});

/** Resolves when the port accepts; rejects when the child ends first or the limit is over. */
export async function listening(child, port, name) {
    const until = Date.now() + START_MS;
    while (!(await accepts(port))) {
        if (!child.alive) throw new Error(`${name} ended at its start (${child.exit}): ${child.tail.trim().slice(-400)}`);
        if (Date.now() > until) throw new Error(`${name} did not listen on port ${port} in ${START_MS / 1000} s`);
        await new Promise((resolve) => setTimeout(resolve, 20));
    }
}
