import { useState } from 'preact/hooks';
import type { ListColumns } from '../../../contract/columns/column.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import type { TopDocument } from '../../../contract/server.ts';
import { Confirm } from '../../forms/confirm.tsx';
import { Section } from '../../frame/frame.tsx';
import { ListTable } from '../../lists/table.tsx';
import { href } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Banner } from '../../parts/banner.tsx';
import { bytesText } from '../../parts/bytes.ts';
import { type Figure, Figures } from '../../parts/facts.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { call } from '../../server/client.ts';
import { ServerLastHour } from './hour.tsx';
import { type RouteRate, type ServerRates, useServerRates } from './rates.ts';
import { Rate, rateText, ShardTable } from './shards.tsx';

/** Shows what `fleetpost top` shows. */
export function ServerActivity(props: { fleetId: string; top: TopDocument; onReleased: () => void }) {
  const { fleetId, top, onReleased } = props;
  const rates = useServerRates(top);
  return (
    <>
      {top.reasons.length > 0 && <Banner kind="bad">Not ready: {top.reasons.join(', ')}.</Banner>}
      {top.held && <Held onReleased={onReleased} />}
      <ServerFigures top={top} rates={rates} />
      <ServerLastHour />
      <div class="columns is-even">
        <div>
          <Routes routes={rates?.routes} />
        </div>
        <div>
          <TopTalkers fleetId={fleetId} talkers={top.talkers} />
        </div>
      </div>
      <ShardTable shards={rates?.shards ?? top.shards} />
    </>
  );
}

function Held({ onReleased }: { onReleased: () => void }) {
  const [isAsked, setAsked] = useState(false);
  return (
    <>
      <Banner
        kind="warn"
        tools={
          <Act scope="admin" onClick={() => setAsked(true)}>
            Release
          </Act>
        }
      >
        The server is held: forwarders, actions, broadcasts and delayed mail wait until it is released.
      </Banner>
      {isAsked && (
        <Confirm
          title="Release the server"
          work={() => call('DELETE', pathTo('/hold', {}))}
          onClose={() => setAsked(false)}
          onDone={onReleased}
        >
          Forwarders, actions, broadcasts and delayed mail go on at once. If this is a copy of another server
          that runs, both would do the same.
        </Confirm>
      )}
    </>
  );
}

function ServerFigures({ top, rates }: { top: TopDocument; rates: ServerRates | undefined }) {
  const sum = (key: 'devices' | 'mails'): string =>
    top.shards.reduce((total, shard) => total + shard[key], 0).toLocaleString('en');
  const within = (ms: number | undefined): string =>
    ms === undefined ? '–' : `≤ ${Number(ms.toPrecision(3)).toLocaleString('en')} ms`;
  const figures = [
    ['Requests', rates === undefined ? '…' : `${rateText(rates.requestsPerSecond)}/s`],
    ['p50', rates === undefined ? '…' : within(rates.p50Ms)],
    ['p99', rates === undefined ? '…' : within(rates.p99Ms)],
    ['CPU', rates === undefined ? '…' : `${Math.round(rates.cpuCores * 100)} %`, '', 'of one core'],
    ['Memory', bytesText(top.memory_bytes), '', 'of this process'],
    [
      'Free disk',
      top.disk_free_bytes === null ? '–' : bytesText(top.disk_free_bytes),
      '',
      top.disk_free_bytes === null ? 'not watched here' : 'of the data folder',
    ],
  ] as const satisfies readonly Figure[];
  const stock = [
    ['Connections', top.connections.toLocaleString('en')],
    ['Streams', top.streams.toLocaleString('en')],
    ['Devices', sum('devices')],
    ['Mails waiting', sum('mails')],
  ] as const;
  return (
    <div>
      <Figures figures={figures} isSmall />
      <Figures figures={stock} isSmall />
    </div>
  );
}

const shownRoutes = 12;
const routeColumns = [
  { name: 'route', label: 'Route' },
  { name: 'perSecond', label: 'Per second', kind: 'count' },
  { name: 'failedPerSecond', label: '5xx', kind: 'count' },
] as const satisfies ListColumns<RouteRate>;

function Routes({ routes }: { routes: readonly RouteRate[] | undefined }) {
  return (
    <Section title="Requests of devices">
      {routes === undefined ? (
        <p class="empty">Measuring, for two seconds…</p>
      ) : routes.length === 0 ? (
        <p class="empty">No device has called since the start.</p>
      ) : (
        <ListTable
          columns={routeColumns}
          items={routes.slice(0, shownRoutes)}
          keyOf={({ route }) => route}
          cells={{
            route: ({ route }) => (
              <code class="small">
                <Untrusted text={route} lengthMax={80} />
              </code>
            ),
            perSecond: ({ perSecond }) => <Rate perSecond={perSecond} />,
            failedPerSecond: ({ failedPerSecond }) => <Rate perSecond={failedPerSecond} isBad />,
          }}
        />
      )}
    </Section>
  );
}

function TopTalkers({ fleetId, talkers }: { fleetId: string; talkers: TopDocument['talkers'] }) {
  return (
    <Section title="Who asks most" note={<span class="read">in the last minute</span>}>
      {talkers.length === 0 ? (
        <p class="empty">No device has called in the last minute.</p>
      ) : (
        <ul class="list">
          {talkers.slice(0, 10).map(({ fleet_id, device_id, requests_per_second }) => (
            <li key={fleet_id + device_id}>
              <a class="row" href={href([fleet_id, 'devices', device_id])}>
                <code>{device_id}</code>
                {fleet_id !== fleetId && <span class="soft small mono">{fleet_id}</span>}
                <span class="end small">{rateText(requests_per_second)}/s</span>
              </a>
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}
