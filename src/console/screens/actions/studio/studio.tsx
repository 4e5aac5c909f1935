import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { DeployedActionDocument } from '../../../../contract/action.ts';
import { CodeEditor } from '../../../editor/code-editor.tsx';
import type { Editor } from '../../../editor/codemirror.ts';
import { AskDiscard } from '../../../forms/confirm.tsx';
import { draftsMax, type KeptDraft, useDraft } from '../../../page/drafts.ts';
import { Act } from '../../../parts/act.tsx';
import { Banner } from '../../../parts/banner.tsx';
import { Choice } from '../../../parts/choice.tsx';
import { Commands } from '../../../parts/commands.tsx';
import { may } from '../../../session/session.ts';
import { actionDraftKey, pathOfAction } from '../action-path.ts';
import { type ActionText, actionProblem, isSameAction, putWords, testsIn } from '../action-text.ts';
import { DeployDrawer } from './deploy.tsx';
import { FaultList } from './fault-list.tsx';
import { TestsEditor } from './tests-editor.tsx';
import { TryRecord } from './try-record.tsx';
import { type ActionCheck, useActionCheck } from './use-action-check.ts';
import { type FleetKnowledge, useFleetKnowledge } from './use-fleet-knowledge.ts';
import { useTrial } from './use-trial.ts';
import { WhenItRuns } from './when-it-runs.tsx';

export interface StudioProps {
  fleetId: string;
  name: string;
  /** The version that runs now; of a new action, what it begins as. */
  current: ActionText;
  isNew?: boolean;
  /** Runs a second that it may have now. */
  rate?: number;
  onDeployed: (deployed: DeployedActionDocument) => void;
}

type Part = 'code' | 'when' | 'tests';

/** Screen to write, try and deploy an action. What is written outlives the screen. */
export function Studio({ fleetId, name, current, isNew = false, rate, onDeployed }: StudioProps) {
  const draft = useDraft(actionDraftKey(fleetId, name), current, isNew);
  const text = draft.value;
  const { part, setPart, editor, toLine } = useParts(isNew ? 'when' : 'code');
  const [isDeploying, setDeploying] = useState(false);
  const isReadOnly = !may('admin');
  const knowledge = useFleetKnowledge(fleetId, text.on);
  const check = useActionCheck(fleetId, name, text, isReadOnly);
  const trial = useTrial({ fleetId, name, text, latest: knowledge.latest });
  // Once the server has what was deployed, nothing is left to be kept.
  useEffect(() => {
    if (!isNew && draft.isChanged && isSameAction(text, current)) draft.discard();
  }, [current, text]);
  const done = (document: DeployedActionDocument): void => {
    setDeploying(false);
    draft.change({ rate: '', isDisabled: false, base: document.version });
    onDeployed(document);
  };
  return (
    <>
      <Notices draft={draft} current={current} isNew={isNew} />
      <div class="studio">
        <Written
          fleetId={fleetId}
          name={name}
          draft={draft}
          part={part}
          onPart={setPart}
          rate={rate}
          isNew={isNew}
          isReadOnly={isReadOnly}
          check={check}
          knowledge={knowledge}
          editor={editor}
          tools={<StudioTools draft={draft} isNew={isNew} onDeploy={() => setDeploying(true)} />}
          onRun={trial.run}
          onLine={toLine}
        />
        <aside aria-label="Try it">
          <TryRecord
            fleetId={fleetId}
            latest={knowledge.latest}
            triggers={text.on}
            {...trial.shown}
            onRun={trial.run}
            onKeep={isReadOnly ? undefined : () => draft.change({ tests: trial.asTest() })}
            onLine={toLine}
          />
        </aside>
      </div>
      <Commands
        command={putWords(fleetId, name, text)}
        request={{ method: 'PUT', path: pathOfAction(fleetId, name), body: '@action.json' }}
      />
      {isDeploying && (
        <DeployDrawer
          fleetId={fleetId}
          name={name}
          current={current}
          text={text}
          isNew={isNew}
          onClose={() => setDeploying(false)}
          onDone={done}
        />
      )}
    </>
  );
}

