import { pathTo } from '../../../contract/routes/path.ts';
import { Paste } from '../../forms/paste.tsx';
import { Act } from '../../parts/act.tsx';
import { ErrorBanner } from '../../parts/banner.tsx';
import { shellWord } from '../../parts/hidden-characters.ts';
import { call } from '../../server/client.ts';
import { useDocument } from '../../server/resource.ts';
import { useSubmit } from '../../server/submit.ts';

/** Schemas of the datapoints that the commands and programs of the console send. */
const schemas = {
  temperature: { type: 'object', required: ['celsius'], properties: { celsius: { type: 'number' } } },
  flow: { type: 'object', required: ['litres'], properties: { litres: { type: 'number' } } },
};

/** Seconds between two looks whether a command has stored it meanwhile. */
const everySeconds = 60;

/** Offers to store the schema of a datapoint that is going to be sent, where the fleet has none of that name. */
export function NeededSchema({ fleetId, name }: { fleetId: string; name: keyof typeof schemas }) {
  const path = pathTo('/fleets/{fleet_id}/schemas', { fleet_id: fleetId });
  const listed = useDocument(path, everySeconds, undefined, has);
  const { error, isBusy, submit } = useSubmit();
  function has({ items }: { items: readonly { kind: string; name: string }[] }): boolean {
    return items.some((one) => one.kind === 'datapoint' && one.name === name);
  }
  if (listed.value === undefined || has(listed.value)) return null;
  const schema = JSON.stringify(schemas[name]);
  const values = { fleet_id: fleetId, kind: 'datapoint', name };
  const own = pathTo('/fleets/{fleet_id}/schemas/{kind}/{name}', values);
  const store = (): void =>
    void submit(() => call('PUT', own, { body: schema })).then((isStored) => isStored && listed.refresh());
  const command = `echo ${shellWord(schema)} | fleetpost schema put datapoint ${name} - --fleet ${fleetId}`;
  return (
    <div class="stack">
      <p class="inline">
        <span>
          A datapoint is taken by its schema, and this fleet has no schema <code>{name}</code> yet.
        </span>
        <Act scope="provision" onClick={store} unless={isBusy ? 'On its way' : undefined}>
          Store the schema {name}
        </Act>
      </p>
      <Paste text={command} label="Copy the command that stores the schema" />
      {error && <ErrorBanner error={error} />}
    </div>
  );
}
