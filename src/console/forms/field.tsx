import type { ComponentChildren, InputHTMLAttributes } from 'preact';
import { useId } from 'preact/hooks';

export interface FieldProps {
  label: string;
  /** Name of its text in a form that is sent. */
  name?: string;
  hint?: ComponentChildren;
  class?: string;
  type?: 'text' | 'number' | 'datetime-local' | 'password';
  autocomplete?: 'current-password';
  required?: boolean;
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
  const { label, hint, class: more = '', isDisabled = false, onText, ...input } = props;
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        class={`input ${more}`}
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
        autocomplete="off"
        disabled={isDisabled}
        onInput={({ currentTarget }) => onText?.(currentTarget.value)}
        {...(input as InputHTMLAttributes<HTMLInputElement>)}
      />
      {hint !== undefined && (
        <span id={`${id}-hint`} class="hint">
          {hint}
        </span>
      )}
    </div>
  );
}

export interface SelectFieldProps {
  label: string;
  name?: string;
  options: readonly (readonly [string, string])[];
  value?: string;
  onChange?: (value: string) => void;
}

/** A line of a form with one of a few. */
export function SelectField({ label, name, options, value, onChange }: SelectFieldProps) {
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
          <option key={one} value={one}>
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

/** The words of a field that are parted by commas; undefined: there is none. */
export function wordsIn(text: string): string[] | undefined {
  const words = text.split(/\s*,\s*/).filter(Boolean);
  return words.length === 0 ? undefined : words;
}
