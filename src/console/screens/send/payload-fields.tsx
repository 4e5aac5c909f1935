import { shownText, Untrusted } from '../../parts/untrusted.tsx';
import type { Draft } from './draft.ts';
import { type FormField, wrongValue } from './schema-form.ts';

export interface PayloadFieldsProps {
  draft: Draft;
  errors: readonly { path: string; msg: string }[];
  onChange: (changed: Partial<Draft>) => void;
}

/** The payload of a draft, in the fields of its schema or as JSON. */
export function PayloadFields({ draft, errors, onChange }: PayloadFieldsProps) {
  const { mode, fields, values, json } = draft;
  if (mode === 'json') {
    return (
      <textarea
        id="mail-json"
        class="area"
        aria-label="Payload as JSON"
        spellcheck={false}
        value={json}
        onInput={({ currentTarget }) => onChange({ json: currentTarget.value })}
      />
    );
  }
  return (
    <div class="stack">
      {fields.map((field) => (
        <Field
          key={field.name}
          field={field}
          value={values[field.name] ?? ''}
          wrong={
            wrongValue(field, values[field.name] ?? '') ??
            errors.find(({ path }) => path === `/${field.name}`)?.msg
          }
          onChange={(value) => onChange({ values: { ...values, [field.name]: value } })}
        />
      ))}
    </div>
  );
}

interface FieldProps {
  field: FormField;
  value: string;
  wrong: string | undefined;
  onChange: (value: string) => void;
}

function Field({ field, value, wrong, onChange }: FieldProps) {
  const { name, kind, hint, choices, isRequired } = field;
  const id = `payload-${name}`;
  const options = kind === 'boolean' ? ['true', 'false'] : choices;
  const isNumber = kind === 'number' || kind === 'integer';
  return (
    <div class="field">
      <label for={id}>
        <Untrusted text={name} lengthMax={60} /> <span class="hint">{shownText(hint)}</span>
      </label>
      {kind === 'boolean' || kind === 'choice' ? (
        <select
          id={id}
          class="select"
          value={value}
          onChange={({ currentTarget }) => onChange(currentTarget.value)}
        >
          <option value="">{isRequired ? 'choose…' : 'not set'}</option>
          {options.map((one) => (
            <option key={one} value={one}>
              {shownText(one)}
            </option>
          ))}
        </select>
      ) : (
        <input
          id={id}
          class="input"
          value={value}
          inputMode={isNumber ? 'decimal' : 'text'}
          aria-invalid={wrong !== undefined}
          autocomplete="off"
          onInput={({ currentTarget }) => onChange(currentTarget.value)}
        />
      )}
      {wrong !== undefined && <span class="wrong">{shownText(wrong)}</span>}
    </div>
  );
}
