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
    queue.done(entry.number);
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
    // The first line is the order that they are in.
    const left = Math.max(0, begins.filter((at) => at > 0 && at <= end).length - 1);
    expect(torn.entries).toBe(left);
    await torn.add(datapoint(9)).stored;
    await torn.close();
    const again = new DeviceQueue(path, limits);
    expect(again.entries).toBe(left + 1);
    await again.close();
  }
  const decayed = Buffer.from(whole);
  decayed[(begins[2] ?? 0) + 30] = 0xff;
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
      if (oldest?.kind === 'datapoint') queue.done(oldest.number);
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
  await queue.add({ ...datapoint(0), kind: 'msg' }).stored;
  await queue.add(datapoint(1)).stored;
  queue.head();
  for (let n = 2; n < 100; n += 1) await queue.add(datapoint(n)).stored;
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

it('a number stands for one entry in its order, also after a restart and where the end of the file is lost', async () => {
  const path = newPath();
  const given = new Set<string>();
  const note = async (queue: DeviceQueue): Promise<void> => {
    await queue.add(datapoint(0)).stored;
    const { name, base } = queue.order ?? { name: '', base: 0 };
    const number = `${name} ${queue.lastNumber - base}`;
    expect(name).toMatch(/^[A-Za-z0-9_-]{16}$/);
    expect(given).not.toContain(number);
    given.add(number);
  };
  for (let round = 0; round < 6; round += 1) {
    const queue = new DeviceQueue(path, limits);
    await note(queue);
    await note(queue);
    if (round % 3 !== 0) queue.done(queue.lastNumber - (round % 3) + 1);
    await queue.close();
    const bytes = readFileSync(path);
    // The line of an entry that was sent.
    if (round === 3) writeFileSync(path, bytes.fill(0x20, bytes.length - 30));
  }
  expect(given.size).toBe(12);
});

it('what is done on a disk that is full is sent no more, and gives the disk back', async () => {
  const path = newPath();
  const script = `
    import { statSync } from 'node:fs';
    import { DeviceQueue } from ${JSON.stringify(new URL('../../../../src/device/client/queue/queue.ts', import.meta.url).href)};
    process.on('SIGXFSZ', () => {});
    const queue = new DeviceQueue(${JSON.stringify(path)}, ${JSON.stringify(limits)});
    const entry = { kind: 'msg', name: 'n', body: JSON.stringify({ text: 'x'.repeat(1_000) }), atMs: 1, key: null, keyMs: null };
    for (let n = 0; n < 500; n += 1) await queue.add(entry).stored.catch(() => {});
    const all = queue.entries;
    queue.done(queue.head().number + all - 3);
    await queue.add(entry).stored;
    console.log(JSON.stringify([queue.entries, queue.run(() => true).length, statSync(${JSON.stringify(path)}).size]));
  `;
  const { stdout, stderr } = spawnSync(
    'bash',
    ['-c', 'ulimit -f 160; exec "$0" --import tsx --input-type=module -e "$1"', process.execPath, script],
    { encoding: 'utf8', cwd: new URL('../../../..', import.meta.url).pathname },
  );
  const [entries, sent, bytes] = JSON.parse(stdout || stderr);
  expect([entries, sent]).toEqual([3, 2]);
  expect(bytes).toBeLessThan(10_000);
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
