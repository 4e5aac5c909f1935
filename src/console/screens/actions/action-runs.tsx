import { useState } from 'preact/hooks';
import type { RunDocument } from '../../../contract/action-run.ts';
import type { ListDocument } from '../../../contract/document.ts';
import { byAge, Pages } from '../../lists/pages.tsx';
import { go, href, search } from '../../page/router.ts';
import { Loaded } from '../../parts/banner.tsx';
import { Choice } from '../../parts/choice.tsx';
import { Moment } from '../../parts/moment.tsx';
import { Untrusted, visible } from '../../parts/untrusted.tsx';
import { call } from '../../server/client.ts';
import { useResource } from '../../server/resource.ts';

const everySeconds = 3;
const pageRuns = 100;
const outcomes = [
  ['', 'All'],
  ['done', 'Done'],
  ['failed', 'Failed'],
  ['dead', 'Dead'],
] as const;
type Outcome = (typeof outcomes)[number][0];

/** Attempts at runs, newest first. */
export function ActionRuns({ fleetId, name }: { fleetId: string; name: string }) {
  const asked = search.value.get('outcome');
  const outcome: Outcome = outcomes.find(([one]) => one === asked)?.[0] ?? '';
  const after = search.value.get('after') ?? '';
  const path = `/fleets/${fleetId}/actions/${name}/runs`;
  const runs = useResource(
    `${path} ${outcome} ${after}`,
    (signal) =>
      call<ListDocument<RunDocument>>('GET', path, { query: { outcome, after, limit: pageRuns }, signal }),
    after === '' ? everySeconds : undefined,
  );
  const choose = (one: Outcome): void =>
    go(href([fleetId, 'actions', name], { tab: 'runs', outcome: one }), { replace: true });
  return (
    <div class="stack">
      <div class="inline">
        <Choice label="Outcome" value={outcome} options={outcomes} onChange={choose} />
      </div>
      <Loaded resource={runs}>
        {({ items, next }) => (
          <>
            {items.length === 0 ? (
              <p class="empty">
                {outcome === ''
                  ? 'It has not run yet: it runs for what is stored from now on.'
                  : 'No such run.'}
              </p>
            ) : (
              <RunTable fleetId={fleetId} items={items} />
            )}
            <Pages next={next} words={byAge} />
          </>
        )}
      </Loaded>
    </div>
  );
}

const marks = { done: 'active', failed: 'warn', dead: 'bad' } as const;

function RunTable({ fleetId, items }: { fleetId: string; items: readonly RunDocument[] }) {
  return (
    <div class="table">
      <table>
        <thead>
          <tr>
            <th>Outcome</th>
            <th>Device</th>
            <th class="less">Schema</th>
            <th class="number less">Version</th>
            <th class="number less">Attempt</th>
            <th class="number less">Mails</th>
            <th class="number less">CPU</th>
            <th class="number">Ended</th>
          </tr>
        </thead>
        <tbody>
          {items.map((run) => (
            <RunRow key={run.run} fleetId={fleetId} run={run} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function RunRow({ fleetId, run }: { fleetId: string; run: RunDocument }) {
  const [isOpen, setOpen] = useState(false);
  const { outcome, device, name, version, attempt, mails, cpu_milliseconds, ended_at, error } = run;
  const mark = marks[outcome as keyof typeof marks];
  return (
    <>
      <tr>
        <td>
          {error === null ? (
            <span class={`state is-${mark}`}>{outcome}</span>
          ) : (
            <button type="button" class="cell" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
              <span class={`state is-${mark}`}>
                {outcome}: {error.code.replaceAll('_', ' ')}
              </span>
            </button>
          )}
        </td>
        <td>
          <a class="mono link" href={href([fleetId, 'devices', device])}>
            {device}
          </a>
        </td>
        <td class="cut less">
          <Untrusted text={name} lengthMax={60} />
        </td>
        <td class="number soft less">{version}</td>
        <td class="number soft less">{attempt}</td>
        <td class="number less">{mails}</td>
        <td class="number soft less">{Number(cpu_milliseconds).toFixed(1)} ms</td>
        <td class="number soft">
          <Moment time={ended_at} />
        </td>
      </tr>
      {isOpen && error !== null && (
        <tr>
          <td colSpan={8} class="run-error">
            <pre class="small">{visible(error.msg, '\n')}</pre>
          </td>
        </tr>
      )}
    </>
  );
}
