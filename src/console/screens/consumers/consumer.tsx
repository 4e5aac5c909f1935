import type { ConsumerDocument } from '../../../contract/consumer.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { Head, Section } from '../../frame/frame.tsx';
import { useKeys } from '../../page/keys.ts';
import { href } from '../../page/router.ts';
import { Loaded } from '../../parts/banner.tsx';
import { Commands } from '../../parts/commands.tsx';
import { Moment } from '../../parts/moment.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { useDocument } from '../../server/resource.ts';
import { Behind, LostPositions } from './lag.tsx';
import { PauseReader } from './pause-reader.tsx';
import { ReaderState } from './reader-state.tsx';

/** One consumer: its place in the log of each shard, and who has a batch of it. */
export function ConsumerScreen({ fleetId, name }: { fleetId: string; name: string }) {
  const path = pathTo('/fleets/{fleet_id}/consumers/{name}', { fleet_id: fleetId, name });
  const consumer = useDocument(path, 3);
  useKeys({ r: consumer.refresh });
  return (
    <>
      <Head
        title={<Untrusted text={name} lengthMax={80} />}
        beside={
          <>
            <span class="soft">consumer</span>
            {consumer.value && <ReaderState state={consumer.value.enabled ? 'enabled' : 'paused'} />}
          </>
        }
        read={consumer}
        tools={
          <>
            <a class="button is-plain" href={href([fleetId, 'consumers'])}>
              All consumers
            </a>
            {consumer.value && <PauseReader path={path} reader={consumer.value} onDone={consumer.refresh} />}
          </>
        }
      />
      <div class="body">
        <Loaded resource={consumer}>
          {(document) => (
            <div class="columns">
              <div>
                <Cursors consumer={document} />
              </div>
              <div>
                <Section title="Facts">
                  <dl class="facts">
                    <dt>Kinds</dt>
                    <dd>{document.kinds.join(', ') || 'all'}</dd>
                    <dt>Schemas</dt>
                    <dd>
                      <Untrusted text={document.schemas.join(', ') || 'all'} lengthMax={2_000} />
                    </dd>
                    <dt>Lease</dt>
                    <dd>{document.lease_seconds} s</dd>
                    <dt>Created</dt>
                    <dd>
                      <Moment time={document.created_at} />
                    </dd>
                  </dl>
                </Section>
              </div>
            </div>
          )}
        </Loaded>
      </div>
      <Commands command={['consumer', 'show', name, '--fleet', fleetId]} request={{ path }} />
    </>
  );
}

function Cursors({ consumer: { shards } }: { consumer: ConsumerDocument }) {
  return (
    <Section title="Shards">
      <div class="table">
        <table>
          <thead>
            <tr>
              <th class="number">Shard</th>
              <th class="number less">Position</th>
              <th class="number">Behind</th>
              <th class="number">Oldest</th>
              <th class="number">Lost</th>
              <th>Batch</th>
            </tr>
          </thead>
          <tbody>
            {shards.map(({ shard, position, behind, seconds_behind, lost, batch }) => (
              <tr key={shard}>
                <td class="number">{shard}</td>
                <td class="number soft less">{position.toLocaleString('en')}</td>
                <td class="number">
                  <Behind positions={behind} />
                </td>
                <td class="number">
                  <Behind seconds={seconds_behind} />
                </td>
                <td class="number">
                  <LostPositions positions={lost} />
                </td>
                <td class="soft cut">
                  {batch === null ? (
                    '–'
                  ) : (
                    <>
                      {batch.records} with <Untrusted text={batch.worker || 'somebody'} lengthMax={60} />,
                      until <Moment time={batch.expires_at} />
                    </>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}
