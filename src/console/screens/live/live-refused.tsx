import { useMemo } from 'preact/hooks';
import { pathTo } from '../../../contract/routes/path.ts';
import { Screen } from '../../frame/frame.tsx';
import { RefusedRows } from '../../lists/refused-rows.tsx';
import { Loaded } from '../../parts/banner.tsx';
import { parseSpan, serverNow } from '../../server/clock.ts';
import { useDocument } from '../../server/resource.ts';
import { type LiveFilter, LiveFilters } from './live-filters.tsx';

const everySeconds = 6;
/** Refusals that are read at a time; equal ones of a device are one. */
const readMax = 500;

/** Shows what devices are refused now: no record comes of it, so it is read again and again. */
export function LiveRefused({ fleetId, filter }: { fleetId: string; filter: LiveFilter }) {
  const { schema, device, text, since } = filter;
  const path = pathTo('/fleets/{fleet_id}/refusals', { fleet_id: fleetId });
  const query = { of: 'hour', limit: readMax, ...(schema !== '' && { name: schema }) } as const;
  const refused = useDocument(path, everySeconds, query);
  const spanMs = parseSpan(since) ?? 0;
  // Of each answer to "since": what came before it is none of it, however long the page is looked at.
  const fromMs = useMemo(() => serverNow() - spanMs, [spanMs]);
  return (
    <Screen
      title="Live"
      read={refused}
      commands={[
        {
          command: ['device', 'list', '--fleet', fleetId, '--refused', 'any'],
          request: { path, query },
        },
      ]}
    >
      <LiveFilters fleetId={fleetId} filter={filter} />
      <Loaded resource={refused}>
        {({ items }) => {
          const shown = items.filter(
            (item) =>
              Date.parse(item.last_at) >= fromMs &&
              item.device_id.startsWith(device) &&
              JSON.stringify(item).includes(text),
          );
          return shown.length === 0 ? (
            <p class="empty">
              {items.length === 0
                ? 'Nothing was refused in the last hour.'
                : `None of the ${items.length} refusals of the last hour fits.`}
            </p>
          ) : (
            <RefusedRows fleetId={fleetId} items={shown} isLive />
          );
        }}
      </Loaded>
    </Screen>
  );
}
