import { useState } from 'preact/hooks';
import type { BroadcastMailDocument, BroadcastOutcomesDocument } from '../../../contract/broadcast.ts';
import { below } from '../../../contract/routes/path.ts';
import { Section } from '../../frame/frame.tsx';
import { Act } from '../../parts/act.tsx';
import { ErrorBanner } from '../../parts/banner.tsx';
import { ReadNote } from '../../parts/moment.tsx';
import { call } from '../../server/client.ts';
import { type Resource, useDocument } from '../../server/resource.ts';
import { useSubmit } from '../../server/submit.ts';
import { devicesText } from '../devices/selection.ts';
import { sendTo } from '../send/send-to.ts';
import { DeviceRows, type ReadRows, readRows } from './device-rows.tsx';
import { type CountedPart, countedParts } from './outcome-parts.ts';
import { lookSeconds, OutcomeBar } from './progress.tsx';
import {
  type BroadcastPath,
  type OfBroadcastProps,
  RefusedDevices,
  readRefusals,
  reasonsText,
} from './refusals.tsx';
import { whyOf } from './why.ts';

/** Devices that a mail is sent again to at once, as many as the configuration lets a list have. */
const againMax = 10_000;

const number = (count: number): string => count.toLocaleString('en');

/** Counts what became of the mails of a broadcast: again and again while something can still become of them. */
export function useOutcomes({
  path,
  broadcast,
}: Pick<OfBroadcastProps, 'path' | 'broadcast'>): Resource<BroadcastOutcomesDocument> {
  return useDocument(
    broadcast.queued === 0 ? undefined : below(path, '/outcomes', {}),
    lookSeconds(broadcast),
    undefined,
    (counts) => broadcast.ended_at !== null && counts.queued + counts.delayed === 0,
  );
}

/** What became of the mail, in numbers that are buttons, and the devices of the one that is pressed. */
export function Outcomes(props: OfBroadcastProps & { payload: string | undefined }) {
  const { broadcast } = props;
  const [chosen, setChosen] = useState<string | undefined>();
  const outcomes = useOutcomes(props);
  const parts = countedParts(broadcast, outcomes.value);
  const shown = parts.filter(({ count, isAlways }) => count > 0 || isAlways);
  // Who has not taken it is asked first.
  const current =
    shown.find(({ name }) => name === chosen) ??
    shown.find(({ count, tone }) => count > 0 && tone !== 'good') ??
    shown.find(({ count }) => count > 0);
  return (
    <Section
      title="What became of it"
      note={<ReadNote readAtMs={outcomes.readAtMs} failingSinceMs={outcomes.failingSinceMs} />}
    >
      <div class="stack">
        {/* biome-ignore lint/a11y/useSemanticElements: a fieldset has a legend among its figures */}
        <div class="figures is-choice" role="group" aria-label="What became of the mail">
          {shown.map(({ name, count, tone }) => (
            <button
              type="button"
              key={name}
              aria-pressed={name === current?.name}
              onClick={() => setChosen(name)}
            >
              <span class="soft">{name}</span>
              <span class={`figure ${count === 0 ? 'faint' : tone === 'bad' ? 'bad' : ''}`}>
                {number(count)}
              </span>
            </button>
          ))}
        </div>
        <OutcomeBar broadcast={broadcast} outcomes={outcomes.value} hasWords={false} />
        {outcomes.error && outcomes.value === undefined && (
          <ErrorBanner error={outcomes.error} onRetry={outcomes.refresh} />
        )}
        {current && current.count > 0 ? (
          <PartDevices key={current.name} {...props} part={current} onCount={outcomes.refresh} />
        ) : (
          <p class="empty">{current ? 'There are none now.' : 'No device has got it yet.'}</p>
        )}
      </div>
    </Section>
  );
}

interface PartProps extends OfBroadcastProps {
  payload: string | undefined;
  part: CountedPart;
  /** Counts the parts again. */
  onCount: () => void;
}

/** Reads the mails of some states. */
function readMails(path: BroadcastPath, states: CountedPart['states']): ReadRows<BroadcastMailDocument> {
  return (page, signal) =>
    call('GET', below(path, '/mails', {}), { query: { ...page, state: [...states] }, signal });
}

/** The devices of one part, each with why; a mail that failed can be sent to them again. */
function PartDevices({ fleetId, path, broadcast, payload, part, onCount }: PartProps) {
  const { name, states, count, tone } = part;
  const { error, isBusy, submit } = useSubmit();
  const isRefused = states.length === 0;
  const again = (): void =>
    void submit(async () => {
      const { signal } = new AbortController();
      const { items } = isRefused
        ? await readRows(readRefusals(path), againMax, signal)
        : await readRows(readMails(path, states), againMax, signal);
      const ids = items.flatMap((item) =>
        ('device' in item ? item.device : item.name) === null ? [] : item.device_id,
      );
      sendTo.value = { ids, mail: { name: broadcast.name, payload: payload ?? '{}' } };
    });
  // One that is not there would only be refused again.
  const { device_not_found: goneCount = 0 } = broadcast.reasons;
  const againCount = Math.min(isRefused ? count - goneCount : count, againMax);
  const unless = isBusy ? 'On its way' : payload === undefined ? 'Its payload is not read yet.' : undefined;
  return (
    <div>
      <div class="section-head">
        <h3>
          {name}: {isRefused ? reasonsText(broadcast) : devicesText(count)}
        </h3>
        {tone === 'bad' && againCount > 0 && (
          <div class="tools">
            <Act scope="mail" onClick={again} unless={unless}>
              Send again to {count === 1 ? 'this one' : `these ${number(againCount)}`}
            </Act>
          </div>
        )}
      </div>
      {error && <ErrorBanner error={error} />}
      {isRefused ? (
        <RefusedDevices fleetId={fleetId} path={path} broadcast={broadcast} />
      ) : (
        <DeviceRows<BroadcastMailDocument>
          fleetId={fleetId}
          path={`${path} ${states.join()}`}
          read={readMails(path, states)}
          count={count}
          onOtherCount={onCount}
          everySeconds={broadcast.ended_at === null || tone === 'waits' ? lookSeconds(broadcast) : undefined}
          placeOf={({ device_id, mail_id }) => ['devices', device_id, 'mail', mail_id]}
          aboutOf={({ device_id, behind }) =>
            behind === null ? undefined : ['devices', device_id, 'mail', behind.mail_id]
          }
          nameOf={({ device }) => device?.name ?? null}
          textOf={whyOf}
          command={`fleetpost broadcast mails ${broadcast.broadcast_id} ${states.map((state) => `--state ${state}`).join(' ')} --fleet ${fleetId}`}
        />
      )}
    </div>
  );
}
