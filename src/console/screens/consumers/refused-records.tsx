import { useState } from 'preact/hooks';
import type { RefusedRecordDocument } from '../../../contract/forwarder.ts';
import { below, type Path } from '../../../contract/routes/path.ts';
import { Confirm } from '../../forms/confirm.tsx';
import { Section } from '../../frame/frame.tsx';
import { Act } from '../../parts/act.tsx';
import { ErrorBanner, Loaded } from '../../parts/banner.tsx';
import { DeviceLink } from '../../parts/device.tsx';
import { Moment } from '../../parts/moment.tsx';
import { Payload } from '../../parts/payload.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { call } from '../../server/client.ts';
import { useDocument, useResource } from '../../server/resource.ts';
import { useSubmit } from '../../server/submit.ts';

export interface RefusedRecordsProps {
  fleetId: string;
  /** Path of the forwarder in the API. */
  path: Path<'/fleets/{fleet_id}/forwarders/{name}'>;
  count: number;
  onChanged: () => void;
}

const shownLetters = 100;

/** Records that the destination of a forwarder refused, with their payloads; all are replayed or dropped together. */
export function RefusedRecords({ fleetId, path, count, onChanged }: RefusedRecordsProps) {
  const [isAsked, setAsked] = useState(false);
  const { error, isBusy, submit } = useSubmit();
  // Their number stands for them: read again when it changes.
  const all = below(path, '/dead-letters', {});
  const letters = useResource(count === 0 ? undefined : `${all}?${count}`, (signal) =>
    call('GET', all, { query: { limit: shownLetters }, signal }),
  );
  const replay = (): void => void submit(() => call('POST', below(all, '/replay', {}))).then(onChanged);
  return (
    <Section
      title="Dead letters"
      tools={
        count > 0 && (
          <>
            <Act scope="admin" kind="bad" onClick={() => setAsked(true)}>
              Drop all
            </Act>
            <Act scope="admin" onClick={replay} unless={isBusy ? 'On its way' : undefined}>
              Replay all
            </Act>
          </>
        )
      }
    >
      {error && <ErrorBanner error={error} />}
      {count === 0 ? (
        <p class="empty">None: its destination has refused no record.</p>
      ) : (
        <Loaded resource={letters}>
          {({ items, next }) => (
            <>
              <ul class="list">
                {items.map((letter) => (
                  <RefusedRecord key={letter.record_id} fleetId={fleetId} path={path} letter={letter} />
                ))}
              </ul>
              {next !== null && <p class="hint below">The first {shownLetters}, and further ones.</p>}
            </>
          )}
        </Loaded>
      )}
      {isAsked && (
        <Confirm
          title="Drop all dead letters"
          count={count}
          work={() => call('DELETE', all)}
          onClose={() => setAsked(false)}
          onDone={onChanged}
        >
          The destination will not get these {count.toLocaleString('en')} records. They stay in the log.
        </Confirm>
      )}
    </Section>
  );
}

interface RefusedRecordProps extends Pick<RefusedRecordsProps, 'fleetId' | 'path'> {
  letter: RefusedRecordDocument;
}

function RefusedRecord({ fleetId, path, letter }: RefusedRecordProps) {
  const { record_id, device_id, schema, reason, failed_at, replayed } = letter;
  const [isOpen, setOpen] = useState(false);
  const own = below(path, '/dead-letters/{record_id}', { record_id });
  const shown = useDocument(isOpen ? own : undefined);
  return (
    <li>
      <div class="row">
        <span class="when small faint">
          <Moment time={failed_at} />
        </span>
        <DeviceLink fleetId={fleetId} id={device_id} />
        <button type="button" class="record" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          <span class="strong cut record-name">
            <Untrusted text={schema} lengthMax={80} />
          </span>
          <span class="cut grow bad small">
            <Untrusted text={replayed ? `queued again; ${reason}` : reason} lengthMax={200} />
          </span>
        </button>
      </div>
      {isOpen && <Loaded resource={shown}>{({ payload }) => <Payload value={payload} />}</Loaded>}
    </li>
  );
}
