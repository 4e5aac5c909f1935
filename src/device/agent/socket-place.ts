import { chmodSync, lstatSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { LockedError, ProcessLock } from '../client/queue/process-lock.ts';
import { AgentError } from './agent-error.ts';
import { isDefaultPath } from './settings.ts';

/** The place of one agent: its socket, its pid beside it, and the lock that keeps a second agent away. */
export class SocketPlace {
  readonly socketPath: string;
  readonly #pidPath: string;
  readonly #lock: ProcessLock;

  private constructor(socketPath: string, pidPath: string, lock: ProcessLock) {
    this.socketPath = socketPath;
    this.#pidPath = pidPath;
    this.#lock = lock;
  }

  /** Takes it, and clears what an agent that was killed has left. @throws AgentError if another agent has it. */
  static take(socketPath: string): SocketPlace {
    prepareFolder(socketPath);
    const base = socketPath.replace(/\.sock$/, '');
    try {
      const lock = ProcessLock.take(`${base}.lock`);
      const found = lstatSync(socketPath, { throwIfNoEntry: false });
      if (found !== undefined && !found.isSocket()) {
        lock.release();
        throw new AgentError(500, 'invalid_socket', `${socketPath} is there, and is no socket.`);
      }
      rmSync(socketPath, { force: true });
      writeFileSync(`${base}.pid`, `${process.pid}\n`, { mode: 0o600 });
      return new SocketPlace(socketPath, `${base}.pid`, lock);
    } catch (error) {
      if (error instanceof LockedError) throw new AgentError(500, 'already_started', error.message);
      throw error;
    }
  }

  leave(): void {
    rmSync(this.socketPath, { force: true });
    rmSync(this.#pidPath, { force: true });
    this.#lock.release();
  }
}

function prepareFolder(socketPath: string): void {
  const folder = dirname(socketPath);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  requireOwnFolder(socketPath);
  if (isDefaultPath(socketPath)) chmodSync(folder, 0o700);
}

/**
 * Looks at the socket's folder, if it is there. Whoever else may write there can listen in the agent's place, and be
 * believed: nobody can tell whose socket it is. In a sticky folder, /tmp say, he only has to be first.
 *
 * @throws AgentError unless it is this user's alone.
 */
export function requireOwnFolder(socketPath: string): void {
  const folder = dirname(socketPath);
  const found = lstatSync(folder, { throwIfNoEntry: false });
  const uid = process.getuid?.();
  if (found === undefined || uid === undefined) return;
  if (!found.isDirectory() || found.uid !== uid)
    throw new AgentError(
      500,
      'invalid_folder',
      `${folder} is no folder of user ${uid}: remove it, or name another.`,
    );
  if ((found.mode & 0o022) !== 0)
    throw new AgentError(
      500,
      'invalid_folder',
      `Others may write in ${folder}: name a folder of your own, or chmod go-w it.`,
    );
}
