import type { ConsumerDocument } from '../../../contract/consumer.ts';
import { anyDestination, destinationText } from '../../../contract/destination-text.ts';
import type { ForwarderDocument } from '../../../contract/forwarder.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { Head, Section } from '../../frame/frame.tsx';
import { useKeys } from '../../page/keys.ts';
import { href } from '../../page/router.ts';
import { Loaded } from '../../parts/banner.tsx';
import { Commands } from '../../parts/commands.tsx';
import { CopyButton } from '../../parts/copy-button.tsx';
import { Moment } from '../../parts/moment.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { useDocument } from '../../server/resource.ts';
import { Behind, LostPositions } from './lag.tsx';
import { PauseReader } from './pause-reader.tsx';
import { ReaderState } from './reader-state.tsx';

const everySeconds = 3;

/** Who reads the records of a fleet: how far behind each is, what it lost, and why it stands still. */
export function ConsumersScreen({ fleetId }: { fleetId: string }) {
  const forwardersPath = pathTo('/fleets/{fleet_id}/forwarders', { fleet_id: fleetId });
  const forwarders = useDocument(forwardersPath, everySeconds);
  const consumersPath = pathTo('/fleets/{fleet_id}/consumers', { fleet_id: fleetId });
  const consumers = useDocument(consumersPath, everySeconds);
  useKeys({ r: forwarders.refresh });
  return (
    <>
      <Head title="Consumers and forwarders" read={forwarders} />
      <div class="body">
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
      </div>
      <Commands command={['forwarder', 'list', '--fleet', fleetId]} request={{ path: forwardersPath }} />
      <Commands command={['consumer', 'list', '--fleet', fleetId]} request={{ path: consumersPath }} />
    </>
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

interface TableProps<Reader> {
  fleetId: string;
  items: readonly Reader[];
  onChanged: () => void;
}

function ForwarderTable({ fleetId, items, onChanged }: TableProps<ForwarderDocument>) {
  return (
    <div class="table">
      <table>
        <thead>
          <tr>
            <th>State</th>
            <th>Name</th>
            <th class="less">To</th>
            <th class="number">Behind</th>
            <th class="number less">Lost</th>
            <th class="number">
              <span class="less">Dead letters</span>
              <span class="only-narrow">Dead</span>
            </th>
            <th class="number less">Delivered</th>
            <th>
              <span class="visually-hidden">Pause or resume</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {items.map((forwarder) => (
            <ForwarderRow
              key={forwarder.name}
              fleetId={fleetId}
              forwarder={forwarder}
              onChanged={onChanged}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function ForwarderRow(props: { fleetId: string; forwarder: ForwarderDocument; onChanged: () => void }) {
  const { fleetId, forwarder, onChanged } = props;
  const { name, behind, lost, dead_letters, last_delivered_at, last_error } = forwarder;
  const isFailing = last_error !== null && last_error.recovered_at === null;
  return (
    <>
      <tr class={isFailing ? 'has-more' : undefined}>
        <td>
          <ReaderState state={forwarder.state} />
        </td>
        <td class="cut">
          <a class="strong" href={href([fleetId, 'forwarders', name])}>
            {name}
          </a>
        </td>
        <td class="soft cut less">
          <Untrusted text={destinationText(forwarder)} lengthMax={120} />
        </td>
        <td class="number">
          <Behind positions={behind} />
        </td>
        <td class="number less">
          <LostPositions positions={lost} />
        </td>
        <td class={`number ${dead_letters > 0 ? 'bad strong' : 'faint'}`}>
          {dead_letters.toLocaleString('en')}
        </td>
        <td class="number soft less">
          {last_delivered_at === null ? 'not yet' : <Moment time={last_delivered_at} />}
        </td>
        <td class="number">
          <PauseReader
            path={pathTo('/fleets/{fleet_id}/forwarders/{name}', { fleet_id: fleetId, name })}
            reader={forwarder}
            onDone={onChanged}
          />
        </td>
      </tr>
      {isFailing && (
        <tr class="more">
          <td colSpan={8}>
            <span class="bad small">
              <Moment time={last_error.at} />: <Untrusted text={last_error.msg} lengthMax={300} />
            </span>
          </td>
        </tr>
      )}
    </>
  );
}

function ConsumerTable({ fleetId, items, onChanged }: TableProps<ConsumerDocument>) {
  return (
    <div class="table">
      <table>
        <thead>
          <tr>
            <th>State</th>
            <th>Name</th>
            <th class="less">Reads</th>
            <th class="number less">Behind</th>
            <th class="number">Oldest</th>
            <th class="number">Lost</th>
            <th class="number less">Batches out</th>
            <th>
              <span class="visually-hidden">Pause or resume</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {items.map((consumer) => (
            <ConsumerRow key={consumer.name} fleetId={fleetId} consumer={consumer} onChanged={onChanged} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function ConsumerRow(props: { fleetId: string; consumer: ConsumerDocument; onChanged: () => void }) {
  const { fleetId, consumer, onChanged } = props;
  const { name, kinds, schemas, enabled, behind, seconds_behind, lost, shards } = consumer;
  return (
    <tr>
      <td>
        <ReaderState state={enabled ? 'enabled' : 'paused'} />
      </td>
      <td class="cut">
        <a class="strong" href={href([fleetId, 'consumers', name])}>
          {name}
        </a>
      </td>
      <td class="soft cut less">
        <Untrusted text={[...kinds, ...schemas].join(', ') || 'all records'} lengthMax={120} />
      </td>
      <td class="number less">
        <Behind positions={behind} />
      </td>
      <td class="number">
        <Behind seconds={seconds_behind} />
      </td>
      <td class="number">
        <LostPositions positions={lost} />
      </td>
      <td class="number soft less">{shards.filter(({ batch }) => batch !== null).length}</td>
      <td class="number acts">
        <PauseReader
          path={pathTo('/fleets/{fleet_id}/consumers/{name}', { fleet_id: fleetId, name })}
          reader={consumer}
          onDone={onChanged}
        />
      </td>
    </tr>
  );
}
