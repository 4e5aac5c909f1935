import { useState } from 'preact/hooks';
import type { ActionDocument } from '../../../contract/action.ts';
import { below } from '../../../contract/routes/path.ts';
import { Difference } from '../../editor/code-editor.tsx';
import { Drawer } from '../../forms/dialogs.tsx';
import { Act } from '../../parts/act.tsx';
import { ErrorBanner, Loaded } from '../../parts/banner.tsx';
import { Commands } from '../../parts/commands.tsx';
import { Moment } from '../../parts/moment.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { call } from '../../server/client.ts';
import { useResource } from '../../server/resource.ts';
import { useSubmit } from '../../server/submit.ts';
import { pathOfAction } from './action-path.ts';
import { textOf } from './action-text.ts';
import { SettingChanges } from './studio/setting-changes.tsx';

export interface ActionVersionsProps {
  fleetId: string;
  action: ActionDocument;
  onRolledBack: (current: ActionDocument) => void;
}

/** The retained versions, newest first; each can be looked at against what runs, and made current again. */
export function ActionVersions({ fleetId, action, onRolledBack }: ActionVersionsProps) {
  const [opened, setOpened] = useState<number | undefined>();
  return (
    <div class="stack">
      <ul class="list">
        {[...action.versions].reverse().map(({ version, created_at, by }) => (
          <li key={version}>
            <div class="row">
              <span class="strong">Version {version}</span>
              {version === action.version && <span class="tag">runs now</span>}
              <span class="end">
                {by !== null && (
                  <span class="soft less">
                    by <Untrusted text={by} lengthMax={60} />
                  </span>
                )}
                <Moment time={created_at} />
                {version !== action.version && (
                  <Act onClick={() => setOpened(version)}>Compare, roll back</Act>
                )}
              </span>
            </div>
          </li>
        ))}
      </ul>
      <p class="hint">
        State and dead letters stay; the version runs from the first record that is not done.
      </p>
      {opened !== undefined && (
        <RollbackDrawer
          fleetId={fleetId}
          action={action}
          version={opened}
          onClose={() => setOpened(undefined)}
          onDone={(current) => {
            setOpened(undefined);
            onRolledBack(current);
          }}
        />
      )}
    </div>
  );
}

interface RollbackProps {
  fleetId: string;
  action: ActionDocument;
  version: number;
  onClose: () => void;
  onDone: (current: ActionDocument) => void;
}

function RollbackDrawer({ fleetId, action, version, onClose, onDone }: RollbackProps) {
  const path = pathOfAction(fleetId, action.name);
  const rollbackPath = below(path, '/rollback', {});
  // Against what ran when it was opened: the answer to "what changes if I do this?" must not move.
  const [current] = useState(action.version);
  const both = useResource(`${path} ${version} ${current}`, (signal) =>
    Promise.all(
      [current, version].map((one) =>
        call('GET', below(path, '/versions/{version}', { version: one }), { signal }),
      ),
    ),
  );
  const { error, isBusy, submit } = useSubmit();
  const rollBack = (): void =>
    void submit(async () => onDone(await call('POST', rollbackPath, { body: { version } })));
  return (
    <Drawer
      title={`From version ${current} to version ${version}`}
      isWide
      onClose={onClose}
      foot={
        <>
          <Act scope="admin" kind="main" unless={isBusy ? 'Rolling back…' : undefined} onClick={rollBack}>
            Roll back to version {version}
          </Act>
          <Act kind="plain" onClick={onClose}>
            Cancel
          </Act>
        </>
      }
    >
      {error && <ErrorBanner error={error} />}
      <Loaded resource={both}>
        {([before, after]) =>
          before &&
          after && (
            <>
              <SettingChanges before={textOf(before)} after={textOf(after)} />
              <Difference
                label={`From version ${current} to version ${version}`}
                before={before.source}
                after={after.source}
                language={textOf(after).language}
              />
            </>
          )
        }
      </Loaded>
      <Commands
        command={['action', 'rollback', action.name, String(version), '--fleet', fleetId]}
        request={{ method: 'POST', path: rollbackPath, body: { version } }}
      />
    </Drawer>
  );
}
