import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { DeviceKey } from '../../../src/core/identity.ts';
import { generateUuid } from '../../../src/core/uuid.ts';
import { Cursor, Cursors } from '../../../src/features/records/cursor.ts';
import { Ranges } from '../../../src/features/records/ranges.ts';
import { remapCursors } from '../../../src/features/records/remap-cursors.ts';
import { openControl } from '../../../src/maintenance/environments.ts';

const limits = { mapBytesMax: 1024 ** 3, diskFreeBytesMin: 1 };
const position = fc.integer({ min: 0, max: 40 });
const positions = Array.from({ length: 45 }, (_, at) => at);

it('ranges have the positions that were added, whatever they touch', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(position, fc.integer({ min: 1, max: 5 }))), position, (added, upTo) => {
      const ranges = new Ranges();
      const expected = new Set<number>();
      for (const [from, length] of added) {
        ranges.add(from, from + length);
        for (let at = from; at < from + length; at += 1) expected.add(at);
      }
      expect(positions.filter((at) => ranges.has(at))).toEqual(positions.filter((at) => expected.has(at)));
      expect(ranges.count(3, 33)).toBe(
        positions.filter((at) => at >= 3 && at < 33 && expected.has(at)).length,
      );
      for (const at of positions) {
        expect(ranges.next(at)).toBe([...positions, 45].find((next) => next >= at && !expected.has(next)));
      }
      expect([...ranges.upTo(upTo), ...ranges.after(upTo)]).toHaveLength(ranges.size);
      ranges.drop(upTo);
      expect(positions.filter((at) => at >= upTo && ranges.has(at))).toEqual(
        positions.filter((at) => at >= upTo && expected.has(at)),
      );
    }),
  );
});

const devices = ['FLEET001DEVICE0001', 'FLEET001DEVICE0002', 'FLEET001DEVICE0003'] as DeviceKey[];

it('with fewer shards a copied record is done if it was, by the cursor, by itself or by that of its device', async () => {
  const record = fc.record({ device: fc.nat(2), gap: fc.nat(2) });
  const device = fc.option(position, { nil: undefined });
  await fc.assert(
    fc.asyncProperty(
      fc.array(record, { maxLength: 15 }),
      position,
      fc.array(position, { maxLength: 5 }),
      fc.tuple(device, device, device),
      async (log, place, marks, ofDevices) => {
        const folder = mkdtempSync(join(tmpdir(), 'fleetpost-test-'));
        const journal = openControl(folder, limits);
        const cursors = new Cursors(journal);
        const reader = generateUuid();
        let at = 0;
        const records = log.map(({ device: index, gap }) => {
          at += 1 + gap;
          // The device is the shard that it moves to; two of three move to the same.
          return { position: at, device: devices[index] as DeviceKey, shard: index % 2 };
        });
        const ownCursors = new Map<DeviceKey, number>();
        for (const [index, cursor] of ofDevices.entries())
          if (cursor !== undefined) ownCursors.set(devices[index] as DeviceKey, cursor);
        const ahead = new Set(marks.filter((mark) => mark >= place));
        await journal.commit(() => {
          cursors.place(reader, [7, 9, place]);
          const cursor = new Cursor(cursors, reader, 2);
          for (const mark of ahead) cursor.ack(mark, mark + 1);
        });
        const move = { from: 3, to: 2, logEnds: [10, 10] };
        const { signal } = new AbortController();
        // Twice, as after a kill.
        for (let time = 0; time < 2; time += 1)
          await remapCursors(journal, [() => [records]], move, signal, (_, shard) =>
            shard === 2 ? ownCursors : new Map(),
          );
        const targets = [0, 1].map((shard) => new Cursor(cursors, reader, shard));
        const next = [10, 10];
        for (const { position: from, device: of, shard } of records) {
          const copy = next[shard] ?? 0;
          next[shard] = copy + 1;
          const isDone = from < (ownCursors.get(of) ?? place) || ahead.has(from);
          expect(targets[shard]?.isDone(copy), `${from} of ${of}`).toBe(isDone);
        }
        expect(targets.map((cursor) => cursor.position)).toEqual([7, 9]);
        expect(targets.map((cursor, shard) => cursor.isDone(next[shard] ?? 0))).toEqual([false, false]);
        await journal.close();
        rmSync(folder, { recursive: true });
      },
    ),
    { numRuns: 30 },
  );
});
