import { expect, it } from 'vitest';
import { BulkWrites, bulkDevicesMax } from '../../../src/admin-api/request/bulk-writes.ts';

it('writes some at a time, one write after another of whoever has many, and answers in order', async () => {
  const bulkWrites = new BulkWrites();
  let underWay = 0;
  const sizes: number[] = [];
  const write = async (some: readonly number[]): Promise<number[]> => {
    underWay += 1;
    expect(underWay).toBe(1);
    await new Promise((done) => setImmediate(done));
    sizes.push(some.length);
    underWay -= 1;
    return some.map((one) => -one);
  };
  const many = Array.from({ length: 2 * bulkDevicesMax + 1 }, (_, index) => index);
  const callers = await Promise.all([bulkWrites.each(many, write), bulkWrites.each([7], write)]);
  expect(callers).toEqual([many.map((one) => -one), [-7]]);
  // The one with a single device waits for one write of the other, not for all.
  expect(sizes).toEqual([bulkDevicesMax, 1, bulkDevicesMax, 1]);
});

it('goes on behind a write that fails', async () => {
  const bulkWrites = new BulkWrites();
  await expect(bulkWrites.run(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(await bulkWrites.run(async () => 1)).toBe(1);
});
