import type { BroadcastDocument } from '../../../contract/broadcast.ts';
import { broadcastColumns } from '../../../contract/columns/mail.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { Screen } from '../../frame/frame.tsx';
import { byAge, Pages } from '../../lists/pages.tsx';
import { ListTable } from '../../lists/table.tsx';
import { useKeys } from '../../page/keys.ts';
import { href, search } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Loaded } from '../../parts/banner.tsx';
import { useDocument } from '../../server/resource.ts';
import { sendTo } from '../send/send-to.ts';
import { BroadcastMark, Turns } from './progress.tsx';

const pageBroadcasts = 100;
const everySeconds = 3;

/** The broadcasts of a fleet, newest first: how far each is, and how many devices it did not reach. */
export function BroadcastsScreen({ fleetId }: { fleetId: string }) {
  const after = search.value.get('after') ?? undefined;
  const path = pathTo('/fleets/{fleet_id}/broadcasts', { fleet_id: fleetId });
  const list = useDocument(path, everySeconds, { after, limit: pageBroadcasts });
  const send = (): void => {
    sendTo.value = { all: true };
  };
  useKeys({ r: list.refresh, n: send });
  return (
    <Screen
      title="Broadcasts"
      read={list}
      tools={
        <>
          <a class="button" href={href([fleetId, 'devices'])} title="Select devices, or all that fit">
            To some devices…
          </a>
          <Act scope="mail" kind="main" onClick={send} title="n">
            To all devices
          </Act>
        </>
      }
      commands={[{ command: ['broadcast', 'list', '--fleet', fleetId], request: { path, query: { after } } }]}
    >
      <Loaded resource={list}>
        {({ items, next }) =>
          items.length === 0 ? (
            <p class="empty">
              No broadcast{after === undefined ? ' yet' : ' before'}. One mail to many: select devices in
              their list, or send it to all. Ended ones stay here for 30 days, unless the configuration says
              otherwise.
            </p>
          ) : (
            <>
              <BroadcastTable fleetId={fleetId} items={items} />
              <Pages next={next} words={byAge} />
            </>
          )
        }
      </Loaded>
    </Screen>
  );
}

function BroadcastTable({ fleetId, items }: { fleetId: string; items: readonly BroadcastDocument[] }) {
  return (
    <ListTable
      columns={broadcastColumns}
      first="state"
      items={items}
      keyOf={({ broadcast_id }) => broadcast_id}
      cells={{
        state: (broadcast) => <BroadcastMark broadcast={broadcast} />,
        name: ({ broadcast_id, name }) => (
          <a class="strong" href={href([fleetId, 'broadcasts', broadcast_id])}>
            {name}
          </a>
        ),
        queued: (broadcast) => <Turns broadcast={broadcast} />,
        refused: ({ refused }) =>
          refused > 0 && <span class="warn strong">{refused.toLocaleString('en')}</span>,
      }}
    />
  );
}
