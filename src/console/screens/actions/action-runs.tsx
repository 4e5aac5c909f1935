import { useEffect } from 'preact/hooks';
import type { RunDocument } from '../../../contract/action-run.ts';
import { below } from '../../../contract/routes/path.ts';
import { byAge, Pages } from '../../lists/pages.tsx';
import { useKeys } from '../../page/keys.ts';
import { go, href, search } from '../../page/router.ts';
import { Loaded } from '../../parts/banner.tsx';
import { Choice } from '../../parts/choice.tsx';
import { Moment } from '../../parts/moment.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { useDocument } from '../../server/resource.ts';
import { pathOfAction } from './action-path.ts';
import { ActionRun, runMarks } from './action-run.tsx';

const everySeconds = 3;
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

interface RunTableProps {
  fleetId: string;
  items: readonly RunDocument[];
  /** Beside the one that is opened there is less room. */
  opened: string | undefined;
  target: (run: string) => string;
}

function RunTable({ fleetId, items, opened, target }: RunTableProps) {
  useEffect(() => {
    document.querySelector('tr.is-selected')?.scrollIntoView({ block: 'nearest' });
  }, [opened]);
  const isWide = opened === undefined;
  return (
    <div class="table">
      <table>
        <thead>
          <tr>
            <th>Run</th>
            <th>Outcome</th>
            <th>Device</th>
            <th class="less">Schema</th>
            {isWide && <th class="number less">Version</th>}
            {isWide && <th class="number less">Attempt</th>}
            <th class="number less">Mails</th>
            {isWide && <th class="number less">CPU</th>}
            <th class="number">Ended</th>
          </tr>
        </thead>
        <tbody>
          {items.map((run) => (
            <RunRow
              key={run.run}
              fleetId={fleetId}
              run={run}
              isWide={isWide}
              isOpened={String(run.run) === opened}
              target={target(String(run.run))}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface RunRowProps {
  fleetId: string;
  run: RunDocument;
  isWide: boolean;
  isOpened: boolean;
  target: string;
}

function RunRow({ fleetId, run, isWide, isOpened, target }: RunRowProps) {
  const { outcome, device, name, version, attempt, mails, cpu_milliseconds, ended_at, error } = run;
  const mark = runMarks[outcome];
  return (
    <tr class={isOpened ? 'is-selected' : ''}>
      <td>
        <a class="link strong" href={target} aria-current={isOpened ? 'true' : undefined}>
          {run.run}
        </a>
      </td>
      <td>
        <span class={`state is-${mark}`}>
          <span class="cut run-outcome">
            {outcome}
            {error !== null && `: ${error.code.replaceAll('_', ' ')}`}
          </span>
        </span>
      </td>
      <td>
        <a class="mono link" href={href([fleetId, 'devices', device])}>
          {device}
        </a>
      </td>
      <td class="cut less">
        <Untrusted text={name} lengthMax={60} />
      </td>
      {isWide && <td class="number soft less">{version}</td>}
      {isWide && <td class="number soft less">{attempt}</td>}
      <td class="number less">{mails}</td>
      {isWide && <td class="number soft less">{Number(cpu_milliseconds).toFixed(1)} ms</td>}
      <td class="number soft">
        <Moment time={ended_at} />
      </td>
    </tr>
  );
}
