import { useState } from 'preact/hooks';
import type { TrialDocument } from '../../../../contract/action-run.ts';
import type { RecordDocument } from '../../../../contract/record.ts';
import { below } from '../../../../contract/routes/path.ts';
import { useDraft } from '../../../page/drafts.ts';
import { indentedJson } from '../../../parts/payload.tsx';
import { call } from '../../../server/client.ts';
import { parseExactly } from '../../../server/exact-json.ts';
import type { Resource } from '../../../server/resource.ts';
import { useSubmit } from '../../../server/submit.ts';
import { actionDraftKey, pathOfAction } from '../action-path.ts';
import {
  type ActionText,
  type RecordText,
  recordBody,
  recordProblem,
  trialBodyText,
} from '../action-text.ts';
import { recordTextOf } from './try-record.tsx';

export interface TrialProps {
  fleetId: string;
  name: string;
  text: ActionText;
  latest: Resource<{ items: RecordDocument[] }>;
}

/** The outcome of a run, and what was run. */
interface Tried {
  trial: TrialDocument;
  record: RecordText;
  source: string;
}

function isSameRecord(one: RecordText, other: RecordText): boolean {
  return one.device === other.device && one.on === other.on && one.payload === other.payload;
}

const noRecord: RecordText = { device: '', on: '', payload: '{}' };

/** Runs what is written on a record: the newest at first, then whichever was chosen or typed. */
export function useTrial({ fleetId, name, text, latest }: TrialProps) {
  // The newest when the screen was opened: what one looks at must not change under the hand.
  const [first, setFirst] = useState<RecordText | undefined>();
  const newest = latest.value?.items[0];
  if (first === undefined && newest !== undefined) setFirst(recordTextOf(newest));
  const begun = first ?? { ...noRecord, on: text.on[0] ?? '' };
  const record = useDraft(`${actionDraftKey(fleetId, name)}#record`, begun);
  const [tried, setTried] = useState<Tried | undefined>();
  const { error, isBusy, submit } = useSubmit();
  const problem =
    text.on.length === 0 ? 'First choose when it runs: a schema at least.' : recordProblem(record.value);
  const run = (): void => {
    if (problem !== undefined) return;
    const used = record.value;
    void submit(async () => {
      setTried(undefined);
      const body = trialBodyText(text, { record: used });
      const trial = await call('POST', below(pathOfAction(fleetId, name), '/test', {}), { body });
      setTried({ trial, record: used, source: text.source });
    });
  };
  /** The tests with one more: that its run sends what it has just sent. */
  const asTest = (): string => {
    if (tried === undefined) return text.tests;
    const { mails } = tried.trial;
    const test = {
      record: parseExactly(recordBody(tried.record)),
      mails: mails.map(({ device, name: mail, payload }) => ({ to: device, name: mail, payload })),
    };
    const others = text.tests.trim() === '' ? [] : parseExactly(text.tests);
    return indentedJson([...(Array.isArray(others) ? others : []), test]);
  };
  // Beside another record or other code, it would look like the verdict on these.
  const isOfThese = tried?.source === text.source && isSameRecord(tried.record, record.value);
  return {
    run,
    asTest,
    shown: { record, problem, trial: isOfThese ? tried.trial : undefined, error, isBusy },
  };
}
