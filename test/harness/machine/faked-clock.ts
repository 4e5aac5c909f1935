import { mkdtempSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const libraries = '/usr/lib';

/** Debian's place for it, on whatever processor. */
function findLibrary(): string {
  for (const triplet of readdirSync(libraries)) {
    const folder = join(libraries, triplet, 'faketime');
    try {
      if (readdirSync(folder).includes('libfaketimeMT.so.1')) return join(folder, 'libfaketimeMT.so.1');
    } catch {
      // Not there.
    }
  }
  throw new Error(
    'These tests change the clock of a running server and need libfaketime: apt-get install libfaketime.',
  );
}

/**
 * The wall clock of one process, in a test's hand: what it reads as the time of day is off by what `set` said
 * last, while its monotonic clock goes on as before.
 */
export class FakedClock {
  readonly #file = join(mkdtempSync(join(tmpdir(), 'fleetpost-clock-')), 'offset');
  readonly environment: NodeJS.ProcessEnv = {
    LD_PRELOAD: findLibrary(),
    FAKETIME_TIMESTAMP_FILE: this.#file,
    FAKETIME_NO_CACHE: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
    DONT_FAKE_MONOTONIC: '1',
    NO_FAKE_STAT: '1',
  };

  constructor() {
    this.set(0);
  }

  set(offsetSeconds: number): void {
    // Renamed over, so that it is never read while it is half written.
    writeFileSync(`${this.#file}.new`, `${offsetSeconds < 0 ? '' : '+'}${offsetSeconds}\n`);
    renameSync(`${this.#file}.new`, this.#file);
  }
}
