// Every bound on time and size that the harness has. All are limits against hanging, none decides a pass.

export const WAIT_MS = 10_000;            // for one awaited event
export const SESSION_MS = 30_000;         // for the broker to give up a session of which nothing is left: pingInterval + pingTimeout, and time to spare
export const SCENARIO_MS = 60_000;        // for one scenario
export const COLUMN_MS = 240_000;         // for one peer with all its scenarios; the rest is then reported as failed
export const MATRIX_MS = 1_500_000;       // for all peers, likewise
export const START_MS = 20_000;           // for a server or a peer to be ready
export const STOP_MS = 10_000;            // between asking a process to end and killing it
export const INSTALL_MS = 600_000;        // for one install command
export const SUITE_MS = 180_000;          // for one protocol suite
export const MAX_LINE_BYTES = 64 * 1024 * 1024;
export const CHUNK_UNITS = 262_144;       // the protocol's chunk size, in UTF-16 units of JSON text

/** Rejects when `promise` has not settled in `ms`; `what` names the thing awaited. */
export function within(promise, ms, what) {
    let timer;
    const limit = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`${typeof what === 'function' ? what() : what}: nothing in ${ms / 1000} s`)), ms);
    });
    return Promise.race([promise, limit]).finally(() => clearTimeout(timer));
}
