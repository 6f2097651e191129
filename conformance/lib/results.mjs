// The matrix as a Markdown page. Depends on outcomes and versions alone: the same outcomes give the same bytes.

const MARKS = { pass: '✓', fail: '✗', none: '–' };

/** `outcomes` is a Map from `column/scenario` to {result, why}; `columns` carry name, peer, transport, version, problem. */
export function resultsPage({ columns, lists, outcomes, suites }) {
    const out = ['# Conformance results', '', 'Written by `run.mjs`; do not edit. What the scenarios check is in `scenarios/`, what `–` means for a peer in `DEVIATIONS.md`.', ''];
    out.push('✓ passed, ✗ failed, – not for this peer', '');
    out.push('## Protocol suites', '', ...table(['suite', 'passed', 'failed'], suites.map((s) => [s.name, s.problem ? '–' : String(s.passed), s.problem ? `not run: ${s.problem}` : String(s.failed)])), '');
    out.push('## Peers', '', ...table(['', 'peer', 'version', 'transport'], columns.map((c, i) => [letter(i), c.peer, c.problem ? `**not available: ${c.problem}**` : c.version, c.transport])), '');
    for (const [name, scenarios] of lists) {
        out.push(`## ${name}`, '', ...table(['scenario', ...columns.map((_, i) => letter(i))], scenarios.map((scenario) => [scenario.name,
            ...columns.map((column) => MARKS[outcomes.get(`${column.name}/${scenario.name}`)?.result ?? (column.problem ? 'fail' : 'none')])])), '');
    }
    const failures = [...outcomes].filter(([, outcome]) => outcome.result === 'fail').map(([key]) => `- ${key.replace('/', ', ')}`);
    if (failures.length) out.push('## Failures', '', ...failures, '');
    return out.join('\n');
}

const letter = (i) => String.fromCharCode(65 + i);

function table(head, rows) {
    const line = (cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
    return [line(head), line(head.map(() => '---')), ...rows.map(line)];
}
