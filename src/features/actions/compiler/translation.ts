import ts from 'typescript';
import { harmless } from '../sandbox/text.ts';

/** JavaScript, or why there is none. */
export type Translation = { code: string } | { refusal: string };

/** Compiles TypeScript to JavaScript. Types are stripped, not checked. `name`: the action's, for error messages. */
export function javascriptOf(source: string, name: string): Translation {
  const { outputText, diagnostics = [] } = ts.transpileModule(source, {
    fileName: `${name}.ts`,
    reportDiagnostics: true,
    compilerOptions: {
      target: ts.ScriptTarget.ES2023,
      module: ts.ModuleKind.ESNext,
      isolatedModules: true,
      // So that errors name the lines of the source.
      inlineSourceMap: true,
    },
  });
  const [first] = diagnostics;
  if (first === undefined) return { code: outputText };
  const { line, character } = first.file?.getLineAndCharacterOfPosition(first.start ?? 0) ?? {
    line: 0,
    character: 0,
  };
  const text = ts.flattenDiagnosticMessageText(first.messageText, ' ');
  return { refusal: harmless(`${text} (${name}.ts:${line + 1}:${character + 1})`, 2_000) };
}
