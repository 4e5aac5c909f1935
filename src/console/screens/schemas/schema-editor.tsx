import { useEffect, useState } from 'preact/hooks';
import { pathTo } from '../../../contract/routes/path.ts';
import { CodeEditor } from '../../editor/code-editor.tsx';
import { AskDiscard } from '../../forms/confirm.tsx';
import { Screen, Section } from '../../frame/frame.tsx';
import { draftsMax, type KeptDraft, useDraft } from '../../page/drafts.ts';
import { Act } from '../../parts/act.tsx';
import { Banner, Loaded } from '../../parts/banner.tsx';
import type { Resource } from '../../server/resource.ts';
import { may } from '../../session/session.ts';
import { Cost } from './cost.tsx';
import { RefusedBy } from './refused-by.tsx';
import { SchemaDisabled } from './schema-disabled.tsx';
import {
  noSample,
  type SampleText,
  type SchemaName,
  schemaDraftKey,
  schemaProblem,
  type WrittenSchema,
} from './schema-text.ts';
import { type SchemaUses, useSchemaUses } from './schema-uses.ts';
import { DeleteSchema, StoreDrawer } from './store.tsx';
import { TrySample } from './try-sample.tsx';
import {
  faultsKey,
  faultsOfSchema,
  markedFaults,
  type SchemaCheck,
  useSchemaCheck,
} from './use-schema-check.ts';
import { UsedBy } from './used-by.tsx';

export interface SchemaEditorProps extends SchemaName {
  /** The stored schema; of a new one, what it begins as. */
  current: WrittenSchema;
  isNew: boolean;
  onStored: () => void;
}

/** Steps that are confirmed before they are done. */
type Asked = 'store' | 'delete' | 'discard';

/** Screen to write a schema, try it on a sample and store it. What is written outlives the screen. */
export function SchemaEditor({ current, isNew, onStored, ...schema }: SchemaEditorProps) {
  const { fleetId, kind, name } = schema;
  const key = schemaDraftKey(fleetId, kind, name);
  const draft = useDraft(key, current, isNew);
  const sample = useDraft<SampleText>(`${key}#sample`, noSample);
  const isReadOnly = !may('provision');
  const { text } = draft.value;
  const check = useSchemaCheck(fleetId, kind, { text, sample: sample.value.sample }, isReadOnly);
  const uses = useSchemaUses(fleetId);
  const [asked, setAsked] = useState<Asked | undefined>();
  const [storedText, setStoredText] = useState<string | undefined>();
  // Once the server has what was stored, nothing is left to be kept.
  useEffect(() => {
    if (!isNew && draft.isChanged && text === current.text) draft.discard();
  }, [current.text, text]);
  const stored = (): void => {
    setAsked(undefined);
    setStoredText(text);
    onStored();
  };
  return (
    <Screen
      title={name}
      beside={<SchemaMarks kind={kind} isNew={isNew} isDraft={draft.isChanged} />}
      tools={<SchemaTools draft={draft} isNew={isNew} check={check} onAsk={setAsked} />}
      commands={[
        {
          command: ['schema', 'put', kind, name, `${name}.json`, '--fleet', fleetId],
          request: {
            method: 'PUT',
            path: pathTo('/fleets/{fleet_id}/schemas/{kind}/{name}', { fleet_id: fleetId, kind, name }),
            body: `@${name}.json`,
          },
        },
      ]}
    >
      {text === storedText && !draft.isChanged && (
        <Banner kind="good">It is stored, and holds from now on.</Banner>
      )}
      {!draft.isKept && (
        <Banner kind="warn">
          This is lost when you leave the screen: {draftsMax} drafts are kept already. Store or discard one.
        </Banner>
      )}
      <SchemaDisabled {...schema} />
      <div class="studio">
        <Written {...schema} draft={draft} check={check} uses={uses} isReadOnly={isReadOnly} isNew={isNew} />
        <aside aria-label="Try a sample">
          <TrySample {...schema} sample={sample} check={check} isReadOnly={isReadOnly} />
        </aside>
      </div>
      <Question
        {...schema}
        asked={asked}
        before={isNew ? undefined : current.text}
        draft={draft}
        uses={uses}
        onClose={() => setAsked(undefined)}
        onStored={stored}
      />
    </Screen>
  );
}

