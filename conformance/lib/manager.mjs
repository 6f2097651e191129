// The real tyo-mq-manager, run in the folder of a broker: its `.env` there holds the admin's token.

import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { WAIT_MS } from './limits.mjs';
import { foreign } from './process.mjs';

export class Manager {
    constructor(program, broker, token) {
        if (!program) throw new Error('--manager is missing');
        this.program = resolve(program);
        this.broker = broker;
        this.env = { ...foreign(), HOME: broker.dir, XDG_CONFIG_HOME: broker.dir, ...(token && { TYO_MQ_ADMIN_TOKEN: token }) };
    }

    /** The JSON that a command answers; rejects with what it said when it fails. */
    run(...words) {
        const options = { cwd: this.broker.dir, env: this.env, timeout: WAIT_MS };
        return new Promise((answer, reject) => {
            execFile(this.program, ['--url', this.broker.url, '--json', '--yes', ...words], options, (error, stdout, stderr) => {
                if (error) reject(new Error(`tyo-mq-manager ${words.join(' ')}: ${(stdout || stderr || error.message).trim().slice(0, 400)}`));
                else answer(JSON.parse(stdout));
            });
        });
    }
}
