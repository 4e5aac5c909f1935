import { useState } from 'preact/hooks';
import type { BroadcastDocument, BroadcastRefusalDocument } from '../../../contract/broadcast.ts';
import type { ListDocument } from '../../../contract/document.ts';
import { Section } from '../../frame.tsx';
import { href } from '../../page/router.ts';
import { Loaded } from '../../parts/banner.tsx';
import { call } from '../../server/client.ts';
import { useResource } from '../../server/resource.ts';

const sentences: Readonly<Record<BroadcastRefusalDocument['reason'], string>> = {
  mailbox_full: 'mailbox full',
  delayed_full: 'too many delayed mails',
  device_not_found: 'no such device',
  not_stored: 'not stored: the shard failed for it',
};
/** Rows that are drawn at most; the API pages on. */
const shownMax = 2_000;

export interface RefusalListProps {
  fleetId: string;
  path: string;
  broadcast: BroadcastDocument;
}

/** Why devices did not get the mail: how many for each reason, and which. */
export function BroadcastRefusalList({ fleetId, path, broadcast }: RefusalListProps) {
  const { refused, reasons } = broadcast;
  const [limit, setLimit] = useState(100);
  const list = useResource(
    refused === 0 ? undefined : `${path}/refusals?${limit}`,
    (signal) => readRefusals(path, limit, signal),
    broadcast.ended_at === null ? 5 : undefined,
  );
  const counts = Object.entries(reasons).filter(([, count]) => count > 0);
  return (
    <Section title="Refusals by reason">
      {refused === 0 ? (
        <p class="empty">None: each device so far has got it.</p>
      ) : (
        <>
          <dl class="facts is-counts">
            {counts.map(([reason, count]) => (
              <>
                <dt key={reason}>{sentences[reason as BroadcastRefusalDocument['reason']]}</dt>
                <dd class="strong">{count.toLocaleString('en')}</dd>
              </>
            ))}
          </dl>
          <Loaded resource={list}>
            {({ items, next }) => (
              <>
                <ul class="list">
                  {items.map(({ device_id, reason }) => (
                    <li key={device_id}>
                      <a class="row" href={href([fleetId, 'devices', device_id])}>
                        <code>{device_id}</code>
                        <span class="end small">{sentences[reason]}</span>
                      </a>
                    </li>
                  ))}
                </ul>
                {next !== null && limit < shownMax && (
                  <button
                    type="button"
                    class="button is-plain"
                    onClick={() => setLimit(Math.min(limit * 5, shownMax))}
                  >
                    Show more
                  </button>
                )}
                {next !== null && limit >= shownMax && (
                  <p class="hint">
                    The first {shownMax.toLocaleString('en')}. All:{' '}
                    <code>
                      fleetpost broadcast refusals {broadcast.broadcast_id} --fleet {fleetId}
                    </code>
                  </p>
                )}
              </>
            )}
          </Loaded>
        </>
      )}
    </Section>
  );
}

const pageMax = 1_000;

async function readRefusals(
  path: string,
  limit: number,
  signal: AbortSignal,
): Promise<ListDocument<BroadcastRefusalDocument>> {
  const items: BroadcastRefusalDocument[] = [];
  let next: string | null = '';
  while (next !== null && items.length < limit) {
    const query: Record<string, string | number> = {
      after: next,
      limit: Math.min(limit - items.length, pageMax),
    };
    const page: ListDocument<BroadcastRefusalDocument> = await call('GET', `${path}/refusals`, {
      query,
      signal,
    });
    items.push(...page.items);
    next = page.next;
  }
  return { items, next };
}
