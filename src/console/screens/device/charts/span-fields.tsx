import { exactText } from '../../../server/clock.ts';

export interface SpanFieldsProps {
  span: { fromMs: number; toMs: number };
  onChange: (fromMs: number, toMs: number) => void;
}

/** A time as its field has it: to the second, in the time zone of the reader. */
function fieldText(ms: number): string {
  return exactText(ms).slice(0, 19).replace(' ', 'T');
}

/** From when to when, typed. A span that ends before it begins is not taken. */
export function SpanFields({ span: { fromMs, toMs }, onChange }: SpanFieldsProps) {
  const field = (label: string, ms: number, take: (ms: number) => [number, number]) => (
    <label class="inline small soft">
      {label}{' '}
      <input
        class="input"
        type="datetime-local"
        step="1"
        value={fieldText(ms)}
        onChange={({ currentTarget }) => {
          const [from, to] = take(Date.parse(currentTarget.value));
          if (from < to) onChange(from, to);
          else currentTarget.value = fieldText(ms);
        }}
      />
    </label>
  );
  return (
    <div class="inline span-fields">
      {field('From', fromMs, (ms) => [ms, toMs])}
      {field('To', toMs, (ms) => [fromMs, ms])}
      <span class="small faint">{exactText(toMs).split(' ').at(-1)}</span>
    </div>
  );
}
