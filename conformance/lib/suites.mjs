// Runs one protocol suite under Node's test runner against an example server started for it.

import { spawn } from 'node:child_process';
import { join, resolve } from 'node:path';
import { startEcho } from './broker.mjs';
import { CACHE, HOME, npm } from './install.mjs';
import { SUITE_MS } from './limits.mjs';

export const SUITES = [
    { name: 'engine-v4', server: 'engineEcho', option: '--engine-echo' },
    { name: 'engine-v3', server: 'engineEcho', option: '--engine-echo' },
    { name: 'socket-v5', server: 'socketEcho', option: '--socket-echo' },
];

export async function runSuite({ name, server, option }, args, note) {
    const outcome = { name, passed: 0, failed: 0 };
    let echo;
    try {
        if (!args[server]) throw new Error(`${option} is missing`);
        await npm('js');
        echo = await startEcho(resolve(args[server]), name, args.verbose);
        await testFile(name, echo.url, args, (test) => {
            outcome[test.why === undefined ? 'passed' : 'failed']++;
            note(name, test.name, test.why);
        });
        if (outcome.passed + outcome.failed === 0 && args.only.length === 0) throw new Error('it ran no test');
    } catch (error) {
        outcome.problem = error.message.split('\n')[0].slice(0, 200);
        note(name, 'available', error);
    } finally {
        await echo?.stop();
    }
    return outcome;
}

function testFile(name, url, { only, verbose }, onTest) {
    const reporter = join(HOME, 'suites/reporter.mjs');
    const pattern = only.map((word) => `--test-name-pattern=${word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}`);
    const child = spawn(process.execPath, [...pattern, `--test-reporter=${reporter}`, join(HOME, `suites/${name}.test.mjs`)],
        { env: { ...process.env, CONFORMANCE_URL: url, CONFORMANCE_CACHE: CACHE }, stdio: ['ignore', 'pipe', 'pipe'] });
    let errors = '';
    child.stderr.on('data', (data) => { errors += data; if (verbose) process.stderr.write(data); });
    const timer = setTimeout(() => child.kill('SIGKILL'), SUITE_MS);
    return new Promise((resolve, reject) => {
        let rest = '';
        child.stdout.setEncoding('utf8').on('data', (text) => {
            const lines = (rest + text).split('\n');
            rest = lines.pop();
            lines.filter((line) => line.startsWith('{')).forEach((line) => onTest(JSON.parse(line)));
        });
        child.on('error', reject);
        child.on('close', (code, signal) => {
            clearTimeout(timer);
            if (signal || (code !== 0 && code !== 1)) reject(new Error(`the test runner ended with ${signal ?? code}: ${errors.slice(-300)}`));
            else resolve();
        });
    });
}
