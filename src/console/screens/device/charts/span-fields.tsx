import { useEffect, useId, useState } from 'preact/hooks';
import { exactText, serverNow } from '../../../server/clock.ts';
import { fieldText, takenTimes, timeTyped } from './chart-span.ts';

export interface SpanFieldsProps {
  span: { fromMs: number; toMs: number };
  onChange: (fromMs: number, toMs: number) => void;
}

type End = 'from' | 'to';
const labels: Readonly<Record<End, string>> = { from: 'From', to: 'To' };

/** What was typed as a span, or what is wrong with which field. */
function spanTyped(from: string, to: string, nowMs: number): [number, number] | { end: End; msg: string } {
  const [fromMs, toMs] = [timeTyped(from, nowMs, false), timeTyped(to, nowMs, true)];
  if (fromMs === undefined) return { end: 'from', msg: `From is no time. It can be ${takenTimes}.` };
  if (toMs === undefined) return { end: 'to', msg: `To is no time. It can be ${takenTimes}.` };
  if (fromMs >= nowMs) return { end: 'from', msg: 'From is to come yet.' };
  if (fromMs >= toMs) return { end: 'to', msg: 'To is not after From.' };
  return [fromMs, toMs];
}

/**
 * From when to when, as text: the browser's own field has the clock of its language, which is not that of the charts, and
 * takes each key for another time.
 */
export function SpanFields({ span: { fromMs, toMs }, onChange }: SpanFieldsProps) {
  const shown = { from: fieldText(fromMs), to: fieldText(toMs) };
  const [texts, setTexts] = useState(shown);
  const [wrong, setWrong] = useState<{ end: End; msg: string }>();
  const id = useId();
  // Drawn over, or Back
  useEffect(() => {
    setTexts(shown);
    setWrong(undefined);
  }, [fromMs, toMs]);
  const onSubmit = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const typed = spanTyped(texts.from, texts.to, serverNow());
    if (Array.isArray(typed)) {
      setTexts({ from: fieldText(typed[0]), to: fieldText(typed[1]) });
      setWrong(undefined);
      onChange(...typed);
    } else {
      setWrong(typed);
      (form.elements.namedItem(typed.end) as HTMLInputElement | null)?.focus();
    }
  };
  const field = (end: End) => (
    <label class="inline small soft">
      {labels[end]}{' '}
      <input
        class="input"
        name={end}
        value={texts[end]}
        onInput={({ currentTarget }) => setTexts({ ...texts, [end]: currentTarget.value })}
        maxLength={40}
        autocomplete="off"
        spellcheck={false}
        title={takenTimes}
        aria-invalid={wrong?.end === end}
        aria-describedby={wrong?.end === end ? id : undefined}
      />
    </label>
  );
  return (
    <form class="inline span-fields" noValidate onSubmit={onSubmit}>
      {field('from')}
      {field('to')}
      <button type="submit" class="button">
        Show
      </button>
      <span class="small faint">{exactText(toMs).split(' ').at(-1)}</span>
      <p id={id} class="wrong" role="alert">
        {wrong?.msg}
      </p>
    </form>
  );
}
