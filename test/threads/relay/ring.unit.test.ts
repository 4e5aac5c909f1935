import fc from 'fast-check';
import { expect, it } from 'vitest';
import { RingReader, RingWriter, ringBytes } from '../../../src/threads/relay/ring.ts';

const capacityBytes = 1_024;

function createRing(capacity: number): { writer: RingWriter; reader: RingReader } {
  const memory = new SharedArrayBuffer(3 * ringBytes(capacity));
  return { writer: new RingWriter(memory, 1, capacity), reader: new RingReader(memory, 1, capacity) };
}

it('frames arrive whole, once and in order, whatever their lengths and whoever is ahead', () => {
  const step = fc.oneof(
    fc.record({ write: fc.uint8Array({ maxLength: 300 }) }),
    fc.record({ read: fc.integer({ min: 1, max: 20 }) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const { writer, reader } = createRing(capacityBytes);
      const waiting: Uint8Array[] = [];
      const readOne = (): boolean => {
        const at = reader.next();
        if (at < 0) return false;
        expect([...reader.bytes.subarray(at, at + reader.length)]).toEqual([...(waiting.shift() ?? [])]);
        return true;
      };
      for (const step of steps) {
        if ('write' in step) {
          const at = writer.reserve(step.write.length);
          if (at < 0) continue;
          writer.bytes.set(step.write, at);
          writer.publish();
          waiting.push(step.write);
          expect(reader.isEmpty).toBe(false);
        } else {
          for (let i = 0; i < step.read && readOne(); i += 1);
          reader.release();
        }
      }
      while (readOne());
      expect(waiting).toEqual([]);
      expect(reader.isEmpty).toBe(true);
    }),
    { numRuns: 500 },
  );
});

it('a full ring takes nothing, and all of it again once it was read', () => {
  const { writer, reader } = createRing(capacityBytes);
  let frames = 0;
  while (writer.reserve(124) >= 0) frames += 1;
  expect(frames).toBe(capacityBytes / 128);
  writer.publish();
  while (reader.next() >= 0) frames -= 1;
  expect(frames).toBe(0);
  expect(writer.reserve(124)).toBe(-1);
  reader.release();
  expect(writer.reserve(124)).toBeGreaterThanOrEqual(0);
});

it('a frame too large for a quarter of the ring is not taken', () => {
  const { writer } = createRing(capacityBytes);
  expect(writer.reserve(capacityBytes / 4 - 3)).toBe(-1);
  expect(writer.reserve(capacityBytes / 4 - 4)).toBeGreaterThanOrEqual(0);
});

it('positions wrap at 4 GiB without a frame lost', () => {
  const capacity = 1024 * 1024;
  const { writer, reader } = createRing(capacity);
  const length = capacity / 4 - 100;
  for (let sent = 0; sent < 2 ** 32 + capacity; sent += length) {
    const at = writer.reserve(length);
    if (at < 0) throw new Error(`nothing taken after ${sent} bytes`);
    writer.publish();
    expect(reader.next()).toBe(at);
    expect(reader.length).toBe(length);
    reader.release();
  }
});
