#!/usr/bin/env node
// Runs the protocol suites against the example servers and the client matrix against the broker. See README.md.

import { writeFileSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { USAGE, chosen, parseArgs } from './lib/args.mjs';
import { Broker } from './lib/broker.mjs';
import { BASELINE, COLUMNS } from './lib/columns.mjs';
import { HOME } from './lib/install.mjs';
import { COLUMN_MS, MATRIX_MS, SCENARIO_MS, within } from './lib/limits.mjs';
import { resultsPage } from './lib/results.mjs';
import { SUITES, runSuite } from './lib/suites.mjs';
import { World } from './lib/world.mjs';
import { LISTS } from './scenarios/index.mjs';

const tally = { passed: 0, failed: 0 };
const outcomes = new Map();

function note(group, name, error) {
    if (error === undefined) {
        tally.passed++;
        console.log(`PASS ${group} ${name}`);
    } else {
        tally.failed++;
        console.log(`FAIL ${group} ${name}: ${String(error.message ?? error).replaceAll('\n', ' ').slice(0, 600)}`);
    }
}

async function runScenario(scenario, context) {
    if (Date.now() > context.deadline) {
        record(scenario, context.column, new Error('not run: the time for this peer is over'));
        return;
    }
    const world = new World({ ...context, scenario: scenario.name });
    let failure;
    try {
        await within(scenario.run(world), SCENARIO_MS, 'the scenario');
    } catch (error) {
        failure = error;
    }
    await world.end();
    if (!context.broker.child.alive) {
        failure = new Error(`the broker ended (${context.broker.child.exit}) ${failure ? `after: ${failure.message}` : ''}`);
        await context.broker.restart();
    }
    record(scenario, context.column, failure);
}

function record(scenario, column, failure) {
    outcomes.set(`${column.name}/${scenario.name}`, { result: failure ? 'fail' : 'pass' });
    note(column.name, scenario.name, failure);
}

/** One column of the matrix: a fresh broker, a peer process, every scenario that is for it. */
async function runColumn(column, scenarios, { args, baseline, end }) {
    let puppet, broker;
    try {
        column.version = await column.version();
        puppet = await column.start(args);
        broker = await Broker.start(resolve(args.broker), args);
        const deadline = Math.min(end, Date.now() + COLUMN_MS);
        for (const scenario of scenarios) await runScenario(scenario, { column, puppet, broker, baseline, deadline, manager: args.manager });
    } catch (error) {
        column.problem = String(error.message).split('\n')[0].slice(0, 200);
        note(column.name, 'available', error);
    } finally {
        await puppet?.stop();
        await broker?.stop();
    }
}

const isFor = (column, scenario) => scenario.needs.every((feature) => column.features.has(feature));

async function runMatrix(args) {
    const columns = COLUMNS.filter((column) => chosen(column.name, args.peers)).map((column) => ({ ...column }));
    const end = Date.now() + MATRIX_MS;
    let baseline;
    for (const column of columns) {
        const scenarios = LISTS.flatMap(([, list]) => list).filter((scenario) => isFor(column, scenario) && chosen(scenario.name, args.only));
        if (scenarios.length === 0) continue;
        baseline ??= await BASELINE.start(args);
        await runColumn(column, scenarios, { args, baseline, end });
    }
    await baseline?.stop();
    return columns;
}

async function main() {
    const args = parseArgs(process.argv.slice(2));
    if (args.list) {
        console.log([...SUITES, ...COLUMNS].map((x) => x.name).join('\n'));
        console.log(LISTS.flatMap(([, list]) => list.map((scenario) => `  ${scenario.name}`)).join('\n'));
        return;
    }
    const suites = [];
    for (const suite of SUITES.filter(({ name }) => chosen(name, args.peers))) suites.push(await runSuite(suite, args, note));
    if (!args.broker) throw new Error(`--broker is missing\n\n${USAGE}`);
    const columns = await runMatrix(args);
    const full = args.peers.length === 0 && args.only.length === 0;
    const file = args.results ?? (full ? join(HOME, 'RESULTS.md') : undefined);
    if (file) writeFileSync(isAbsolute(file) ? file : resolve(file), resultsPage({ columns, lists: LISTS, outcomes, suites }));
    for (const { name, problem } of [...suites, ...columns]) if (problem) console.log(`NOT AVAILABLE ${name}: ${problem}`);
    if (tally.passed + tally.failed === 0) throw new Error('nothing was run: no peer, suite or scenario has such a name');
    console.log(`${tally.passed} passed, ${tally.failed} failed`);
    process.exitCode = tally.failed ? 1 : 0;
}

main().catch((error) => {
    console.error(error.message);
    process.exitCode = 2;
}).finally(() => process.exit());
