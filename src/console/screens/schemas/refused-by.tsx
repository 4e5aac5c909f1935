import { pathTo } from '../../../contract/routes/path.ts';
import { Section } from '../../frame/frame.tsx';
import { RefusedRows } from '../../lists/refused-rows.tsx';
import { Loaded } from '../../parts/banner.tsx';
import { ReadNote } from '../../parts/moment.tsx';
import { useDocument } from '../../server/resource.ts';
import type { SchemaName } from './schema-text.ts';

const everySeconds = 15;
/** Refusals that are shown; the rest is counted. */
const shownMax = 20;

/** Devices whose requests the schema has refused, also those that it takes again, and why. */
export function RefusedBy({ fleetId, kind, name }: SchemaName & { kind: 'datapoint' | 'message' }) {
  const path = pathTo('/fleets/{fleet_id}/refusals', { fleet_id: fleetId });
  const query = { of: 'hour', reason: 'schema_mismatch', kind, name, limit: shownMax } as const;
  const refused = useDocument(path, everySeconds, query);
  return (
    <Section
      title="Refused in the last hour"
      note={<ReadNote readAtMs={refused.readAtMs} failingSinceMs={refused.failingSinceMs} />}
    >
      <Loaded resource={refused}>
        {({ items, devices, devices_now, is_all }) =>
          items.length === 0 ? (
            <p class="empty">It has refused nothing.</p>
          ) : (
            <>
              <p class={devices_now > 0 ? 'below warn' : 'below'}>
                {devices_now.toLocaleString('en')} {devices_now === 1 ? 'device is' : 'devices are'} refused
                now
                {devices > devices_now && (
                  <>
                    , {devices.toLocaleString('en')} {is_all ? '' : 'or more '}were within the hour
                  </>
                )}
                .
              </p>
              <RefusedRows fleetId={fleetId} items={items} />
            </>
          )
        }
      </Loaded>
    </Section>
  );
}
