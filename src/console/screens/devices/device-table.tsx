import type { TargetedMouseEvent } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { DeviceDocument } from '../../../contract/device.ts';
import { SelectPage, SelectRow, useToggle } from '../../lists/selection.tsx';
import { href } from '../../page/router.ts';
import { Moment } from '../../parts/moment.tsx';
import { StateMark } from '../../parts/state-mark.tsx';
import { shownText, Untrusted } from '../../parts/untrusted.tsx';

export interface DeviceTableProps {
  fleetId: string;
  items: readonly DeviceDocument[];
  ids: ReadonlySet<string>;
  /** Row that the keys are at. */
  cursor: number;
  onIds: (ids: ReadonlySet<string>) => void;
}

/** More than a screen shows: they are drawn first, the others behind them in the next frame. */
const firstRows = 40;
/** Mails in a mailbox from which on it looks stuck. */
const manyMails = 10;

/** A page of devices with a box to select each. */
export function DeviceTable({ fleetId, items, ids, cursor, onIds }: DeviceTableProps) {
  const selection = { keys: items.map(({ device_id }) => device_id), selected: ids, onSelected: onIds };
  const toggle = useToggle(selection);
  const [rows, setRows] = useState(firstRows);
  useEffect(() => setRows(Number.POSITIVE_INFINITY), []);
  return (
    <div class="table">
      <table>
        <thead>
          <tr>
            <SelectPage {...selection} />
            <th>
              <span class="word">State</span>
            </th>
            <th>Device</th>
            <th>Name</th>
            <th class="less">Tags</th>
            <th class="number">Mail</th>
            <th class="number less">First waits since</th>
            <th class="number less">Last seen</th>
            <th class="less">From</th>
          </tr>
        </thead>
        <tbody>
          {items.slice(0, rows).map((device, at) => (
            <Row
              key={device.device_id}
              fleetId={fleetId}
              device={device}
              isSelected={ids.has(device.device_id)}
              isCurrent={at === cursor}
              onToggle={(withShift) => toggle(at, withShift)}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface RowProps {
  fleetId: string;
  device: DeviceDocument;
  isSelected: boolean;
  isCurrent: boolean;
  onToggle: (withShift: boolean) => void;
}

function Row({ fleetId, device, isSelected, isCurrent, onToggle }: RowProps) {
  const { device_id, name, tags, mailbox_size, waiting_since, last_seen, last_address } = device;
  const target = href([fleetId, 'devices', device_id]);
  return (
    <tr
      class={isSelected ? 'opens is-selected' : 'opens'}
      data-cursor={isCurrent ? '' : undefined}
      onClick={openRow}
    >
      <SelectRow label={device_id} isSelected={isSelected} onToggle={onToggle} />
      <td>
        <StateMark device={device} />
      </td>
      <td>
        <a href={target} class="mono" data-opens>
          {device_id}
        </a>
      </td>
      <td class="cut" title={shownText(name)}>
        <Untrusted text={name} lengthMax={120} />
      </td>
      <td class="less">
        <Tags fleetId={fleetId} tags={tags} />
      </td>
      <td class={`number ${mailbox_size === 0 ? 'faint' : mailbox_size >= manyMails ? 'warn strong' : ''}`}>
        {mailbox_size.toLocaleString('en')}
      </td>
      <td class="number soft less">{waiting_since !== null && <Moment time={waiting_since} />}</td>
      <td class="number soft less">{last_seen === null ? 'never' : <Moment time={last_seen} />}</td>
      <td class="soft less mono small">{last_address}</td>
    </tr>
  );
}

/**
 * A click beside the box and the links of a row is one on its link, in a tab of its own with the keys for that. Keys and
 * screen readers have the link itself.
 */
function openRow(event: TargetedMouseEvent<HTMLTableRowElement>): void {
  const { target, currentTarget, ctrlKey, metaKey, shiftKey } = event;
  if (shiftKey || (target instanceof Element && target.closest('a, .check') !== null)) return;
  // Marking a text to copy it is not meant as a click on the row.
  if (getSelection()?.type === 'Range') return;
  const click = new MouseEvent('click', { bubbles: true, cancelable: true, ctrlKey, metaKey });
  currentTarget.querySelector('a[data-opens]')?.dispatchEvent(click);
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
          href={href([fleetId, 'devices'], { q: /[\s"]/.test(tag) ? `tag:"${tag}"` : `tag:${tag}` })}
        >
          <Untrusted text={tag} lengthMax={64} />
        </a>
      ))}
      {further > 0 && <span class="hint">+{further}</span>}
    </span>
  );
}
