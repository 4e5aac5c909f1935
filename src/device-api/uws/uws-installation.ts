import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { OperatorError } from '../../core/errors.ts';
import { type UwsBinary, uwsBinaries } from './uws-binaries.ts';

const require = createRequire(import.meta.url);
const platform = `${process.platform}-${process.arch}`;
const major = Number(process.versions.node.split('.')[0]);

export interface InstalledBinary extends UwsBinary {
  path: string;
}

/** Lists the binaries in node_modules for this Node and platform, newest first. */
export function installedBinaries(): InstalledBinary[] {
  const found: InstalledBinary[] = [];
  for (const binary of uwsBinaries) {
    if (binary.platform !== platform || binary.node !== major) continue;
    // Found by path, because the vendor's package does not export its binaries. npm skips those for another Node.
    const folders = require.resolve.paths(binary.file) ?? [];
    const path = folders.map((folder) => join(folder, binary.file)).find((one) => existsSync(one));
    if (path !== undefined) found.push({ ...binary, path });
  }
  return found;
}

/**
 * Verifies the digests of the binaries that this process may load. Costs 5 ms for each 7 MB file, so the main thread
 * does it once, before any thread loads one. @throws OperatorError
 */
export function checkBinaries(): void {
  const installed = installedBinaries();
  if (installed.length === 0)
    throw new OperatorError(explainMissing(platform, process.versions.node, glibc()));
  for (const { file, path, sha256 } of installed) {
    const found = createHash('sha256').update(readFileSync(path)).digest('hex');
    if (found !== sha256) {
      throw new OperatorError(
        `${path} is not loaded: its SHA-256 is ${found}, not ${sha256} as src/device-api/uws/uws-binaries.ts has it for ${file}. Run npm ci again; see docs/start/install.md.`,
      );
    }
  }
}

/** Returns the version of glibc; undefined with another C library. */
export function glibc(): string | undefined {
  const { header } = process.report.getReport() as { header?: { glibcVersionRuntime?: string } };
  return header?.glibcVersionRuntime;
}

function isAtLeast(version: string, needed: string): boolean {
  const [[major = 0, minor = 0] = [], [majorNeeded = 0, minorNeeded = 0] = []] = [version, needed].map(
    (one) => one.split('.').map(Number),
  );
  return major > majorNeeded || (major === majorNeeded && minor >= minorNeeded);
}

function versions(binaries: readonly UwsBinary[]): string {
  const all = [...new Set(binaries.map(({ node }) => node))].sort((a, b) => a - b);
  return all.length < 2 ? all.join() : `${all.slice(0, -1).join(', ')} or ${all.at(-1)}`;
}

/** Explains why no binary is found or loads, and what to do. `failure` is the error of one that is installed. */
export function explainMissing(
  platform: string,
  node: string,
  glibc: string | undefined,
  failure?: string,
): string {
  const ofPlatform = uwsBinaries.filter((one) => one.platform === platform);
  if (ofPlatform.length === 0) {
    return `There is no uWebSockets.js binary for ${platform} whose SHA-256 is known: install the vendor's own, see docs/start/install.md.`;
  }
  const major = Number(node.split('.')[0]);
  const ofNode = ofPlatform.filter((one) => one.node === major);
  if (ofNode.length === 0) {
    return `There is no uWebSockets.js binary for Node ${node}: use Node ${versions(ofPlatform)}.`;
  }
  const oldest = ofNode.at(-1)?.glibc ?? '';
  if (glibc === undefined) {
    return `glibc ${oldest} or newer is needed, and this machine has another C library: use Debian or Ubuntu, for example.`;
  }
  if (!isAtLeast(glibc, oldest)) {
    const others = ofPlatform.filter((one) => isAtLeast(glibc, one.glibc));
    const cure = others.length === 0 ? '' : ` Node ${versions(others)} runs here.`;
    return `Node ${major} needs glibc ${oldest} or newer; this machine has ${glibc}.${cure}`;
  }
  if (failure !== undefined) return `uWebSockets.js does not load: ${failure}`;
  return `node_modules was installed for another Node than ${node}, which this is: run npm ci again with this one.`;
}
