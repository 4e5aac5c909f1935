import { pathTo } from '../../../contract/routes/path.ts';
import { Confirm } from '../../forms/confirm.tsx';
import { go, href } from '../../page/router.ts';
import { call } from '../../server/client.ts';
import type { SchemaUse } from './schema-uses.ts';

export interface DeleteSchemaProps {
  fleetId: string;
  kind: string;
  name: string;
  uses: readonly SchemaUse[];
  onClose: () => void;
}

/** Asks before a schema is deleted, with what names it. */
export function DeleteSchema({ fleetId, kind, name, uses, onClose }: DeleteSchemaProps) {
  return (
    <Confirm
      title={`Delete the ${kind} schema ${name}`}
      work={() =>
        call('DELETE', pathTo('/fleets/{fleet_id}/schemas/{kind}/{name}', { fleet_id: fleetId, kind, name }))
      }
      onClose={onClose}
      onDone={() => go(href([fleetId, 'schemas']))}
    >
      {kind === 'mail'
        ? 'Mail of this name may hold anything from then on.'
        : `Each ${kind} of this name is refused from then on. Records that are stored stay.`}
      {uses.length > 0 && (
        <span class="warn">
          {' '}
          {uses.map(({ what, name: of }) => `${what} ${of}`).join(', ')}{' '}
          {uses.length === 1 ? 'names' : 'name'} it, and will find nothing.
        </span>
      )}
    </Confirm>
  );
}
