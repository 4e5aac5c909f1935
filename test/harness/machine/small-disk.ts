import { execFileSync } from 'node:child_process';
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '../server/server.ts';

/** A file system of a few megabytes in memory, which can really be full. Mounting one takes root. */
export class SmallDisk implements Disposable {
  readonly path = temporaryFolder();

  constructor(mebibytes: number) {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'tmpfs', this.path]);
  }

  /** Takes every page that is left. */
  fill(): void {
    const ballast = openSync(join(this.path, 'ballast'), 'w');
    try {
      for (;;) writeSync(ballast, Buffer.alloc(4_096, 1));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    } finally {
      closeSync(ballast);
    }
  }

  makeRoom(): void {
    rmSync(join(this.path, 'ballast'));
  }

  setReadOnly(): void {
    execFileSync('mount', ['-o', 'remount,ro', this.path]);
  }

  [Symbol.dispose](): void {
    execFileSync('umount', ['-l', this.path]);
    rmSync(this.path, { recursive: true, force: true });
  }
}
