import { useState } from 'preact/hooks';
import { pathTo } from '../../../contract/routes/path.ts';
import { CodeEditor } from '../../editor/code-editor.tsx';
import { Section } from '../../frame/frame.tsx';
import type { KeptDraft } from '../../page/drafts.ts';
import { Banner, SchemaErrors } from '../../parts/banner.tsx';
import { indentedJson } from '../../parts/payload.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { call } from '../../server/client.ts';
import { useSubmit } from '../../server/submit.ts';
import type { SampleText } from './schema-text.ts';
import { faultsKey, faultsOfSample, markedFaults, type SchemaCheck } from './use-schema-check.ts';

export interface TrySampleProps {
  fleetId: string;
  kind: string;
  name: string;
  sample: KeptDraft<SampleText>;
  check: SchemaCheck;
  isReadOnly: boolean;
}

/** The side where a body is held against the schema as both are typed. */
export function TrySample({ fleetId, kind, name, sample, check, isReadOnly }: TrySampleProps) {
  const [isNone, setNone] = useState(false);
  const { error, isBusy, submit } = useSubmit();
  // What the field begins with was written by nobody: it is not judged.
  const faults = sample.isChanged ? faultsOfSample(check) : [];
  const takeNewest = (): void =>
    void submit(async () => {
      const path = pathTo('/fleets/{fleet_id}/records:latest', { fleet_id: fleetId });
      const { items } = await call('GET', path, {
        query: {
          kind: [kind === 'message' || kind === 'reply' ? kind : 'datapoint'],
          schema: [name],
          limit: 1,
        },
      });
      setNone(items[0] === undefined);
      if (items[0] !== undefined) sample.change({ sample: indentedJson(items[0].payload) });
    });
  return (
    <Section
      title="Try a sample"
      tools={
        kind === 'mail' ? undefined : (
          <button type="button" class="button" disabled={isBusy} onClick={takeNewest}>
            Take the newest {kind}
          </button>
        )
      }
    >
      <div class="stack below">
        <CodeEditor
          label="Sample"
          language="json"
          size="small"
          text={sample.value.sample}
          onChange={(changed) => sample.change({ sample: changed })}
          check={() => markedFaults(check, faults)}
          checkKey={faultsKey(check, faults)}
        />
        {isNone && <p class="hint">No device has sent one lately.</p>}
        {error && <p class="wrong">{error.message}</p>}
        {isReadOnly ? (
          <p class="hint">To try it takes the scope provision.</p>
        ) : sample.isChanged ? (
          <Verdict check={check} />
        ) : (
          <p class="hint">Type or paste a body: it is checked as you type.</p>
        )}
      </div>
    </Section>
  );
}

function Verdict({ check: { document, isStale } }: { check: SchemaCheck }) {
  const sample = document?.sample ?? null;
  if (sample === null) return null;
  if (isStale)
    return (
      <p class="hint" role="status">
        Checking…
      </p>
    );
  if (sample.matches) return <Banner kind="good">It matches: such a body is taken.</Banner>;
  return (
    <Banner kind="bad">
      It is refused: <Untrusted text={sample.msg ?? ''} />
      <SchemaErrors errors={sample.errors} />
    </Banner>
  );
}
