// A reporter of node:test that prints one JSON line for each test, without its suites.

export default async function* reporter(source) {
    for await (const { type, data } of source) {
        if ((type !== 'test:pass' && type !== 'test:fail') || data.details.type === 'suite' || data.skip !== undefined) continue;
        const error = data.details.error;
        const why = type === 'test:fail' ? String(error?.cause?.message ?? error?.cause ?? error?.message ?? 'failed') : undefined;
        yield JSON.stringify({ name: data.name, why }) + '\n';
    }
}
