import type { AgentSettings } from './settings.ts';
import { LocalServer } from './socket/local-server.ts';
import { NativeRoutes } from './socket/native-routes.ts';
import { SdkRoutes } from './socket/sdk-routes.ts';
import { SocketPlace } from './socket-place.ts';
import { Uplink } from './uplink.ts';

/** Runs an agent until it is told to end. ready: called when its socket takes requests. say: called with what happens. */
export async function runUntilStopped(
  settings: AgentSettings,
  ready: () => void,
  say: (text: string) => void,
): Promise<void> {
  const place = SocketPlace.take(settings.socketPath);
  try {
    let said = '';
    const uplink: Uplink = new Uplink(
      settings,
      () => {
        sdk.connectionChanged();
        if (said !== uplink.link.reason) say(uplink.link.reason);
        said = uplink.link.reason;
      },
      () => sdk.mailWaits(),
    );
    const sdk = new SdkRoutes(uplink);
    let stop = (): void => {};
    const stopped = new Promise<void>((resolve) => {
      stop = resolve;
      for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, () => resolve());
    });
    const server = new LocalServer(settings.identity, sdk, new NativeRoutes(uplink), stop);
    await server.listen(place.socketPath);
    ready();
    await stopped;
    await Promise.all([server.close(), uplink.close()]);
  } finally {
    place.leave();
  }
}
