import { describe, expect, it } from 'vitest';
import { noCounts, type Route, routes } from '../../../../src/device/simulator/devices/orders.ts';
import { Samples } from '../../../../src/device/simulator/devices/samples.ts';
import { RunFigures } from '../../../../src/device/simulator/run/figures.ts';
import { checkAssertions, readAssertions } from '../../../../src/device/simulator/scenario/assertion.ts';

function figuresOf(times: readonly (readonly [Route, number, number])[], counts = noCounts): RunFigures {
  const figures = new RunFigures();
  const samples = new Samples();
  for (const [route, response, service] of times) samples.add(route, response, service);
  figures.take(0, {
    counts,
    online: 1,
    connections: 1,
    streams: 0,
    waiting: 0,
    queued: 0,
    residentBytes: 0,
    stateBytes: 0,
    busy: 0.1,
    samples: samples.take(),
    complaints: [],
  });
  return figures;
}

describe('figures of a run', () => {
  it('have two histograms a route: from when a request was due, and from when it was sent', () => {
    const times = Array.from({ length: 1_000 }, (_, index) => ['datapoint', index + 1, 2] as const);
    const figures = figuresOf(times);
    const [datapoint] = figures.routes();
    expect(datapoint).toMatchObject({ route: 'datapoint', answered: 1_000 });
    expect(datapoint?.response.p50).toBeCloseTo(500, -1);
    expect(datapoint?.response.p99).toBeCloseTo(990, -1);
    expect(datapoint?.service.p99).toBeCloseTo(2, 1);
    expect(figures.figure('datapoint.p99')).toBeCloseTo(990, -1);
    expect(figures.figure('datapoint.service.max')).toBeCloseTo(2, 1);
    expect(figures.figure('datapoint.count')).toBe(1_000);
  });

  it('say when this machine was behind, and not the server', () => {
    expect(figuresOf([['lag', 1, 1]]).bottleneck).toBeUndefined();
    expect(figuresOf([['lag', 400, 400]]).bottleneck).toContain('behind its plan');
    expect(figuresOf([['lag', 400, 400]]).routes()).toEqual([]);
  });

  it('are held against assertions, which are the exit status', () => {
    const figures = figuresOf([['datapoint', 40, 3]], { ...noCounts, errors: 2 });
    figures.findings = { lost: 0, doubled: 0 };
    const held = checkAssertions(
      readAssertions('datapoint.p99<50ms, errors=0,datapoint.service.p50 <= 5ms,lost=0'),
      figures,
    );
    expect(held.map(({ holds }) => holds)).toEqual([true, false, true, true]);
    expect(
      checkAssertions(readAssertions('datapoint.p99<0.05s, datapoint.p99>39000us'), figures).every(
        ({ holds }) => holds,
      ),
    ).toBe(true);
    expect(readAssertions(' ')).toEqual([]);
    // A route that nothing went over has no times, and is no mistake.
    expect(checkAssertions(readAssertions('flood.p99<1ms'), figures)[0]?.holds).toBe(true);
  });

  it('have no assertion that nobody can read', () => {
    for (const text of ['datapoint.p99', 'errors==0', 'p99<50 ms', 'errors=0;lost=0', 'a<5km'])
      expect(() => readAssertions(text)).toThrow('cannot be read');
    const figures = new RunFigures();
    for (const name of ['datapoint.p98', 'nothing', 'toString', 'datapoint.toString', 'lamp.p99'])
      expect(() => checkAssertions(readAssertions(`${name.toLowerCase()}=0`), figures)).toThrow(
        /There is no figure|cannot be read/,
      );
    for (const route of routes) expect(figures.figure(`${route}.p99`)).toBe(0);
  });
});
