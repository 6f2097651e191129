'use strict';
// The npm package tyo-mq 0.2.14, the generation on Engine.IO 3, led through its own functions.

const { createRequire } = require('node:module');
const path = require('node:path');
const readline = require('node:readline');

console.log = console.warn = console.error = () => {};     // standard output carries the reports
const home = path.dirname(require.resolve('tyo-mq/package.json'));
const { Producer, Consumer } = require('tyo-mq').Factory;
// The package's subscriber names this module's table as a global without defining it.
globalThis.events = createRequire(path.join(home, 'lib/x.js'))('./events');

const quiet = { log() {}, error() {}, warn() {}, info() {}, debug() {} };
const connections = new Map();
const report = (conn, event, ...args) => process.stdout.write(JSON.stringify({ conn, event, args }) + '\n');

function create(command, Kind) {
    const url = new URL(command.url), client = new Kind(command.name);
    client.logger = quiet;
    connections.set(command.conn, client);
    client.connect(() => report(command.conn, '$connect', client.socket.id, 'websocket'), url.port, url.hostname, 'http', { transports: ['websocket'], forceNew: true });
    if (Kind === Producer) client.onSubscriptionListener = (data) => report(command.conn, '$subscription', data);
}

const commands = {
    consumer: (command) => create(command, Consumer),
    producer: (command) => create(command, Producer),
    subscribe: (command) => connections.get(command.conn).subscribe(command.producer, command.event, (message, from) => report(command.conn, '$message', command.tag, message, from ?? null)),
    produce: (command) => connections.get(command.conn).produce(command.event, command.message),
    send: (command) => connections.get(command.conn).socket.emit(command.event, ...command.args),
    call: (command) => connections.get(command.conn).socket.emit(command.event, ...command.args, (...args) => report(command.conn, '$reply', ...args)),
    close(command) {
        connections.get(command.conn)?.socket.close();
        connections.delete(command.conn);
        report(command.conn, '$closed');
    },
};

readline.createInterface({ input: process.stdin, crlfDelay: Infinity })
    .on('line', (line) => {
        const command = JSON.parse(line);
        try {
            commands[command.do](command);
        } catch (error) {
            report(command.conn, '$failed', String(error && error.message));
        }
    })
    .on('close', () => process.exit(0));
