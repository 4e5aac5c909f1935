import { rmSync } from 'node:fs';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { MemoryRows } from '../../src/nodes/memory-rows.ts';
import { checkRows } from '../../src/storage/tables/check-rows.ts';
import { packed } from '../../src/storage/tables/codec.ts';
import { Collection, type TableLayout } from '../../src/storage/tables/collection.ts';
import { Findings } from '../../src/storage/tables/findings.ts';
import {
  fleetIdField,
  KeyCodec,
  positionField,
  rangeUnder,
  textField,
} from '../../src/storage/tables/key-codec.ts';
import type { RowRange, Rows } from '../../src/storage/tables/table-store.ts';
import { temporaryFolder } from '../harness/server/server.ts';
import { openEnvironment } from '../harness/storage/environment.ts';

const folder = temporaryFolder();
const environment = openEnvironment(folder, ['engines', 'notes']);
afterAll(async () => {
  await environment.close();
  rmSync(folder, { recursive: true });
});

describe('the rows of a table', () => {
  // Few different bytes, so that keys are each other's beginnings and successors.
  const key = fc
    .array(fc.constantFrom(0, 1, 0xfe, 0xff), { minLength: 1, maxLength: 3 })
    .map((bytes) => Buffer.from(bytes));
  const bound = fc.option(key, { nil: undefined });
  const range: fc.Arbitrary<RowRange> = fc.record(
    { start: bound, end: bound, reverse: fc.boolean(), limit: fc.integer({ min: 1, max: 5 }) },
    { requiredKeys: [] },
  ) as fc.Arbitrary<RowRange>;
  const change = fc.record({ key, value: fc.option(fc.string(), { nil: undefined }) });

  const contentOf = (rows: Rows, one: RowRange): unknown => [
    [...rows.entries(one)].map((row) => [row.key.toString('hex'), String(row.value)]),
    [...rows.keys(one)].map((found) => found.toString('hex')),
  ];

  it('are the same in an environment and in memory', async () => {
    const property = fc.asyncProperty(
      fc.array(change, { maxLength: 30 }),
      fc.array(range),
      key,
      async (changes, ranges, prefix) => {
        const stored = environment.rows('engines');
        const memory = new MemoryRows('engines');
        const deleted: boolean[] = [];
        await environment.write(() => {
          for (const found of [...stored.keys()]) stored.delete(found);
        });
        environment.refresh();
        const make = (rows: Rows): void => {
          for (const { key: one, value } of changes) {
            if (value === undefined) deleted.push(rows.delete(one));
            else rows.put(one, Buffer.from(value));
          }
        };
        await environment.write(() => make(stored));
        environment.refresh();
        memory.begin();
        make(memory);
        expect(deleted.slice(deleted.length / 2)).toEqual(deleted.slice(0, deleted.length / 2));
        for (const one of memory.end()) memory.take(one);
        const reversed = { ...rangeUnder(Buffer.alloc(0)), reverse: true };
        for (const one of [{}, reversed, rangeUnder(prefix), ...ranges]) {
          expect(contentOf(memory, one)).toEqual(contentOf(stored, one));
          if (one.limit === undefined) expect(memory.count(one)).toBe([...stored.keys(one)].length);
          if (one.limit === undefined && one.reverse !== true)
            expect(stored.count(one)).toBe(memory.count(one));
        }
        const under = [...stored.keys()].filter((one) => one.subarray(0, prefix.length).equals(prefix));
        expect([...memory.keys(rangeUnder(prefix))]).toEqual(under);
      },
    );
    await fc.assert(property, { numRuns: 200 });
  });

  it('are in memory as they were, for whoever goes through them, and as long as a draft is not committed', () => {
    const rows = new MemoryRows('engines');
    const put = (text: string): void => {
      rows.begin();
      rows.put(Buffer.from(text), Buffer.from(text));
      expect(rows.has(Buffer.from(text))).toBe(true);
      const changes = rows.end();
      expect(rows.has(Buffer.from(text))).toBe(false);
      for (const change of changes) rows.take(change);
    };
    for (const text of ['a', 'c']) put(text);
    const walk = rows.keys();
    expect(String(walk.next().value)).toBe('a');
    put('b');
    expect([...walk].map(String)).toEqual(['c']);
    expect([...rows.keys()].map(String)).toEqual(['a', 'b', 'c']);
    expect(() => rows.put(Buffer.from('d'), Buffer.alloc(0))).toThrow('inside a transaction');
  });
});

