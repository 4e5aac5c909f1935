/** Flags of Node for a process that runs TypeScript. tsx takes half as much CPU again to start one. */
export const withTypeScript: readonly string[] = [
  '--import',
  new URL('../../../bench/plain-typescript.mjs', import.meta.url).href,
];
