import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import type { DeviceKey } from '../../../../src/core/identity.ts';
import type { Environment } from '../../../../src/storage/lmdb/environment/environment.ts';
import { IngestLog, type LogRecord, readLog } from '../../../../src/storage/lmdb/log/ingest-log.ts';
import { encodeLogRecord } from '../../../../src/storage/lmdb/log/log-record.ts';
import { cutLog, endOfShardLog, moveLog } from '../../../../src/storage/lmdb/reshard/move-log.ts';
import { openEnvironment } from '../../../harness/storage/environment.ts';
import { trimLog } from '../../../harness/storage/trim.ts';

const folder = mkdtempSync(join(tmpdir(), 'fleetpost-test-'));
afterAll(() => rmSync(folder, { recursive: true }));

const left = 'FLEET001DEVICELEFT' as DeviceKey;
const right = 'FLEET001DEVICERGHT' as DeviceKey;

function open(name: string): Environment {
  return openEnvironment(join(folder, name));
}

/** One commit of one record for each payload. */
async function ingest(
  environment: Environment,
  device: DeviceKey,
  payloads: readonly string[],
): Promise<void> {
  await environment.write(() => {
    const log = new IngestLog(environment.table('log'), Date.now);
    for (const payload of payloads) {
      const given = { device, kind: 'message', schema: 'note', payload: Buffer.from(payload) } as const;
      log.append(encodeLogRecord(given));
    }
    log.flush();
  });
}

const recordsOf = (environment: Environment): LogRecord[] => [...readLog(environment.table('log'))];
/** All of a record but its position; text, for large buffers take the test library seconds to compare. */
const contentOf = ({ id, device, kind, schema, payload }: LogRecord): string =>
  `${id.toString('hex')} ${device} ${kind} ${schema} ${payload}`;

it('log records that move keep ids, bytes and the order of their device, and can be taken back and trimmed', async () => {
  const source = open('source');
  const targets = { [left]: open('left'), [right]: open('right') };
  for (const [device, target] of Object.entries(targets))
    await ingest(target, device as DeviceKey, ['{"old":1}']);
  const large = JSON.stringify({ large: 'x'.repeat(700_000) });
  await ingest(source, left, ['{"n":0}', '{"n":1}', large]);
  await ingest(source, right, ['{"n":2}']);
  await ingest(source, left, [large, '{"n":3}']);
  const before = recordsOf(source);
  const ends = Object.values(targets).map(endOfShardLog);

  const move = (): void => {
    for (const _ of moveLog(source, (device) => targets[device] as Environment));
  };
  move();
  for (const [index, target] of Object.values(targets).entries()) cutLog(target, ends[index] ?? 0);
  expect(Object.values(targets).map(endOfShardLog)).toEqual(ends);
  move();

  for (const [device, target] of Object.entries(targets)) {
    const [, ...moved] = recordsOf(target);
    const own = before.filter((record) => record.device === device);
    expect(moved.map(contentOf)).toEqual(own.map(contentOf));
    expect(moved.map(({ position }) => position)).toEqual(own.map((_, index) => index + 1));
    // From the midst, as a consumer goes on.
    expect([...readLog(target.table('log'), 2)].map(contentOf)).toEqual(own.slice(1).map(contentOf));
    await ingest(target, device as DeviceKey, ['{"new":1}']);
    await trimLog(target, { retention: {}, nowMs: Date.now() + 60_000 });
    expect(recordsOf(target).map(({ payload }) => String(payload))).toEqual(['{"new":1}']);
  }
  for (const environment of [source, ...Object.values(targets)]) await environment.close();
});