function SchemaMarks({ kind, isNew, isDraft }: { kind: string; isNew: boolean; isDraft: boolean }) {
  return (
    <span class="inline">
      <span class="tag">{kind}</span>
      {isNew && <span class="tag">not stored yet</span>}
      {isDraft && <span class="hint">kept as a draft in this tab</span>}
    </span>
  );
}

interface SchemaToolsProps {
  draft: KeptDraft<WrittenSchema>;
  isNew: boolean;
  check: SchemaCheck;
  onAsk: (asked: Asked) => void;
}

function SchemaTools({ draft, isNew, check, onAsk }: SchemaToolsProps) {
  const unless =
    schemaProblem(draft.value) ??
    (faultsOfSchema(check).length > 0 ? 'The server would refuse it: see below the schema.' : undefined) ??
    (isNew || draft.isChanged ? undefined : 'Nothing has changed.');
  return (
    <>
      {draft.isChanged && (
        <Act kind="plain" onClick={() => onAsk('discard')}>
          Discard
        </Act>
      )}
      {!isNew && (
        <Act scope="provision" kind="bad" onClick={() => onAsk('delete')}>
          Delete
        </Act>
      )}
      <Act scope="provision" kind="main" unless={unless} onClick={() => onAsk('store')}>
        {isNew ? 'Store…' : 'Replace…'}
      </Act>
    </>
  );
}

interface WrittenProps extends SchemaName {
  draft: KeptDraft<WrittenSchema>;
  check: SchemaCheck;
  uses: Resource<SchemaUses>;
  isReadOnly: boolean;
  isNew: boolean;
}

/** The schema itself, with what it costs and who relies on it. */
function Written({ fleetId, kind, name, draft, check, uses, isReadOnly, isNew }: WrittenProps) {
  const faults = faultsOfSchema(check);
  return (
    <div class="stack">
      <CodeEditor
        label={`JSON Schema ${name}`}
        language="json"
        text={draft.value.text}
        isReadOnly={isReadOnly}
        onChange={(text) => draft.change({ text })}
        check={isReadOnly ? undefined : () => markedFaults(check, faults)}
        checkKey={faultsKey(check, faults)}
      />
      <Cost check={check} isReadOnly={isReadOnly} />
      {/* Mail is refused to whoever sends it. */}
      {!isNew && (kind === 'datapoint' || kind === 'message') && (
        <RefusedBy fleetId={fleetId} kind={kind} name={name} />
      )}
      <Section title="Used by">
        <div class="below">
          <Loaded resource={uses}>
            {(known) => <UsedBy fleetId={fleetId} uses={known.get(`${kind}:${name}`) ?? []} />}
          </Loaded>
        </div>
      </Section>
    </div>
  );
}

interface QuestionProps extends SchemaName {
  asked: Asked | undefined;
  /** The stored text; undefined: there is none. */
  before: string | undefined;
  draft: KeptDraft<WrittenSchema>;
  uses: Resource<SchemaUses>;
  onClose: () => void;
  onStored: () => void;
}

function Question({ asked, before, draft, uses, onClose, onStored, ...schema }: QuestionProps) {
  const own = uses.value?.get(`${schema.kind}:${schema.name}`) ?? [];
  if (asked === undefined) return null;
  if (asked === 'delete') return <DeleteSchema {...schema} uses={own} onClose={onClose} />;
  if (asked === 'discard')
    return (
      <AskDiscard onClose={onClose} onDiscard={draft.discard}>
        What is stored stays as it is.
      </AskDiscard>
    );
  return (
    <StoreDrawer
      {...schema}
      before={before}
      after={draft.value.text}
      uses={own}
      onClose={onClose}
      onDone={onStored}
    />
  );
}
