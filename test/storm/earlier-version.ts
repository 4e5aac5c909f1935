import { execFileSync } from 'node:child_process';
import { rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { folderOnDisk } from '../harness/machine/temporary-folder.ts';

const repository = new URL('../..', import.meta.url).pathname;
const migrationsFile = 'src/storage/postgres/schema/migrations.ts';

function git(...args: readonly string[]): string {
  return execFileSync('git', args, { cwd: repository, encoding: 'utf8' }).trim();
}

/** The program of an earlier commit of this repository, built in a folder of its own with the libraries of today. */
export class EarlierVersion implements Disposable {
  readonly commit: string;
  readonly mainFile: string;
  readonly #folder: string;

  private constructor(commit: string, folder: string) {
    this.commit = commit;
    this.mainFile = join(folder, 'dist/main.js');
    this.#folder = folder;
  }

  /** `revision`: as git names it; the last one with other tables than today's if absent. */
  static build(revision?: string): EarlierVersion {
    const named = revision ?? `${git('log', '-1', '--format=%H', '--', migrationsFile)}^`;
    const commit = git('rev-parse', '--verify', `${named}^{commit}`);
    const folder = folderOnDisk();
    const version = new EarlierVersion(commit, folder);
    try {
      const tar = join(folder, 'source.tar');
      git('archive', '-o', tar, commit);
      execFileSync('tar', ['-xf', tar, '-C', folder]);
      rmSync(tar);
      symlinkSync(join(repository, 'node_modules'), join(folder, 'node_modules'));
      execFileSync(process.execPath, ['packaging/build.js'], { cwd: folder, stdio: 'inherit' });
    } catch (error) {
      version[Symbol.dispose]();
      throw error;
    }
    return version;
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
