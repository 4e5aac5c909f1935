import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { adminVariable, contextVariable, isAdminUrl } from '../core/config/client-variables.ts';
import { OperatorError } from '../core/errors.ts';
import { replaceFile } from '../core/replace-file.ts';

/** A server as the commands of one user reach it. */
export interface Context {
  /** URL of the admin API. */
  address: string;
  /** Absolute path of the certificates to trust, PEM, instead of the usual ones. */
  ca?: string;
  token?: string;
  /** Default of `--fleet`. */
  fleet?: string;
}

/** The contexts of a user; `current` is the name of the one in use. */
export interface Contexts {
  current?: string;
  contexts: Readonly<Record<string, Context>>;
}

/** Options by which a command says which server it means. */
export interface ServerChoice {
  data?: string;
  admin?: string;
  context?: string;
}

/** Names the file: a folder of the user's that XDG knows. */
export function contextsFile(): string {
  const base = process.env.XDG_CONFIG_HOME || join(homedir(), '.config');
  return join(base, 'fleetpost', 'contexts.json');
}

/** @throws OperatorError if the file is damaged. */
export function readContexts(): Contexts {
  const file = contextsFile();
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { contexts: {} };
    throw new OperatorError(`${file} cannot be read: ${(error as Error).message}.`);
  }
  const contexts = parse(text);
  if (contexts !== undefined) return contexts;
  throw new OperatorError(`${file} is damaged: mend it, or remove it and add the contexts again.`);
}

const isText = (value: unknown): boolean => value === undefined || typeof value === 'string';

function parse(text: string): Contexts | undefined {
  try {
    const { current, contexts } = JSON.parse(text) as Contexts;
    const isWhole = Object.values(contexts).every(
      ({ address, ca, token, fleet }) => URL.canParse(address) && [ca, token, fleet].every(isText),
    );
    return isText(current) && isWhole ? { ...(current !== undefined && { current }), contexts } : undefined;
  } catch {
    return undefined;
  }
}

/** Replaces the file at once, readable by its owner only: it holds tokens. @throws OperatorError */
export function writeContexts(contexts: Contexts): void {
  const file = contextsFile();
  const written = `${file}.${process.pid}.new`;
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    replaceFile(file, `${JSON.stringify(contexts, null, 2)}\n`, { mode: 0o600, temporary: written });
  } catch (error) {
    rmSync(written, { force: true });
    throw new OperatorError(`${file} cannot be written: ${(error as Error).message}.`);
  }
}

/** Finds a context. @throws OperatorError if there is none of that name. */
export function contextNamed(name: string, { contexts } = readContexts()): Context {
  const context = Object.hasOwn(contexts, name) ? contexts[name] : undefined;
  if (context !== undefined) return context;
  throw new OperatorError(`There is no context ${name}. See "fleetpost context list".`);
}

/**
 * The context that a command goes by: the one it names, or else the current one, unless options or the environment lead
 * to a server.
 * @throws OperatorError if there is none of that name.
 */
export function contextOf({ data, admin, context }: ServerChoice): Context | undefined {
  if (data !== undefined || admin !== undefined) return undefined;
  const named = context ?? (process.env[contextVariable] || undefined);
  if (named !== undefined) return contextNamed(named);
  if (isAdminUrl(process.env[adminVariable] ?? '') || process.env.FLEETPOST_DATA) return undefined;
  const contexts = readContexts();
  return contexts.current === undefined ? undefined : contextNamed(contexts.current, contexts);
}
