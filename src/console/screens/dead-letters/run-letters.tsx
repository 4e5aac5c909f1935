import { useState } from 'preact/hooks';
import type { DeadRunDocument } from '../../../contract/action-run.ts';
import { deadRunColumns } from '../../../contract/columns/action.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { Head } from '../../frame/frame.tsx';
import { Pages } from '../../lists/pages.tsx';
import { useRowCursor } from '../../lists/row-cursor.ts';
import { ListTable, RowButton } from '../../lists/table.tsx';
import { useKeys } from '../../page/keys.ts';
import { href, search } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Loaded } from '../../parts/banner.tsx';
import { Commands } from '../../parts/commands.tsx';
import { DeviceLink } from '../../parts/device.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { useDocument } from '../../server/resource.ts';
import { RunLetterSide } from './run-letter-side.tsx';
import { type SettledRuns, SettleRunsDialog } from './settle-runs.tsx';

const pageLetters = 100;

/** Runs of an action that failed for good: looked at with their records, replayed or dropped, one or all. */
export function RunLettersScreen({ fleetId, name }: { fleetId: string; name: string }) {
  const after = search.value.get('after') ?? '';
  const path = pathTo('/fleets/{fleet_id}/actions/{name}/dead-letters', { fleet_id: fleetId, name });
  const list = useDocument(path, undefined, { after, limit: pageLetters });
  const [asked, setAsked] = useState<SettledRuns | undefined>();
  const unless = list.value?.items.length === 0 ? 'There is none.' : undefined;
  const askAll = (verb: SettledRuns['verb']) => () => setAsked({ verb, run: undefined });
  return (
    <>
      <Head
        title={`Dead letters of ${name}`}
        read={list}
        beside={
          <a class="link small" href={href([fleetId, 'actions', name])}>
            the action
          </a>
        }
        tools={
          <>
            <button type="button" class="button" onClick={list.refresh}>
              Refresh
            </button>
            <Act scope="admin" kind="bad" unless={unless} onClick={askAll('drop')}>
              Drop all
            </Act>
            <Act scope="admin" unless={unless} onClick={askAll('replay')}>
              Replay all
            </Act>
          </>
        }
      />
      <div class="body">
        <Loaded resource={list}>
          {({ items, next }) =>
            items.length === 0 && after === '' ? (
              <p class="empty">
                No run of this action has failed for good. Those of mail are under{' '}
                <a href={href([fleetId, 'dead-letters'])}>Dead letters</a>.
              </p>
            ) : (
              <>
                <FailedRuns key={after} fleetId={fleetId} name={name} items={items} onAsk={setAsked} />
                <Pages next={next} />
              </>
            )
          }
        </Loaded>
      </div>
      <Commands
        command={['action', 'dead-letters', name, '--fleet', fleetId]}
        request={{ path, query: { after } }}
      />
      {asked && (
        <SettleRunsDialog
          path={path}
          asked={asked}
          onClose={() => setAsked(undefined)}
          onDone={list.refresh}
        />
      )}
    </>
  );
}

interface FailedRunsProps {
  fleetId: string;
  name: string;
  items: readonly DeadRunDocument[];
  onAsk: (asked: SettledRuns) => void;
}

/** A page of runs, with the one that the keys are at beside it. */
function FailedRuns({ fleetId, name, items, onAsk }: FailedRunsProps) {
  const [at, setCursor] = useRowCursor(items.length);
  const current = items[at];
  const act = (verb: SettledRuns['verb']) => () => current && onAsk({ verb, run: current.run });
  useKeys({ r: act('replay'), d: act('drop') });
  return (
    <div class="split">
      <ListTable
        columns={deadRunColumns}
        first="error"
        items={items}
        keyOf={({ run }) => run}
        cursor={at}
        cells={{
          error: ({ error }, index) => (
            <>
              <RowButton isCurrent={index === at} onClick={() => setCursor(index)}>
                {error.code.replaceAll('_', ' ')}
              </RowButton>{' '}
              <span class="soft small">
                <Untrusted text={error.msg.split('\n', 1)[0] ?? ''} lengthMax={120} />
              </span>
            </>
          ),
          device: ({ device }) => <DeviceLink fleetId={fleetId} id={device} />,
        }}
      />
      <aside aria-label="The run">
        {current && (
          <RunLetterSide
            key={current.run}
            fleetId={fleetId}
            name={name}
            letter={current}
            onReplay={act('replay')}
            onDrop={act('drop')}
          />
        )}
      </aside>
    </div>
  );
}
