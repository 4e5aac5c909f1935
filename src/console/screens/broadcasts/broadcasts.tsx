import { useEffect, useState } from 'preact/hooks';
import type { BroadcastDocument, BroadcastOutcomesDocument } from '../../../contract/broadcast.ts';
import { broadcastColumns } from '../../../contract/columns/mail.ts';
import type { ListDocument } from '../../../contract/document.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { Screen } from '../../frame/frame.tsx';
import { byAge, Pages } from '../../lists/pages.tsx';
import { ListTable } from '../../lists/table.tsx';
import { useKeys } from '../../page/keys.ts';
import { href, search } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Loaded } from '../../parts/banner.tsx';
import { call } from '../../server/client.ts';
import { type Resource, useDocument } from '../../server/resource.ts';
import { sendTo, startedBroadcasts } from '../send/send-to.ts';
import { BroadcastMark, isRunning, OutcomeBar } from './progress.tsx';

const pageBroadcasts = 100;
const runningSeconds = 5;
const idleSeconds = 30;
/** Rows whose mails are counted: those that one looks at first. */
const countedMax = 15;

/** While none goes on by itself, only a new one changes the list. */
function everySeconds({ items }: ListDocument<BroadcastDocument>): number {
  return items.some(isRunning) ? runningSeconds : idleSeconds;
}

/**
 * What became of the first broadcasts of a list, counted one after the other once the list has been read; ended ones
 * not again before the list is.
 */
function useOutcomesOf(
  fleetId: string,
  list: Resource<ListDocument<BroadcastDocument>>,
): ReadonlyMap<string, BroadcastOutcomesDocument> {
  const [counts, setCounts] = useState<ReadonlyMap<string, BroadcastOutcomesDocument>>(new Map());
  const items = list.value?.items ?? [];
  const key = items.map(({ broadcast_id, queued }) => `${broadcast_id} ${queued}`).join();
  useEffect(() => {
    const stopping = new AbortController();
    const { signal } = stopping;
    const count = async (): Promise<void> => {
      for (const { broadcast_id, queued } of items.slice(0, countedMax)) {
        if (queued === 0) continue;
        const path = pathTo('/fleets/{fleet_id}/broadcasts/{broadcast_id}/outcomes', {
          fleet_id: fleetId,
          broadcast_id,
        });
        const outcomes = await call('GET', path, { signal });
        setCounts((before) => new Map(before).set(broadcast_id, outcomes));
      }
    };
    // Without them the bars say what is queued.
    count().catch(() => {});
    return () => stopping.abort();
  }, [fleetId, key]);
  return counts;
}

/** The broadcasts of a fleet, newest first: how far each is, and how many devices it did not reach. */
export function BroadcastsScreen({ fleetId }: { fleetId: string }) {
  const after = search.value.get('after') ?? undefined;
  const path = pathTo('/fleets/{fleet_id}/broadcasts', { fleet_id: fleetId });
  const list = useDocument(path, everySeconds, { after, limit: pageBroadcasts });
  const outcomes = useOutcomesOf(fleetId, list);
  const send = (): void => {
    sendTo.value = { deviceId: '' };
  };
  useKeys({ r: list.refresh, n: send });
  const started = startedBroadcasts.value;
  useEffect(() => {
    if (started > 0) list.refresh();
  }, [started]);
  return (
    <Screen
      title="Broadcasts"
      read={list}
      tools={
        <Act scope="mail" kind="main" onClick={send} title="To all that fit filters, or to all devices (n)">
          New broadcast
        </Act>
      }
      commands={[{ command: ['broadcast', 'list', '--fleet', fleetId], request: { path, query: { after } } }]}
    >
      <Loaded resource={list}>
        {({ items, next }) =>
          items.length === 0 ? (
            <p class="empty">
              No broadcast{after === undefined ? ' yet' : ' before'}. One mail to many: find devices in their
              list and select them, or send it to all. Ended ones stay here for 30 days, unless the
              configuration says otherwise.
            </p>
          ) : (
            <>
              <BroadcastTable fleetId={fleetId} items={items} outcomes={outcomes} />
              <Pages next={next} words={byAge} />
            </>
          )
        }
      </Loaded>
    </Screen>
  );
}

interface BroadcastTableProps {
  fleetId: string;
  items: readonly BroadcastDocument[];
  outcomes: ReadonlyMap<string, BroadcastOutcomesDocument>;
}

function BroadcastTable({ fleetId, items, outcomes }: BroadcastTableProps) {
  return (
    <ListTable
      columns={broadcastColumns}
      first="state"
      items={items}
      keyOf={({ broadcast_id }) => broadcast_id}
      cells={{
        state: (broadcast) => (
          <BroadcastMark broadcast={broadcast} outcomes={outcomes.get(broadcast.broadcast_id)} />
        ),
        name: ({ broadcast_id, name }) => (
          <a class="strong" href={href([fleetId, 'broadcasts', broadcast_id])}>
            {name}
          </a>
        ),
        queued: (broadcast) => (
          <OutcomeBar broadcast={broadcast} outcomes={outcomes.get(broadcast.broadcast_id)} />
        ),
      }}
    />
  );
}
