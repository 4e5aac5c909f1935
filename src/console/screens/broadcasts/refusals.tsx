import type { BroadcastDocument, BroadcastRefusalDocument } from '../../../contract/broadcast.ts';
import { below, type Path } from '../../../contract/routes/path.ts';
import { Section } from '../../frame/frame.tsx';
import { Fact } from '../../parts/facts.tsx';
import { call } from '../../server/client.ts';
import { DeviceRows } from './device-rows.tsx';

const sentences: Readonly<Record<BroadcastRefusalDocument['reason'], string>> = {
  mailbox_full: 'mailbox full',
  delayed_full: 'too many delayed mails',
  device_not_found: 'no such device',
  not_stored: 'not stored: the shard failed for it',
};

export interface OfBroadcastProps {
  fleetId: string;
  /** Path of the broadcast in the API. */
  path: Path<'/fleets/{fleet_id}/broadcasts/{broadcast_id}'>;
  broadcast: BroadcastDocument;
}

/** Why devices did not get the mail: how many for each reason, and which. */
export function BroadcastRefusalList({ fleetId, path, broadcast }: OfBroadcastProps) {
  const { refused, reasons } = broadcast;
  const counts = Object.entries(reasons).filter(([, count]) => count > 0);
  return (
    <Section title="Not queued, by reason">
      {refused === 0 ? (
        <p class="empty">None: the mail was put into the mailbox of each device so far.</p>
      ) : (
        <>
          <dl class="facts is-counts">
            {counts.map(([reason, count]) => (
              <Fact
                key={reason}
                name={sentences[reason as BroadcastRefusalDocument['reason']]}
                class="strong"
              >
                {count.toLocaleString('en')}
              </Fact>
            ))}
          </dl>
          <RefusedDevices fleetId={fleetId} path={path} broadcast={broadcast} />
        </>
      )}
    </Section>
  );
}

/** The devices that did not get the mail, each with its reason. */
export function RefusedDevices({ fleetId, path, broadcast }: OfBroadcastProps) {
  const refusals = below(path, '/refusals', {});
  return (
    <DeviceRows
      fleetId={fleetId}
      path={refusals}
      read={(page, signal) => call('GET', refusals, { query: page, signal })}
      everySeconds={broadcast.ended_at === null ? 5 : undefined}
      placeOf={({ device_id }) => ['devices', device_id]}
      nameOf={({ name }) => name}
      textOf={({ reason }) => sentences[reason]}
      command={`fleetpost broadcast refusals ${broadcast.broadcast_id} --fleet ${fleetId}`}
    />
  );
}
