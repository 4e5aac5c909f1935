import { useState } from 'preact/hooks';
import { pathTo } from '../../../contract/routes/path.ts';
import type { BackupDocument } from '../../../contract/server.ts';
import { Field } from '../../forms/field.tsx';
import { MakeDrawer } from '../../forms/make-drawer.tsx';
import { Section } from '../../frame/frame.tsx';
import { search } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Banner, Loaded } from '../../parts/banner.tsx';
import { bytesText } from '../../parts/bytes.ts';
import { Commands } from '../../parts/commands.tsx';
import { Moment } from '../../parts/moment.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { CallError } from '../../server/call-error.ts';
import { call } from '../../server/client.ts';
import { serverNow, spanText } from '../../server/clock.ts';
import { useResource } from '../../server/resource.ts';
import { may } from '../../session/session.ts';

const path = pathTo('/backup', {});

interface LastBackup {
  backup: BackupDocument | undefined;
}

async function readBackup(signal: AbortSignal): Promise<LastBackup> {
  try {
    return { backup: await call('GET', path, { signal }) };
  } catch (error) {
    if (error instanceof CallError && error.code === 'backup_not_found') return { backup: undefined };
    throw error;
  }
}

const inDatabase = 'The data is in a database: back it up with the tools of the database.';

/** The backup under way with its progress, or the last one; a button to take one of a data folder. */
export function BackupSection({ isInFolder }: { isInFolder: boolean | undefined }) {
  const [isRunning, setRunning] = useState(false);
  const [isAsked, setAsked] = useState(search.value.has('backup'));
  const last = useResource(
    may('admin') && isInFolder ? 'backup' : undefined,
    async (signal) => {
      const found = await readBackup(signal);
      setRunning(found.backup?.state === 'running');
      return found;
    },
    isRunning ? 0.5 : 30,
  );
  return (
    <Section
      title="Backup"
      tools={
        <Act
          scope="admin"
          onClick={() => setAsked(true)}
          unless={isInFolder === false ? inDatabase : isRunning ? 'One is under way.' : undefined}
        >
          Back up…
        </Act>
      }
    >
      {isInFolder === false ? (
        <p class="empty">{inDatabase}</p>
      ) : may('admin') ? (
        <Loaded resource={last}>
          {({ backup }) =>
            backup === undefined ? <p class="empty">None yet.</p> : <BackupProgress backup={backup} />
          }
        </Loaded>
      ) : (
        <p class="empty">Your session lacks the scope admin.</p>
      )}
      {isAsked && isInFolder && <NewBackup onClose={() => setAsked(false)} onStarted={last.refresh} />}
    </Section>
  );
}

function BackupProgress({ backup }: { backup: BackupDocument }) {
  const { folder, state, started_at, ended_at, bytes, bytes_total, reason } = backup;
  const beganMs = Date.parse(started_at);
  const endedMs = ended_at === null ? serverNow() : Date.parse(ended_at);
  return (
    <div class="stack below" role="status">
      {state === 'running' && <progress aria-label="Backup" max={Math.max(bytes_total, 1)} value={bytes} />}
      {state === 'failed' && (
        <Banner kind="bad">
          The backup failed: <Untrusted text={reason ?? ''} lengthMax={500} />. Remove its folder and try
          again.
        </Banner>
      )}
      <p>
        <span
          class={`state ${state === 'done' ? 'is-acked' : state === 'failed' ? 'is-bad' : 'is-connected'}`}
        >
          {state}
        </span>
        : {bytesText(bytes)}
        {state === 'running' && ` of about ${bytesText(bytes_total)}`}, in{' '}
        {spanText(Math.max(endedMs - beganMs, 0))}, begun <Moment time={started_at} />
      </p>
      <p class="soft">
        <code>
          <Untrusted text={folder} lengthMax={300} />
        </code>
      </p>
    </div>
  );
}

function NewBackup({ onClose, onStarted }: { onClose: () => void; onStarted: () => void }) {
  const [folder, setFolder] = useState('');
  const body = folder.trim() === '' ? {} : { folder: folder.trim() };
  return (
    <MakeDrawer
      title="Back up"
      verb="Start the backup"
      onClose={onClose}
      make={async () => {
        await call('POST', path, { body });
        onStarted();
        onClose();
      }}
      shown={() => null}
      foot={
        <Commands command={['backup', ...Object.values(body)]} request={{ method: 'POST', path, body }} />
      }
    >
      <Field
        label="Folder"
        name="folder"
        class="mono"
        pattern="/.*"
        title="An absolute path"
        maxLength={4_096}
        placeholder="/var/backups/fleetpost/2026-01-31"
        hint="On the server's machine: an absolute path, of a folder that is empty or does not exist. The server writes it as its own user. Empty: under the time in backupFolder."
        onText={setFolder}
      />
    </MakeDrawer>
  );
}
