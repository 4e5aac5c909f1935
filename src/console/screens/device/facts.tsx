import type { ShownDeviceDocument } from '../../../contract/device.ts';
import { Section } from '../../frame/frame.tsx';
import { StateMark } from '../../parts/device.tsx';
import { Fact } from '../../parts/facts.tsx';
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
        <Fact name="State">
          <StateMark device={device} />
        </Fact>
        <Fact name="Last seen">{last_seen === null ? 'never' : <Moment time={last_seen} />}</Fact>
        <Fact name="From" class="mono">
          {last_address ?? '–'}
        </Fact>
        <Fact name="Tags">{tags.length === 0 ? '–' : <Tags fleetId={fleetId} tags={tags} isWhole />}</Fact>
        <Fact name="Created">
          <Moment time={created_at} />
        </Fact>
        {waiting_since !== null && (
          <Fact name="Mail waits">
            the first began to wait <Moment time={waiting_since} />
          </Fact>
        )}
        {next_delivery_at !== null && (
          <Fact name="Next mail">
            <Moment time={next_delivery_at} />
          </Fact>
        )}
        {old_secret_until !== null && (
          <Fact name="Old secret">
            ends <Moment time={old_secret_until} />
          </Fact>
        )}
        {lockouts.map(({ address, until }) => (
          <Fact key={address} name={<span class="bad">Locked out</span>}>
            <Untrusted text={address} />, ends <Moment time={until} />
          </Fact>
        ))}
      </dl>
    </Section>
  );
}
