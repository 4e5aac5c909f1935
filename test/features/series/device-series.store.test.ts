/** Charts of a device on each engine: which records are read, and what a bound leaves out. */

import { describe, expect, it, vi } from 'vitest';
import { fleetIdOf } from '../../../src/core/identity.ts';
import { createLog } from '../../../src/core/telemetry/log.ts';
import { Fleets } from '../../../src/declarations/fleet.ts';
import { unwatched } from '../../../src/declarations/schemas/schema.ts';
import { LogFollower } from '../../../src/features/records/log-follower.ts';
import { DeviceSeries, type Series } from '../../../src/features/series/device-series.ts';
import { engines } from '../../storage/contract/engine.ts';
import { device, payloadOf, type Store, second, useStore } from '../../storage/contract/store.ts';

const points = 100;
const pointsMax = 10;

describe.each(engines)('charts on $name', (engine) => {
  const store = useStore(engine);

  async function send(of = device, count = points): Promise<void> {
    const record = { device: of, kind: 'datapoint' as const, schema: 'reading' };
    for (let n = 0; n < count; n += 1) await store.shard.log.append({ ...record, payload: payloadOf({ n }) });
  }

  /** The server's fleets, whose payloads may take so long to parse. */
  function fleetsWith(schemaCheckMillisecondsPerSecondMax: number): Fleets {
    const fleet = { fleetId: fleetIdOf(device), name: '', createdAtMs: 0 };
    const settings = { current: { ...unwatched.settings.current, schemaCheckMillisecondsPerSecondMax } };
    return new Fleets([{ fleet, schemas: [] }], { settings, defersCompiling: false, onDisabled() {} });
  }

  function read({ shard }: Store, bytesMax?: number, fleets = fleetsWith(0)): Promise<Series> {
    const follower = new LogFollower([shard], createLog('silent'));
    const series = new DeviceSeries({
      follower,
      shards: { of: () => shard },
      fleets,
      ...(bytesMax !== undefined && { bytesMax }),
    });
    const toMs = Date.now() + 1_000;
    return series.read({
      device,
      schema: 'reading',
      fields: undefined,
      fromMs: toMs - 60_000,
      toMs,
      pointsMax,
    });
  }

  const countOf = ({ fields }: Series): number =>
    fields.flatMap(({ count }) => count).reduce((sum, count) => sum + count, 0);

  it('all points of a device are in its chart, whatever others send', async () => {
    await Promise.all([send(), send(second, 3 * points)]);
    const series = await read(store);
    expect(countOf(series)).toBe(points);
    expect(series).toMatchObject({ isPartial: false, completeFromMs: series.fromMs });
  });

  it("what a bound of the device's own bytes leaves out is the oldest, and the chart says from when on it is whole", async () => {
    // The bound is looked at between pages, of which each ends after a megabyte.
    const large = async (): Promise<void> => {
      for (let n = 0; n < 3; n += 1) {
        const payload = payloadOf({ n, filling: 'x'.repeat(600_000) });
        await store.shard.log.append({ device, kind: 'datapoint', schema: 'reading', payload });
      }
    };
    await Promise.all([large(), send(second)]);
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    const lastMs = Date.now();
    await large();
    const series = await read(store, 1_000);
    expect(series.isPartial).toBe(true);
    expect(countOf(series)).toBeGreaterThanOrEqual(1);
    expect(countOf(series)).toBeLessThanOrEqual(3);
    expect(series.completeFromMs).toBeGreaterThan(series.fromMs);
    expect(series.completeFromMs).toBeLessThanOrEqual(lastMs + 2_000);
  });

  async function sendLarge(count: number): Promise<void> {
    const payload = payloadOf({ n: 1, filling: 'x'.repeat(60_000) });
    for (let n = 0; n < count; n += 1)
      await store.shard.log.append({ device, kind: 'datapoint', schema: 'reading', payload });
  }

  /** Has each payload take longer to parse than all work of a turn may; `onParsed` is called for each. */
  function slowDown(onParsed: () => void): void {
    const { parse } = JSON;
    const now = performance.now.bind(performance);
    let lateMs = 0;
    vi.spyOn(JSON, 'parse').mockImplementation((text) => {
      onParsed();
      lateMs += 10;
      return parse(text);
    });
    vi.spyOn(performance, 'now').mockImplementation(() => now() + lateMs);
  }

  it('large payloads are parsed a piece at a time, between which others have a turn', async () => {
    await sendLarge(15);
    let parsed = 0;
    slowDown(() => {
      parsed += 1;
    });
    const perTurn: number[] = [];
    const endTurn = (): void => {
      if (parsed > 0) perTurn.push(parsed);
      parsed = 0;
      turn = setImmediate(endTurn);
    };
    let turn = setImmediate(endTurn);
    const series = await read(store).finally(() => {
      endTurn();
      clearImmediate(turn);
      vi.restoreAllMocks();
    });
    expect(countOf(series)).toBe(15);
    expect(perTurn).toEqual(Array(15).fill(1));
  });

  it('a chart ends where its payloads take longer to parse than those of its fleet may', async () => {
    await sendLarge(40);
    let parsed = 0;
    slowDown(() => {
      parsed += 1;
    });
    const series = await read(store, undefined, fleetsWith(1)).finally(() => vi.restoreAllMocks());
    // A hundred milliseconds are saved up, of which each takes 5 beyond the usual.
    expect(parsed).toBeGreaterThan(15);
    expect(parsed).toBeLessThan(30);
    expect([countOf(series), series.isPartial]).toEqual([parsed, true]);
    expect(series.completeFromMs).toBeGreaterThan(series.fromMs);
  });
});
