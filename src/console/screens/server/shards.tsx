import { Section } from '../../frame/frame.tsx';
import { bytesText } from './bytes.ts';
import type { ShardRate } from './rates.ts';

const queueOfBusyShard = 100;
const rate = (perSecond: number): string =>
  perSecond.toLocaleString('en', { maximumFractionDigits: perSecond < 10 ? 1 : 0 });

/** Lists what each shard holds, and how it keeps up. */
export function ShardTable({ shards }: { shards: readonly ShardRate[] }) {
  return (
    <Section title="Shards">
      <div class="table">
        <table>
          <thead>
            <tr>
              <th class="number">Shard</th>
              <th class="number">Queue</th>
              <th class="number">Commits/s</th>
              <th class="number less">Writes/s</th>
              <th class="number less">Refused/s</th>
              <th class="number less">Devices</th>
              <th class="number less">Mails</th>
              <th class="number">Size</th>
              <th class="number">Log</th>
            </tr>
          </thead>
          <tbody>
            {shards.map((shard) => (
              <tr key={shard.shard}>
                <td class="number">{shard.shard}</td>
                <td class={`number ${shard.queue > queueOfBusyShard ? 'warn strong' : 'soft'}`}>
                  {shard.queue}
                </td>
                <td class="number soft">{rate(shard.commitsPerSecond)}</td>
                <td class="number soft less">{rate(shard.writesPerSecond)}</td>
                <td class={`number less ${shard.refusedPerSecond > 0 ? 'bad strong' : 'soft'}`}>
                  {rate(shard.refusedPerSecond)}
                </td>
                <td class="number soft less">{shard.devices.toLocaleString('en')}</td>
                <td class="number soft less">{shard.mails.toLocaleString('en')}</td>
                <td class="number soft">{bytesText(shard.bytes)}</td>
                <td class="number soft">{bytesText(shard.log_bytes)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}
