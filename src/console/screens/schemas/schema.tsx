import { useEffect, useState } from 'preact/hooks';
import type { ListDocument } from '../../../contract/document.ts';
import type { SchemaDocument } from '../../../contract/schema.ts';
import { CodeEditor } from '../../editor/code-editor.tsx';
import { Head, Section } from '../../frame.tsx';
import { beginDraft, draftsMax, hasDraft, type KeptDraft, useDraft } from '../../page/drafts.ts';
import { go, href } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Banner, Loaded } from '../../parts/banner.tsx';
import { Commands } from '../../parts/commands.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { call, open } from '../../server/client.ts';
import { useResource } from '../../server/resource.ts';
import { may } from '../../session/session.ts';
import { AskDelete, AskDiscard } from './ask.tsx';
import { Cost } from './cost.tsx';
import {
  newSchema,
  noSample,
  type SampleText,
  type SchemaKindName,
  schemaDraftKey,
  schemaProblem,
  type WrittenSchema,
} from './schema-text.ts';
import { useSchemaUses } from './schema-uses.ts';
import { StoreDrawer } from './store.tsx';
import { TrySample } from './try-sample.tsx';
import { faultsOfSchema, useSchemaCheck } from './use-schema-check.ts';
import { UsedBy } from './used-by.tsx';

export interface SchemaScreenProps {
  fleetId: string;
  kind: SchemaKindName;
  name: string;
}

/** One schema: written, tried on a sample, and stored. */
export function SchemaScreen({ fleetId, kind, name }: SchemaScreenProps) {
  const path = `/fleets/${fleetId}/schemas/${kind}/${encodeURIComponent(name)}`;
  // Byte for byte: a parsed one would lose the order and the digits of its author.
  const stored = useResource(path, async (signal) => ({
    text: await (await open('GET', path, { signal })).text(),
  }));
  const key = schemaDraftKey(fleetId, kind, name);
  const isMissing = stored.error?.code === 'schema_not_found';
  if (isMissing && !hasDraft(key)) {
    const isName = /^[A-Za-z0-9_-]{1,255}$/.test(name);
    return (
      <>
        <Head title={name} beside={<span class="tag">{kind}</span>} />
        <div class="body">
          <Banner
            tools={
              isName ? (
                <Act scope="provision" onClick={() => beginDraft(key, newSchema)}>
                  Write it
                </Act>
              ) : undefined
            }
          >
            <p>
              There is no {kind} schema of this name in the fleet.{' '}
              <a href={href([fleetId, 'schemas'])}>All schemas</a>
            </p>
          </Banner>
        </div>
      </>
    );
  }
  if (stored.value === undefined && !isMissing) {
    return (
      <>
        <Head title={name} beside={<span class="tag">{kind}</span>} />
        <div class="body">
          <Loaded resource={stored}>{() => null}</Loaded>
        </div>
      </>
    );
  }
  return (
    <Workshop
      fleetId={fleetId}
      kind={kind}
      name={name}
      current={stored.value ?? newSchema}
      isNew={stored.value === undefined}
      onStored={stored.refresh}
    />
  );
}

interface WorkshopProps extends SchemaScreenProps {
  current: WrittenSchema;
  isNew: boolean;
  onStored: () => void;
}

