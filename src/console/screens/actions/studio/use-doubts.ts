import type { CheckDocument } from '../../../../contract/action.ts';
import { below, pathTo } from '../../../../contract/routes/path.ts';
import { call } from '../../../server/client.ts';
import { type Resource, useResource } from '../../../server/resource.ts';
import { pathOfAction } from '../action-path.ts';
import { type ActionText, triggerIn } from '../action-text.ts';
import { type TestResult, testTexts, useTestRuns } from './test-runs.ts';

/** Reasons not to deploy a text. */
export interface Doubts {
  tests: number;
  /** Result of each test; undefined while it runs. */
  results: readonly (TestResult | undefined)[];
  types: Resource<CheckDocument>;
  /** Why nothing can be said of it yet. */
  pending: string | undefined;
  /** True if a test failed, or the types do not hold or are not known. */
  isDoubtful: boolean;
}

/** Runs the tests of a text and checks its types, once. */
export function useDoubts(fleetId: string, name: string, text: ActionText): Doubts {
  const isTyped = text.language === 'typescript';
  const tests = testTexts(text.tests).length;
  const runs = tests === 0 ? undefined : 'once';
  const results = useTestRuns(below(pathOfAction(fleetId, name), '/test', {}), runs, text);
  const types = useResource(isTyped ? 'types' : undefined, (signal) =>
    call('POST', pathTo('/fleets/{fleet_id}/actions:check', { fleet_id: fleetId }), {
      body: { source: text.source, on: text.on.map(triggerIn) },
      signal,
    }),
  );
  const isRunning = results.length < tests || results.includes(undefined);
  const isChecking = isTyped && types.value === undefined && types.error === undefined;
  const hasFailed = results.some((result) => result !== undefined && !result.hasPassed);
  const faults = types.value?.items.length ?? 0;
  return {
    tests,
    results,
    types,
    pending: isRunning ? 'Running its tests…' : isChecking ? 'Checking its types…' : undefined,
    isDoubtful: hasFailed || faults > 0 || types.error !== undefined,
  };
}
