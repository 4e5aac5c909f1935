import type { BroadcastDocument } from '../../../contract/broadcast.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { Head } from '../../frame/frame.tsx';
import { byAge, Pages } from '../../lists/pages.tsx';
import { useKeys } from '../../page/keys.ts';
import { href, search } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Loaded } from '../../parts/banner.tsx';
import { Commands } from '../../parts/commands.tsx';
import { Moment } from '../../parts/moment.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { useDocument } from '../../server/resource.ts';
import { sendTo } from '../send/send-to.ts';
import { BroadcastMark } from './broadcast-state.tsx';
import { Turns } from './turns.tsx';

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
    <>
      <Head
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
      />
      <div class="body">
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
      </div>
      <Commands command={['broadcast', 'list', '--fleet', fleetId]} request={{ path, query: { after } }} />
    </>
  );
}

/** Whom a broadcast is for. */
export function targetText({ to }: Pick<BroadcastDocument, 'to'>): string {
  if (to.tag !== undefined) return `tag ${to.tag.join(', ')}`;
  return to.devices === undefined ? 'all devices' : `${to.devices.toLocaleString('en')} listed`;
}

function BroadcastTable({ fleetId, items }: { fleetId: string; items: readonly BroadcastDocument[] }) {
  return (
    <div class="table">
      <table>
        <thead>
          <tr>
            <th>State</th>
            <th>Mail</th>
            <th class="less">To</th>
            <th class="wide">Queued</th>
            <th class="number">Not queued</th>
            <th class="number less">Begun</th>
          </tr>
        </thead>
        <tbody>
          {items.map((broadcast) => {
            const { broadcast_id, name, refused, created_at } = broadcast;
            return (
              <tr key={broadcast_id}>
                <td>
                  <BroadcastMark broadcast={broadcast} />
                </td>
                <td class="cut">
                  <a class="strong" href={href([fleetId, 'broadcasts', broadcast_id])}>
                    {name}
                  </a>
                </td>
                <td class="soft cut less">
                  <Untrusted text={targetText(broadcast)} lengthMax={80} />
                </td>
                <td>
                  <Turns broadcast={broadcast} />
                </td>
                <td class={`number ${refused > 0 ? 'warn strong' : 'faint'}`}>
                  {refused.toLocaleString('en')}
                </td>
                <td class="number soft less">
                  <Moment time={created_at} />
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
