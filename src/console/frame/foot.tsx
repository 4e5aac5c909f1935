import { signal } from '@preact/signals';
import { areKeysShown } from '../page/keys.ts';
import { href, path } from '../page/router.ts';
import { Commands, type CommandsProps } from '../parts/commands.tsx';
import { CopyButton } from '../parts/copy-button.tsx';
import { may } from '../session/session.ts';
import { screenOf } from './navigation.tsx';

const kept = 'fleetpost.foot';
/** Remembered in the browser: who never types a command has one line of it. */
const isOpen = signal(localStorage.getItem(kept) === 'open');

/** The object of the screen as the audit log names it: a device, a mail, a broadcast; else the whole fleet. */
function objectOf(parts: readonly string[]): string | undefined {
  return parts.length > 2 && parts[1] !== 'access' ? parts.at(-1) : undefined;
}

/**
 * Below every screen: the commands that do the same, its page of the documents, and who changed what it is about. The page
 * is named by the command that prints it, since documents ship with the program and not with the console: it works
 * without a network, and is of the same version.
 */
export function Foot({ commands }: { commands: readonly CommandsProps[] }) {
  const parts = path.value;
  const [fleetId = '', part] = parts;
  const screen = screenOf(part);
  const help = screen && `fleetpost help ${screen.topic}`;
  const about = objectOf(parts);
  const isAudit = part === 'access' && parts[2] === 'audit';
  const onToggle = (isNow: boolean): void => {
    isOpen.value = isNow;
    localStorage.setItem(kept, isNow ? 'open' : 'closed');
  };
  return (
    <div class="foot">
      <details open={isOpen.value} onToggle={({ currentTarget }) => onToggle(currentTarget.open)}>
        <summary>As a command</summary>
        {commands.map((one) => (
          <Commands key={one.command.join(' ')} {...one} />
        ))}
        {help && (
          <div class="commands is-docs">
            <span>Docs</span>
            <span class="line">
              <code>{help}</code>
              <CopyButton text={help} label="Copy the command that prints the page" />
            </span>
          </div>
        )}
      </details>
      <span class="inline">
        {may('admin') && !isAudit && screen && (
          <a
            class="link"
            href={href(
              [fleetId, 'access', 'audit'],
              screen.part === 'server' ? {} : { about, fleet: fleetId },
            )}
          >
            Who changed {about === undefined ? 'what' : 'this'}
          </a>
        )}
        <button
          type="button"
          class="link"
          onClick={() => {
            areKeysShown.value = true;
          }}
        >
          Keys <kbd>?</kbd>
        </button>
      </span>
    </div>
  );
}
