import { upgradeFolder } from '../../../src/maintenance/upgrade-folder/upgrade-folder.ts';
import { DataFolder } from '../../../src/storage/lmdb/environment/data-folder.ts';
import { configWith } from '../../harness/server/config.ts';
import { madeUpSteps } from './made-up-format.ts';

/** The upgrade of a start, by the made-up step, as a process that can be killed. */
const [data = ''] = process.argv.slice(2);
const stopping = new AbortController();
process.on('SIGTERM', () => stopping.abort(new Error('SIGTERM')));
const folder = DataFolder.open(data, 'lmdb', 1);
const { signal } = stopping;
process.stdout.write('begins\n');
try {
  await upgradeFolder(folder, { config: configWith(), signal }, madeUpSteps);
} catch (error) {
  if (!signal.aborted) throw error;
  process.stdout.write('stopped\n');
}
folder.close();
