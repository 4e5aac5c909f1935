import { Untrusted } from '../../parts/untrusted.tsx';
import type { SchemaCheck } from './use-schema-check.ts';

/** A schema that takes less than this part of the steps that are allowed. */
const cheapShare = 10;

/** Why the server would refuse a schema, or what checking a body costs, and where most of it. */
export function Cost({ check, isReadOnly }: { check: SchemaCheck; isReadOnly: boolean }) {
  const { document, error, isChecking, isStale } = check;
  if (isReadOnly) return <p class="hint">To change it takes the scope provision.</p>;
  if (error)
    return (
      <p class="wrong" role="status">
        It cannot be checked now: <Untrusted text={error.message} lengthMax={300} />
      </p>
    );
  if (document === undefined || isStale)
    return (
      <p class="hint" role="status">
        {isChecking || document !== undefined ? 'Checking…' : ''}
      </p>
    );
  const { fault, steps, steps_at, steps_max } = document;
  if (fault !== null)
    return (
      <p class="wrong" role="status">
        <Untrusted text={fault} lengthMax={500} />
      </p>
    );
  const count = Number(steps);
  return (
    <div class="inline small" role="status">
      <meter aria-label="Steps" min={0} max={steps_max} value={count} />
      <span>
        {count * cheapShare <= steps_max ? 'Cheap to check' : 'It can be checked'}:{' '}
        {count.toLocaleString('en')} of the {steps_max.toLocaleString('en')} steps that checking one value may
        take
        {steps_at && (
          <>
            ; the most at{' '}
            <code>
              <Untrusted text={steps_at} lengthMax={120} />
            </code>
          </>
        )}
        .
      </span>
    </div>
  );
}
