import type { ComponentChildren, InputHTMLAttributes, TargetedInputEvent } from 'preact';
import { useId } from 'preact/hooks';

export interface FieldProps {
  label: string;
  name: string;
  hint?: ComponentChildren;
  class?: string;
  type?: 'text' | 'number';
  required?: boolean;
  min?: number;
  max?: number;
  maxLength?: number;
  pattern?: string;
  title?: string;
  placeholder?: string;
  defaultValue?: string;
  onInput?: (event: TargetedInputEvent<HTMLInputElement>) => void;
}

/** A line of a form: its name, the field, and what to write in it. */
export function Field({ label, hint, class: more = '', ...input }: FieldProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        class={`input ${more}`}
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
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
  name: string;
  options: readonly (readonly [string, string])[];
  value?: string;
}

/** A line of a form with one of a few. */
export function SelectField({ label, name, options, value }: SelectFieldProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} name={name} class="select" value={value}>
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
