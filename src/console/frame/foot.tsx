import { href, path } from '../page/router.ts';
import { CopyButton } from '../parts/copy-button.tsx';
import { may } from '../session/session.ts';
import { screenOf } from './navigation.tsx';

/** The object of the screen as the audit log names it: a device, a mail, a broadcast; else the whole fleet. */
function objectOf(parts: readonly string[]): string | undefined {
  return parts.length > 2 && parts[1] !== 'access' ? parts.at(-1) : undefined;
}

/**
 * Below every screen: its page of the documents, and who changed what it is about. The page is named by the command
 * that prints it, since documents ship with the program and not with the console: it works without a network, and is of
 * the same version.
 */
export function Foot({ fleetId }: { fleetId: string }) {
  const parts = path.value;
  const screen = screenOf(parts[1]);
  if (screen === undefined) return null;
  const command = `fleetpost help ${screen.topic}`;
  const about = objectOf(parts);
  const isAudit = parts[1] === 'access' && parts[2] === 'audit';
  return (
    <section class="commands is-foot" aria-label="Documents and changes">
      <span>Docs</span>
      <span class="line">
        <code>{command}</code>
        <CopyButton text={command} label="Copy the command that prints the page" />
        {may('admin') && !isAudit && (
          <a
            class="link end"
            href={href(
              [fleetId, 'access', 'audit'],
              screen.part === 'server' ? {} : { about, fleet: fleetId },
            )}
          >
            Who changed {about === undefined ? 'what' : 'this'}
          </a>
        )}
      </span>
    </section>
  );
}
