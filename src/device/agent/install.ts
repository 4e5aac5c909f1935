import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { usageError } from './agent-error.ts';

/** The names of processors that the SDKs' installer looks for, by Node's. */
const processors: Record<string, string> = {
  x64: 'amd64',
  arm64: 'arm64',
  arm: 'armv6hf',
  riscv64: 'riscv64',
};
/** Settings that an SDK's process alone hands to the agent: the shim keeps them, unless that process overrides them. */
const kept = ['FLEETPOST_URL', 'FLEETPOST_CA', 'FLEETPOST_PINS', 'FLEETPOST_QUEUE'];
const ofFile = ['FLEETPOST_CA', 'FLEETPOST_QUEUE'];

/** Puts this agent where an SDK looks for its own, so that it downloads nothing. Returns what is printed. */
export function installShim(
  folder: string | undefined,
  file: string,
  environment: NodeJS.ProcessEnv,
): string {
  if (folder === undefined) throw usageError('missing_folder', 'Name the folder .agent of the SDK.');
  const defaults = kept.flatMap((name) => {
    const value = environment[name];
    if (!value) return [];
    const whole = ofFile.includes(name) ? resolve(value) : value;
    return [`: "\${${name}:=${escaped(whole)}}"`, `export ${name}`];
  });
  const run = `exec ${quoted(process.execPath)} ${quoted(resolve(file))} "$@"`;
  const script = ['#!/bin/sh', '# Written by fleetpost agent install.', ...defaults, run, ''].join('\n');
  // Everyone who may use the SDK may run the shim, whatever the umask makes private otherwise.
  process.umask(0o022);
  mkdirSync(folder, { recursive: true });
  for (const processor of Object.values(processors)) {
    const path = join(folder, `fostrom-device-agent-linux-${processor}`);
    // Whole at any moment: it may be running.
    writeFileSync(`${path}.new`, script);
    chmodSync(`${path}.new`, 0o755);
    renameSync(`${path}.new`, path);
  }
  const link = join(folder, 'fostrom-device-agent');
  rmSync(link, { force: true });
  symlinkSync(`fostrom-device-agent-linux-${processors[process.arch] ?? 'amd64'}`, link);
  return `installed: The SDK of ${folder} uses this agent.`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** For within double quotes of a shell. */
function escaped(text: string): string {
  return text.replace(/["\\$`}]/g, '\\$&');
}
