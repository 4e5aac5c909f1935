import type { ShownDeviceDocument } from '../../../contract/device.ts';
import { Section } from '../../frame/frame.tsx';
import { StateMark } from '../../parts/device.tsx';
import { Moment } from '../../parts/moment.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { Tags } from '../devices/device-table.tsx';

/** Lists what the server knows of a device. */
export function Facts({ fleetId, device }: { fleetId: string; device: ShownDeviceDocument }) {
  const { last_seen, last_address, created_at, old_secret_until, waiting_since, next_delivery_at } = device;
  const { lockouts, tags } = device;
  return (
    <Section title="Facts">
      <dl class="facts">
        <dt>State</dt>
        <dd>
          <StateMark device={device} />
        </dd>
        <dt>Last seen</dt>
        <dd>{last_seen === null ? 'never' : <Moment time={last_seen} />}</dd>
        <dt>From</dt>
        <dd class="mono">{last_address ?? '–'}</dd>
        <dt>Tags</dt>
        <dd>{tags.length === 0 ? '–' : <Tags fleetId={fleetId} tags={tags} isWhole />}</dd>
        <dt>Created</dt>
        <dd>
          <Moment time={created_at} />
        </dd>
        {waiting_since !== null && (
          <>
            <dt>Mail waits</dt>
            <dd>
              the first began to wait <Moment time={waiting_since} />
            </dd>
          </>
        )}
        {next_delivery_at !== null && (
          <>
            <dt>Next mail</dt>
            <dd>
              <Moment time={next_delivery_at} />
            </dd>
          </>
        )}
        {old_secret_until !== null && (
          <>
            <dt>Old secret</dt>
            <dd>
              ends <Moment time={old_secret_until} />
            </dd>
          </>
        )}
        {lockouts.map(({ address, until }) => (
          <>
            <dt key={address} class="bad">
              Locked out
            </dt>
            <dd>
              <Untrusted text={address} />, ends <Moment time={until} />
            </dd>
          </>
        ))}
      </dl>
    </Section>
  );
}
