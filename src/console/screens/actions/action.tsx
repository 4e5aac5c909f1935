import { useMemo, useState } from 'preact/hooks';
import type { ActionDocument, ActionVersionDocument } from '../../../contract/action.ts';
import { below } from '../../../contract/routes/path.ts';
import { Screen } from '../../frame/frame.tsx';
import { beginDraft, hasDraft } from '../../page/drafts.ts';
import { go, href, search } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Banner, Loaded } from '../../parts/banner.tsx';
import { Choice } from '../../parts/choice.tsx';
import type { CommandsProps } from '../../parts/commands.tsx';
import { Moment } from '../../parts/moment.tsx';
import { visible } from '../../parts/untrusted.tsx';
import { type Resource, useDocument } from '../../server/resource.ts';
import { ActionLog } from './action-log.tsx';
import { actionDraftKey, pathOfAction } from './action-path.ts';
import { ActionRuns, openedRun } from './action-runs.tsx';
import { ActionState } from './action-state.tsx';
import { newAction, textOf } from './action-text.ts';
import { ActionTools, type Done, DoneNotice } from './action-tools.tsx';
import { actionHealth, countText } from './health.ts';
import { Studio } from './studio/studio.tsx';
import { ActionVersions } from './versions.tsx';

const everySeconds = 10;

const tabs = [
  ['code', 'Write'],
  ['runs', 'Runs'],
  ['log', 'Log'],
  ['state', 'State'],
  ['versions', 'Versions'],
] as const;
type Tab = (typeof tabs)[number][0];

/** One action: its code and whatever becomes of it. */
export function ActionScreen({ fleetId, name }: { fleetId: string; name: string }) {
  const action = useDocument(pathOfAction(fleetId, name), everySeconds);
  // Here, as the first deployment ends the screen of what is not deployed yet.
  const [done, setDone] = useState<Done | undefined>();
  const onDone = (document: Done): void => {
    setDone(document);
    action.refresh();
  };
  const isMissing = action.error?.code === 'action_not_found';
  if (isMissing) return <Missing fleetId={fleetId} name={name} onDeployed={onDone} />;
  const { value } = action;
  if (value === undefined) {
    return (
      <Screen title={name}>
        <Loaded resource={action}>{() => null}</Loaded>
      </Screen>
    );
  }
  return <Deployed fleetId={fleetId} action={value} resource={action} done={done} onDone={onDone} />;
}

interface MissingProps {
  fleetId: string;
  name: string;
  onDeployed: (deployed: Done) => void;
}

/** An action that the fleet does not have: it is being written, or was deleted. */
function Missing({ fleetId, name, onDeployed }: MissingProps) {
  const key = actionDraftKey(fleetId, name);
  const isName = /^[A-Za-z0-9_-]{1,255}$/.test(name);
  return (
    <Screen title={name} beside={<span class="tag">not deployed yet</span>}>
      {hasDraft(key) ? (
        <Studio fleetId={fleetId} name={name} current={newAction} isNew onDeployed={onDeployed} />
      ) : (
        <Banner
          tools={
            isName ? (
              <Act scope="admin" onClick={() => beginDraft(key, newAction)}>
                Write it
              </Act>
            ) : undefined
          }
        >
          <p>
            There is no action of this name in the fleet. <a href={href([fleetId, 'actions'])}>All actions</a>
          </p>
        </Banner>
      )}
    </Screen>
  );
}

interface DeployedProps {
  fleetId: string;
  action: ActionDocument;
  resource: Resource<ActionDocument>;
  done: Done | undefined;
  onDone: (done: Done) => void;
}

