import { useEffect } from 'preact/hooks';
import type { RunDocument } from '../../../contract/action-run.ts';
import { runColumns } from '../../../contract/columns/action.ts';
import { below } from '../../../contract/routes/path.ts';
import { byAge, Pages } from '../../lists/pages.tsx';
import { ListTable } from '../../lists/table.tsx';
import { useKeys } from '../../page/keys.ts';
import { go, href, search } from '../../page/router.ts';
import { Loaded } from '../../parts/banner.tsx';
import { Choice } from '../../parts/choice.tsx';
import { DeviceLink } from '../../parts/device.tsx';
import { useDocument } from '../../server/resource.ts';
import { pathOfAction } from './action-path.ts';
import { ActionRun, runMarks } from './action-run.tsx';

const everySeconds = 15;
const pageRuns = 100;
const outcomes = [
  ['', 'All'],
  ['done', 'Done'],
  ['failed', 'Failed'],
  ['dead', 'Dead'],
] as const;
type Outcome = (typeof outcomes)[number][0];

/** The run that the address names. */
export function openedRun(): string | undefined {
  return /^[1-9]\d{0,14}$/.exec(search.value.get('run') ?? '')?.[0];
}

/** Attempts at runs, newest first, and beside them the one that is opened. */
export function ActionRuns({ fleetId, name }: { fleetId: string; name: string }) {
  const asked = search.value.get('outcome');
  const outcome: Outcome = outcomes.find(([one]) => one === asked)?.[0] ?? '';
  const after = search.value.get('after') ?? '';
  const runs = useDocument(
    below(pathOfAction(fleetId, name), '/runs', {}),
    after === '' ? everySeconds : undefined,
    { outcome: outcome || undefined, after, limit: pageRuns },
  );
  const opened = openedRun();
  const target = (run: string): string =>
    href([fleetId, 'actions', name], { tab: 'runs', outcome, after, run });
  const items = runs.value?.items ?? [];
  const step = (by: 1 | -1) => (): void => {
    const at = items.findIndex(({ run }) => String(run) === opened);
    const next = items[at === -1 ? 0 : at + by];
    if (next !== undefined) go(target(String(next.run)), { replace: true });
  };
  useKeys({ j: step(1), k: step(-1) });
  const choose = (one: Outcome): void =>
    go(href([fleetId, 'actions', name], { tab: 'runs', outcome: one }), { replace: true });
  return (
    <div class="stack">
      <div class="inline">
        <Choice label="Outcome" value={outcome} options={outcomes} onChange={choose} />
      </div>
      <div class={opened === undefined ? '' : 'split'}>
        <Loaded resource={runs}>
          {({ next }) => (
            <div>
              {items.length === 0 ? (
                <p class="empty">
                  {outcome === ''
                    ? 'It has not run yet: it runs for what is stored from now on.'
                    : 'No such run.'}
                </p>
              ) : (
                <RunTable fleetId={fleetId} items={items} opened={opened} target={target} />
              )}
              <Pages next={next} words={byAge} />
            </div>
          )}
        </Loaded>
        {opened !== undefined && (
          <aside aria-label="The run">
            <ActionRun key={opened} fleetId={fleetId} name={name} run={opened} back={target('')} />
          </aside>
        )}
      </div>
    </div>
  );
}

/** Columns for which there is no room beside a run. */
const ofWideTable: readonly string[] = ['version', 'attempt', 'cpu_milliseconds'];

interface RunTableProps {
  fleetId: string;
  items: readonly RunDocument[];
  /** The run that is opened: beside it there is less room. */
  opened: string | undefined;
  target: (run: string) => string;
}

function RunTable({ fleetId, items, opened, target }: RunTableProps) {
  useEffect(() => {
    document.querySelector('tr.is-selected')?.scrollIntoView({ block: 'nearest' });
  }, [opened]);
  return (
    <ListTable
      columns={
        opened === undefined ? runColumns : runColumns.filter(({ name }) => !ofWideTable.includes(name))
      }
      items={items}
      keyOf={({ run }) => run}
      isSelected={({ run }) => String(run) === opened}
      opens
      cells={{
        run: ({ run }) => (
          <a
            class="link strong"
            href={target(String(run))}
            data-opens
            aria-current={String(run) === opened ? 'true' : undefined}
          >
            {run}
          </a>
        ),
        outcome: ({ outcome, error }) => (
          <span class={`state is-${runMarks[outcome]}`}>
            <span class="cut run-outcome">
              {outcome}
              {error !== null && `: ${error.code.replaceAll('_', ' ')}`}
            </span>
          </span>
        ),
        device: ({ device }) => <DeviceLink fleetId={fleetId} id={device} />,
        cpu_milliseconds: ({ cpu_milliseconds }) => (
          <span class="soft">{Number(cpu_milliseconds).toFixed(1)} ms</span>
        ),
      }}
    />
  );
}
