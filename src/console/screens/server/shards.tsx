import type { ListColumns } from '../../../contract/columns/column.ts';
import { Section } from '../../frame/frame.tsx';
import { ListTable } from '../../lists/table.tsx';
import type { ShardRate } from './rates.ts';

const queueOfBusyShard = 100;

/** A rate as it is read: with a digit after the point while it is small. */
export function rateText(perSecond: number): string {
  return perSecond.toLocaleString('en', {
    maximumFractionDigits: perSecond < 1 ? 2 : perSecond < 10 ? 1 : 0,
  });
}

const columns = [
  { name: 'shard', label: 'Shard', kind: 'count' },
  { name: 'queue', label: 'Queue', kind: 'count' },
  { name: 'commitsPerSecond', label: 'Commits/s', kind: 'count' },
  { name: 'writesPerSecond', label: 'Writes/s', kind: 'count', isLesser: true },
  { name: 'refusedPerSecond', label: 'Refused/s', kind: 'count', isLesser: true },
  { name: 'devices', label: 'Devices', kind: 'count', isLesser: true },
  { name: 'mails', label: 'Mails', kind: 'count', isLesser: true },
  { name: 'bytes', label: 'Size', kind: 'bytes' },
  { name: 'log_bytes', label: 'Log', kind: 'bytes' },
] as const satisfies ListColumns<ShardRate>;

/** Lists what each shard holds, and how it keeps up. */
export function ShardTable({ shards }: { shards: readonly ShardRate[] }) {
  return (
    <Section title="Shards">
      <ListTable
        columns={columns}
        items={shards}
        keyOf={({ shard }) => shard}
        cells={{
          shard: ({ shard }) => String(shard),
          queue: ({ queue }) => queue > queueOfBusyShard && <span class="warn strong">{queue}</span>,
          commitsPerSecond: ({ commitsPerSecond }) => <Rate perSecond={commitsPerSecond} />,
          writesPerSecond: ({ writesPerSecond }) => <Rate perSecond={writesPerSecond} />,
          refusedPerSecond: ({ refusedPerSecond }) => <Rate perSecond={refusedPerSecond} isBad />,
        }}
      />
    </Section>
  );
}

/** A rate in a table; `isBad`: one that should be none. */
export function Rate({ perSecond, isBad = false }: { perSecond: number | undefined; isBad?: boolean }) {
  if (perSecond === undefined) return <span class="faint">…</span>;
  const tone = perSecond === 0 ? 'faint' : isBad ? 'bad strong' : '';
  return <span class={tone}>{rateText(perSecond)}</span>;
}
