import { useState } from 'preact/hooks';
import type { ActionDocument } from '../../../contract/action.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { AskName } from '../../forms/ask-name.tsx';
import { DraftLinks } from '../../forms/draft-links.tsx';
import { Screen } from '../../frame/frame.tsx';
import { beginDraft, draftsMax } from '../../page/drafts.ts';
import { useKeys } from '../../page/keys.ts';
import { go, href, search } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Loaded } from '../../parts/banner.tsx';
import { Choice } from '../../parts/choice.tsx';
import { useDocument } from '../../server/resource.ts';
import { actionDraftKey } from './action-path.ts';
import { ActionTable } from './action-table.tsx';
import { newAction } from './action-text.ts';
import { actionHealth } from './health.ts';

const everySeconds = 10;

/** The actions of a fleet with the health of each. */
export function ActionsScreen({ fleetId }: { fleetId: string }) {
  const path = pathTo('/fleets/{fleet_id}/actions', { fleet_id: fleetId });
  const list = useDocument(path, everySeconds);
  const [isNaming, setNaming] = useState(false);
  useKeys({ n: () => setNaming(true) });
  const onlyTroubled = search.value.get('show') === 'attention';
  const items = list.value?.items ?? [];
  const troubled = items.filter((action) => action.enabled && actionHealth(action).mark !== 'active');
  return (
    <Screen
      title="Actions"
      read={list}
      tools={
        <Act scope="admin" kind="main" title="n" onClick={() => setNaming(true)}>
          New action
        </Act>
      }
      commands={[{ command: ['action', 'list', '--fleet', fleetId], request: { path } }]}
    >
      <DraftLinks
        beginning={actionDraftKey(fleetId, '')}
        place={[fleetId, 'actions']}
        names={items.map(({ name }) => name)}
        state="not deployed"
      />
      <Loaded resource={list}>
        {() =>
          items.length === 0 ? (
            <NoAction onNew={() => setNaming(true)} />
          ) : (
            <>
              <div class="inline">
                <Choice
                  label="Which actions"
                  value={onlyTroubled ? 'attention' : 'all'}
                  options={[
                    ['all', `All ${items.length}`],
                    ['attention', `Need attention ${troubled.length}`],
                  ]}
                  onChange={(show) =>
                    go(href([fleetId, 'actions'], { show: show === 'all' ? '' : show }), { replace: true })
                  }
                />
              </div>
              <ActionTable fleetId={fleetId} items={onlyTroubled ? troubled : items} />
            </>
          )
        }
      </Loaded>
      {isNaming && <NewAction fleetId={fleetId} items={items} onClose={() => setNaming(false)} />}
    </Screen>
  );
}

function NoAction({ onNew }: { onNew: () => void }) {
  return (
    <div class="empty stack">
      <p>
        No action yet. An action is a function of yours that runs when a device has sent a message or a
        datapoint: it can queue mail for devices and keep a little state.
      </p>
      <p>
        First put the schema of what your devices send, then write the action here, or with{' '}
        <code>fleetpost action put NAME FILE --on SCHEMA</code>.
      </p>
      <div>
        <Act scope="admin" onClick={onNew}>
          Write the first one
        </Act>
      </div>
    </div>
  );
}

interface NewActionProps {
  fleetId: string;
  items: readonly ActionDocument[];
  onClose: () => void;
}

function NewAction({ fleetId, items, onClose }: NewActionProps) {
  const open = (name: string): string | undefined => {
    const isThere = items.some((action) => action.name === name);
    if (!isThere && !beginDraft(actionDraftKey(fleetId, name), newAction))
      return `${draftsMax} drafts are kept in this tab: deploy or discard one first.`;
    onClose();
    go(href([fleetId, 'actions', name]));
    return undefined;
  };
  return (
    <AskName
      title="New action"
      hint="Letters, digits, _ and -. It stays: versions, log and state are under it."
      onName={open}
      onClose={onClose}
    />
  );
}
