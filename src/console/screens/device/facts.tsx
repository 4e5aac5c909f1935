import type { ComponentChildren } from 'preact';
import type { ShownDeviceDocument } from '../../../contract/device.ts';
import type { RefusalDocument } from '../../../contract/monitoring/refusal.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { Section } from '../../frame/frame.tsx';
import { lazyScreen } from '../../frame/lazy-screen.tsx';
import { Act } from '../../parts/act.tsx';
import { StateMark } from '../../parts/device.tsx';
import { Fact } from '../../parts/facts.tsx';
import { Moment } from '../../parts/moment.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { call } from '../../server/client.ts';
import { useSubmit } from '../../server/submit.ts';
import { Tags } from '../devices/device-table.tsx';

const setUp = () => import('../set-up.tsx');
const EditName = lazyScreen(async () => (await setUp()).EditName);
const EditTags = lazyScreen(async () => (await setUp()).EditTags);

/** A fact that is changed where it stands. */
export type EditedFact = 'name' | 'tags';

export interface FactsProps {
  fleetId: string;
  device: ShownDeviceDocument;
  /** Why it is refused now, and its last attempt with a wrong secret; undefined if it is not refused. */
  refused: { why: string; last: RefusalDocument | undefined } | undefined;
  edited: EditedFact | undefined;
  onEdit: (fact: EditedFact | undefined) => void;
  onChanged: () => void;
}

/** Lists what the server knows of a device. */
export function Facts({ fleetId, device, refused, edited, onEdit, onChanged }: FactsProps) {
  const { last_seen, last_address, created_at, old_secret_until, waiting_since, next_delivery_at } = device;
  const { name, tags } = device;
  const editing = {
    fleetId,
    device,
    onEnd: (isChanged: boolean): void => {
      onEdit(undefined);
      if (isChanged) onChanged();
    },
  };
  return (
    <Section title="Facts">
      <dl class="facts">
        <Fact name="Name">
          {edited === 'name' ? (
            <EditName {...editing} />
          ) : (
            <Editable what="name" onEdit={() => onEdit('name')}>
              {name === '' ? '–' : <Untrusted text={name} />}
            </Editable>
          )}
        </Fact>
        <Fact name="State">
          <StateMark device={device} refused={refused?.why} />
        </Fact>
        {refused?.last && <LastTried refusal={refused.last} />}
        <Fact name="Last seen">{last_seen === null ? 'never' : <Moment time={last_seen} />}</Fact>
        <Fact name="From" class="mono">
          {last_address ?? '–'}
        </Fact>
        <Fact name="Tags">
          {edited === 'tags' ? (
            <EditTags {...editing} />
          ) : (
            <Editable what="tags" onEdit={() => onEdit('tags')}>
              {tags.length === 0 ? '–' : <Tags fleetId={fleetId} tags={tags} isWhole />}
            </Editable>
          )}
        </Fact>
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
        <Lockouts fleetId={fleetId} device={device} onChanged={onChanged} />
      </dl>
    </Section>
  );
}

function LastTried({ refusal: { last_at, last_address } }: { refusal: RefusalDocument }) {
  return (
    <Fact name="Last tried">
      <Moment time={last_at} />
      {last_address !== null && (
        <>
          {' '}
          from <span class="mono">{last_address}</span>
        </>
      )}
    </Fact>
  );
}

type LockoutsProps = Pick<FactsProps, 'fleetId' | 'device' | 'onChanged'>;

function Lockouts({ fleetId, device: { device_id, lockouts }, onChanged }: LockoutsProps) {
  return lockouts.map(({ address, until }) => (
    <Fact key={address} name={<span class="bad">Locked out</span>}>
      <span class="editable">
        <span class="grow">
          <Untrusted text={address} />, ends <Moment time={until} />
        </span>
        <Lift fleetId={fleetId} deviceId={device_id} address={address} onDone={onChanged} />
      </span>
    </Fact>
  ));
}

/** A fact with the button that changes it. */
function Editable(props: { what: string; onEdit: () => void; children: ComponentChildren }) {
  return (
    <span class="editable">
      <span class="grow">{props.children}</span>
      <Act scope="provision" kind="plain" onClick={props.onEdit}>
        Edit<span class="visually-hidden"> the {props.what}</span>
      </Act>
    </span>
  );
}

/** Ends a lockout at once, and forgets the failures that led to it. */
function Lift(props: { fleetId: string; deviceId: string; address: string; onDone: () => void }) {
  const { fleetId, deviceId, address, onDone } = props;
  const { error, isBusy, submit } = useSubmit();
  const query = { fleet_id: fleetId, device_id: deviceId, address };
  const lift = (): void => void submit(() => call('DELETE', pathTo('/lockouts', {}), { query })).then(onDone);
  return (
    <Act
      scope="provision"
      kind="plain"
      onClick={lift}
      unless={isBusy ? 'On its way' : undefined}
      title={error?.message ?? 'Ends it at once, and forgets the failures that led to it'}
    >
      {error ? 'Failed; again' : 'Lift'}
      <span class="visually-hidden"> the lockout of {address}</span>
    </Act>
  );
}
