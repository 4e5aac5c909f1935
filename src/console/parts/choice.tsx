export interface ChoiceProps<T extends string> {
  label: string;
  value: T;
  options: readonly (readonly [T, string])[];
  onChange: (value: T) => void;
}

/** One of a few, all of them seen. */
export function Choice<T extends string>({ label, value, options, onChange }: ChoiceProps<T>) {
  return (
    <fieldset class="tabs">
      <legend class="visually-hidden">{label}</legend>
      {options.map(([one, text]) => (
        <button type="button" key={one} aria-pressed={one === value} onClick={() => onChange(one)}>
          {text}
        </button>
      ))}
    </fieldset>
  );
}
