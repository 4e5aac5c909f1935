import { accessSync, constants, existsSync, readFileSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

/** Below what systemd mounts for a service alone, in place of /tmp and /var/tmp. */
const privateRoot = /\/systemd-private-[^/]+\/tmp$/;

/** Follows the links of a path as far as it exists. */
export function realPathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return join(realPathOf(dirname(path)), basename(path));
  }
}

/**
 * Why the server cannot, or should not, make a folder there, with the remedy; undefined if nothing speaks against it.
 * What Node's own `mkdir` says of a read-only place is ENOENT. Both folders without links.
 */
export function unfitFor(folder: string, dataFolder: string, backupFolder: string): string | undefined {
  if (isWithin(folder, dataFolder)) {
    return 'The backup folder is inside the data folder. Choose one outside of it.';
  }
  const parent = existingParentOf(folder);
  const { root, isReadOnly } = mountOf(parent);
  if (privateRoot.test(root)) {
    return `${folder} is in the private /tmp of this service (PrivateTmp=), which nobody else sees and its next stop removes. Name another folder, or none: then the backup goes to ${backupFolder}.`;
  }
  if (isReadOnly) {
    return `${parent} is read-only for this server. A service may write only where its unit says (ReadWritePaths=): add the folder there, or name none: then the backup goes to ${backupFolder}.`;
  }
  try {
    accessSync(parent, constants.W_OK);
    return undefined;
  } catch (error) {
    return `${parent} cannot be written by the user of this server (${(error as NodeJS.ErrnoException).code}). Have it own the folder, or name another.`;
  }
}

function isWithin(path: string, folder: string): boolean {
  return join(path, '/').startsWith(join(folder, '/'));
}

function existingParentOf(folder: string): string {
  return existsSync(folder) ? folder : existingParentOf(dirname(folder));
}

interface Mount {
  /** The part of its file system that is mounted. */
  root: string;
  isReadOnly: boolean;
}

/** The mount that has this path: of each, mountinfo has the root, the mount point, its options and the file system's. */
function mountOf(path: string): Mount {
  const found = { root: '', point: '', isReadOnly: false };
  for (const line of readFileSync('/proc/self/mountinfo', 'utf8').trim().split('\n')) {
    const [mount = '', fileSystem = ''] = line.split(' - ');
    const [, , , root = '', point = '', options = ''] = mount.split(' ');
    const isAbove = isWithin(path, point);
    // The later of two mounts on a point covers the earlier.
    if (!isAbove || point.length < found.point.length) continue;
    const all = `${options},${fileSystem.split(' ').at(-1)}`.split(',');
    Object.assign(found, { root, point, isReadOnly: all.includes('ro') });
  }
  return found;
}