type NoteKey = [fleetId: string, number: number, name: string];
interface Note {
  name: string;
  text: string;
}

describe('a collection', () => {
  const layout: TableLayout<NoteKey, Note> = {
    name: 'notes',
    key: new KeyCodec(fleetIdField, positionField, textField(/^[a-z]+$/)),
    value: packed(({ text }) => typeof text === 'string'),
    isOwn: ([, , name], note) => note.name === name,
  };
  const notes = new Collection(environment, layout);
  const rows = environment.rows('notes');
  const note = (name: string): Note => ({ name, text: `of ${name}` });

  it('reads, lists, counts and deletes by the first fields of its keys', async () => {
    await environment.write(() => {
      for (const fleetId of ['FLEET001', 'FLEET002']) {
        for (const number of [1, 2, 256]) notes.put([fleetId, number, 'a'], note('a'));
        notes.put([fleetId, 2, 'ab'], note('ab'));
      }
    });
    environment.refresh();
    expect(notes.get(['FLEET001', 2, 'ab'])).toEqual(note('ab'));
    expect(notes.get(['FLEET001', 3, 'ab'])).toBeUndefined();
    expect([...notes.keys(['FLEET001', 2])]).toEqual([
      ['FLEET001', 2, 'a'],
      ['FLEET001', 2, 'ab'],
    ]);
    expect(notes.count(['FLEET002'])).toBe(4);
    expect(notes.count([])).toBe(8);
    const first = notes.list(['FLEET001'], { limit: 3 });
    expect(first).toMatchObject({ hasMore: true, rows: [{}, {}, {}] });
    const last = first.rows.at(-1)?.[0];
    expect(notes.list(['FLEET001'], { after: last, limit: 3 })).toEqual({
      rows: [[['FLEET001', 256, 'a'], note('a')]],
      hasMore: false,
    });
    const newest = notes.list(['FLEET001'], { before: last, reverse: true, limit: 1 });
    expect(newest).toMatchObject({ rows: [[['FLEET001', 2, 'a'], {}]], hasMore: true });
    await environment.write(() => {
      expect(notes.deletePrefix(['FLEET001'], 3)).toBe(3);
      expect(notes.delete(['FLEET001', 256, 'a'])).toBe(true);
      expect(notes.delete(['FLEET001', 256, 'a'])).toBe(false);
    });
    environment.refresh();
    expect([notes.count(['FLEET001']), notes.count(['FLEET002'])]).toEqual([0, 4]);
  });

  it('tells of rows that are damaged or under another key, and its check finds them', async () => {
    const damaged = [Buffer.from('FLEET003'), layout.key.encode(['FLEET003', 1, 'b'])];
    await environment.write(() => {
      notes.deletePrefix([]);
      notes.put(['FLEET003', 1, 'c'], note('c'));
      for (const key of damaged) rows.put(key, layout.value.encode(note('c')));
    });
    environment.refresh();
    const told: Buffer[] = [];
    expect([...notes.entries([], {}, (key) => told.push(key))]).toEqual([[['FLEET003', 1, 'c'], note('c')]]);
    expect(told).toEqual(damaged);
    expect(() => [...notes.entries([])]).toThrow(RangeError);

    const findings = new Findings(9);
    const tables = new Map([['notes', { entries: () => rows.entries() }]]);
    let records = 0;
    const onRecord = (): void => {
      records += 1;
    };
    const store = { part: 'test', tables, findings, onRecord };
    for (const { value, report } of checkRows(store, layout)) report(`says ${value.text}`);
    expect(records).toBe(3);
    expect(findings.sentences).toEqual([
      'test, notes: key FLEET003 does not decode',
      `test, notes: key ${damaged[1]?.toString('hex')} does not decode`,
      `test, notes: key ${layout.key.encode(['FLEET003', 1, 'c']).toString('hex')} says of c`,
    ]);
    expect([...checkRows({ ...store, tables: new Map() }, layout)]).toEqual([]);
    expect(findings.sentences.at(-1)).toBe('test: there is no table notes');
  });
});
