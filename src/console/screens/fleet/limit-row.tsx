import { useId } from 'preact/hooks';
import type { FleetDocument } from '../../../contract/fleet.ts';
import { type Limit, limitText, parseLimit, unitText } from './limits.ts';

export interface LimitRowProps {
  limit: Limit;
  fleet: FleetDocument;
  text: string;
  /** The server's words, when it refused the value. */
  wrong: string | undefined;
  onText: (text: string) => void;
}

/** One limit: whose it is, and a field with what holds now. */
export function LimitRow({ limit, fleet, text, wrong, onText }: LimitRowProps) {
  const { name, title, unit, hint } = limit;
  const id = useId();
  const isOwn = fleet.own.includes(name);
  const current = fleet[name];
  const shown =
    current === null || isUnlimited(limit, current)
      ? 'no limit'
      : `${limitText(current, unit)} ${unitIfPlain(current, limit)}`;
  const parsed = parseLimit(text, unit);
  const problem = parsed === undefined ? problemText(limit) : wrong;
  return (
    <div class="limit">
      <div>
        <label class="strong" for={id}>
          {title}
        </label>
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
        {problem !== undefined && <p class="wrong">{problem}</p>}
      </div>
      <span class={isOwn ? 'strong' : 'hint'}>{isOwn ? 'its own' : 'default'}</span>
      <div class="limit-field">
        <input
          id={id}
          class="input"
          value={text}
          placeholder={isOwn ? 'the default' : shown}
          maxLength={24}
          spellcheck={false}
          aria-invalid={problem !== undefined}
          aria-describedby={`${id}-hint`}
          onInput={({ currentTarget }) => onText(currentTarget.value)}
        />
        {text !== '' && (
          <button
            type="button"
            class="button is-plain"
            title="The default of the configuration"
            onClick={() => onText('')}
          >
            Clear
            <span class="visually-hidden">{title}</span>
          </button>
        )}
      </div>
    </div>
  );
}

/** True for a rate of 0, which is no limit. */
function isUnlimited({ unit }: Limit, value: number): boolean {
  return value === 0 && unit.endsWith('per second');
}

/** The unit, where the text has none. */
function unitIfPlain(value: number, { unit }: Limit): string {
  return /[a-z]/i.test(limitText(value, unit))
    ? unit.endsWith('per second')
      ? 'per s'
      : ''
    : unitText(unit);
}

function problemText({ unit }: Limit): string {
  if (unit === 'seconds') return 'A number of seconds, or a span like 90 s, 12 h or 7 d.';
  return unit.startsWith('bytes') ? 'A number of bytes, or a size like 64 KiB or 10 GiB.' : 'A whole number.';
}
