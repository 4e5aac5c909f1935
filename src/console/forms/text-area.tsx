import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';

export interface TextAreaProps {
  label: string;
  value: string;
  hint?: ComponentChildren;
  /** Why its text is not taken; in place of the hint. */
  wrong?: string | undefined;
  placeholder?: string;
  rows?: number;
  onText: (text: string) => void;
}

/** Several lines of a form, which are no text of a language. */
export function TextArea({ label, value, hint, wrong, placeholder, rows = 3, onText }: TextAreaProps) {
  const id = useId();
  const said = wrong ?? hint;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <textarea
        id={id}
        class="area is-short"
        rows={rows}
        value={value}
        placeholder={placeholder}
        spellcheck={false}
        autocomplete="off"
        aria-invalid={wrong !== undefined}
        aria-describedby={said === undefined ? undefined : `${id}-hint`}
        onInput={({ currentTarget }) => onText(currentTarget.value)}
      />
      {said !== undefined && (
        <span id={`${id}-hint`} class={wrong === undefined ? 'hint' : 'wrong'}>
          {said}
        </span>
      )}
    </div>
  );
}
