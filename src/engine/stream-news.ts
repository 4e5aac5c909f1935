import type { DeviceKey } from '../core/identity.ts';
import type { Session } from './database.ts';
import type { Work } from './work.ts';

/** What a node is told of a device that it holds streams of: a letter in front of the device's key. */
export const news = { mail: 'm', end: 'e', recheck: 'r', displaced: 'd' } as const;
export type News = (typeof news)[keyof typeof news];

/** The channel of a node: what other nodes have to tell it. */
export function channelOf(node: string): string {
  return `fleetpost_${node}`;
}

/** A notification holds 8,000 bytes. */
const toldMax = 300;

/**
 * One notification for each node that holds streams of these devices, whatever their number (measured: one for each
 * mail cut enqueueing to a third). As late in the transaction as can be: a stream that opens meanwhile looks for itself.
 */
const tell = `
  SELECT pg_notify('fleetpost_' || s.node, string_agg(DISTINCT k.what || k.device, ' '))
  FROM unnest($1::text[], $2::text[]) AS k (device, what) JOIN stream s ON s.device = k.device
  GROUP BY s.node`;
const noteEnds = `
  INSERT INTO stream_end (at_ms, device, what) SELECT $1, k.device, k.what
  FROM unnest($2::text[], $3::text[]) AS k (device, what) ON CONFLICT DO NOTHING`;

/** Adds to a transaction what is to be told when it commits, and only then. */
export function tellStreams(session: Session, { effects, nowMs }: Work): void {
  const mail = new Set(effects.announcements.map(({ device }) => device));
  const told: [DeviceKey, News][] = [...mail].map((device) => [device, news.mail]);
  const ends: [DeviceKey, News][] = [];
  for (const device of effects.endedStreams) ends.push([device, news.end]);
  for (const device of effects.recheckedStreams) ends.push([device, news.recheck]);
  if (ends.length > 0) {
    void session.query(noteEnds, [nowMs, ends.map(([device]) => device), ends.map(([, what]) => what)]);
  }
  told.push(...ends);
  for (let start = 0; start < told.length; start += toldMax) {
    const part = told.slice(start, start + toldMax);
    void session.query(tell, [part.map(([device]) => device), part.map(([, what]) => what)]);
  }
}

/** The devices of a notification; what is not one of ours is passed over. */
export function readNews(payload: string): { what: News; text: string }[] {
  const letters: readonly string[] = Object.values(news);
  return payload
    .split(' ')
    .filter((word) => word.length > 1 && letters.includes(word[0] ?? ''))
    .map((word) => ({ what: word[0] as News, text: word.slice(1) }));
}
