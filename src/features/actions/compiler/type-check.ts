import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { harmless } from '../sandbox/text.ts';

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

const librariesFolder = dirname(fileURLToPath(import.meta.resolve('typescript')));
const api = readFileSync(new URL('../pool/api.d.ts', import.meta.url), 'utf8').replaceAll(
  'Payload = JsonObject',
  'Payload = FleetPayload',
);

/**
 * Files that are the same for every source, parsed once: to parse and bind them is most of what a check costs. The
 * compiler changes none of them any more, whatever a source declares.
 */
const parsed = new Map<string, ts.SourceFile>();

function libraryFile(
  name: string,
  language: ts.ScriptTarget | ts.CreateSourceFileOptions,
): ts.SourceFile | undefined {
  const known = parsed.get(name);
  if (known !== undefined) return known;
  const text = name === globalsFile ? globals : libraryText(name);
  if (text === undefined) return undefined;
  const file = ts.createSourceFile(name, text, language);
  parsed.set(name, file);
  return file;
}

function libraryText(name: string): string | undefined {
  if (!/^\/lib\/lib\.[\w.]+\.d\.ts$/.test(name)) return undefined;
  return ts.sys.readFile(join(librariesFolder, name.slice(5)));
}

/**
 * Type-checks a source that sees its API and the standard library alone: nothing of the disk. `payload`: the type of the
 * payloads that it runs for.
 */
export function faultsIn(source: string, payload: string): TypeFault[] {
  const own = new Map([
    [sourceFile, source],
    [apiFile, `${api}\nexport type FleetPayload = ${payload};\n`],
  ]);
  const textOf = (name: string): string | undefined =>
    own.get(name) ?? parsed.get(name)?.text ?? libraryText(name);
  const host: ts.CompilerHost = {
    fileExists: (name) => textOf(name) !== undefined,
    readFile: textOf,
    getSourceFile: (name, language) => {
      const text = own.get(name);
      return text === undefined ? libraryFile(name, language) : ts.createSourceFile(name, text, language);
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
    const msg = harmless(ts.flattenDiagnosticMessageText(messageText, ' '), msgLengthMax);
    return { line: line + 1, column: character + 1, length, msg };
  });
}
