import { Choice } from '../../../parts/choice.tsx';
import { Untrusted } from '../../../parts/untrusted.tsx';
import type { ActionText } from '../action-text.ts';
import type { ActionCheck } from './use-action-check.ts';

export interface FaultListProps {
  check: ActionCheck;
  text: ActionText;
  isReadOnly: boolean;
  onLine: (line: number, column: number) => void;
  onChange: (changed: Partial<ActionText>) => void;
}

const drawnFaults = 8;

/** Shows the result of the type check below the code; each fault leads to its line. */
export function FaultList({ check, text, isReadOnly, onLine, onChange }: FaultListProps) {
  const { faults } = check;
  const isTyped = text.language === 'typescript' && !isReadOnly;
  return (
    <div class="stack is-close">
      <div class="inline">
        <span class={`small ${faults.length > 0 && isTyped ? 'bad' : 'faint'}`} role="status">
          {isTyped
            ? wordsFor(check)
            : isReadOnly
              ? 'To change it takes the scope admin.'
              : 'Types are not checked.'}
        </span>
        <span class="hint less">Esc, then Tab, leaves the editor</span>
        {!isReadOnly && (
          <span class="inline end">
            <Choice
              label="Language"
              value={text.language}
              options={[
                ['typescript', 'TypeScript'],
                ['javascript', 'JavaScript'],
              ]}
              onChange={(language) => onChange({ language })}
            />
          </span>
        )}
      </div>
      {isTyped && faults.length > 0 && (
        <ul class="list">
          {faults.slice(0, drawnFaults).map(({ line, column, msg }) => (
            <li key={`${line}:${column}:${msg}`}>
              <button type="button" class="record" onClick={() => onLine(line, column)}>
                <code class="faint">
                  {line}:{column}
                </code>
                <span class="small">
                  <Untrusted text={msg} lengthMax={500} />
                </span>
              </button>
            </li>
          ))}
          {faults.length > drawnFaults && (
            <li class="hint">and {faults.length - drawnFaults} further ones</li>
          )}
        </ul>
      )}
    </div>
  );
}

function wordsFor({ state, faults, msg }: ActionCheck): string {
  if (state === 'checking') return 'Checking types…';
  if (state === 'failed') return `Types cannot be checked now: ${msg}`;
  if (state === 'unchecked') return '';
  if (faults.length === 0) return 'No type errors.';
  return `${faults.length} type ${faults.length === 1 ? 'error' : 'errors'}`;
}
