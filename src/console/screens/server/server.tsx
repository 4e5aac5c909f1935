import { useState } from 'preact/hooks';
import { pathTo } from '../../../contract/routes/path.ts';
import type { ServerDocument } from '../../../contract/server.ts';
import { Screen } from '../../frame/frame.tsx';
import { useKeys } from '../../page/keys.ts';
import { ErrorBanner, Loaded } from '../../parts/banner.tsx';
import { quickAtFirst, type Resource, useDocument } from '../../server/resource.ts';
import { may } from '../../session/session.ts';
import { ServerActivity } from './activity.tsx';
import { BackupSection } from './backup.tsx';
import { Configuration } from './configuration.tsx';
import { Program } from './program.tsx';

const topPath = pathTo('/top', {});
const serverPath = pathTo('/server', {});

/** True if the data is in the data folder, not in databases. */
function isInFolder({ configuration }: ServerDocument): boolean {
  return configuration.some(
    ({ key, value }) => key === 'store' && typeof value === 'object' && value.engine === 'lmdb',
  );
}

/** The server: what it does now, its shards, its certificates, its backup, and its configuration with sources. */
export function ServerScreen({ fleetId }: { fleetId: string }) {
  const [every] = useState(() => quickAtFirst(2, 12));
  const top = useDocument(topPath, every);
  const isAdmin = may('admin');
  const server = useDocument(isAdmin ? serverPath : undefined, 60);
  const refresh = (): void => {
    top.refresh();
    server.refresh();
  };
  useKeys({ r: refresh });
  return (
    <Screen
      title="Server"
      read={top}
      commands={[
        { command: ['top'], request: { path: topPath } },
        { command: ['status', '--all'], request: { path: serverPath } },
      ]}
    >
      {top.error?.status === 403 ? (
        <ErrorBanner error={top.error} />
      ) : (
        <>
          <Loaded resource={top}>
            {(document) => <ServerActivity fleetId={fleetId} top={document} onReleased={refresh} />}
          </Loaded>
          {isAdmin ? (
            <Administered server={server} />
          ) : (
            <p class="empty">
              Your session lacks the scope admin, which backups, certificates and the configuration take.
            </p>
          )}
        </>
      )}
    </Screen>
  );
}

/** What administrators alone see: backups, the program with its certificates, the configuration. */
function Administered({ server }: { server: Resource<ServerDocument> }) {
  return (
    <>
      <div class="columns">
        <div>
          <BackupSection isInFolder={server.value && isInFolder(server.value)} />
        </div>
        <div>
          {server.value ? (
            <Program server={server.value} />
          ) : (
            server.error && <ErrorBanner error={server.error} onRetry={server.refresh} />
          )}
        </div>
      </div>
      {server.value && <Configuration keys={server.value.configuration} />}
    </>
  );
}
