import { useState } from 'preact/hooks';
import { consumerColumns, forwarderColumns } from '../../../contract/columns/reader.ts';
import type { ConsumerDocument } from '../../../contract/consumer.ts';
import { anyDestination, destinationText } from '../../../contract/destination-text.ts';
import type { ForwarderDocument } from '../../../contract/forwarder.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { Screen, Section } from '../../frame/frame.tsx';
import { ListTable } from '../../lists/table.tsx';
import { useKeys } from '../../page/keys.ts';
import { href } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Loaded } from '../../parts/banner.tsx';
import { Moment } from '../../parts/moment.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { useDocument } from '../../server/resource.ts';
import { ConsumerForm } from './consumer-form.tsx';
import { ForwarderForm } from './forwarder-form.tsx';
import { Behind, LostRecords, PauseReader, ReaderState } from './reader.tsx';

const everySeconds = 15;

/** Who reads the records of a fleet: how far behind each is, what it lost, and why it stands still. */
export function ConsumersScreen({ fleetId }: { fleetId: string }) {
  const forwardersPath = pathTo('/fleets/{fleet_id}/forwarders', { fleet_id: fleetId });
  const forwarders = useDocument(forwardersPath, everySeconds);
  const consumersPath = pathTo('/fleets/{fleet_id}/consumers', { fleet_id: fleetId });
  const consumers = useDocument(consumersPath, everySeconds);
  const [making, setMaking] = useState<'forwarder' | 'consumer' | undefined>();
  useKeys({
    r: () => {
      forwarders.refresh();
      consumers.refresh();
    },
  });
  return (
    <Screen
      title="Consumers, forwarders"
      read={forwarders}
      commands={[
        { command: ['forwarder', 'list', '--fleet', fleetId], request: { path: forwardersPath } },
        { command: ['consumer', 'list', '--fleet', fleetId], request: { path: consumersPath } },
      ]}
    >
      <Section
        title="Forwarders"
        note={<span class="read">push records to {anyDestination}</span>}
        tools={
          <Act scope="admin" onClick={() => setMaking('forwarder')}>
            New forwarder
          </Act>
        }
      >
        <Loaded resource={forwarders}>
          {({ items }) =>
            items.length === 0 ? (
              <p class="empty">No forwarder yet. One pushes each record to {anyDestination} as it comes.</p>
            ) : (
              <ForwarderTable fleetId={fleetId} items={items} onChanged={forwarders.refresh} />
            )
          }
        </Loaded>
      </Section>
      <Section
        title="Consumers"
        note={<span class="read">programs that fetch records, and acknowledge</span>}
        tools={
          <Act scope="admin" onClick={() => setMaking('consumer')}>
            New consumer
          </Act>
        }
      >
        <Loaded resource={consumers}>
          {({ items }) =>
            items.length === 0 ? (
              <p class="empty">
                No consumer yet. One keeps the place up to which a program has read the records.
              </p>
            ) : (
              <ConsumerTable fleetId={fleetId} items={items} onChanged={consumers.refresh} />
            )
          }
        </Loaded>
      </Section>
      {making === 'forwarder' && (
        <ForwarderForm fleetId={fleetId} onDone={forwarders.refresh} onClose={() => setMaking(undefined)} />
      )}
      {making === 'consumer' && (
        <ConsumerForm fleetId={fleetId} onDone={consumers.refresh} onClose={() => setMaking(undefined)} />
      )}
    </Screen>
  );
}

interface ReadersProps<Reader> {
  fleetId: string;
  items: readonly Reader[];
  onChanged: () => void;
}

function ForwarderTable({ fleetId, items, onChanged }: ReadersProps<ForwarderDocument>) {
  return (
    <ListTable
      class="readers"
      columns={forwarderColumns}
      first="state"
      items={items}
      keyOf={({ name }) => name}
      cells={{
        state: ({ state, dead_letters }) => <ReaderState state={state} refused={dead_letters} />,
        name: ({ name }) => (
          <a class="strong" href={href([fleetId, 'forwarders', name])}>
            {name}
          </a>
        ),
        to: (forwarder) => (
          <span class="soft">
            <Untrusted text={destinationText(forwarder)} lengthMax={120} />
          </span>
        ),
        behind: (lag) => <Behind lag={lag} />,
        lost: ({ lost }) => <LostRecords count={lost} />,
        dead_letters: ({ dead_letters }) => <LostRecords count={dead_letters} />,
      }}
      acts={(forwarder) => (
        <PauseReader
          path={pathTo('/fleets/{fleet_id}/forwarders/{name}', { fleet_id: fleetId, name: forwarder.name })}
          reader={forwarder}
          onDone={onChanged}
        />
      )}
      more={({ last_error, next_attempt_at }) =>
        last_error !== null &&
        last_error.recovered_at === null && (
          <span class="bad small">
            <Moment time={last_error.at} />: <Untrusted text={last_error.msg} lengthMax={300} />
            {next_attempt_at !== null && (
              <>
                {' '}
                Next attempt <Moment time={next_attempt_at} />.
              </>
            )}
          </span>
        )
      }
    />
  );
}

function ConsumerTable({ fleetId, items, onChanged }: ReadersProps<ConsumerDocument>) {
  return (
    <ListTable
      class="readers"
      columns={consumerColumns}
      first="enabled"
      items={items}
      keyOf={({ name }) => name}
      cells={{
        enabled: ({ enabled }) => <ReaderState state={enabled ? 'enabled' : 'paused'} />,
        name: ({ name }) => (
          <a class="strong" href={href([fleetId, 'consumers', name])}>
            {name}
          </a>
        ),
        behind: (lag) => <Behind lag={lag} />,
        lost: ({ lost }) => <LostRecords count={lost} />,
      }}
      acts={(consumer) => (
        <PauseReader
          path={pathTo('/fleets/{fleet_id}/consumers/{name}', { fleet_id: fleetId, name: consumer.name })}
          reader={consumer}
          onDone={onChanged}
        />
      )}
    />
  );
}
