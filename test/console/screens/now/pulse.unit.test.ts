import { expect, it } from 'vitest';
import { type Beat, beatsAfter } from '../../../../src/console/screens/now/pulse.ts';
import type { TopDocument } from '../../../../src/contract/server.ts';

/** An answer of `/top`, some seconds after a start: what it has counted, and in which buckets of time. */
function topAt(seconds: number, answered: number, { commits = 0, counts = [0, 0, 0] } = {}): TopDocument {
  const shard = {
    shard: 0,
    queue: 0,
    writes: commits,
    refused: 0,
    bytes: 0,
    log_bytes: 0,
    devices: 0,
    mails: 0,
  };
  return {
    time: new Date(seconds * 1_000).toISOString(),
    reasons: [],
    held: false,
    connections: 0,
    streams: 0,
    requests: [{ route: 'heartbeat', answered, failed: 0 }],
    latency: { bounds_seconds: [0.001, 0.01], counts },
    shards: [{ ...shard, commits }],
    talkers: [],
  };
}

it('a beat has the rates between two looks, and the time that one of a hundred requests takes longer than', () => {
  const counts = [98, 1, 1];
  const [beat] = beatsAfter([], topAt(10, 100), topAt(12, 200, { commits: 30, counts }));
  expect(beat).toEqual({ timeSeconds: 12, requestsPerSecond: 50, latencyMs: 10, commitsPerSecond: 15 });
});

it('nothing asked has no latency, and what is beyond all bounds the last of them', () => {
  const latencyOf = (counts: number[]) => beatsAfter([], topAt(0, 0), topAt(2, 1, { counts }))[0]?.latencyMs;
  expect([latencyOf([0, 0, 0]), latencyOf([0, 0, 5])]).toEqual([null, 10]);
});

it('a first look, and one at the same answer, are no beat', () => {
  expect(beatsAfter([], undefined, topAt(2, 1))).toEqual([]);
  expect(beatsAfter([], topAt(2, 1), topAt(2, 1))).toEqual([]);
});

it('a page that was away has a gap, and a server that was started again begins anew', () => {
  const beats = beatsAfter([], topAt(0, 0), topAt(2, 10));
  const gap = { timeSeconds: 60, requestsPerSecond: null, latencyMs: null, commitsPerSecond: null };
  expect(beatsAfter(beats, topAt(2, 10), topAt(60, 20))).toEqual([...beats, gap]);
  expect(beatsAfter(beats, topAt(2, 10), topAt(4, 3))).toEqual([]);
});

it('it is five minutes long', () => {
  let beats: Beat[] = [];
  for (let look = 1; look <= 200; look += 1)
    beats = beatsAfter(beats, topAt(2 * look - 2, look), topAt(2 * look, look));
  expect([beats.length, beats.at(0)?.timeSeconds, beats.at(-1)?.timeSeconds]).toEqual([150, 102, 400]);
});
