/**
 * Lets Node run TypeScript with `node --import` of this file, its types taken away as the build does and nothing else
 * changed. tsx keeps the names of functions, which makes every closure several times as dear as it is, and maps every
 * stack: what is measured should not pay for that, and what measures neither.
 */
import { register } from 'node:module';

register('./plain-typescript-hooks.mjs', import.meta.url);
