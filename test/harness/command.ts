import { execFile } from 'node:child_process';
import type { TestServer } from './server.ts';

const mainFile = new URL('../../dist/main.js', import.meta.url).pathname;

export interface CommandResult {
  status: number;
  stdout: string;
  stderr: string;
}

/** Runs a program to its end. */
export function execute(
  file: string,
  args: readonly string[],
  environment: NodeJS.ProcessEnv = {},
): Promise<CommandResult> {
  return new Promise((resolve) => {
    const options = { env: { ...process.env, ...environment }, timeout: 60_000, maxBuffer: 64 * 1024 * 1024 };
    execFile(file, args, options, (error, stdout, stderr) => {
      const status = error === null ? 0 : typeof error.code === 'number' ? error.code : -1;
      resolve({ status, stdout, stderr });
    });
  });
}

/** `fleetpost ARGS`. */
export function fleetpost(
  args: readonly string[],
  environment: NodeJS.ProcessEnv = {},
): Promise<CommandResult> {
  return execute(process.execPath, [mainFile, ...args], environment);
}

/** `fleetpost ARGS --data DATA --json`, and the one document it prints. */
// biome-ignore lint/suspicious/noExplicitAny: a test asserts what it finds
export async function fleetpostJson(server: TestServer, args: readonly string[]): Promise<any> {
  const { status, stdout, stderr } = await fleetpost([...args, '--data', server.report.data, '--json']);
  if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}: ${stderr}`);
  return JSON.parse(stdout);
}
