'use strict';
// peer.js PACKAGE: the puppet over one npm package, commands on standard input, reports on standard output, a JSON a line.

const readline = require('node:readline');
const createPuppet = require('./puppet.js');

const library = require(process.argv[2]);
const report = (value) => process.stdout.write(JSON.stringify(value) + '\n');
const puppet = createPuppet(library.io || library, report);

readline.createInterface({ input: process.stdin, crlfDelay: Infinity })
    .on('line', (line) => puppet(JSON.parse(line)))
    .on('close', () => process.exit(0));
