import { useMemo } from 'preact/hooks';
import type { TrialDocument } from '../../../../contract/action-run.ts';
import type { RecordDocument } from '../../../../contract/record.ts';
import { CodeEditor } from '../../../editor/code-editor.tsx';
import { Field, SelectField } from '../../../forms/field.tsx';
import { Section } from '../../../frame/frame.tsx';
import type { KeptDraft } from '../../../page/drafts.ts';
import { Act } from '../../../parts/act.tsx';
import { ErrorBanner } from '../../../parts/banner.tsx';
import { indentedJson } from '../../../parts/payload.tsx';
import { shownText } from '../../../parts/untrusted.tsx';
import type { CallError } from '../../../server/call-error.ts';
import { preciseText } from '../../../server/clock.ts';
import { writeExactly } from '../../../server/exact-json.ts';
import type { Resource } from '../../../server/resource.ts';
import type { RecordText } from '../action-text.ts';
import { TrialOutcome } from './trial-outcome.tsx';

/** A record of the log as one to try on. */
export function recordTextOf({ device_id, kind, schema, payload }: RecordDocument): RecordText {
  return { device: device_id, on: `${kind}:${schema}`, payload: indentedJson(payload) };
}

export interface TryRecordProps {
  fleetId: string;
  /** Newest records of the schemas that the action runs for. */
  latest: Resource<{ items: RecordDocument[] }>;
  triggers: readonly string[];
  record: KeptDraft<RecordText>;
  problem: string | undefined;
  trial: TrialDocument | undefined;
  error: CallError | undefined;
  isBusy: boolean;
  onRun: () => void;
  onKeep: (() => void) | undefined;
  onLine: (line: number, column: number) => void;
}

/** The side where an action is run on a record of the log, or on one that is pasted. */
export function TryRecord(props: TryRecordProps) {
  const { fleetId, record, problem, trial, error, isBusy, onRun, onKeep, onLine } = props;
  const { value } = record;
  return (
    <Section
      title="Try it on a record"
      tools={
        <Act scope="admin" unless={problem ?? (isBusy ? 'It runs.' : undefined)} onClick={onRun}>
          Run <kbd>Ctrl ⏎</kbd>
        </Act>
      }
    >
      <div class="stack below">
        <Latest {...props} />
        <div class="pair">
          <Field
            label="Device"
            class="mono"
            maxLength={10}
            spellcheck={false}
            value={value.device}
            onText={(device) => record.change({ device: device.trim() })}
          />
          <SelectField
            label="Schema"
            value={value.on}
            options={[...new Set(['', ...props.triggers, value.on])].map((one) => [one, shownText(one, 80)])}
            onChange={(on) => record.change({ on })}
          />
        </div>
        <CodeEditor
          label="Payload of the record"
          language="json"
          size="small"
          text={value.payload}
          onChange={(payload) => record.change({ payload })}
          onRun={onRun}
        />
        {problem !== undefined && <span class="hint">{problem}</span>}
        {isBusy && <progress aria-label="Runs" />}
        {error && <ErrorBanner error={error} />}
        {trial && !isBusy && <TrialOutcome fleetId={fleetId} trial={trial} onLine={onLine} />}
        {onKeep && trial && !isBusy && (
          <div>
            <Act onClick={onKeep}>Keep as a test</Act>
          </div>
        )}
      </div>
    </Section>
  );
}

/** The newest records; choosing one takes its payload, digit by digit as it was sent. */
function Latest({ latest, record, triggers }: TryRecordProps) {
  const items = latest.value?.items ?? [];
  const texts = useMemo(() => items.map(recordTextOf), [latest.value]);
  const { value } = record;
  const chosen = texts.findIndex(
    ({ device, on, payload }) => device === value.device && on === value.on && payload === value.payload,
  );
  const take = (index: number): void => {
    const text = texts[index];
    if (text !== undefined) record.change(text);
  };
  return (
    <div class="field">
      <label for="try-latest">From the log</label>
      <div class="with-button">
        <select
          id="try-latest"
          class="select"
          value={String(chosen)}
          disabled={texts.length === 0}
          onChange={({ currentTarget }) => take(Number(currentTarget.value))}
        >
          <option value="-1">
            {texts.length > 0
              ? 'as written below'
              : triggers.length === 0
                ? 'no schema is chosen'
                : 'no record yet'}
          </option>
          {items.map(({ record_id, device_id, schema, stored_at, payload }, index) => (
            <option key={record_id} value={String(index)}>
              {preciseText(stored_at)} · {device_id} · {shownText(schema, 40)} ·{' '}
              {shownText(writeExactly(payload, 60), 90)}
            </option>
          ))}
        </select>
        <Act onClick={latest.refresh}>Refresh</Act>
      </div>
      {latest.error && <span class="wrong">{latest.error.message}</span>}
      {texts.length === 0 && triggers.length > 0 && latest.value && (
        <span class="hint">No device has sent one lately: write a payload below.</span>
      )}
    </div>
  );
}
