import { execFile } from 'node:child_process';
import { createProgram, runProgram } from '../../../src/cli/program.ts';
import { mainFile, type TestServer } from './server.ts';

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

/** `fleetpost ARGS`, as a process of its own. */
export function fleetpostProcess(
  args: readonly string[],
  environment: NodeJS.ProcessEnv = {},
): Promise<CommandResult> {
  return execute(process.execPath, [mainFile, ...args], environment);
}

let last: Promise<unknown> = Promise.resolve();

/**
 * `fleetpost ARGS`. What talks to a running server does so in this process, one command after another, because the start
 * of a process takes longer than most of them; the rest, and what is given an environment, is a process of its own.
 */
export function fleetpost(args: readonly string[], environment?: NodeJS.ProcessEnv): Promise<CommandResult> {
  const program = createProgram();
  if (environment !== undefined || !program.commands.some((command) => command.name() === args[0]))
    return fleetpostProcess(args, environment);
  const result = last.then(async () => {
    const { exitCode } = process;
    const [stdout, stderr] = [capture(process.stdout), capture(process.stderr)];
    process.exitCode = undefined;
    try {
      await runProgram(program, ['node', 'fleetpost', ...args]);
      return { status: Number(process.exitCode ?? 0), stdout: stdout.end(), stderr: stderr.end() };
    } finally {
      process.exitCode = exitCode;
    }
  });
  last = result;
  return result;
}

/** Keeps what is written to the stream, until it is ended. */
function capture(stream: NodeJS.WriteStream): { end(): string } {
  const { write } = stream;
  const chunks: Buffer[] = [];
  stream.write = (chunk: string | Uint8Array) => chunks.push(Buffer.from(chunk)) > 0;
  return {
    end: () => {
      stream.write = write;
      return Buffer.concat(chunks).toString();
    },
  };
}

/** `fleetpost ARGS --data DATA --json`, and the one document it prints. */
// biome-ignore lint/suspicious/noExplicitAny: a test asserts what it finds
export async function fleetpostJson(server: TestServer, args: readonly string[]): Promise<any> {
  const { status, stdout, stderr } = await fleetpost([...args, '--data', server.report.data, '--json']);
  if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}: ${stderr}`);
  return JSON.parse(stdout);
}
