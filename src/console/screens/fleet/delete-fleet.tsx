import { useState } from 'preact/hooks';
import type { FleetDocument } from '../../../contract/fleet.ts';
import { below, pathTo } from '../../../contract/routes/path.ts';
import { Confirm } from '../../forms/confirm.tsx';
import { Field } from '../../forms/field.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { noteFleetChange } from '../../server/changed-fleets.ts';
import { call } from '../../server/client.ts';
import { useDocument } from '../../server/resource.ts';

export interface DeleteFleetProps {
  fleet: FleetDocument;
  onClose: () => void;
  onDone: () => void;
}

/** Asks for the name of a fleet before it is deleted with all that is in it. */
export function DeleteFleet({ fleet, onClose, onDone }: DeleteFleetProps) {
  const { fleet_id, name } = fleet;
  const path = pathTo('/fleets/{fleet_id}', { fleet_id });
  const counts = useDocument(below(path, '/counts', {}));
  const [typed, setTyped] = useState('');
  const devices = counts.value?.devices;
  return (
    <Confirm
      title="Delete the fleet"
      isIncomplete={typed !== (name || fleet_id)}
      fields={
        <Field
          label={`Its ${name === '' ? 'id' : 'name'}, to make sure`}
          maxLength={255}
          spellcheck={false}
          placeholder={name || fleet_id}
          value={typed}
          onText={setTyped}
        />
      }
      work={() => call('DELETE', path, { query: { name: typed } })}
      onClose={onClose}
      onDone={() => {
        noteFleetChange();
        onDone();
      }}
    >
      <strong>
        <Untrusted text={name || fleet_id} lengthMax={120} />
      </strong>{' '}
      goes for good, with {devices === undefined ? 'all' : `its ${devices.toLocaleString('en')}`} devices and
      their mail, its schemas, actions, forwarders, consumers and claim tokens. Its devices are refused at
      once. Records stay in the log until their retention ends, and its id is taken until then.
    </Confirm>
  );
}
