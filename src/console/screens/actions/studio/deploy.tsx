import type { CheckDocument, DeployedActionDocument } from '../../../../contract/action.ts';
import { Difference } from '../../../editor/code-editor.tsx';
import { Drawer } from '../../../forms/dialogs.tsx';
import { Section } from '../../../frame/frame.tsx';
import { Act } from '../../../parts/act.tsx';
import { Banner, ErrorBanner } from '../../../parts/banner.tsx';
import { Commands } from '../../../parts/commands.tsx';
import { Untrusted } from '../../../parts/untrusted.tsx';
import { call } from '../../../server/client.ts';
import { useSubmit } from '../../../server/submit.ts';
import { pathOfAction } from '../action-path.ts';
import { type ActionText, deploymentBody, putWords } from '../action-text.ts';
import { SettingChanges } from './setting-changes.tsx';
import { TestList } from './test-list.tsx';
import { useDoubts } from './use-doubts.ts';

export interface DeployProps {
  fleetId: string;
  name: string;
  /** The version that runs now; of a new action, what it began as. */
  current: ActionText;
  text: ActionText;
  isNew: boolean;
  onClose: () => void;
  onDone: (deployed: DeployedActionDocument) => void;
}

/** Shows what a deployment changes and what its tests come to, before it is done. */
export function DeployDrawer({ fleetId, name, current, text, isNew, onClose, onDone }: DeployProps) {
  const path = pathOfAction(fleetId, name);
  const { tests, results, types, pending, isDoubtful } = useDoubts(fleetId, name, text);
  const { error, isBusy, submit } = useSubmit();
  const faults = types.value?.items ?? [];
  const unless = isBusy ? 'Deploying…' : pending;
  const deploy = (): void =>
    void submit(async () =>
      onDone(await call('PUT', path, { body: deploymentBody(text, isNew, isDoubtful) })),
    );
  return (
    <Drawer
      title={isNew ? `Deploy ${name}` : `Deploy ${name} in place of version ${current.base}`}
      isWide
      onClose={onClose}
      foot={
        <>
          <Act scope="admin" kind={isDoubtful ? 'bad' : 'main'} unless={unless} onClick={deploy}>
            {isDoubtful ? 'Deploy in spite of it' : 'Deploy'}
          </Act>
          <Act kind="plain" onClick={onClose}>
            Cancel
          </Act>
          {unless !== undefined && <span class="hint">{unless}</span>}
        </>
      }
    >
      {error && <ErrorBanner error={error} />}
      {types.error && <ErrorBanner error={types.error} onRetry={types.refresh} />}
      {faults.length > 0 && <TypeFaults faults={faults} />}
      {types.value && faults.length === 0 && <p class="hint">No type errors.</p>}
      <Section
        title={tests === 0 ? 'No tests' : `Tests: ${tests}`}
        note={
          tests === 0 ? (
            <span class="hint">Keep a run as a test, and each later version is held to it.</span>
          ) : undefined
        }
      >
        <TestList results={results} />
      </Section>
      <Section title="What changes">
        <SettingChanges before={current} after={text} />
        <Difference
          label={isNew ? 'The whole code' : `From version ${current.base} to what is written`}
          before={isNew ? '' : current.source}
          after={text.source}
          language={text.language}
        />
      </Section>
      <Commands
        command={putWords(fleetId, name, text)}
        request={{ method: 'PUT', path, body: deploymentBody(text, isNew, isDoubtful) }}
      />
    </Drawer>
  );
}

function TypeFaults({ faults }: { faults: CheckDocument['items'] }) {
  return (
    <Banner kind="bad">
      {faults.length} type {faults.length === 1 ? 'error' : 'errors'}
      {faults.slice(0, 5).map(({ line, column, msg }) => (
        <div class="small" key={`${line}:${column}`}>
          <code>
            {line}:{column}
          </code>{' '}
          <Untrusted text={msg} />
        </div>
      ))}
    </Banner>
  );
}
