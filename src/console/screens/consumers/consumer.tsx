import { useState } from 'preact/hooks';
import { consumerShardColumns } from '../../../contract/columns/reader.ts';
import type { ConsumerDocument } from '../../../contract/consumer.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { Screen, Section } from '../../frame/frame.tsx';
import { Menu } from '../../frame/menu.tsx';
import { ListTable } from '../../lists/table.tsx';
import { useKeys } from '../../page/keys.ts';
import { href } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Loaded } from '../../parts/banner.tsx';
import { Fact } from '../../parts/facts.tsx';
import { Moment } from '../../parts/moment.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { useDocument } from '../../server/resource.ts';
import { ConsumerForm } from './consumer-form.tsx';
import { DeleteReader } from './delete-reader.tsx';
import { Behind, LostRecords, PauseReader, ReaderState } from './reader.tsx';

/** One consumer: its place in the log of each shard, and who has a batch of it. */
export function ConsumerScreen({ fleetId, name }: { fleetId: string; name: string }) {
  const path = pathTo('/fleets/{fleet_id}/consumers/{name}', { fleet_id: fleetId, name });
  const consumer = useDocument(path, 10);
  const [asked, setAsked] = useState<Asked | undefined>();
  const close = (): void => setAsked(undefined);
  useKeys({ r: consumer.refresh });
  return (
    <Screen
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
          {consumer.value && (
            <>
              <ConsumerMenu onAsk={setAsked} />
              <PauseReader path={path} reader={consumer.value} onDone={consumer.refresh} />
            </>
          )}
        </>
      }
      commands={[{ command: ['consumer', 'show', name, '--fleet', fleetId], request: { path } }]}
    >
      {asked === 'change' && consumer.value && (
        <ConsumerForm fleetId={fleetId} known={consumer.value} onDone={consumer.refresh} onClose={close} />
      )}
      {asked === 'deletion' && (
        <DeleteReader fleetId={fleetId} what="consumer" path={path} onClose={close}>
          <strong>{name}</strong> goes for good, with its place in the log.
        </DeleteReader>
      )}
      <Loaded resource={consumer}>
        {(document) => (
          <div class="columns">
            <div>
              <Cursors consumer={document} />
            </div>
            <div>
              <Section title="Facts">
                <dl class="facts">
                  <Fact name="Kinds">{document.kinds.join(', ') || 'all'}</Fact>
                  <Fact name="Schemas">
                    <Untrusted text={document.schemas.join(', ') || 'all'} lengthMax={2_000} />
                  </Fact>
                  <Fact name="Lease">{document.lease_seconds} s</Fact>
                  <Fact name="Created">
                    <Moment time={document.created_at} />
                  </Fact>
                </dl>
              </Section>
            </div>
          </div>
        )}
      </Loaded>
    </Screen>
  );
}

type Asked = 'change' | 'deletion';

function ConsumerMenu({ onAsk }: { onAsk: (asked: Asked) => void }) {
  return (
    <Menu label="More to do with the consumer">
      <Act scope="admin" onClick={() => onAsk('change')}>
        Change
      </Act>
      <Act scope="admin" kind="bad" onClick={() => onAsk('deletion')}>
        Delete
      </Act>
    </Menu>
  );
}

function Cursors({ consumer: { shards } }: { consumer: ConsumerDocument }) {
  return (
    <Section title="Shards">
      <ListTable
        columns={consumerShardColumns}
        items={shards}
        keyOf={({ shard }) => shard}
        cells={{
          behind: (lag) => <Behind lag={lag} />,
          lost: ({ lost }) => <LostRecords count={lost} />,
          batch: ({ batch }) =>
            batch && (
              <span class="soft">
                {batch.records} with <Untrusted text={batch.worker || 'somebody'} lengthMax={60} />, until{' '}
                <Moment time={batch.expires_at} />
              </span>
            ),
        }}
      />
    </Section>
  );
}
