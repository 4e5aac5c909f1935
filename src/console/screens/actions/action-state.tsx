import { useState } from 'preact/hooks';
import type { StateEntryDocument } from '../../../contract/action-run.ts';
import { stateColumns } from '../../../contract/columns/action.ts';
import { below } from '../../../contract/routes/path.ts';
import { Confirm } from '../../forms/confirm.tsx';
import { Pages } from '../../lists/pages.tsx';
import { ListTable } from '../../lists/table.tsx';
import { search } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Loaded } from '../../parts/banner.tsx';
import { Untrusted, visible } from '../../parts/untrusted.tsx';
import { call } from '../../server/client.ts';
import { writeExactly } from '../../server/exact-json.ts';
import { useDocument } from '../../server/resource.ts';
import { pathOfAction } from './action-path.ts';
import { SetState } from './set-state.tsx';

const pageKeys = 100;
const everySeconds = 15;
const valueCharactersMax = 65_536;

type Asked =
  | { verb: 'set'; entry: { key: string; value: string } | undefined }
  | { verb: 'delete'; key: string }
  | { verb: 'clear' };

/** Lists the state that an action keeps between its runs. */
export function ActionState({ fleetId, name }: { fleetId: string; name: string }) {
  const after = search.value.get('after') ?? '';
  const [asked, setAsked] = useState<Asked | undefined>();
  const path = below(pathOfAction(fleetId, name), '/state', {});
  const valuePath = below(path, '/value', {});
  const state = useDocument(path, everySeconds, { after, limit: pageKeys });
  const close = (): void => setAsked(undefined);
  return (
    <div class="stack">
      <div class="inline">
        <Act scope="admin" onClick={() => setAsked({ verb: 'set', entry: undefined })}>
          Set a key
        </Act>
        <Act
          scope="admin"
          kind="bad"
          onClick={() => setAsked({ verb: 'clear' })}
          unless={state.value?.items.length === 0 && after === '' ? 'The state is empty.' : undefined}
        >
          Clear the whole state
        </Act>
      </div>
      <Loaded resource={state}>
        {({ items, next }) => (
          <>
            {items.length === 0 ? (
              <p class="empty">The state is empty. An action writes it by fleet.state.set(key, value).</p>
            ) : (
              <StateTable items={items} onAsk={setAsked} />
            )}
            <Pages next={next} words={['First keys', 'Next keys']} />
          </>
        )}
      </Loaded>
      {asked?.verb === 'set' && (
        <SetState path={valuePath} entry={asked.entry} onClose={close} onDone={state.refresh} />
      )}
      {asked?.verb === 'delete' && (
        <Confirm
          title="Delete the key"
          work={() => call('DELETE', valuePath, { query: { key: asked.key } })}
          onClose={close}
          onDone={state.refresh}
        >
          <code>
            <Untrusted text={asked.key} />
          </code>{' '}
          goes with its value. Runs under way that have read it start over.
        </Confirm>
      )}
      {asked?.verb === 'clear' && (
        <Confirm
          title="Clear the whole state"
          work={() => call('DELETE', path)}
          onClose={close}
          onDone={state.refresh}
        >
          All keys of <strong>{name}</strong> go with their values. Runs under way that have read one start
          over.
        </Confirm>
      )}
    </div>
  );
}

interface StateTableProps {
  items: readonly StateEntryDocument[];
  onAsk: (asked: Asked) => void;
}

function StateTable({ items, onAsk }: StateTableProps) {
  return (
    <ListTable
      columns={stateColumns}
      items={items}
      keyOf={({ key }) => key}
      cells={{
        key: ({ key }) => (
          <code>
            <Untrusted text={key} />
          </code>
        ),
        value: ({ value }) => <code class="state-value">{visible(writeExactly(value, 300))}</code>,
      }}
      acts={({ key, value }) => (
        <>
          <Act
            scope="admin"
            kind="plain"
            onClick={() =>
              onAsk({ verb: 'set', entry: { key, value: writeExactly(value, valueCharactersMax) } })
            }
          >
            Set
          </Act>
          <Act scope="admin" kind="plain" onClick={() => onAsk({ verb: 'delete', key })}>
            Delete
          </Act>
        </>
      )}
    />
  );
}
