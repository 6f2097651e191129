// The scenario lists by name, and which of them a run without options includes.

import { core } from './core.mjs';
import { durable } from './durable.mjs';

export const LISTS = { core, durable };
export const DEFAULT_LISTS = ['core'];
