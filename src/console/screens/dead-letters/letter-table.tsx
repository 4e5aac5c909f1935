import { deadLetterColumns } from '../../../contract/columns/mail.ts';
import type { DeadLetterDocument } from '../../../contract/dead-letter.ts';
import { ListTable, RowButton } from '../../lists/table.tsx';
import { DeviceLink } from '../../parts/device.tsx';
import { keyOfLetter } from './letters.ts';

export interface LetterTableProps {
  fleetId: string;
  items: readonly DeadLetterDocument[];
  keys: ReadonlySet<string>;
  cursor: number;
  onCursor: (cursor: number) => void;
  onKeys: (keys: ReadonlySet<string>) => void;
}

/** A page of letters; a click shows one, its box selects it, with Shift all from the last one. */
export function LetterTable({ fleetId, items, keys, cursor, onCursor, onKeys }: LetterTableProps) {
  return (
    <ListTable
      columns={deadLetterColumns}
      items={items}
      keyOf={keyOfLetter}
      cursor={cursor}
      selection={{
        keys: items.map(keyOfLetter),
        selected: keys,
        onSelected: onKeys,
        labelOf: ({ name, device_id }) => `${name} of ${device_id}`,
      }}
      cells={{
        name: ({ name }, at) => (
          <RowButton isCurrent={at === cursor} onClick={() => onCursor(at)}>
            {name}
          </RowButton>
        ),
        device_id: ({ device_id }) => <DeviceLink fleetId={fleetId} id={device_id} />,
        reason: ({ reason }) => <span class="soft">{reason.replaceAll('_', ' ')}</span>,
      }}
    />
  );
}
