import { useRef } from 'preact/hooks';

export interface SelectionProps {
  /** Keys of the rows on this page, from the top. */
  keys: readonly string[];
  selected: ReadonlySet<string>;
  onSelected: (selected: ReadonlySet<string>) => void;
}

/** The selection after a click on a row; with `from`, all rows from that one on take its new state. */
export function toggled(
  { keys, selected }: Pick<SelectionProps, 'keys' | 'selected'>,
  at: number,
  from = at,
): ReadonlySet<string> {
  const next = new Set(selected);
  const isOn = !selected.has(keys[at] ?? '');
  for (const key of keys.slice(Math.min(from, at), Math.max(from, at) + 1)) {
    if (isOn) next.add(key);
    else next.delete(key);
  }
  return next;
}

/** Toggles a row by its box; with Shift all from the last one. */
export function useToggle(props: SelectionProps): (at: number, withShift: boolean) => void {
  const clicked = useRef<number | undefined>(undefined);
  return (at, withShift) => {
    props.onSelected(toggled(props, at, withShift ? clicked.current : undefined));
    clicked.current = at;
  };
}

/** The box in the head of a table. */
export function SelectPage({ keys, selected, onSelected }: SelectionProps) {
  const isEach = keys.length > 0 && keys.every((key) => selected.has(key));
  return (
    <th class="check">
      <label class="tick">
        <input
          type="checkbox"
          aria-label="Select all on this page"
          checked={isEach}
          onChange={() => onSelected(new Set(isEach ? [] : keys))}
        />
      </label>
    </th>
  );
}

export interface SelectRowProps {
  label: string;
  isSelected: boolean;
  onToggle: (withShift: boolean) => void;
}

/** The box of a row. */
export function SelectRow({ label, isSelected, onToggle }: SelectRowProps) {
  return (
    <td class="check">
      <label class="tick">
        <input
          type="checkbox"
          aria-label={`Select ${label}`}
          checked={isSelected}
          onClick={({ shiftKey }) => onToggle(shiftKey)}
        />
      </label>
    </td>
  );
}
