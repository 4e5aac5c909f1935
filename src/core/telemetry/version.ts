import { readFileSync } from 'node:fs';

/** The version of this program, as its package says. */
export function programVersion(): string {
  const manifest = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}
