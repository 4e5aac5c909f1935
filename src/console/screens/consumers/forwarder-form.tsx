import { useState } from 'preact/hooks';
import {
  anyDestination,
  destinationForm,
  destinationText,
  destinationTypes,
} from '../../../contract/destination-text.ts';
import type { ForwarderDocument } from '../../../contract/forwarder.ts';
import { type AnswerAt, pathTo } from '../../../contract/routes/path.ts';
import { Field, SelectField } from '../../forms/field.tsx';
import { MakeDrawer } from '../../forms/make-drawer.tsx';
import { ShownOnce } from '../../forms/shown-once.tsx';
import { TextArea } from '../../forms/text-area.tsx';
import { href } from '../../page/router.ts';
import { Banner } from '../../parts/banner.tsx';
import { Choice } from '../../parts/choice.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { call } from '../../server/client.ts';
import {
  type DraftFaults,
  faultsOf,
  forwarderBodyOf,
  forwarderDraftOf,
  isComplete,
  type SecretMember,
  type WrittenForwarder,
} from './forwarder-draft.ts';
import { RecordFilter } from './record-filter.tsx';

export interface ForwarderFormProps {
  fleetId: string;
  /** Absent: a new one. */
  known?: ForwarderDocument;
  onDone: () => void;
  onClose: () => void;
}

interface PartProps {
  draft: WrittenForwarder;
  faults: DraftFaults;
  set: (change: Partial<WrittenForwarder>) => void;
}

/** Makes a forwarder, or changes one; what the server would refuse is said as it is written. */
export function ForwarderForm({ fleetId, known, onDone, onClose }: ForwarderFormProps) {
  const [draft, setDraft] = useState(() => forwarderDraftOf(known));
  const isNew = known === undefined;
  const faults = faultsOf(draft);
  const set = (change: Partial<WrittenForwarder>): void => setDraft((before) => ({ ...before, ...change }));
  const isWrong = Object.keys(faults).length > 0;
  const part = { draft, faults, set };
  return (
    <MakeDrawer
      title={isNew ? 'New forwarder' : 'Change the forwarder'}
      verb={isNew ? 'Make the forwarder' : 'Save'}
      isIncomplete={!isComplete(draft) || isWrong}
      lack={isWrong ? 'A field above is not right yet' : 'It needs a name and a destination'}
      secret="signing secret"
      hasSecret={({ secret }) => secret !== null}
      onClose={onClose}
      make={async () => {
        const path = pathTo('/fleets/{fleet_id}/forwarders/{name}', { fleet_id: fleetId, name: draft.name });
        const made = await call('PUT', path, { body: forwarderBodyOf(draft, isNew) });
        onDone();
        return made;
      }}
      shown={(made) => <Declared fleetId={fleetId} made={made} />}
    >
      {isNew && (
        <>
          <Field
            label="Name"
            required
            maxLength={255}
            spellcheck={false}
            value={draft.name}
            wrong={faults.name}
            onText={(name) => set({ name })}
          />
          <div class="field">
            <span class="label">Sends to {anyDestination}</span>
            <Choice
              label="Kind"
              value={draft.type}
              options={destinationTypes.map((type) => [type, destinationForm(type).title] as const)}
              onChange={(type) => set({ type })}
            />
          </div>
        </>
      )}
      <DestinationFields {...part} />
      <RecordFilter draft={draft} onChange={set} />
      {isNew && (
        <SelectField
          label="Begins"
          value={draft.start}
          options={[
            ['latest', 'with the next record'],
            ['earliest', 'with the oldest record in the log'],
          ]}
          onChange={(start) => set({ start: start as WrittenForwarder['start'] })}
        />
      )}
      <SecretFields {...part} known={known} />
      <BatchFields {...part} />
    </MakeDrawer>
  );
}

interface DeclaredProps {
  fleetId: string;
  made: AnswerAt<'PUT', '/fleets/{fleet_id}/forwarders/{name}'>;
}

/** What came of it: where it sends to, that it cannot now, and the secret that was made for it. */
function Declared({ fleetId, made }: DeclaredProps) {
  const { name, secret, warning } = made;
  return (
    <>
      <Banner kind="good">
        <a class="link" href={href([fleetId, 'forwarders', name])}>
          {name}
        </a>{' '}
        forwards to <Untrusted text={destinationText(made)} lengthMax={300} />.
      </Banner>
      {warning !== null && (
        <Banner kind="warn">
          It takes no connections now: <Untrusted text={warning} lengthMax={500} />. The forwarder goes on
          trying.
        </Banner>
      )}
      {secret !== null && <ShownOnce what="signing secret" text={secret} isUsedByServer />}
    </>
  );
}

