import { screenGroups } from '../../frame/navigation.tsx';
import { areKeysShown } from '../../page/keys.ts';
import { go, href, path } from '../../page/router.ts';
import { shownText } from '../../parts/untrusted.tsx';
import { logOut, may } from '../../session/session.ts';
import { isPlainDeviceId } from '../devices/device-query.ts';
import { wholeFleet } from '../devices/selection.ts';
import { spellingsOf } from '../devices/spellings.ts';
import { sendTo } from '../send/send-to.ts';

/** Something to go to or to do. */
export interface PaletteEntry {
  key: string;
  group: 'Recent' | 'Go to' | 'Here' | 'Do' | 'Named' | 'Devices' | 'Mail';
  name: string;
  note?: string;
  /** Other words that people have for it. */
  words?: string;
  /** Why it cannot be done now. */
  unless?: string | undefined;
  run: () => void;
}

const uuid = /^[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}$/i;
const deviceId = /^[A-Za-z0-9]{10}$/;
/** More is on no screen; a page that has it shows no more of it here. */
const buttonsMax = 50;

function lacks(scope: 'mail' | 'provision' | 'admin'): string | undefined {
  return may(scope) ? undefined : `Your session lacks the scope ${scope}.`;
}

/** The screens, and what can be done from each of them. */
export function standingEntries(fleetId: string): PaletteEntry[] {
  const target =
    (part: string, query: Record<string, string> = {}) =>
    (): void =>
      go(href(part === '' ? [fleetId] : [fleetId, ...part.split('/')], query));
  const screens = screenGroups.flatMap(([group, listed]) =>
    listed.map(
      ({ part, name }): PaletteEntry => ({
        key: `go ${part}`,
        group: 'Go to',
        name,
        note: group,
        run: target(part),
      }),
    ),
  );
  const parts: readonly (readonly [string, string])[] = [
    ['access/claim-tokens', 'Claim tokens'],
    ['access/sessions', 'Console sessions'],
    ['access/audit', 'Audit log'],
  ];
  const doing = (name: string, run: () => void, unless?: string): PaletteEntry => ({
    key: `do ${name}`,
    group: 'Do',
    name,
    words: otherWords[name] ?? '',
    unless,
    run,
  });
  return [
    ...screens,
    ...parts.map(
      ([part, name]): PaletteEntry => ({
        key: `go ${part}`,
        group: 'Go to',
        name,
        note: 'Access',
        run: target(part),
      }),
    ),
    doing('Send mail to a device', () => (sendTo.value = { deviceId: '' }), lacks('mail')),
    doing('Broadcast to all devices', () => (sendTo.value = wholeFleet), lacks('mail')),
    doing('New secret of a device', target('devices')),
    doing('Export records', target('live', { export: '1' })),
    doing('Make a token', target('access/tokens', { new: '1' }), lacks('admin')),
    doing('Make a claim token', target('access/claim-tokens', { new: '1' }), lacks('provision')),
    doing('Take a backup', target('server', { backup: '1' }), lacks('admin')),
    doing('List the keys', () => {
      areKeysShown.value = true;
    }),
    doing('Log out', () => void logOut()),
  ];
}

/** The buttons of the screen as it is drawn: each by its name, with why it cannot be pressed. */
export function entriesOfScreen(): PaletteEntry[] {
  const places = ['.head', '.section-head', '.notice', '.bulk', '.save'];
  const buttons = document.querySelectorAll<HTMLElement>(
    places.map((place) => `main.screen ${place} :is(button, a).button`).join(),
  );
  return [...buttons].slice(0, buttonsMax).flatMap((button, at): PaletteEntry[] => {
    const name = nameOf(button);
    if (name === '') return [];
    const isDisabled = button.ariaDisabled === 'true' || (button as HTMLButtonElement).disabled === true;
    return [
      {
        key: `here ${at}`,
        group: 'Here',
        name,
        words: otherWords[name.replace(/…$/, '')] ?? '',
        unless: isDisabled ? button.title || 'Not now' : undefined,
        run: () => button.click(),
      },
    ];
  });
}

/** Text of a button, without its key, and without what is for ears alone. */
function nameOf(button: HTMLElement): string {
  if (button.ariaLabel) return button.ariaLabel;
  const copy = button.cloneNode(true) as HTMLElement;
  for (const part of copy.querySelectorAll('kbd, .visually-hidden')) part.remove();
  return (copy.textContent ?? '').trim().replace(/\s+/g, ' ').slice(0, 80);
}

/**
 * Entries for an exact id: a device at once, in small letters the one of `found` that is meant; a mail by its device.
 */
export function entriesOfId(
  fleetId: string,
  text: string,
  found: readonly { device_id: string; name: string }[],
): PaletteEntry[] {
  const words = text.trim().split(/[\s/]+/);
  const [first = '', second = ''] =
    words.length > 2 ? words.filter((word) => deviceId.test(word) || uuid.test(word)) : words;
  if (deviceId.test(first) && second === '') {
    const meant = found.find(({ device_id }) => spellingsOf(first).includes(device_id));
    if (meant !== undefined) return [deviceEntry(fleetId, meant)];
    // The list of devices finds out how the id is written, if that is not known yet.
    const target = isPlainDeviceId(first)
      ? href([fleetId, 'devices', first])
      : href([fleetId, 'devices'], { q: first });
    return [{ key: 'device', group: 'Devices', name: first, note: 'open this id', run: () => go(target) }];
  }
  const mail = uuid.test(second) ? second : uuid.test(first) ? first : undefined;
  if (mail === undefined) return [];
  const here = path.value[1] === 'devices' ? path.value[2] : undefined;
  const device = deviceId.test(first) ? first : here;
  if (device === undefined) {
    const unless = 'A mail is found with its device: write the id of the device before it.';
    return [{ key: 'mail', group: 'Mail', name: mail, unless, run: () => undefined }];
  }
  const run = (): void => go(href([fleetId, 'devices', device, 'mail', mail]));
  return [{ key: 'mail', group: 'Mail', name: mail, note: `of ${device}`, run }];
}

/** Words that people type for what is named otherwise here. */
const otherWords: Readonly<Record<string, string>> = {
  'New secret': 'rotate credentials key password',
  'New secret of a device': 'rotate credentials key password',
  'New broadcast': 'message command rollout',
  'New signing secret': 'rotate credentials key',
  'New device': 'create add register provision',
  Disable: 'block revoke',
  Delete: 'remove',
  'Send mail': 'message command',
  'Send mail to a device': 'message command',
  'Broadcast to all devices': 'message command rollout',
  'Export records': 'download csv ndjson',
  'Export its records': 'download csv ndjson',
  Export: 'download csv',
  'Make a token': 'create new api key credentials',
  'Make a claim token': 'create new register provision',
  'List the keys': 'shortcuts help',
  'Log out': 'sign out',
};

/** Entries that have all the words that were typed. */
export function fitting(entries: readonly PaletteEntry[], text: string): PaletteEntry[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return entries.filter(({ name, group, note = '', words: others = '' }) => {
    const all = `${name} ${note} ${group} ${others}`.toLowerCase();
    return words.every((word) => all.includes(word));
  });
}

/** A device that was found. */
export function deviceEntry(
  fleetId: string,
  { device_id, name }: { device_id: string; name: string },
): PaletteEntry {
  const run = (): void => go(href([fleetId, 'devices', device_id]));
  return { key: `device ${device_id}`, group: 'Devices', name: device_id, note: shownText(name, 80), run };
}
