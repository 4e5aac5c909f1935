import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { pathTo } from '../../../contract/routes/path.ts';
import { Field } from '../../forms/field.tsx';
import { Choice } from '../../parts/choice.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { call } from '../../server/client.ts';
import { pathOfDevice } from '../../server/device-path.ts';
import { useDocument, useResource } from '../../server/resource.ts';
import { useSuggestions } from '../devices/query-bar.tsx';
import { type Draft, draftPayload } from './draft.ts';
import { PayloadFields } from './payload-fields.tsx';
import { formFieldsOf } from './schema-form.ts';

export interface MailFormProps {
  fleetId: string;
  draft: Draft;
  /** True if the draft says who gets it. */
  isToOpen: boolean;
  /** Who gets it, of a broadcast. */
  recipients: ComponentChildren;
  /** Errors of the last attempt, by the path in the payload. */
  errors: readonly { path: string; msg: string }[];
  onChange: (changed: Partial<Draft>) => void;
  onSend: () => void;
}

/** The fields of a mail: to whom, which, and its payload by its schema or as JSON. */
export function MailForm(props: MailFormProps) {
  const { fleetId, draft, isToOpen, recipients, errors, onChange, onSend } = props;
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) onSend();
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: a shortcut for the button below
    <div class="stack" onKeyDown={onKey}>
      {isToOpen && <To fleetId={fleetId} to={draft.to} onChange={onChange} />}
      {recipients}
      <NameAndPayload fleetId={fleetId} draft={draft} errors={errors} onChange={onChange} />
    </div>
  );
}

function To(props: { fleetId: string; to: string; onChange: MailFormProps['onChange'] }) {
  const { fleetId, to, onChange } = props;
  const deviceId = to.trim();
  const isId = /^[A-Za-z0-9]{10}$/.test(deviceId);
  const path = pathOfDevice(fleetId, deviceId);
  const device = useDocument(isId ? path : undefined);
  const { value, error } = device;
  const suggestions = useSuggestions(fleetId, to, to !== '');
  return (
    <div class="field">
      <label for="mail-to">To</label>
      <input
        id="mail-to"
        class="input mono"
        list="mail-to-filters"
        value={to}
        maxLength={1_000}
        placeholder="PUMP07HALL, or tag:hall state:active"
        spellcheck={false}
        autocomplete="off"
        onInput={({ currentTarget }) => onChange({ to: currentTarget.value, pauseAfter: '' })}
      />
      <datalist id="mail-to-filters">
        {suggestions.map(({ text, note }) => (
          <option key={text} value={text}>
            {note}
          </option>
        ))}
      </datalist>
      <span class={`hint is-line ${error ? 'wrong' : ''}`} role="status">
        {value && (
          <>
            {value.enabled ? value.state : 'disabled'}, {value.mailbox_size} in its mailbox{' '}
            <Untrusted text={value.name} lengthMax={60} />
          </>
        )}
        {error?.message ?? (!value && 'An id, or filters as in Devices, or: all devices')}
      </span>
    </div>
  );
}

/** The zone of the reader, which the field takes times in. */
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

function Settings({ draft, onChange }: Pick<MailFormProps, 'draft' | 'onChange'>) {
  return (
    <>
      <div class="pair">
        <Field
          label="Lives for"
          placeholder="the fleet’s span"
          value={draft.ttl}
          onText={(ttl) => onChange({ ttl })}
          hint="like 90min, 12h, 7d"
        />
        <Field
          label="Deliver at"
          type="datetime-local"
          value={draft.deliverAt}
          onText={(deliverAt) => onChange({ deliverAt })}
          hint={`${zone}; empty: now`}
        />
      </div>
      <Field
        label="Replaces what waits of"
        placeholder="nothing"
        value={draft.replaceKey}
        maxLength={64}
        spellcheck={false}
        onText={(replaceKey) => onChange({ replaceKey: replaceKey.trim() })}
        hint="a key of yours, like set-point; what was fetched stays"
      />
    </>
  );
}

function nameHint(name: string, hasNoSchema: boolean): string | false {
  if (name === '') return 'Its name: one with a schema is offered as a form';
  return hasNoSchema && 'It has no schema: any payload is taken.';
}

/** The payload is last: its schema, once it is read, changes how much room it takes. */
function NameAndPayload(props: Pick<MailFormProps, 'fleetId' | 'draft' | 'errors' | 'onChange'>) {
  const { fleetId, draft, errors, onChange } = props;
  const schemas = useDocument(pathTo('/fleets/{fleet_id}/schemas', { fleet_id: fleetId }));
  const names = schemas.value?.items.filter(({ kind }) => kind === 'mail').map(({ name }) => name) ?? [];
  const hasSchema = names.includes(draft.name);
  const path = pathTo('/fleets/{fleet_id}/schemas/{kind}/{name}', {
    fleet_id: fleetId,
    kind: 'mail',
    name: draft.name,
  });
  const schema = useResource(
    hasSchema ? path : undefined,
    async (signal) => formFieldsOf(await call('GET', path, { signal })) ?? [],
  );
  const fields = hasSchema ? (schema.value ?? []) : [];
  const isRead = schemas.value !== undefined && (!hasSchema || (schema.value ?? schema.error) !== undefined);
  // Another schema begins another form
  useEffect(() => {
    if (!isRead) return;
    // What was written as JSON is not thrown away.
    const isForm = fields.length > 0 && (draft.mode === 'form' || draft.json === '{}');
    onChange({ fields, mode: isForm ? 'form' : 'json' });
  }, [draft.name, isRead, schema.value]);
  const toJson = (): void => onChange({ mode: 'json', json: draftPayload(draft) ?? draft.json });
  return (
    <>
      <div class="field">
        <label for="mail-name">Mail</label>
        <input
          id="mail-name"
          class="input"
          list="mail-names"
          value={draft.name}
          maxLength={255}
          spellcheck={false}
          autocomplete="off"
          onInput={({ currentTarget }) => onChange({ name: currentTarget.value.trim() })}
        />
        <datalist id="mail-names">
          {names.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <span class="hint is-line" role="status">
          {nameHint(draft.name, schemas.value !== undefined && !hasSchema)}
        </span>
      </div>
      <Settings draft={draft} onChange={onChange} />
      <div class="field">
        <div class="section-head">
          <span class="label">Payload</span>
          {fields.length > 0 && (
            <div class="tools">
              <Choice
                label="How the payload is written"
                value={draft.mode}
                options={[
                  ['form', 'Form'],
                  ['json', 'JSON'],
                ]}
                onChange={(mode) => (mode === 'json' ? toJson() : onChange({ mode }))}
              />
            </div>
          )}
        </div>
        <PayloadFields draft={draft} errors={errors} onChange={onChange} />
      </div>
    </>
  );
}
