import { parentPort, workerData } from 'node:worker_threads';
import { LiveSettings } from '../core/config/settings.ts';
import { createLog } from '../core/telemetry/log.ts';
import { outliveRejections } from '../core/telemetry/rejections.ts';
import { createApp, type ListenSocket, listenExclusively, uws } from '../device-api/uws/uws.ts';
import type { ThreadSettings } from './config.ts';
import { Channel } from './relay/channel.ts';
import type { AcceptorStart, Call } from './relay/messages.ts';
import { acceptorThread, EventLoopWatchdog, mainThread } from './watchdog.ts';

/**
 * The thread that accepts devices' connections and deals them to the workers, round robin. It does nothing else, so no
 * work of an operator on the main thread holds up a new connection, and it is the one that notices when another thread
 * stands still.
 */
const { counters, mainPort, tls, workers, ...start } = workerData as AcceptorStart;
const settings = new LiveSettings(start.settings.current);
const log = createLog(settings.current.logLevel, { thread: 'acceptor' });
if (parentPort === null) throw new Error('this file runs as a worker only');
const parent = parentPort;

// Must speak TLS itself: the library hands a connection over together with its session.
const app = createApp(tls);
let socket: ListenSocket | undefined;
let watchdog: EventLoopWatchdog | undefined;

/** Opens the port; undefined when it cannot be had. */
function listen(host: string, port: number): number | undefined {
  open(host, port);
  if (socket === undefined) return undefined;
  const taken = uws.us_socket_local_port(socket);
  if (port !== 0) return taken;
  // The library binds a port chosen by the system in such a way that the next process cannot bind it while
  // connections of this one are closing. So it is bound again by its number.
  stopListening();
  return listen(host, taken);
}

/** Listens with `listenExclusively`: without it the library lets several servers share a port. */
function open(host: string, port: number): void {
  app.listen(host, port, listenExclusively, (opened) => {
    socket = opened || undefined;
  });
}

function stopListening(): void {
  if (socket !== undefined) uws.us_listen_socket_close(socket);
  socket = undefined;
}

/** Starts once the server is ready, since a start may take long. */
function watchThreads(): void {
  watchdog = new EventLoopWatchdog({
    heartbeats: counters.heartbeats,
    thread: acceptorThread(workers),
    watched: [
      ...Array.from({ length: workers }, (_, thread) => ({ name: `worker ${thread}`, thread })),
      { name: 'the main thread', thread: mainThread(workers), limit: 'mainStallEndSeconds' as const },
    ],
    settings,
    log,
  });
}

function configure(values: Partial<ThreadSettings>): void {
  settings.change(values);
  log.level = settings.current.logLevel;
}

function close(): void {
  watchdog?.close();
  app.close();
  // Lets the answer to this call leave before the port is closed.
  setImmediate(() => {
    channel.close();
    parent.close();
  });
}

/** Answers plain values alone: the library's methods return what cannot be sent to another thread. */
function answer(call: Call): number | undefined {
  if (call.type === 'listen') return listen(call.host, call.port);
  switch (call.type) {
    case 'deal':
      app.addChildAppDescriptor(call.descriptor);
      break;
    case 'stopDealing':
      app.removeChildAppDescriptor(call.descriptor);
      break;
    case 'stopListening':
      stopListening();
      // The server stops, which has a limit of its own.
      watchdog?.unwatch();
      break;
    case 'watchThreads':
      watchThreads();
      break;
    case 'configure':
      configure(call.values);
      break;
    case 'close':
      close();
      break;
    default:
      throw new Error(`the acceptor does not serve ${call.type}`);
  }
  return undefined;
}

const channel = new Channel(
  mainPort,
  (call, { resolve }) => resolve(answer(call)),
  () => {},
);
outliveRejections(log);
