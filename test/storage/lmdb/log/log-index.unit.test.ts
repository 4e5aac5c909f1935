/** The index of the log by device, against a small model, whatever happens to log and index meanwhile. */

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, expect, it } from 'vitest';
import type { DeviceKey } from '../../../../src/core/identity.ts';
import { generateUuid } from '../../../../src/core/uuid.ts';
import { sequenceKey } from '../../../../src/storage/lmdb/layout/keys.ts';
import { openTables, type Tables } from '../../../../src/storage/lmdb/layout/tables.ts';
import { readDevicePage } from '../../../../src/storage/lmdb/log/device-page.ts';
import { encodeBatch } from '../../../../src/storage/lmdb/log/log-batch.ts';
import { groupOfKey, groupPositions, segmentPositions } from '../../../../src/storage/lmdb/log/log-index.ts';
import { LogIndexer } from '../../../../src/storage/lmdb/log/log-indexer.ts';
import { encodeLogRecord } from '../../../../src/storage/lmdb/log/log-record.ts';
import { cutBatch } from '../../../../src/storage/lmdb/log/log-trimmer.ts';
import { temporaryFolder } from '../../../harness/server/server.ts';
import { openEnvironment } from '../../../harness/storage/environment.ts';

const folder = temporaryFolder();
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const devices = Array.from({ length: 5 }, (_, n) => `FLEET001DEVICE000${n}` as DeviceKey);

interface Known {
  position: number;
  device: DeviceKey;
}

/** A log whose batches stand wherever one likes, and what is known to be in it. */
class IndexedLog {
  readonly environment;
  readonly tables: Tables;
  known: Known[] = [];
  end = 0;
  /** Bytes that the indexer believes log and index to have. */
  sizes = { logBytes: 0, indexBytes: 0 };
  #indexer: LogIndexer;

  constructor(path: string) {
    this.environment = openEnvironment(path);
    this.tables = openTables(this.environment);
    this.#indexer = this.#start();
  }

  /** A new one, as after a restart. */
  restart(): void {
    this.#indexer = this.#start();
  }

  /** One commit, behind so many positions that are empty. */
  append(skipped: number, owners: readonly DeviceKey[], text?: string): void {
    const first = this.end + skipped;
    const records = owners.map((device, index) =>
      encodeLogRecord({
        device,
        kind: 'datapoint',
        schema: 's',
        payload: Buffer.from(text ?? `{"n":${first + index}}`),
      }),
    );
    const bytes = records.reduce((sum, { length }) => sum + length, 21);
    const batch = encodeBatch(generateUuid(), records, records.length, bytes);
    this.environment.writeSync(() => this.tables.log.putSync(sequenceKey(first), batch));
    this.known.push(...owners.map((device, index) => ({ position: first + index, device })));
    this.end = first + owners.length;
  }

  /** Indexes until there is nothing to do, but dies after so many steps. */
  index(stepsMax = Number.POSITIVE_INFINITY): void {
    let steps = 0;
    for (let before = -1; before < steps; ) {
      before = steps;
      for (const step of this.#indexer.steps()) {
        if (steps === stepsMax) {
          this.restart();
          return;
        }
        steps += 1;
        this.environment.writeSync(() => {
          for (const { key, value } of step) {
            if (value === undefined) this.tables.logIndex.removeSync(key);
            else this.tables.logIndex.putSync(key, value);
          }
        });
      }
    }
  }

  /** Retention takes all before a position but the last batch; of those behind it, the records of one fleet member. */
  trim(before: number, cutDevice?: DeviceKey): void {
    const keys = [...this.tables.log.getKeys()].slice(0, -1);
    this.environment.writeSync(() => {
      for (const key of keys) {
        const first = key.readUIntBE(0, 6);
        const batch = Buffer.from(this.tables.log.getBinary(key) as Buffer);
        const count = batch.readUInt32BE(17);
        if (first + count <= before) {
          this.tables.log.removeSync(key);
          this.#forget(({ position }) => position >= first && position < first + count);
        } else if (cutDevice !== undefined) this.#cut(key, first, batch, cutDevice);
      }
    });
  }

