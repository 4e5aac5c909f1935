import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { LockedError } from '../../../../src/device/client/queue/process-lock.ts';
import { DeviceQueue, type QueueEntry } from '../../../../src/device/client/queue/queue.ts';
import { temporaryFolder } from '../../../harness/machine/temporary-folder.ts';

const limits = { bytesMax: 1_000_000, entriesMax: 1_000 };
const newPath = (): string => join(temporaryFolder(), 'queue');
const datapoint = (n: number): Omit<QueueEntry, 'number'> => ({
  kind: 'datapoint',
  name: 'reading',
  body: JSON.stringify({ n, text: 'ü \ud83d\ude00 12345678901234567890' }),
  atMs: n,
  key: null,
  keyMs: null,
});

/** Takes all that is in a queue. */
function drain(queue: DeviceQueue): QueueEntry[] {
  const found: QueueEntry[] = [];
  for (let entry = queue.head(); entry !== undefined; entry = queue.head()) {
    found.push(entry);
    queue.remove(entry);
  }
  return found;
}

it('what is in it, its keys, counts and settled mail are there again after it was closed', async () => {
  const path = newPath();
  const queue = new DeviceQueue(path, limits);
  for (let n = 0; n < 3; n += 1) await queue.add(datapoint(n)).stored;
  const head = queue.head();
  if (head === undefined) throw new Error('nothing is there');
  await queue.update({ ...head, key: 'k', keyMs: 1 });
  queue.increment('refused');
  await queue.settle('mail', 'ack');
  await queue.remember('secret', 's');
  await queue.close();
  const again = new DeviceQueue(path, limits);
  expect([again.count('refused'), again.verbOf('mail'), again.value('secret')]).toEqual([1, 'ack', 's']);
  expect(drain(again).map(({ key, body }) => [key, body])).toEqual(
    [0, 1, 2].map((n) => [n === 0 ? 'k' : null, datapoint(n).body]),
  );
  expect([again.entries, again.bytes]).toEqual([0, 0]);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  await again.close();
});

it('a line that was torn or has decayed costs itself alone, wherever a loss of power ended the file', async () => {
  const path = newPath();
  const queue = new DeviceQueue(path, limits);
  for (let n = 0; n < 3; n += 1) await queue.add(datapoint(n)).stored;
  await queue.close();
  const whole = readFileSync(path);
  const begins = [0, ...[...whole].flatMap((byte, at) => (byte === 10 ? [at + 1] : []))];
  for (let end = 0; end <= whole.length; end += 7) {
    writeFileSync(path, whole.subarray(0, end));
    const torn = new DeviceQueue(path, limits);
    const left = begins.filter((at) => at > 0 && at <= end).length;
    expect(torn.entries).toBe(left);
    await torn.add(datapoint(9)).stored;
    await torn.close();
    const again = new DeviceQueue(path, limits);
    expect(again.entries).toBe(left + 1);
    await again.close();
  }
  const decayed = Buffer.from(whole);
  decayed[(begins[1] ?? 0) + 30] = 0xff;
  writeFileSync(path, decayed);
  const rest = new DeviceQueue(path, limits);
  expect(drain(rest).map(({ atMs }) => atMs)).toEqual([0, 2]);
  await rest.close();
});

it('the file does not grow with what has passed through it', async () => {
  const path = newPath();
  const queue = new DeviceQueue(path, limits);
  await queue.add({ ...datapoint(0), kind: 'msg' }).stored;
  for (let n = 1; n < 5_000; n += 1) {
    const { stored } = queue.add(datapoint(n));
    if (n % 100 === 0) await stored;
    if (n > 20) {
      const [oldest] = [queue.head(), queue.head()];
      if (oldest?.kind === 'datapoint') queue.remove(oldest);
    }
  }
  await queue.close();
  expect(statSync(path).size).toBeLessThan(600_000);
  const again = new DeviceQueue(path, limits);
  expect(again.head()?.kind).toBe('msg');
  expect(again.entries).toBe(limits.entriesMax);
  await again.close();
});

it('bounds hold in bytes, for what is being sent stays and messages go last', async () => {
  const queue = new DeviceQueue(undefined, { bytesMax: 500, entriesMax: 1_000 });
  queue.add({ ...datapoint(0), kind: 'msg' });
  queue.add(datapoint(1));
  queue.head();
  for (let n = 2; n < 100; n += 1) queue.add(datapoint(n));
  expect(queue.bytes).toBeLessThanOrEqual(500);
  expect(queue.head()?.kind).toBe('msg');
  expect(queue.count('dropped') + queue.entries).toBe(100);
});

it('what the disk refuses is refused, and what was there before stays, once it was rewritten too', async () => {
  const path = newPath();
  const script = `
    import { DeviceQueue } from ${JSON.stringify(new URL('../../../../src/device/client/queue/queue.ts', import.meta.url).href)};
    process.on('SIGXFSZ', () => {});
    const queue = new DeviceQueue(${JSON.stringify(path)}, ${JSON.stringify(limits)});
    const entry = { kind: 'msg', name: 'n', body: JSON.stringify({ text: 'x'.repeat(1_000) }), atMs: 1, key: null, keyMs: null };
    let stored = 0;
    for (let n = 0; n < 500; n += 1) await queue.add(entry).stored.then(() => { stored += 1; }, () => {});
    console.log(JSON.stringify([stored, queue.entries]));
  `;
  const { stdout, stderr } = spawnSync(
    'bash',
    ['-c', 'ulimit -f 320; exec "$0" --import tsx --input-type=module -e "$1"', process.execPath, script],
    { encoding: 'utf8', cwd: new URL('../../../..', import.meta.url).pathname },
  );
  const [stored, entries] = JSON.parse(stdout || stderr);
  expect(stored).toBe(entries);
  expect(stored).toBeGreaterThan(250);
  expect(stored).toBeLessThan(400);
  const again = new DeviceQueue(path, limits);
  expect(again.entries).toBe(stored);
  await again.close();
});

it('one process at a time has it, and one that was killed holds nothing', async () => {
  const path = newPath();
  const queue = new DeviceQueue(path, limits);
  expect(() => new DeviceQueue(path, limits)).toThrow(LockedError);
  await queue.close();
  expect(existsSync(`${path}.lock`)).toBe(false);
  // A process of this id, at another time.
  symlinkSync(`${process.pid}.1.elsewhere`, `${path}.lock`);
  appendFileSync(path, '');
  await new DeviceQueue(path, limits).close();
});
