// Values as they cross between the harness and a peer: JSON, with binary as {"$binary": base64}.

import { isDeepStrictEqual } from 'node:util';

export const binary = (...bytes) => ({ $binary: Buffer.from(bytes).toString('base64') });

/** Throws with a short picture of both when they differ. */
export function same(actual, expected, what) {
    if (!isDeepStrictEqual(actual, expected)) throw new Error(`${what}: got ${picture(actual)}, want ${picture(expected)}`);
}

export function holds(condition, why) {
    if (!condition) throw new Error(why);
}

export function picture(value) {
    const text = JSON.stringify(value) ?? 'undefined';
    return text.length > 160 ? `${text.slice(0, 120)}… (${text.length} characters)` : text;
}
