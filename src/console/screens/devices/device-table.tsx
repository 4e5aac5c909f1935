import { deviceColumns } from '../../../contract/columns/device.ts';
import type { DeviceDocument } from '../../../contract/device.ts';
import type { FleetRefusalDocument } from '../../../contract/monitoring/refusal.ts';
import { refusalWords, whyRefused } from '../../lists/refused-rows.tsx';
import { ListTable, type ListTableProps } from '../../lists/table.tsx';
import { href } from '../../page/router.ts';
import { StateMark } from '../../parts/device.tsx';
import { shownText, Untrusted } from '../../parts/untrusted.tsx';
import { tagWord } from './suggestions.ts';

export interface DeviceTableProps {
  fleetId: string;
  items: readonly DeviceDocument[];
  ids: ReadonlySet<string>;
  /** What devices are refused now, the last one first. */
  refusals: readonly FleetRefusalDocument[];
  /** True if it lists devices that are refused: then it says why. */
  isOfRefused: boolean;
  /** Row that the keys are at. */
  cursor: number;
  sorts: NonNullable<ListTableProps<DeviceDocument, typeof deviceColumns>['sorts']>;
  onIds: (ids: ReadonlySet<string>) => void;
}

/** Mails in a mailbox from which on it looks stuck. */
const manyMails = 10;

const whyColumn = { name: 'why', label: 'Why', value: () => '' } as const;
type ShownColumn = (typeof deviceColumns)[number] | typeof whyColumn;

/** The columns of a list of those that are refused. */
const refusedColumns = deviceColumns.flatMap((column): ShownColumn[] =>
  column.name === 'name' ? [column, whyColumn] : [column],
);

/** Says what a device is refused, and how often: `wrong secret, 71×`. */
function Why({ refusals }: { refusals: readonly FleetRefusalDocument[] }) {
  const [last, ...others] = refusals;
  if (last === undefined) return null;
  const { reason, name, count } = last;
  return (
    <span title={shownText(whyRefused(last))}>
      {refusalWords[reason]}
      {reason === 'schema_mismatch' && name !== null && <Untrusted text={` ${name}`} lengthMax={60} />}
      {count > 1 && `, ${count.toLocaleString('en')}×`}
      {others.length > 0 && <span class="hint"> +{others.length}</span>}
    </span>
  );
}

/** A page of devices with a box to select each. */
export function DeviceTable(props: DeviceTableProps) {
  const { fleetId, items, ids, refusals, isOfRefused, cursor, sorts, onIds } = props;
  const columns: readonly ShownColumn[] = isOfRefused ? refusedColumns : deviceColumns;
  return (
    <ListTable
      columns={columns}
      first="state"
      sorts={sorts}
      items={items}
      keyOf={({ device_id }) => device_id}
      cursor={cursor}
      opens
      selection={{
        keys: items.map(({ device_id }) => device_id),
        selected: ids,
        onSelected: onIds,
        labelOf: ({ device_id }) => device_id,
      }}
      cells={{
        state: (device) => {
          const last = refusals.find((one) => one.device_id === device.device_id);
          return <StateMark device={device} refused={last && refusalWords[last.reason]} />;
        },
        device_id: ({ device_id }) => (
          <a href={href([fleetId, 'devices', device_id])} class="mono" data-opens>
            {device_id}
          </a>
        ),
        name: ({ name }) => (
          <span title={shownText(name)}>
            <Untrusted text={name} lengthMax={120} />
          </span>
        ),
        why: ({ device_id }) => <Why refusals={refusals.filter((one) => one.device_id === device_id)} />,
        tags: ({ tags }) => <Tags fleetId={fleetId} tags={tags} />,
        mailbox_size: ({ mailbox_size }) => (
          <span class={mailbox_size === 0 ? 'faint' : mailbox_size >= manyMails ? 'warn strong' : ''}>
            {mailbox_size.toLocaleString('en')}
          </span>
        ),
      }}
    />
  );
}

const shownTagsMax = 3;

/** Tags of a device, each a link to the others that have it. */
export function Tags({
  fleetId,
  tags,
  isWhole = false,
}: {
  fleetId: string;
  tags: readonly string[];
  isWhole?: boolean;
}) {
  const shown = isWhole ? tags : tags.slice(0, shownTagsMax);
  const further = tags.length - shown.length;
  return (
    <span class="tags">
      {shown.map((tag) => (
        <a
          class="tag"
          key={tag}
          title={shownText(tag)}
          href={href([fleetId, 'devices'], { q: tagWord(tag) })}
        >
          <Untrusted text={tag} lengthMax={64} />
        </a>
      ))}
      {further > 0 && <span class="hint is-wide">+{further}</span>}
      {!isWhole && tags.length > 1 && <span class="hint is-narrow">+{tags.length - 1}</span>}
    </span>
  );
}