function DestinationFields({ draft, faults, set }: PartProps) {
  return (
    <>
      {destinationForm(draft.type).fields.map(({ member, label, placeholder, hint }) => (
        <Field
          key={member}
          label={label}
          class="mono"
          maxLength={2_048}
          spellcheck={false}
          placeholder={placeholder}
          value={draft.destination[member]}
          hint={hint}
          wrong={faults[member]}
          onText={(text) => set({ destination: { ...draft.destination, [member]: text } })}
        />
      ))}
      {draft.type === 'nats' && (
        <label class="choice is-wide">
          <input
            type="checkbox"
            checked={draft.isAtMostOnce}
            onChange={() => set({ isAtMostOnce: !draft.isAtMostOnce })}
          />
          <span>Without JetStream: NATS may lose records</span>
        </label>
      )}
    </>
  );
}

/** Secrets of a forwarder: what it has is named, and stays unless something else is written. */
function SecretFields({ draft, faults, set, known }: PartProps & { known: ForwarderDocument | undefined }) {
  const { secrets } = destinationForm(draft.type);
  const had: readonly (readonly [SecretMember, string])[] = [
    ['headers', known?.headers.join(', ') ?? ''],
    ['credentials', known?.credentials ?? ''],
    ['tls', known?.tls.join(', ') ?? ''],
  ];
  const toggle = (member: SecretMember): void => {
    const isThere = draft.removed.includes(member);
    set({ removed: isThere ? draft.removed.filter((one) => one !== member) : [...draft.removed, member] });
  };
  return (
    <details>
      <summary>Secrets and certificates</summary>
      <div class="stack">
        {had.map(
          ([member, what]) =>
            what !== '' && (
              <label key={member} class="choice is-wide">
                <input
                  type="checkbox"
                  checked={draft.removed.includes(member)}
                  onChange={() => toggle(member)}
                />
                <span>
                  Remove its {member} (<Untrusted text={what} lengthMax={200} />)
                </span>
              </label>
            ),
        )}
        {secrets === 'headers' ? (
          <TextArea
            label="Headers"
            value={draft.headers}
            placeholder="Authorization: Bearer …"
            hint="One a line, sent with each request; seen by nobody"
            wrong={faults.headers}
            onText={(headers) => set({ headers })}
          />
        ) : (
          <CredentialFields draft={draft} faults={faults} set={set} />
        )}
        <TextArea
          label="Certificates to trust"
          value={draft.ca}
          placeholder="-----BEGIN CERTIFICATE-----"
          hint="PEM, in place of the usual ones"
          wrong={faults.ca}
          onText={(ca) => set({ ca })}
        />
      </div>
    </details>
  );
}

function CredentialFields({ draft, faults, set }: PartProps) {
  return (
    <>
      <Field
        label="Token"
        class="mono"
        value={draft.token}
        wrong={faults.token}
        onText={(token) => set({ token })}
      />
      <div class="pair">
        <Field label="User" value={draft.user} wrong={faults.user} onText={(user) => set({ user })} />
        <Field
          label="Password"
          type="password"
          value={draft.password}
          onText={(password) => set({ password })}
        />
      </div>
      <TextArea
        label="Credentials file"
        value={draft.creds}
        hint="Its text, as NATS writes it"
        onText={(creds) => set({ creds })}
      />
    </>
  );
}

function BatchFields({ draft, faults, set }: PartProps) {
  const fields = [
    ['recordsMax', 'Records a batch, at most'],
    ['lingerMilliseconds', 'Milliseconds between batches of a shard, at least'],
    ['timeoutSeconds', 'Seconds that an attempt may take'],
  ] as const;
  return (
    <details>
      <summary>Batches</summary>
      <div class="stack">
        {fields.map(([member, label]) => (
          <Field
            key={member}
            label={label}
            value={draft[member]}
            wrong={faults[member]}
            maxLength={6}
            onText={(text) => set({ [member]: text.trim() })}
          />
        ))}
      </div>
    </details>
  );
}
