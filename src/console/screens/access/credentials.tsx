import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { ListColumns } from '../../../contract/columns/column.ts';
import type { Scope } from '../../../core/scope.ts';
import { Confirm } from '../../forms/confirm.tsx';
import { Screen } from '../../frame/frame.tsx';
import { ListTable, type ListTableProps } from '../../lists/table.tsx';
import { useKeys } from '../../page/keys.ts';
import { href, search } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Loaded } from '../../parts/banner.tsx';
import type { CommandsProps } from '../../parts/commands.tsx';
import { Moment } from '../../parts/moment.tsx';
import { shownText, Untrusted } from '../../parts/untrusted.tsx';
import type { Resource } from '../../server/resource.ts';

/** Revocation of one of a list: how its button and the question before it are worded, and what does it. */
export interface Revocation {
  verb: string;
  title: string;
  /** Says what holds afterwards. */
  sentence: ComponentChildren;
  /** Why it cannot be revoked. */
  unless?: string | undefined;
  work(): Promise<unknown>;
}

export interface CredentialsProps<Item, C extends ListColumns<Item>>
  extends Pick<ListTableProps<Item, C>, 'columns' | 'cells' | 'isSelected' | 'class'> {
  fleetId: string;
  /** Ways to the lists beside this one. */
  tabs: ComponentChildren;
  resource: Resource<{ items: readonly Item[] }>;
  /** Says what one is for, where there is none. */
  empty?: string;
  /** Scope that it takes to make and revoke one. */
  scope: Scope;
  idOf(item: Item): string;
  revocationOf(item: Item): Revocation;
  /** Makes a new one; absent: none is made here. */
  making?: { label: string; drawer(onClose: () => void): ComponentChildren };
  command: readonly string[];
  path: CommandsProps['request']['path'];
  /** Below the table. */
  children?: ComponentChildren;
}

/** A list of who may use the server: made, traced in the audit log and revoked all alike. */
export function Credentials<Item extends { name: string }, const C extends ListColumns<Item>>(
  props: CredentialsProps<Item, C>,
) {
  const { tabs, resource, empty = '', scope, revocationOf, making, command, path } = props;
  const [isMaking, setMaking] = useState(making !== undefined && search.value.has('new'));
  const [revoked, setRevoked] = useState<Item | undefined>();
  const make = (): void => setMaking(making !== undefined);
  useKeys({ r: resource.refresh, n: make });
  const asked = revoked && revocationOf(revoked);
  return (
    <Screen
      title="Access"
      read={resource}
      beside={tabs}
      tools={
        making && (
          <Act scope={scope} kind="main" onClick={make} title="n">
            {making.label}
          </Act>
        )
      }
      commands={[{ command, request: { path } }]}
    >
      <Loaded resource={resource}>
        {({ items }) =>
          items.length === 0 ? (
            <p class="empty">{empty}</p>
          ) : (
            <CredentialTable list={props} items={items} onRevoke={setRevoked} />
          )
        }
      </Loaded>
      {props.children}
      {isMaking && making?.drawer(() => setMaking(false))}
      {asked && (
        <Confirm
          title={asked.title}
          work={asked.work}
          onClose={() => setRevoked(undefined)}
          onDone={resource.refresh}
        >
          {asked.sentence}
        </Confirm>
      )}
    </Screen>
  );
}

interface CredentialTableProps<Item, C extends ListColumns<Item>> {
  list: CredentialsProps<Item, C>;
  items: readonly Item[];
  onRevoke: (item: Item) => void;
}

function CredentialTable<Item extends { name: string }, C extends ListColumns<Item>>(
  props: CredentialTableProps<Item, C>,
) {
  const { list, items, onRevoke } = props;
  const { fleetId, scope, idOf, revocationOf } = list;
  return (
    <ListTable
      class={list.class ?? ''}
      columns={list.columns}
      items={items}
      keyOf={idOf}
      cells={list.cells ?? {}}
      isSelected={list.isSelected ?? (() => false)}
      acts={(item) => {
        const { verb, unless } = revocationOf(item);
        const name = item.name || idOf(item);
        return (
          <>
            <AuditLinks fleetId={fleetId} id={idOf(item)} name={name} />
            <Act scope={scope} kind="bad" onClick={() => onRevoke(item)} unless={unless}>
              {verb}
              <span class="visually-hidden">
                <Untrusted text={name} lengthMax={80} />
              </span>
            </Act>
          </>
        );
      }}
    />
  );
}

/** The entries of what a token did, and of who made or changed it. */
function AuditLinks({ fleetId, id, name }: { fleetId: string; id: string; name: string }) {
  const audit = (query: Record<string, string>): string => href([fleetId, 'access', 'audit'], query);
  const of = <span class="visually-hidden"> {shownText(name, 80)}</span>;
  return (
    <>
      <a class="button is-plain lesser" href={audit({ token: id })}>
        What it did
        {of}
      </a>
      <a class="button is-plain lesser" href={audit({ about: id })}>
        Who made it
        {of}
      </a>
    </>
  );
}

/** When a token ends, or that it has. */
export function Expiry({ token }: { token: { expires_at: string | null; expired: boolean } }) {
  if (token.expires_at === null) return <span class="faint">never</span>;
  return (
    <span class={token.expired ? 'bad strong' : 'soft'}>
      <Moment time={token.expires_at} />
    </span>
  );
}