function Workshop({ fleetId, kind, name, current, isNew, onStored }: WorkshopProps) {
  const key = schemaDraftKey(fleetId, kind, name);
  const draft = useDraft(key, current, isNew);
  const sample = useDraft<SampleText>(`${key}#sample`, noSample);
  const isReadOnly = !may('provision');
  const { text } = draft.value;
  const check = useSchemaCheck(fleetId, kind, { text, sample: sample.value.sample }, isReadOnly);
  const uses = useSchemaUses(fleetId);
  const [asked, setAsked] = useState<'store' | 'delete' | 'discard' | undefined>();
  const [isStored, setStored] = useState(false);
  const faults = faultsOfSchema(check);
  const own = uses.value?.get(`${kind}:${name}`) ?? [];
  useEffect(() => {
    if (!isNew && draft.isChanged && text === current.text) draft.discard();
  }, [current.text, text]);
  const close = (): void => setAsked(undefined);
  return (
    <>
      <Head
        title={name}
        beside={
          <span class="inline">
            <span class="tag">{kind}</span>
            {isNew && <span class="tag">not stored yet</span>}
            {draft.isChanged && <span class="hint">kept as a draft in this tab</span>}
          </span>
        }
        tools={<SchemaTools draft={draft} isNew={isNew} fault={faults[0]?.msg} onAsk={setAsked} />}
      />
      <div class="body">
        {isStored && !draft.isChanged && <Banner kind="good">It is stored, and holds from now on.</Banner>}
        {!draft.isKept && (
          <Banner kind="warn">
            This is lost when you leave the screen: {draftsMax} drafts are kept already. Store or discard one.
          </Banner>
        )}
        <Disabled fleetId={fleetId} kind={kind} name={name} />
        <div class="studio">
          <div class="stack">
            <CodeEditor
              label={`JSON Schema ${name}`}
              language="json"
              text={text}
              isReadOnly={isReadOnly}
              onChange={(changed) => {
                setStored(false);
                draft.change({ text: changed });
              }}
              check={isReadOnly ? undefined : () => Promise.resolve(faults)}
              checkKey={faults.map(({ msg }) => msg).join()}
            />
            <Cost check={check} isReadOnly={isReadOnly} />
            <Section title="Used by">
              <div class="below">
                <Loaded resource={uses}>{() => <UsedBy fleetId={fleetId} uses={own} />}</Loaded>
              </div>
            </Section>
          </div>
          <aside aria-label="Try a sample">
            <TrySample
              fleetId={fleetId}
              kind={kind}
              name={name}
              sample={sample}
              check={check}
              isReadOnly={isReadOnly}
            />
          </aside>
        </div>
      </div>
      <Commands
        command={['schema', 'put', kind, name, `${name}.json`, '--fleet', fleetId]}
        request={{ method: 'PUT', path: `/fleets/${fleetId}/schemas/${kind}/${name}`, body: `@${name}.json` }}
      />
      {asked === 'store' && (
        <StoreDrawer
          fleetId={fleetId}
          kind={kind}
          name={name}
          before={isNew ? undefined : current.text}
          after={text}
          uses={own}
          onClose={close}
          onDone={() => {
            close();
            setStored(true);
            onStored();
          }}
        />
      )}
      {asked === 'delete' && (
        <AskDelete
          path={`/fleets/${fleetId}/schemas/${kind}/${name}`}
          kind={kind}
          name={name}
          uses={own}
          onClose={close}
          onDone={() => go(href([fleetId, 'schemas']))}
        />
      )}
      {asked === 'discard' && <AskDiscard onClose={close} onDiscard={draft.discard} />}
    </>
  );
}

interface SchemaToolsProps {
  draft: KeptDraft<WrittenSchema>;
  isNew: boolean;
  fault: string | undefined;
  onAsk: (asked: 'store' | 'delete' | 'discard') => void;
}

function SchemaTools({ draft, isNew, fault, onAsk }: SchemaToolsProps) {
  const unless =
    schemaProblem(draft.value) ??
    (fault && 'The server would refuse it: see below the schema.') ??
    (isNew || draft.isChanged ? undefined : 'Nothing has changed.');
  return (
    <>
      {draft.isChanged && (
        <button type="button" class="button is-plain" onClick={() => onAsk('discard')}>
          Discard
        </button>
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

/** Why bodies for it are refused now. */
function Disabled({ fleetId, kind, name }: SchemaScreenProps) {
  const path = `/fleets/${fleetId}/schemas`;
  const list = useResource(path, (signal) => call<ListDocument<SchemaDocument>>('GET', path, { signal }), 10);
  const reason = list.value?.items.find((one) => one.kind === kind && one.name === name)?.disabled ?? null;
  if (reason === null) return null;
  return (
    <Banner kind="bad">
      Disabled: <Untrusted text={reason} />. Its bodies are answered 503 until it is stored again or the
      server restarts.
    </Banner>
  );
}