function Deployed({ fleetId, action, resource, done, onDone }: DeployedProps) {
  const { name, version, enabled } = action;
  const asked = search.value.get('tab');
  const tab: Tab = tabs.find(([one]) => one === asked)?.[0] ?? 'code';
  const shown = useDocument(below(pathOfAction(fleetId, name), '/versions/{version}', { version }));
  // The edited text stays on the screen while the version that was deployed meanwhile is read.
  const [last, setLast] = useState<ActionVersionDocument | undefined>();
  if (shown.value !== undefined && shown.value !== last) setLast(shown.value);
  const current = useMemo(() => last && textOf(last), [last]);
  const { mark, word } = actionHealth(action);
  return (
    <Screen
      title={name}
      read={resource}
      beside={
        <span class="inline">
          <span class={`state is-${mark}`}>{word}</span>
          <span class="tag">version {version}</span>
        </span>
      }
      commands={tab === 'code' ? [] : [commandsOf(tab, fleetId, name)]}
      tools={<ActionTools fleetId={fleetId} action={action} onChanged={resource.refresh} />}
    >
      {done?.version === version && done.enabled === enabled && <DoneNotice fleetId={fleetId} done={done} />}
      <Trouble fleetId={fleetId} action={action} />
      <div class="inline">
        <Choice
          label="Part of the action"
          value={tab}
          options={tabs}
          onChange={(one) =>
            go(href([fleetId, 'actions', name], { tab: one === 'code' ? '' : one }), { replace: true })
          }
        />
        <FiguresLine action={action} />
      </div>
      {tab === 'code' &&
        (current === undefined ? (
          <Loaded resource={shown}>{() => null}</Loaded>
        ) : (
          <Studio
            key={name}
            fleetId={fleetId}
            name={name}
            current={current}
            rate={action.runs_per_second_max}
            onDeployed={onDone}
          />
        ))}
      {tab === 'runs' && <ActionRuns fleetId={fleetId} name={name} />}
      {tab === 'log' && <ActionLog fleetId={fleetId} name={name} />}
      {tab === 'state' && <ActionState fleetId={fleetId} name={name} />}
      {tab === 'versions' && <ActionVersions fleetId={fleetId} action={action} onRolledBack={onDone} />}
    </Screen>
  );
}

function commandsOf(tab: Tab, fleetId: string, name: string): CommandsProps {
  const path = pathOfAction(fleetId, name);
  const run = openedRun();
  const ofTab = {
    code: { words: ['show', name, '--source'], path },
    runs:
      run === undefined
        ? { words: ['runs', name], path: below(path, '/runs', {}) }
        : { words: ['runs', name, run], path: below(path, '/runs/{run}', { run }) },
    log: { words: ['logs', name, '--follow'], path: below(path, '/logs', {}) },
    state: { words: ['state', 'list', name], path: below(path, '/state', {}) },
    versions: { words: ['show', name], path },
  };
  const { words, path: asked } = ofTab[tab];
  return { command: ['action', ...words, '--fleet', fleetId], request: { path: asked } };
}

function FiguresLine({ action }: { action: ActionDocument }) {
  const { runs_last_minute, in_hand, behind, lost } = action;
  return (
    <span class="hint">
      {countText(runs_last_minute)} runs in the last minute, {countText(in_hand)} in hand, {countText(behind)}{' '}
      behind
      {lost > 0 && <span class="bad">, {countText(lost)} lost to retention</span>}
    </span>
  );
}

/** Says what is wrong with it and what to do, with its last error as it stands in the log. */
function Trouble({ fleetId, action }: { fleetId: string; action: ActionDocument }) {
  const { mark, word, advice } = actionHealth(action);
  const { last_error, last_failed_at, dead_letters, failures, name } = action;
  if (advice === undefined || (mark === 'disabled' && dead_letters === 0)) return null;
  const letters = dead_letters > 0 && (
    <a class="link" href={href([fleetId, 'dead-letters'], { action: name })}>
      {countText(dead_letters)} dead {dead_letters === 1 ? 'letter' : 'letters'}
    </a>
  );
  return (
    <Banner kind={mark === 'bad' ? 'bad' : mark === 'warn' ? 'warn' : 'plain'} tools={letters || undefined}>
      <span class="strong">{word[0]?.toUpperCase() + word.slice(1)}.</span> {advice}
      {failures > 0 && last_error !== null && (
        <pre class="small">
          {last_failed_at !== null && (
            <>
              <Moment time={last_failed_at} />
              {': '}
            </>
          )}
          {last_error.code}: {visible(last_error.msg, '\n')}
        </pre>
      )}
    </Banner>
  );
}
