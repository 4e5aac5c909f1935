import { below, type Path } from '../../../contract/routes/path.ts';
import { SelectField } from '../../forms/field.tsx';
import { MakeDrawer } from '../../forms/make-drawer.tsx';
import { ShownOnce } from '../../forms/shown-once.tsx';
import { call } from '../../server/client.ts';

export interface RotateSigningSecretProps {
  name: string;
  path: Path<'/fleets/{fleet_id}/forwarders/{name}'>;
  /** Called as it closes: there may be a new one. */
  onDone: () => void;
  onClose: () => void;
}

const graces = [
  ['3600', 'signs too for an hour'],
  ['86400', 'signs too for a day'],
  ['604800', 'signs too for a week'],
  ['0', 'ends at once'],
] as const;

/** Makes a new signing secret of a webhook, shown this one time. */
export function RotateSigningSecret({ name, path, onDone, onClose }: RotateSigningSecretProps) {
  return (
    <MakeDrawer
      title="New signing secret"
      verb="Make a new secret"
      secret="signing secret"
      onClose={() => {
        onClose();
        onDone();
      }}
      make={(text) =>
        call('POST', below(path, '/rotate-secret', {}), { body: { grace_seconds: Number(text('grace')) } })
      }
      shown={({ secret }) => <ShownOnce what="signing secret" text={secret} isUsedByServer />}
    >
      <p>
        A new secret that the batches of <strong>{name}</strong> are signed with. Whoever receives them checks
        with both until the old one ends.
      </p>
      <SelectField label="The old one" name="grace" defaultValue="86400" options={graces} />
    </MakeDrawer>
  );
}
