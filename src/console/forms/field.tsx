import type { ComponentChildren, InputHTMLAttributes } from 'preact';
import { useId } from 'preact/hooks';

export interface FieldProps {
  label: string;
  /** Name of its text in a form that is sent. */
  name?: string;
  hint?: ComponentChildren;
  /** Why its text is not taken; in place of the hint. */
  wrong?: string | undefined;
  class?: string;
  type?: 'text' | 'number' | 'datetime-local' | 'password';
  autocomplete?: 'current-password';
  inputMode?: 'text' | 'numeric';
  required?: boolean;
  autofocus?: boolean;
  min?: number;
  max?: number;
  maxLength?: number;
  pattern?: string;
  title?: string;
  placeholder?: string;
  /** Off for what is no text of a language. */
  spellcheck?: boolean;
  isDisabled?: boolean;
  defaultValue?: string;
  value?: string;
  onText?: (text: string) => void;
}

/** A line of a form: its name, the field, and what to write in it. */
export function Field(props: FieldProps) {
  const { label, wrong, hint, class: more = '', isDisabled = false, onText, ...input } = props;
  const id = useId();
  const said = wrong ?? hint;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        class={`input ${more}`}
        aria-describedby={said === undefined ? undefined : `${id}-hint`}
        aria-invalid={wrong !== undefined}
        autocomplete="off"
        disabled={isDisabled}
        onInput={({ currentTarget }) => onText?.(currentTarget.value)}
        {...(input as InputHTMLAttributes<HTMLInputElement>)}
      />
      {said !== undefined && (
        <span id={`${id}-hint`} class={wrong === undefined ? 'hint' : 'wrong'}>
          {said}
        </span>
      )}
    </div>
  );
}

export interface SelectFieldProps {
  label: string;
  name?: string;
  options: readonly (readonly [string, string])[];
  /** First choice in a form that is sent. A `value` would be set again whenever the form is drawn. */
  defaultValue?: string;
  value?: string;
  onChange?: (value: string) => void;
}

/** A line of a form with one of a few. */
export function SelectField({ label, name, options, defaultValue, value, onChange }: SelectFieldProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select
        id={id}
        name={name}
        class="select"
        value={value}
        onChange={({ currentTarget }) => onChange?.(currentTarget.value)}
      >
        {options.map(([one, text]) => (
          <option key={one} value={one} selected={one === defaultValue}>
            {text}
          </option>
        ))}
      </select>
    </div>
  );
}

/** The texts of a form that is sent, without spaces around them. */
export function formTexts(event: SubmitEvent): (name: string) => string {
  event.preventDefault();
  const form = new FormData(event.currentTarget as HTMLFormElement);
  return (name) => String(form.get(name) ?? '').trim();
}
