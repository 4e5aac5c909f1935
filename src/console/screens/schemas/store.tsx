import { pathTo } from '../../../contract/routes/path.ts';
import { Difference } from '../../editor/code-editor.tsx';
import { Confirm } from '../../forms/confirm.tsx';
import { Drawer } from '../../forms/dialogs.tsx';
import { Section } from '../../frame/frame.tsx';
import { goFromDeleted } from '../../page/recent.ts';
import { href } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { ErrorBanner } from '../../parts/banner.tsx';
import { call } from '../../server/client.ts';
import { useSubmit } from '../../server/submit.ts';
import type { SchemaUse } from './schema-uses.ts';
import { UsedBy } from './used-by.tsx';

export interface StoreProps {
  fleetId: string;
  kind: string;
  name: string;
  /** The stored text; undefined: there is none. */
  before: string | undefined;
  after: string;
  uses: readonly SchemaUse[];
  onClose: () => void;
  onDone: () => void;
}

/** Shows what storing a schema changes and whom, before it is done. */
export function StoreDrawer({ fleetId, kind, name, before, after, uses, onClose, onDone }: StoreProps) {
  const { error, isBusy, submit } = useSubmit();
  const verb = before === undefined ? 'Store' : 'Replace';
  const path = pathTo('/fleets/{fleet_id}/schemas/{kind}/{name}', { fleet_id: fleetId, kind, name });
  const store = (): void =>
    void submit(() => call('PUT', path, { body: after })).then((isDone) => isDone && onDone());
  return (
    <Drawer
      title={`${verb} the ${kind} schema ${name}`}
      isWide
      onClose={onClose}
      foot={
        <>
          <Act
            scope="provision"
            kind="main"
            unless={isBusy ? 'It is being stored.' : undefined}
            onClick={store}
          >
            {verb}
          </Act>
          <Act kind="plain" onClick={onClose}>
            Cancel
          </Act>
        </>
      }
    >
      {error && <ErrorBanner error={error} />}
      <p>
        {kind === 'mail'
          ? 'Every mail of this name must match it from then on.'
          : kind === 'reply'
            ? 'Every reply to mail of this name must match it from then on: a device whose replies do not is answered 400.'
            : `Each ${kind} of this name must match it from then on: a device whose bodies do not is answered 400. Records that are stored stay as they are.`}
      </p>
      {uses.length > 0 && (
        <Section title="Used by">
          <div class="below">
            <UsedBy fleetId={fleetId} uses={uses} />
          </div>
        </Section>
      )}
      <Section title="What changes">
        <Difference
          label={`The ${kind} schema ${name}`}
          before={before ?? ''}
          after={after}
          language="json"
        />
      </Section>
    </Drawer>
  );
}

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
      onDone={() => goFromDeleted(href([fleetId, 'schemas']))}
    >
      {kind === 'mail' || kind === 'reply'
        ? `${kind === 'mail' ? 'Mail' : 'Replies to mail'} of this name may hold anything from then on.`
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
