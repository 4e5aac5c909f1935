import { useState } from 'preact/hooks';
import { below } from '../../../../contract/routes/path.ts';
import { CodeEditor } from '../../../editor/code-editor.tsx';
import { Act } from '../../../parts/act.tsx';
import { pathOfAction } from '../action-path.ts';
import { type ActionText, testsIn } from '../action-text.ts';
import { TestList } from './test-list.tsx';
import { useTestRuns } from './test-runs.ts';

export interface TestsEditorProps {
  fleetId: string;
  name: string;
  text: ActionText;
  isReadOnly: boolean;
  onChange: (changed: Partial<ActionText>) => void;
}

/** The tests that each version is held to, and what they come to now. */
export function TestsEditor({ fleetId, name, text, isReadOnly, onChange }: TestsEditorProps) {
  const [runs, setRuns] = useState<{ number: number; text: ActionText } | undefined>();
  const key = runs === undefined ? undefined : String(runs.number);
  const path = below(pathOfAction(fleetId, name), '/test', {});
  const results = useTestRuns(path, key, runs?.text ?? text);
  const count = testsIn(text)?.length;
  const unless =
    count === undefined ? 'The tests are no JSON list.' : count === 0 ? 'There is none.' : undefined;
  return (
    <div class="stack">
      <CodeEditor
        label="Tests"
        language="json"
        text={text.tests}
        isReadOnly={isReadOnly}
        onChange={(tests) => onChange({ tests })}
      />
      <div class="inline">
        <Act
          scope="admin"
          unless={unless}
          onClick={() => setRuns((before) => ({ number: (before?.number ?? 0) + 1, text }))}
        >
          Run the tests
        </Act>
        <span class="hint">
          A list; each has <code>record</code> or <code>records</code>, and may have <code>state</code>,{' '}
          <code>mails</code>, <code>state_after</code>. <em>Keep as a test</em> writes one of what was tried.
        </span>
      </div>
      <TestList results={results} />
    </div>
  );
}
