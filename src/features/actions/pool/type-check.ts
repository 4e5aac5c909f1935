import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';
import ts from 'typescript';
import { markBegun, type RunHeartbeat } from './run-heartbeat.ts';

/** Data of the thread that checks one source, and ends. */
export interface TypeCheckTask {
  source: string;
  /** TypeScript type of the payloads that the action runs for. */
  payload: string;
  heartbeat: RunHeartbeat;
}

/** An error in a source. Lines and columns count from 1. */
export interface TypeFault {
  line: number;
  column: number;
  length: number;
  msg: string;
}

const errorsMax = 100;
const msgLengthMax = 1_000;
const sourceFile = '/action.ts';
const apiFile = '/fleetpost-action.d.ts';
const globalsFile = '/globals.d.ts';
const globals = `declare const console: Record<'log' | 'info' | 'warn' | 'error' | 'debug', (...values: unknown[]) => void>;`;

const options: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2023,
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  lib: ['lib.es2023.d.ts'],
  types: [],
  strict: true,
  // A parameter without a type is no mistake in what runs.
  noImplicitAny: false,
  noEmit: true,
  skipLibCheck: true,
};

/** The API of actions, with the payloads of the fleet's schemas in place of any object. */
function apiText(payload: string): string {
  const text = readFileSync(new URL('./api.d.ts', import.meta.url), 'utf8');
  return `${text.replaceAll('Payload = JsonObject', 'Payload = FleetPayload')}\nexport type FleetPayload = ${payload};\n`;
}

/** Type-checks a source that sees its API and the standard library alone: nothing of the disk. */
function faultsIn({ source, payload }: TypeCheckTask): TypeFault[] {
  const files = new Map([
    [sourceFile, source],
    [apiFile, apiText(payload)],
    [globalsFile, globals],
  ]);
  const libraries = dirname(fileURLToPath(import.meta.resolve('typescript')));
  const textOf = (name: string): string | undefined =>
    files.get(name) ??
    (/^\/lib\/lib\.[\w.]+\.d\.ts$/.test(name) ? ts.sys.readFile(join(libraries, name.slice(5))) : undefined);
  const host: ts.CompilerHost = {
    fileExists: (name) => textOf(name) !== undefined,
    readFile: textOf,
    getSourceFile: (name, language) => {
      const text = textOf(name);
      return text === undefined ? undefined : ts.createSourceFile(name, text, language);
    },
    getDefaultLibFileName: () => '/lib/lib.es2023.d.ts',
    getDefaultLibLocation: () => '/lib',
    writeFile: () => {},
    getCurrentDirectory: () => '/',
    getCanonicalFileName: (name) => name,
    useCaseSensitiveFileNames: () => true,
    getNewLine: () => '\n',
    resolveModuleNameLiterals: (names) =>
      names.map(({ text }) => ({
        resolvedModule:
          text === 'fleetpost/action'
            ? { resolvedFileName: apiFile, extension: ts.Extension.Dts }
            : undefined,
      })),
  };
  const program = ts.createProgram([sourceFile, globalsFile], options, host);
  const checked = program.getSourceFile(sourceFile);
  const diagnostics = [
    ...program.getSyntacticDiagnostics(checked),
    ...program.getSemanticDiagnostics(checked),
  ];
  return diagnostics.slice(0, errorsMax).map(({ start = 0, length = 0, messageText }) => {
    const { line, character } = checked?.getLineAndCharacterOfPosition(start) ?? { line: 0, character: 0 };
    const msg = ts.flattenDiagnosticMessageText(messageText, ' ').slice(0, msgLengthMax);
    return { line: line + 1, column: character + 1, length, msg };
  });
}

const task = workerData as TypeCheckTask;
markBegun(task.heartbeat);
parentPort?.postMessage(faultsIn(task));
