import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { copyEnvironment, holdSnapshot } from '../../../../src/storage/lmdb/environment/copy-environment.ts';
import { temporaryFolder } from '../../../harness/machine/temporary-folder.ts';
import { openEnvironment } from '../../../harness/storage/environment.ts';

const folder = temporaryFolder();
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const pageBytes = 4_096;
const table = 'values';
/** Offset of the number of the last page in a meta page. */
const lastPageAt = 24 + 24 + 2 * 48;
const records = 300;

const keyOf = (record: number): Buffer => Buffer.from(`key ${String(record).padStart(4, '0')}`);

/** Records from an empty one to one of two pages. */
const expectedOf = (record: number): Buffer => Buffer.alloc(record * 20, record);

let folders = 0;
function newFolder(): string {
  folders += 1;
  const path = join(folder, String(folders));
  mkdirSync(path);
  return path;
}

/** An environment that nobody has open. */
async function filled(): Promise<{ source: string; file: string; target: string }> {
  const source = newFolder();
  const environment = openEnvironment(source, [table]);
  await environment.write(() => {
    for (let record = 0; record < records; record += 1) {
      environment.table(table).putSync(keyOf(record), expectedOf(record));
    }
  });
  await environment.close();
  return { source, file: join(source, 'data.mdb'), target: newFolder() };
}

function change(file: string, edit: (bytes: Buffer) => Buffer): void {
  writeFileSync(file, edit(readFileSync(file)));
}

/** Puts a key behind those that follow it. */
function disorder(bytes: Buffer): Buffer {
  for (let at = bytes.indexOf(keyOf(150)); at >= 0; at = bytes.indexOf(keyOf(150), at))
    keyOf(9_999).copy(bytes, at);
  return bytes;
}

/** Adds a page that is neither free nor in use. */
function leakPage(bytes: Buffer): Buffer {
  for (const meta of [0, pageBytes]) {
    bytes.writeBigUInt64LE(bytes.readBigUInt64LE(meta + lastPageAt) + 1n, meta + lastPageAt);
  }
  return Buffer.concat([bytes, Buffer.alloc(pageBytes)]);
}

interface Try {
  source: string;
  target: string;
  onDamaged?: () => void;
}

/** Copies, and returns why it was done again. */
async function copy({ source, target, onDamaged }: Try): Promise<string[]> {
  const reasons: string[] = [];
  await copyEnvironment(source, target, {
    mapBytesMax: 1024 ** 3,
    hold: async () => () => {},
    onDamaged: (reason) => {
      reasons.push(reason);
      onDamaged?.();
    },
  });
  return reasons;
}

async function expectWhole(path: string): Promise<void> {
  const environment = openEnvironment(path, [table]);
  const found = [...environment.table(table).getRange()];
  expect(found.map(({ key }) => key.toString())).toEqual(
    Array.from({ length: records }, (_, record) => keyOf(record).toString()),
  );
  expect(found.filter(({ value }, record) => !value.equals(expectedOf(record)))).toEqual([]);
  await environment.close();
}

it('a copy has every record, and leaves nothing else in its folder', async () => {
  const { source, target } = await filled();
  expect(await copy({ source, target })).toEqual([]);
  expect(existsSync(join(target, 'source'))).toBe(false);
  await expectWhole(target);
});

it('a copy that is damaged is noticed and made again', async () => {
  const { source, file, target } = await filled();
  const whole = readFileSync(file);
  change(file, disorder);
  const mend = (): void => writeFileSync(file, whole);
  expect(await copy({ source, target, onDamaged: mend })).toEqual(['its keys are not in order']);
  await expectWhole(target);
});

it('where every copy is damaged, none is left, and the error says what to do', async () => {
  const { source, file, target } = await filled();
  change(file, disorder);
  const reasons: string[] = [];
  const copying = copy({ source, target, onDamaged: () => reasons.push('again') });
  await expect(copying).rejects.toMatchObject({
    name: 'OperatorError',
    message: `3 copies of ${source} were damaged, the last one thus: its keys are not in order. Stop the server and run "fleetpost verify", which says where it is damaged`,
  });
  expect(reasons).toHaveLength(2);
  expect(existsSync(join(target, 'data.mdb'))).toBe(false);
});

it('an environment with pages that are neither free nor in use, whose trees LMDB does not copy, is copied whole', async () => {
  const { source, file, target } = await filled();
  change(file, leakPage);
  expect(await copy({ source, target })).toEqual([expect.stringMatching(/^MDB_INCOMPATIBLE/)]);
  await expectWhole(target);
});

it('pages of a snapshot are not reused until it is released', async () => {
  const path = newFolder();
  const environment = openEnvironment(path, [table]);
  const bytes = (): number => readFileSync(join(path, 'data.mdb')).length;
  const rewrite = async (): Promise<number> => {
    for (let commit = 0; commit < 20; commit += 1) {
      await environment.write(() => environment.table(table).putSync(keyOf(0), Buffer.alloc(40_000, commit)));
    }
    return bytes();
  };
  const before = await rewrite();
  const release = holdSnapshot(path);
  const held = await rewrite();
  expect(held - before).toBeGreaterThan(15 * 40_000);
  await release();
  expect((await rewrite()) - held).toBeLessThan(40_000);
  await environment.close();
});
