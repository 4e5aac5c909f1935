import { useEffect, useState } from 'preact/hooks';
import { pathTo } from '../../../contract/routes/path.ts';
import { type Recent, recents } from '../../page/recent.ts';
import { go, href } from '../../page/router.ts';
import { shownText } from '../../parts/untrusted.tsx';
import { call } from '../../server/client.ts';
import type { PaletteEntry } from './entries.ts';

const broadcastsMax = 100;
const fleetsMax = 1_000;
const recentShown = 8;

function entryTo(
  group: PaletteEntry['group'],
  parts: readonly string[],
  name: string,
  note: string,
): PaletteEntry {
  return { key: `${group} ${parts.join('/')}`, group, name, note, run: () => go(href(parts)) };
}

/** True for a mail among what was looked at. */
function isMail({ parts }: { parts: readonly string[] }): boolean {
  return parts[1] === 'devices' && parts.length > 3;
}

/**
 * What was looked at last, split from its mails, which have the ids of their devices: those come after what is called so
 * itself. While nothing is typed, only the latest, as they were.
 */
export function recentEntries(
  fleetId: string,
  text: string,
): { things: PaletteEntry[]; mails: PaletteEntry[] } {
  const all = recents(fleetId);
  if (text.trim() === '') return { things: entriesOf(all.slice(0, recentShown)), mails: [] };
  const begins = ({ name }: PaletteEntry): number =>
    name.toLowerCase().startsWith(text.trim().toLowerCase()) ? 0 : 1;
  return {
    things: entriesOf(all.filter((one) => !isMail(one))).sort((a, b) => begins(a) - begins(b)),
    mails: entriesOf(all.filter(isMail)),
  };
}

function entriesOf(all: readonly Recent[]): PaletteEntry[] {
  return all.map(({ parts, title, note = '' }) =>
    entryTo(
      'Recent',
      parts,
      title,
      note || (parts.length > 3 || parts[1] === 'broadcasts' ? (parts.at(-1) ?? '') : ''),
    ),
  );
}

/** All of the fleet that has a name and is no device: read once, when the palette is opened. */
export function useNamedThings(fleetId: string): readonly PaletteEntry[] {
  const [entries, setEntries] = useState<readonly PaletteEntry[]>([]);
  useEffect(() => {
    const stopping = new AbortController();
    // One that cannot be read is not found; its screen says why.
    readNamed(fleetId, stopping.signal, (found) => setEntries((before) => [...before, ...found]));
    return () => stopping.abort();
  }, [fleetId]);
  return entries;
}

function readNamed(
  fleetId: string,
  signal: AbortSignal,
  onFound: (entries: readonly PaletteEntry[]) => void,
): void {
  const at = { fleet_id: fleetId };
  const found = (work: Promise<readonly PaletteEntry[]>): void => void work.then(onFound, () => undefined);
  const named = (part: string, note: string) => (answer: { items: readonly { name: string }[] }) =>
    answer.items.map(({ name }) => entryTo('Named', [fleetId, part, name], name, note));
  const options = { signal };
  found(
    call('GET', pathTo('/fleets', {}), { ...options, query: { limit: fleetsMax } }).then(({ items }) =>
      items
        .filter(({ fleet_id }) => fleet_id !== fleetId)
        .map(({ fleet_id, name }) =>
          entryTo('Named', [fleet_id], shownText(name, 60) || fleet_id, `fleet ${fleet_id}`),
        ),
    ),
  );
  found(call('GET', pathTo('/fleets/{fleet_id}/actions', at), options).then(named('actions', 'action')));
  found(
    call('GET', pathTo('/fleets/{fleet_id}/consumers', at), options).then(named('consumers', 'consumer')),
  );
  found(
    call('GET', pathTo('/fleets/{fleet_id}/forwarders', at), options).then(named('forwarders', 'forwarder')),
  );
  found(
    call('GET', pathTo('/fleets/{fleet_id}/schemas', at), options).then(({ items }) =>
      items.map(({ kind, name }) =>
        entryTo('Named', [fleetId, 'schemas', kind, name], name, `${kind} schema`),
      ),
    ),
  );
  found(
    call('GET', pathTo('/fleets/{fleet_id}/broadcasts', at), {
      ...options,
      query: { limit: broadcastsMax },
    }).then(({ items }) =>
      items.map(({ broadcast_id, name, created_at }) =>
        entryTo(
          'Named',
          [fleetId, 'broadcasts', broadcast_id],
          name,
          `broadcast of ${created_at.slice(0, 16)}Z`,
        ),
      ),
    ),
  );
}
