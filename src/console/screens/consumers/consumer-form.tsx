import { useState } from 'preact/hooks';
import type { ConsumerBody, ConsumerDocument } from '../../../contract/consumer.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { Field, SelectField } from '../../forms/field.tsx';
import { MakeDrawer } from '../../forms/make-drawer.tsx';
import { Paste } from '../../forms/paste.tsx';
import { wordsIn } from '../../forms/words.ts';
import { href } from '../../page/router.ts';
import { Banner } from '../../parts/banner.tsx';
import { call } from '../../server/client.ts';
import { parseSpan, serverNow } from '../../server/clock.ts';
import { filterDraftOf } from './filter-draft.ts';
import { RecordFilter } from './record-filter.tsx';

export interface ConsumerFormProps {
  fleetId: string;
  /** Absent: a new one. */
  known?: ConsumerDocument;
  onDone: () => void;
  onClose: () => void;
}

const starts = [
  ['earliest', 'with the oldest record in the log'],
  ['7d', 'with the records of the last 7 days'],
  ['1d', 'with the records of the last day'],
  ['1h', 'with the records of the last hour'],
  ['latest', 'with the next record'],
] as const;

/** A word of the API, or the time of a span ago. */
function startOf(text: string): NonNullable<ConsumerBody['start']> {
  const spanMs = parseSpan(text);
  if (spanMs !== undefined) return new Date(serverNow() - spanMs).toISOString();
  return text === 'latest' ? 'latest' : 'earliest';
}

/** Makes a consumer, or changes one. */
export function ConsumerForm({ fleetId, known, onDone, onClose }: ConsumerFormProps) {
  const isNew = known === undefined;
  const [name, setName] = useState(known?.name ?? '');
  const [filter, setFilter] = useState(() => filterDraftOf(known ?? {}));
  const [lease, setLease] = useState(String(known?.lease_seconds ?? 30));
  const isName = /^[A-Za-z0-9_-]{1,64}$/.test(name);
  const isLease = /^\d{1,4}$/.test(lease) && Number(lease) >= 1 && Number(lease) <= 3_600;
  return (
    <MakeDrawer
      title={isNew ? 'New consumer' : 'Change the consumer'}
      verb={isNew ? 'Make the consumer' : 'Save'}
      isIncomplete={!isName || !isLease}
      lack={isName ? 'Its lease is not right yet' : 'It needs a name'}
      onClose={onClose}
      make={async (text) => {
        const path = pathTo('/fleets/{fleet_id}/consumers/{name}', { fleet_id: fleetId, name });
        const body: ConsumerBody = {
          kinds: [...filter.kinds],
          schemas: wordsIn(filter.schemas) ?? [],
          lease_seconds: Number(lease),
          ...(isNew && { start: startOf(text('start')) }),
        };
        const made = await call('PUT', path, { body });
        onDone();
        return made;
      }}
      shown={(made) => <Declared fleetId={fleetId} name={made.name} isNew={isNew} />}
    >
      {isNew && (
        <Field
          label="Name"
          required
          maxLength={64}
          spellcheck={false}
          value={name}
          wrong={name === '' || isName ? undefined : '1 to 64 letters, digits, _ and -'}
          onText={setName}
        />
      )}
      <RecordFilter draft={filter} onChange={setFilter} />
      {isNew && <SelectField label="Begins" name="start" defaultValue="earliest" options={starts} />}
      <Field
        label="Lease of a batch, in seconds"
        maxLength={4}
        value={lease}
        hint="A batch that is not acknowledged by then is given out again"
        wrong={isLease ? undefined : 'A whole number from 1 to 3,600'}
        onText={(text) => setLease(text.trim())}
      />
    </MakeDrawer>
  );
}

/** Says that it is there, and of a new one how its first batch is had. */
function Declared({ fleetId, name, isNew }: { fleetId: string; name: string; isNew: boolean }) {
  return (
    <>
      <Banner kind="good">
        {isNew ? 'Made' : 'Saved'}{' '}
        <a class="link" href={href([fleetId, 'consumers', name])}>
          {name}
        </a>
        .
      </Banner>
      {isNew && (
        <div class="field">
          <span>Its first batch, for a program or by hand:</span>
          <Paste
            text={`fleetpost consumer fetch ${name} --fleet ${fleetId}`}
            label="Copy the command that fetches a batch"
          />
        </div>
      )}
    </>
  );
}
