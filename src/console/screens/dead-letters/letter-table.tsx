import type { DeadLetterDocument } from '../../../contract/dead-letter.ts';
import { SelectPage, SelectRow, useToggle } from '../../lists/selection.tsx';
import { href } from '../../page/router.ts';
import { Moment } from '../../parts/moment.tsx';
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
  const selection = { keys: items.map(keyOfLetter), selected: keys, onSelected: onKeys };
  const toggle = useToggle(selection);
  return (
    <div class="table">
      <table>
        <thead>
          <tr>
            <SelectPage {...selection} />
            <th>Mail</th>
            <th>Device</th>
            <th>Reason</th>
            <th class="number less">Size</th>
            <th class="number">Died</th>
          </tr>
        </thead>
        <tbody>
          {items.map((letter, at) => (
            <LetterRow
              key={keyOfLetter(letter)}
              fleetId={fleetId}
              letter={letter}
              isSelected={keys.has(keyOfLetter(letter))}
              isCurrent={at === cursor}
              onShow={() => onCursor(at)}
              onToggle={(withShift) => toggle(at, withShift)}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface LetterRowProps {
  fleetId: string;
  letter: DeadLetterDocument;
  isSelected: boolean;
  isCurrent: boolean;
  onShow: () => void;
  onToggle: (withShift: boolean) => void;
}

function LetterRow({ fleetId, letter, isSelected, isCurrent, onShow, onToggle }: LetterRowProps) {
  const { device_id, name, reason, payload_bytes, died_at } = letter;
  return (
    <tr class={isSelected ? 'is-selected' : undefined} data-cursor={isCurrent ? '' : undefined}>
      <SelectRow label={`${name} of ${device_id}`} isSelected={isSelected} onToggle={onToggle} />
      <td class="cut">
        <button type="button" class="cell" aria-current={isCurrent ? 'true' : undefined} onClick={onShow}>
          {name}
        </button>
      </td>
      <td>
        <a class="mono" href={href([fleetId, 'devices', device_id])}>
          {device_id}
        </a>
      </td>
      <td class="soft">{reason.replaceAll('_', ' ')}</td>
      <td class="number soft less">{payload_bytes.toLocaleString('en')} B</td>
      <td class="number soft">
        <Moment time={died_at} />
      </td>
    </tr>
  );
}
