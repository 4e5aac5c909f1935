import { consumerColumns, forwarderColumns } from '../../../contract/columns/reader.ts';
import type { ConsumerDocument } from '../../../contract/consumer.ts';
import { anyDestination, destinationText } from '../../../contract/destination-text.ts';
import type { ForwarderDocument } from '../../../contract/forwarder.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { Screen, Section } from '../../frame/frame.tsx';
import { ListTable } from '../../lists/table.tsx';
import { useKeys } from '../../page/keys.ts';
import { href } from '../../page/router.ts';
import { Loaded } from '../../parts/banner.tsx';
import { CopyButton } from '../../parts/copy-button.tsx';
import { Moment } from '../../parts/moment.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { useDocument } from '../../server/resource.ts';
import { Behind, LostPositions, PauseReader, ReaderState } from './reader.tsx';

const everySeconds = 3;

/** Who reads the records of a fleet: how far behind each is, what it lost, and why it stands still. */
export function ConsumersScreen({ fleetId }: { fleetId: string }) {
  const forwardersPath = pathTo('/fleets/{fleet_id}/forwarders', { fleet_id: fleetId });
  const forwarders = useDocument(forwardersPath, everySeconds);
  const consumersPath = pathTo('/fleets/{fleet_id}/consumers', { fleet_id: fleetId });
  const consumers = useDocument(consumersPath, everySeconds);
  useKeys({ r: forwarders.refresh });
  return (
    <Screen
      title="Consumers and forwarders"
      read={forwarders}
      commands={[
        { command: ['forwarder', 'list', '--fleet', fleetId], request: { path: forwardersPath } },
        { command: ['consumer', 'list', '--fleet', fleetId], request: { path: consumersPath } },
      ]}
    >
      <Section title="Forwarders" note={<span class="read">push records to {anyDestination}</span>}>
        <Loaded resource={forwarders}>
          {({ items }) =>
            items.length === 0 ? (
              <NoReader
                command={`fleetpost forwarder put NAME --fleet ${fleetId} --webhook URL`}
                what="forwarder"
              />
            ) : (
              <ForwarderTable fleetId={fleetId} items={items} onChanged={forwarders.refresh} />
            )
          }
        </Loaded>
      </Section>
      <Section
        title="Consumers"
        note={<span class="read">programs that fetch records, and acknowledge</span>}
      >
        <Loaded resource={consumers}>
          {({ items }) =>
            items.length === 0 ? (
              <NoReader command={`fleetpost consumer create NAME --fleet ${fleetId}`} what="consumer" />
            ) : (
              <ConsumerTable fleetId={fleetId} items={items} onChanged={consumers.refresh} />
            )
          }
        </Loaded>
      </Section>
    </Screen>
  );
}

function NoReader({ what, command }: { what: string; command: string }) {
  return (
    <div class="empty">
      <p>No {what} yet. One is made on the command line:</p>
      <p class="inline">
        <code>{command}</code> <CopyButton text={command} label="Copy the command" />
      </p>
    </div>
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
      columns={forwarderColumns}
      first="state"
      items={items}
      keyOf={({ name }) => name}
      cells={{
        state: ({ state }) => <ReaderState state={state} />,
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
        behind: ({ behind }) => <Behind positions={behind} />,
        lost: ({ lost }) => <LostPositions positions={lost} />,
        dead_letters: ({ dead_letters }) => <LostPositions positions={dead_letters} />,
      }}
      acts={(forwarder) => (
        <PauseReader
          path={pathTo('/fleets/{fleet_id}/forwarders/{name}', { fleet_id: fleetId, name: forwarder.name })}
          reader={forwarder}
          onDone={onChanged}
        />
      )}
      more={({ last_error }) =>
        last_error !== null &&
        last_error.recovered_at === null && (
          <span class="bad small">
            <Moment time={last_error.at} />: <Untrusted text={last_error.msg} lengthMax={300} />
          </span>
        )
      }
    />
  );
}

function ConsumerTable({ fleetId, items, onChanged }: ReadersProps<ConsumerDocument>) {
  return (
    <ListTable
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
        behind: ({ behind }) => <Behind positions={behind} />,
        seconds_behind: ({ seconds_behind }) => <Behind seconds={seconds_behind} />,
        lost: ({ lost }) => <LostPositions positions={lost} />,
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
