import { go, href } from '../page/router.ts';

export interface FilterSelectProps {
  label: string;
  value: string;
  options: readonly (readonly [string, string])[];
  onChange: (value: string) => void;
}

/** A filter that is one of a few. */
export function FilterSelect({ label, value, options, onChange }: FilterSelectProps) {
  return (
    <select
      class="select"
      aria-label={label}
      value={value}
      onChange={({ currentTarget }) => onChange(currentTarget.value)}
    >
      {options.map(([one, text]) => (
        <option key={one} value={one}>
          {text}
        </option>
      ))}
    </select>
  );
}

export interface FilterTextProps {
  label: string;
  value: string;
  lengthMax: number;
  isMono?: boolean;
  onChange: (text: string) => void;
}

/** A filter that is typed; it holds once the field is left or Enter pressed. */
export function FilterText({ label, value, lengthMax, isMono = false, onChange }: FilterTextProps) {
  return (
    <input
      class={isMono ? 'input mono' : 'input'}
      aria-label={label}
      placeholder={label}
      value={value}
      maxLength={lengthMax}
      spellcheck={false}
      onChange={({ currentTarget }) => onChange(currentTarget.value)}
    />
  );
}

/** Spans up to now that the filter `since` of a list has. */
export const spans = [
  ['', 'of all times'],
  ['1h', 'of the last hour'],
  ['1d', 'of the last day'],
  ['7d', 'of the last 7 days'],
] as const;

/** Binds a filter of a list to the address, which is its state: another value begins the list anew. */
export function addressFilter(place: readonly string[], parameters: URLSearchParams, name: string) {
  return {
    value: parameters.get(name) ?? '',
    onChange: (value: string): void => {
      const { after: _, ...others } = Object.fromEntries(parameters);
      go(href(place, { ...others, [name]: value.trim() }), { replace: true });
    },
  };
}
