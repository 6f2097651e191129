// The scenario lists by name, in the order in which they are run.

import { auth } from './auth.mjs';
import { core } from './core.mjs';
import { durable } from './durable.mjs';

export const LISTS = Object.entries({ core, durable, auth });
