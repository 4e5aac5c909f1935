import { useState } from 'preact/hooks';
import type { FleetChangeBody, FleetDocument } from '../../../contract/fleet.ts';
import { Confirm } from '../../forms/confirm.tsx';
import { Section } from '../../frame.tsx';
import { Act } from '../../parts/act.tsx';
import { Banner, ErrorBanner } from '../../parts/banner.tsx';
import { Commands } from '../../parts/commands.tsx';
import { Moment } from '../../parts/moment.tsx';
import { call } from '../../server/client.ts';
import { useSubmit } from '../../server/submit.ts';
import { LimitRow } from './limit-row.tsx';
import { type Limit, type LimitName, limitGroups, limitText, parseLimit } from './limits.ts';

const limits = limitGroups.flatMap(([, group]) => group);

/** What was typed for each limit; an empty text stands for the configuration's. */
type Texts = Readonly<Record<LimitName, string>>;

function textsOf(fleet: FleetDocument): Texts {
  const own = (limit: Limit): string =>
    fleet.own.includes(limit.name) ? limitText(fleet[limit.name] ?? 0, limit.unit) : '';
  return Object.fromEntries(limits.map((limit) => [limit.name, own(limit)])) as Texts;
}

/** The members that were changed; undefined while one of them is no number. */
function changeOf(fleet: FleetDocument, name: string, texts: Texts): FleetChangeBody | undefined {
  const before = textsOf(fleet);
  const change: Record<string, string | number | null> = name === fleet.name ? {} : { name };
  for (const limit of limits) {
    if (texts[limit.name] === before[limit.name]) continue;
    const value = parseLimit(texts[limit.name], limit.unit);
    if (value === undefined) return undefined;
    change[limit.name] = value;
  }
  return change as FleetChangeBody;
}

/** Whether a change may remove records: less than before, or what the configuration says. */
function removesRecords(fleet: FleetDocument, change: FleetChangeBody): boolean {
  return limits.some(({ name, isRetention }) => {
    const [value, before] = [change[name], fleet[name]];
    if (!isRetention || value === undefined) return false;
    return value === null ? name === 'log_retention_seconds' : before === null || value < before;
  });
}

function flagsOf(change: FleetChangeBody): string[] {
  return Object.entries(change).flatMap(([key, value]) => [
    `--${key.replaceAll('_', '-')}`,
    value === null ? 'default' : String(value),
  ]);
}

/** The name and the limits of a fleet, changed together; each says whose it is. */
export function LimitForm({ fleet, onSaved }: { fleet: FleetDocument; onSaved: () => void }) {
  const [name, setName] = useState(fleet.name);
  const [texts, setTexts] = useState<Texts>(() => textsOf(fleet));
  const [isAsked, setAsked] = useState(false);
  const { error, isBusy, submit } = useSubmit();
  const change = changeOf(fleet, name, texts);
  const count = Object.keys(change ?? {}).length;
  const path = `/fleets/${fleet.fleet_id}`;
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
      <div class="field">
        <label for="fleet-name">Name</label>
        <input
          id="fleet-name"
          class="input"
          value={name}
          maxLength={255}
          onInput={({ currentTarget }) => setName(currentTarget.value)}
        />
        <span class="hint">
          Created <Moment time={fleet.created_at} />
        </span>
      </div>
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
          command={['fleet', 'set', fleet.fleet_id, ...flagsOf(change)]}
          request={{ method: 'PATCH', path, body: change }}
        />
      )}
      {isAsked && (
        <Confirm title="Keep less" work={patch} onClose={() => setAsked(false)} onDone={onSaved}>
          Records beyond the new retention are removed for good, within minutes.
        </Confirm>
      )}
      {fleet.own.length === 0 && <Banner>All limits are those of the server's configuration.</Banner>}
    </form>
  );
}
