import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { href, path } from '../page/router.ts';
import { Icon, type IconName } from '../parts/icon.tsx';
import { useLettersToday } from './attention.ts';

export interface ScreenLink {
  /** In the address, after the fleet. */
  part: string;
  name: string;
  icon: IconName;
  /** Help topic of its page: `fleetpost help TOPIC`. */
  topic: string;
  /** Other first parts of addresses that belong to it. */
  also?: readonly string[];
}

/** The screens by what one comes for. Each has a page in the documents, which the foot of the screen names. */
export const screenGroups: readonly (readonly [string, readonly ScreenLink[]])[] = [
  [
    'Watch',
    [
      { part: '', name: 'Now', icon: 'pulse', topic: 'operate/console' },
      { part: 'devices', name: 'Devices', icon: 'device', topic: 'operate/devices' },
      { part: 'live', name: 'Live', icon: 'live', topic: 'operate/records' },
      { part: 'dead-letters', name: 'Dead letters', icon: 'tray', topic: 'operate/mail' },
    ],
  ],
  [
    'Work',
    [
      { part: 'broadcasts', name: 'Broadcasts', icon: 'broadcast', topic: 'operate/broadcasts' },
      {
        part: 'consumers',
        name: 'Consumers, forwarders',
        icon: 'forward',
        topic: 'operate/records',
        also: ['forwarders'],
      },
      { part: 'actions', name: 'Actions', icon: 'code', topic: 'actions/writing' },
    ],
  ],
  [
    'Set up',
    [
      { part: 'schemas', name: 'Schemas', icon: 'braces', topic: 'operate/schemas' },
      { part: 'fleet', name: 'Fleet', icon: 'sliders', topic: 'run/overload' },
      { part: 'access', name: 'Access', icon: 'key', topic: 'run/access' },
      { part: 'server', name: 'Server', icon: 'server', topic: 'run/service' },
    ],
  ],
];

/** The screen that an address belongs to. */
export function screenOf(part = ''): ScreenLink | undefined {
  const all = screenGroups.flatMap(([, screens]) => screens);
  return all.find((screen) => screen.part === part || screen.also?.includes(part));
}

/** The links to all screens, and whose session it is; where there is no room for them, a list that a button opens. */
export function Navigation({ fleetId, children }: { fleetId: string; children: ComponentChildren }) {
  const menu = useRef<HTMLElement>(null);
  const current = screenOf(path.value[1]);
  const address = path.value.join('/');
  // Every step closes the list, whichever link it was.
  useEffect(() => {
    if (menu.current?.matches(':popover-open')) menu.current.hidePopover();
  }, [address]);
  return (
    <>
      <button type="button" class="button menu-button" popovertarget="screens">
        <Icon name="menu" />
        <span class="cut">{current?.name ?? 'Screens'}</span>
        {current?.part !== 'dead-letters' && <LetterCount isBesideOther />}
      </button>
      <nav id="screens" aria-label="Screens" popover="auto" ref={menu}>
        {screenGroups.map(([group, screens]) => (
          <section key={group} aria-label={group}>
            <h2>{group}</h2>
            <ul>
              {screens.map((screen) => (
                <li key={screen.part}>
                  <ScreenAnchor fleetId={fleetId} screen={screen} isCurrent={screen === current} />
                </li>
              ))}
            </ul>
          </section>
        ))}
        {children}
      </nav>
    </>
  );
}

function ScreenAnchor(props: { fleetId: string; screen: ScreenLink; isCurrent: boolean }) {
  const { fleetId, screen, isCurrent } = props;
  const { part, name, icon } = screen;
  return (
    <a href={href(part === '' ? [fleetId] : [fleetId, part])} aria-current={isCurrent ? 'page' : undefined}>
      <Icon name={icon} />
      {name}
      {part === 'dead-letters' && <LetterCount />}
    </a>
  );
}

/** More are counted for a bounded time only, so that two pages might say two numbers. */
const shownMax = 1_000;

function LetterCount({ isBesideOther = false }: { isBesideOther?: boolean }) {
  const letters = useLettersToday();
  if (letters === 0) return null;
  return (
    <span class="count" title="Dead letters of the last 24 hours">
      {/* Beside the name of another screen, it would read as a number of that. */}
      {isBesideOther && <Icon name="tray" />}
      {letters >= shownMax ? `${shownMax.toLocaleString('en')}+` : letters}
    </span>
  );
}