  #cut(key: Buffer, first: number, batch: Buffer, device: DeviceKey): void {
    const owners = this.known.filter(({ position }) => position >= first);
    let index = 0;
    const cut = cutBatch(batch, () => owners[index++]?.device === device);
    if (cut === undefined) return;
    if (cut.rest === undefined) this.tables.log.removeSync(key);
    else this.tables.log.putSync(key, cut.rest);
    const end = first + batch.readUInt32BE(17);
    this.#forget((one) => one.device === device && one.position >= first && one.position < end);
  }

  #forget(isGone: (one: Known) => boolean): void {
    this.known = this.known.filter((one) => !isGone(one));
  }

  /** What is read of a device, page by page. */
  read(device: DeviceKey, from: number, to: number, isNewestFirst: boolean, recordsMax = 7): number[] {
    const found: number[] = [];
    let span = { from, to };
    for (let pages = 0; span.from < span.to; pages += 1) {
      expect(pages).toBeLessThan(1_000);
      const { records, next } = readDevicePage(this.tables, device, { ...span, isNewestFirst, recordsMax });
      for (const record of records) {
        expect(record.device).toBe(device);
        expect(String(record.payload)).toBe(`{"n":${record.position}}`);
        found.push(record.position);
      }
      span = isNewestFirst ? { from, to: next } : { from: next, to };
    }
    return found;
  }

  /** Compares all of it, and parts, with what is known. */
  check(): void {
    const bounds = [
      0,
      Math.floor(this.end / 3),
      Math.floor((2 * this.end) / 3),
      this.end,
      Number.POSITIVE_INFINITY,
    ];
    for (const device of devices) {
      for (const from of bounds) {
        for (const to of bounds) {
          const expected = this.known
            .filter((one) => one.device === device && one.position >= from && one.position < to)
            .map(({ position }) => position);
          expect(this.read(device, from, to, false)).toEqual(expected);
          expect(this.read(device, from, to, true)).toEqual(expected.reverse());
        }
      }
    }
  }

  /** Groups that the index has anything of. */
  get groups(): number[] {
    return [...new Set([...this.tables.logIndex.getKeys()].map(groupOfKey))];
  }

  #start(): LogIndexer {
    return new LogIndexer({ tables: this.tables, sizes: () => this.sizes });
  }
}

let logs = 0;
const newLog = (): IndexedLog => new IndexedLog(join(folder, String(logs++)));

const owner = fc.constantFrom(...devices);
const operation = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant('append' as const),
      skipped: fc.oneof(
        fc.constant(0),
        fc.nat({ max: 2 * segmentPositions }),
        fc.nat({ max: 2 * groupPositions }),
      ),
      owners: fc.array(owner, { minLength: 1, maxLength: 20 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('index' as const) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('die' as const), after: fc.nat({ max: 200 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant('trim' as const),
      share: fc.nat({ max: 100 }),
      cut: fc.option(owner),
    }),
  },
);

it('any sequence of commits, retention, indexing and crashes: each device has its records, in order and newest first', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { maxLength: 12 }), async (operations) => {
      const log = newLog();
      for (const one of operations) {
        if (one.type === 'append') log.append(one.skipped, one.owners);
        else if (one.type === 'index') log.index();
        else if (one.type === 'die') log.index(one.after);
        else log.trim(Math.floor((log.end * one.share) / 100), one.cut ?? undefined);
      }
      log.check();
      await log.environment.close();
    }),
    { numRuns: 60 },
  );
});

it('one device among a million records is read by few pages, newest first or not, and one that sent nothing by one', async () => {
  const log = newLog();
  const [own, other, absent] = devices as [DeviceKey, DeviceKey, DeviceKey];
  const batch = Array.from({ length: 5_000 }, (_, n) => (n === 2_500 ? own : other));
  for (let count = 0; count < 220; count += 1) log.append(0, batch, '{}');
  const pagesOf = (device: DeviceKey, isNewestFirst: boolean, recordsExpected = 0): number => {
    let span = { from: 0, to: log.end };
    let pages = 0;
    let found = 0;
    for (; span.from < span.to; pages += 1) {
      const { records, next } = readDevicePage(log.tables, device, {
        ...span,
        isNewestFirst,
        recordsMax: 100,
      });
      found += records.length;
      span = isNewestFirst ? { from: 0, to: next } : { from: next, to: log.end };
    }
    expect(found).toBe(recordsExpected);
    return pages;
  };
  const before = pagesOf(absent, true);
  log.index();
  for (const isNewestFirst of [false, true]) {
    expect(pagesOf(absent, isNewestFirst)).toBe(1);
    // A batch of thousands is read for each of its records.
    expect(pagesOf(own, isNewestFirst, 220)).toBeLessThan(15);
  }
  expect(before).toBeGreaterThan(3);
  await log.environment.close();
});

it('what is before the front of the log goes from its index, and what is behind it is indexed from the newest on', async () => {
  const log = newLog();
  for (let group = 0; group < 4; group += 1) log.append(groupPositions - 5, devices);
  log.index(100);
  expect(log.groups).not.toContain(0);
  log.index();
  expect(log.groups).toEqual([0, 1, 2, 3].filter((group) => group < Math.ceil(log.end / groupPositions)));
  log.trim(2 * groupPositions + 10);
  log.index();
  expect(log.groups[0]).toBe(Math.floor((log.known[0]?.position ?? 0) / groupPositions));
  log.check();
  await log.environment.close();
});

it('an index that is large beside its log, since retention has cut most records out, is made anew', async () => {
  const log = newLog();
  const entries = (): number =>
    [...log.tables.logIndex.getRange()].reduce((sum, { value }) => sum + value.length / 8, 0);
  const [stays, goes] = devices as [DeviceKey, DeviceKey];
  for (let count = 0; count < 20; count += 1) log.append(100_000, [stays, goes, goes, goes]);
  log.index();
  const before = entries();
  log.trim(0, goes);
  log.index();
  expect(entries()).toBe(before);
  log.sizes = { logBytes: 100 * 1024 ** 2, indexBytes: 90 * 1024 ** 2 };
  log.index();
  const remade = entries();
  log.index();
  expect(entries()).toBe(remade);
  // What is not a whole group yet stays as it is.
  expect(entries()).toBeLessThanOrEqual(before - 30);
  log.check();
  await log.environment.close();
});
