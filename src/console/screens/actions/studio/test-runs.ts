import { useEffect, useState } from 'preact/hooks';
import type { Path } from '../../../../contract/routes/path.ts';
import { indentedJson } from '../../../parts/payload.tsx';
import { CallError } from '../../../server/call-error.ts';
import { call } from '../../../server/client.ts';
import { parseExactly } from '../../../server/exact-json.ts';
import { type ActionText, trialBodyText } from '../action-text.ts';

type TestPath = Path<'/fleets/{fleet_id}/actions/{name}/test'>;

/** Result of one test; undefined while it runs or waits. */
export interface TestResult {
  hasPassed: boolean;
  msg: string;
}

/** Pause before a test is tried again that the server had no room for. */
const retryMs = 1_500;
const attemptsMax = 5;

/** The tests as they are sent, each its own JSON text; none while they are no list. */
export function testTexts(tests: string): string[] {
  try {
    const list: unknown = tests.trim() === '' ? [] : parseExactly(tests);
    return Array.isArray(list) ? list.map((one) => indentedJson(one)) : [];
  } catch {
    return [];
  }
}

async function runTest(path: TestPath, body: string, signal: AbortSignal): Promise<TestResult> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const { error, reason } = await call('POST', path, { body, signal });
      if (reason !== null) return { hasPassed: false, msg: reason };
      return { hasPassed: error === null, msg: error === null ? '' : `${error.code}: ${error.msg}` };
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      const isBusy = error.status === 503 || error.status === 429;
      if (!isBusy || attempt >= attemptsMax) return { hasPassed: false, msg: error.message };
      await new Promise((resolve) => setTimeout(resolve, retryMs));
    }
  }
}

/** Runs the tests of a text one after the other, once; a change of `key` runs them again. Undefined: not now. */
export function useTestRuns(
  path: TestPath,
  key: string | undefined,
  text: ActionText,
): readonly (TestResult | undefined)[] {
  const [state, setState] = useState<{ key: string; results: (TestResult | undefined)[] }>();
  // The key says which text is meant
  useEffect(() => {
    if (key === undefined) return;
    const stopping = new AbortController();
    const tests = testTexts(text.tests);
    const results: (TestResult | undefined)[] = tests.map(() => undefined);
    setState({ key, results: [...results] });
    const runAll = async (): Promise<void> => {
      for (const [index, test] of tests.entries()) {
        results[index] = await runTest(path, trialBodyText(text, { test }), stopping.signal);
        if (stopping.signal.aborted) return;
        setState({ key, results: [...results] });
      }
    };
    // Left before the end
    runAll().catch(() => undefined);
    return () => stopping.abort();
  }, [path, key]);
  return state !== undefined && state.key === key ? state.results : [];
}
