import type { DeviceDocument } from '../device.ts';
import type { ListColumns } from './column.ts';

/** Members of a line of an import, for people. */
export const importedMembers = 'device_id, name, tags, enabled, secret or secret_digest';

export const deviceColumns = [
  { name: 'device_id', label: 'Device', kind: 'id' },
  { name: 'name', label: 'Name' },
  { name: 'enabled' },
  { name: 'state', label: 'State', kind: 'word' },
  { name: 'mailbox_size', label: 'Mail', kind: 'count' },
  {
    name: 'waiting_since',
    label: 'Mail waits since',
    kind: 'time',
    none: '',
    isPageOnly: true,
    isLesser: true,
  },
  { name: 'last_seen', label: 'Last seen', kind: 'time', none: 'never' },
  { name: 'tags', label: 'Tags', isLesser: true },
  { name: 'last_address', label: 'From', kind: 'id', none: '', isPageOnly: true, isLesser: true },
] as const satisfies ListColumns<DeviceDocument>;
