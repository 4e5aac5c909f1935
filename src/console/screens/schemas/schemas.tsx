import { useState } from 'preact/hooks';
import { schemaColumns } from '../../../contract/columns/fleet.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import type { SchemaDocument } from '../../../contract/schema.ts';
import { DraftLinks } from '../../forms/draft-links.tsx';
import { Screen } from '../../frame/frame.tsx';
import { ListTable } from '../../lists/table.tsx';
import { beginDraft, draftsMax, hasDraft } from '../../page/drafts.ts';
import { useKeys } from '../../page/keys.ts';
import { go, href, search } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Loaded } from '../../parts/banner.tsx';
import { Choice } from '../../parts/choice.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { useDocument } from '../../server/resource.ts';
import { NewSchema } from './new-schema.tsx';
import { newSchema, schemaDraftKey } from './schema-text.ts';
import { type SchemaUses, useSchemaUses } from './schema-uses.ts';
import { UsedBy } from './used-by.tsx';

const everySeconds = 15;
/** Rows drawn at first; the rest when they are asked for. */
const drawnRows = 200;

const kinds = [
  ['', 'All'],
  ['datapoint', 'Datapoints'],
  ['message', 'Messages'],
  ['mail', 'Mail'],
  ['reply', 'Replies'],
] as const;
type Kind = (typeof kinds)[number][0];

/** Lists the schemas of what devices may send and mail may hold. */
export function SchemasScreen({ fleetId }: { fleetId: string }) {
  const path = pathTo('/fleets/{fleet_id}/schemas', { fleet_id: fleetId });
  const list = useDocument(path, everySeconds);
  const uses = useSchemaUses(fleetId);
  const [isNaming, setNaming] = useState(false);
  useKeys({ n: () => setNaming(true) });
  const kind = kinds.find(([one]) => one === search.value.get('kind'))?.[0] ?? '';
  const text = search.value.get('name') ?? '';
  const items = list.value?.items ?? [];
  const shown = items.filter((one) => (kind === '' || one.kind === kind) && one.name.startsWith(text));
  const show = (changed: { kind?: Kind; name?: string }): void =>
    go(href([fleetId, 'schemas'], { kind, name: text, ...changed }), { replace: true });
  return (
    <Screen
      title="Schemas"
      read={list}
      tools={
        <Act scope="provision" kind="main" title="n" onClick={() => setNaming(true)}>
          New schema
        </Act>
      }
      commands={[{ command: ['schema', 'list', '--fleet', fleetId], request: { path } }]}
    >
      <DraftLinks
        beginning={`${fleetId}/schema/`}
        place={[fleetId, 'schemas']}
        names={items.map((one) => `${one.kind}/${one.name}`)}
        state="not stored"
      />
      <Loaded resource={list}>
        {() =>
          items.length === 0 ? (
            <NoSchema onNew={() => setNaming(true)} />
          ) : (
            <>
              <div class="inline">
                <Choice label="Kind" value={kind} options={kinds} onChange={(one) => show({ kind: one })} />
                <input
                  class="input is-narrow"
                  aria-label="Name begins with"
                  placeholder="Name begins with"
                  value={text}
                  maxLength={255}
                  spellcheck={false}
                  onInput={({ currentTarget }) => show({ name: currentTarget.value.trim() })}
                />
              </div>
              <SchemaTable key={kind + text} fleetId={fleetId} items={shown} uses={uses.value} />
            </>
          )
        }
      </Loaded>
      {isNaming && (
        <NewSchema
          onClose={() => setNaming(false)}
          onName={(chosen, name) => {
            const isThere = items.some((one) => one.kind === chosen && one.name === name);
            if (!isThere && !beginDraft(schemaDraftKey(fleetId, chosen, name), newSchema))
              return `${draftsMax} drafts are kept in this tab: store or discard one first.`;
            setNaming(false);
            go(href([fleetId, 'schemas', chosen, name]));
            return undefined;
          }}
        />
      )}
    </Screen>
  );
}

function NoSchema({ onNew }: { onNew: () => void }) {
  return (
    <div class="empty stack">
      <p>
        No schema yet. A datapoint or a message is taken only if the fleet has a schema of its name, and
        matches it; mail without one may hold anything.
      </p>
      <p>
        Write the first one here, or with <code>fleetpost schema put datapoint NAME FILE</code>.
      </p>
      <div>
        <Act scope="provision" onClick={onNew}>
          Write the first one
        </Act>
      </div>
    </div>
  );
}

const usedBy = { name: 'uses', label: 'Used by', kind: 'word', value: () => null, isLesser: true } as const;

interface SchemaTableProps {
  fleetId: string;
  items: readonly SchemaDocument[];
  uses: SchemaUses | undefined;
}

function SchemaTable({ fleetId, items, uses }: SchemaTableProps) {
  const [drawn, setDrawn] = useState(drawnRows);
  if (items.length === 0) return <p class="empty">None fits.</p>;
  return (
    <>
      <ListTable
        columns={[...schemaColumns, usedBy]}
        first="name"
        items={items.slice(0, drawn)}
        keyOf={({ kind, name }) => `${kind}:${name}`}
        cells={{
          name: ({ kind, name }) => (
            <>
              <a class="link strong" href={href([fleetId, 'schemas', kind, name])}>
                {name}
              </a>
              {hasDraft(schemaDraftKey(fleetId, kind, name)) && <span class="tag draft-mark">draft</span>}
            </>
          ),
          disabled: ({ disabled }) =>
            disabled === null ? (
              <span class="state is-active">checked</span>
            ) : (
              <span class="state is-bad">
                disabled: <Untrusted text={disabled} />
              </span>
            ),
          uses: ({ kind, name }) => (
            <UsedBy fleetId={fleetId} uses={uses?.get(`${kind}:${name}`) ?? []} isShort />
          ),
        }}
      />
      {items.length > drawn && (
        <Act kind="plain" onClick={() => setDrawn(drawn * 3)}>
          Show more of {items.length.toLocaleString('en')}
        </Act>
      )}
    </>
  );
}
