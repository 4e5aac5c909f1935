import { useState } from 'preact/hooks';
import type { FleetChangeBody, FleetDocument } from '../../../contract/fleet.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { Confirm } from '../../forms/confirm.tsx';
import { Field } from '../../forms/field.tsx';
import { Section } from '../../frame/frame.tsx';
import { Act } from '../../parts/act.tsx';
import { ErrorBanner } from '../../parts/banner.tsx';
import { Commands } from '../../parts/commands.tsx';
import { Moment } from '../../parts/moment.tsx';
import { call } from '../../server/client.ts';
import { useSubmit } from '../../server/submit.ts';
import { changeOfFleet, flagsOfChange, type LimitTexts, removesRecords, textsOf } from './limit-change.ts';
import { LimitRow } from './limit-row.tsx';
import { limitGroups, limitText } from './limits.ts';

/** The name and the limits of a fleet, changed together; each says whose it is. */
export function LimitForm({ fleet, onSaved }: { fleet: FleetDocument; onSaved: () => void }) {
  const [name, setName] = useState(fleet.name);
  const [texts, setTexts] = useState<LimitTexts>(() => textsOf(fleet));
  const [isAsked, setAsked] = useState(false);
  const { error, isBusy, submit } = useSubmit();
  const change = changeOfFleet(fleet, name, texts);
  const count = Object.keys(change ?? {}).length;
  const path = pathTo('/fleets/{fleet_id}', { fleet_id: fleet.fleet_id });
  const patch = (): Promise<unknown> => call('PATCH', path, { body: change });
  const save = async (): Promise<void> => {
    if (change === undefined || count === 0) return;
    if (removesRecords(fleet, change)) setAsked(true);
    else if (await submit(patch)) onSaved();
  };
  const unless =
    change === undefined
      ? 'A value is no number.'
      : count === 0
        ? 'Nothing is changed.'
        : isBusy
          ? 'On its way'
          : undefined;
  return (
    <form
      class="stack limits"
      onKeyDown={(event) => {
        if (event.key !== 'Enter' || !(event.target instanceof HTMLInputElement)) return;
        event.preventDefault();
        void save();
      }}
    >
      <NameField fleet={fleet} name={name} onName={setName} />
      <p class="hint">A default is that of the server's configuration, and an empty field leaves it so.</p>
      {limitGroups.map(([title, group]) => (
        <Section key={title} title={title}>
          {group.map((limit) => (
            <LimitRow
              key={limit.name}
              limit={limit}
              fleet={fleet}
              text={texts[limit.name]}
              wrong={error?.errors.find((one) => one.path === `/${limit.name}`)?.msg}
              onText={(text) => setTexts({ ...texts, [limit.name]: text })}
            />
          ))}
        </Section>
      ))}
      {error && <ErrorBanner error={error} />}
      <div class="inline save">
        <Act scope="provision" kind="main" onClick={save} unless={unless}>
          Save {count > 0 && count}
        </Act>
        <span class="hint">Devices feel a change within a second.</span>
      </div>
      {change !== undefined && count > 0 && (
        <Commands
          command={['fleet', 'set', fleet.fleet_id, ...flagsOfChange(change)]}
          request={{ method: 'PATCH', path, body: change }}
        />
      )}
      {isAsked && (
        <Confirm title="Keep less" work={patch} onClose={() => setAsked(false)} onDone={onSaved}>
          {removedText(change ?? {})} are removed for good, within minutes.
        </Confirm>
      )}
    </form>
  );
}

/** Which records go with less retention. */
function removedText({ log_retention_seconds: seconds, log_bytes_max: bytes }: FleetChangeBody): string {
  const texts = [
    ...(seconds == null ? [] : [`records older than ${limitText(seconds, 'seconds')}`]),
    ...(bytes == null ? [] : [`the oldest records beyond ${limitText(bytes, 'bytes')}`]),
  ];
  const text = texts.length === 0 ? 'records beyond the default retention' : texts.join(', and ');
  return text[0]?.toUpperCase() + text.slice(1);
}

function NameField(props: { fleet: FleetDocument; name: string; onName: (name: string) => void }) {
  const created = (
    <>
      Created <Moment time={props.fleet.created_at} />
    </>
  );
  return <Field label="Name" value={props.name} maxLength={255} onText={props.onName} hint={created} />;
}
