// Command line of run.mjs: what may be asked for, and nothing else.

export const USAGE = `node conformance/run.mjs --broker PATH [options]

  --broker PATH         the built broker
  --manager PATH        the built tyo-mq-manager
  --engine-echo PATH    the built example of the transport crate
  --socket-echo PATH    the built example of the server crate
  --peers NAME,...      only peers (or suites) whose name contains one of these
  --only NAME,...       only scenarios (or suite tests) whose name contains one of these
  --results FILE        where the matrix is written (default: RESULTS.md, on a full run only)
  --list                print the names of peers and scenarios and stop
  --verbose             print what peers and servers write on standard error`;

export function parseArgs(argv) {
    const args = { peers: [], only: [], list: false, verbose: false };
    const words = new Map([['--broker', 'broker'], ['--manager', 'manager'], ['--engine-echo', 'engineEcho'], ['--socket-echo', 'socketEcho'], ['--results', 'results']]);
    const lists = new Map([['--peers', 'peers'], ['--only', 'only']]);
    for (let i = 0; i < argv.length; i++) {
        const value = () => {
            if (i + 1 >= argv.length) throw new Error(`${argv[i]} needs a value`);
            return argv[++i];
        };
        if (words.has(argv[i])) args[words.get(argv[i])] = value();
        else if (lists.has(argv[i])) args[lists.get(argv[i])].push(...value().split(',').filter(Boolean));
        else if (argv[i] === '--list') args.list = true;
        else if (argv[i] === '--verbose') args.verbose = true;
        else throw new Error(`unknown option ${argv[i]}\n\n${USAGE}`);
    }
    return args;
}

export const chosen = (name, filters) => filters.length === 0 || filters.some((f) => name.includes(f));