/** Which part is shown, and the way to a line of the code from any of them. */
function useParts(first: Part) {
  const [part, setPart] = useState<Part>(first);
  const editor = useRef<Editor | null>(null);
  const toLine = (line: number, column: number): void => {
    setPart('code');
    // It is drawn again first.
    setTimeout(() => editor.current?.goTo(line, column));
  };
  return { part, setPart, editor, toLine };
}

interface WrittenProps {
  fleetId: string;
  name: string;
  draft: KeptDraft<ActionText>;
  part: Part;
  onPart: (part: Part) => void;
  rate: number | undefined;
  isNew: boolean;
  isReadOnly: boolean;
  check: ActionCheck;
  knowledge: FleetKnowledge;
  editor: { current: Editor | null };
  tools: ComponentChildren;
  onRun: () => void;
  onLine: (line: number, column: number) => void;
}

/** The parts of an action that are written, one of them shown. The code stays where it is behind the others. */
function Written(props: WrittenProps) {
  const { name, draft, part, isNew, isReadOnly, check, knowledge } = props;
  const text = draft.value;
  const testCount = testsIn(text)?.length ?? 0;
  const shared = { fleetId: props.fleetId, text, isReadOnly, onChange: draft.change };
  return (
    <div class="stack">
      <div class="inline">
        <Choice
          label="What is written"
          value={part}
          options={[
            ['code', 'Code'],
            ['when', 'When it runs'],
            ['tests', testCount === 0 ? 'Tests' : `Tests ${testCount}`],
          ]}
          onChange={props.onPart}
        />
        {props.tools}
      </div>
      <div class="stack" hidden={part !== 'code'}>
        <CodeEditor
          label={`Code of ${name}`}
          language={text.language}
          text={text.source}
          isReadOnly={isReadOnly}
          onChange={(source) => draft.change({ source })}
          onRun={props.onRun}
          check={check.check}
          checkKey={text.on.join()}
          known={knowledge.known}
          editor={props.editor}
        />
        <FaultList
          check={check}
          text={text}
          isReadOnly={isReadOnly}
          onLine={props.onLine}
          onChange={draft.change}
        />
      </div>
      {part === 'when' && (
        <WhenItRuns {...shared} isNew={isNew} rate={props.rate} schemas={knowledge.schemas} />
      )}
      {part === 'tests' && <TestsEditor {...shared} name={name} />}
    </div>
  );
}

interface NoticesProps {
  draft: KeptDraft<ActionText>;
  current: ActionText;
  isNew: boolean;
}

/** Warns the author that the text is overtaken, or not kept. */
function Notices({ draft, current, isNew }: NoticesProps) {
  const { isChanged, isKept, value } = draft;
  return (
    <>
      {!isNew && isChanged && value.base < current.base && (
        <Banner kind="warn">
          Version {current.base} was deployed since you began from version {value.base}: deploying yours
          undoes what it changed. <em>Deploy</em> shows the difference to it.
        </Banner>
      )}
      {!isKept && (
        <Banner kind="warn">
          This is lost when you leave the screen: {draftsMax} drafts are kept already. Deploy or discard one.
        </Banner>
      )}
    </>
  );
}

interface StudioToolsProps {
  draft: KeptDraft<ActionText>;
  isNew: boolean;
  onDeploy: () => void;
}

function StudioTools({ draft, isNew, onDeploy }: StudioToolsProps) {
  const [isAsking, setAsking] = useState(false);
  const unless =
    actionProblem(draft.value) ?? (isNew || draft.isChanged ? undefined : 'Nothing has changed.');
  return (
    <div class="inline end">
      {draft.isChanged && (
        <>
          <span class="hint">kept as a draft in this tab</span>
          <Act kind="plain" onClick={() => setAsking(true)}>
            Discard
          </Act>
        </>
      )}
      <Act scope="admin" kind="main" unless={unless} onClick={onDeploy}>
        Deploy…
      </Act>
      {isAsking && (
        <AskDiscard onClose={() => setAsking(false)} onDiscard={draft.discard}>
          {isNew ? 'Nothing of it was deployed.' : 'What runs stays as it is.'}
        </AskDiscard>
      )}
    </div>
  );
}
