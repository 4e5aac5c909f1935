// Writes docs/reference from the code: `npm run docs`.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { referencePages } from './pages.ts';

const folder = new URL('../../docs/reference', import.meta.url).pathname;
const pages = await referencePages();
rmSync(folder, { recursive: true, force: true });
for (const [path, text] of pages) {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}
