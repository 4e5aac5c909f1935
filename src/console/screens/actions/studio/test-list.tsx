import { visible } from '../../../parts/untrusted.tsx';
import type { TestResult } from './test-runs.ts';

/** Lists the result of each test. */
export function TestList({ results }: { results: readonly (TestResult | undefined)[] }) {
  return (
    <ol class="list" aria-label="Tests">
      {results.map((result, index) => (
        <li key={index}>
          <div class="row">
            <span class={`state is-${result === undefined ? 'queued' : result.hasPassed ? 'active' : 'bad'}`}>
              Test {index + 1} {result === undefined ? 'runs' : result.hasPassed ? 'passed' : 'failed'}
            </span>
          </div>
          {result !== undefined && !result.hasPassed && <pre class="small">{visible(result.msg, '\n')}</pre>}
        </li>
      ))}
    </ol>
  );
}
