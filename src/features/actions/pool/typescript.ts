import type { RunError } from '../sandbox/run.ts';
import { harmless } from '../sandbox/text.ts';

/** TypeScript's JavaScript; its types are taken off, not checked. `name`: of the action, for its errors. */
export async function javascriptOf(
  source: string,
  name: string,
): Promise<{ code: string } | { error: RunError }> {
  // The compiler takes 100 MB and half a second to load: only a thread that is given TypeScript does.
  const { default: ts } = await import('typescript');
  const translated = attempt(() =>
    ts.transpileModule(source, {
      fileName: `${name}.ts`,
      reportDiagnostics: true,
      compilerOptions: {
        target: ts.ScriptTarget.ES2023,
        module: ts.ModuleKind.ESNext,
        isolatedModules: true,
        // So that an error names the line as its author wrote it.
        inlineSourceMap: true,
      },
    }),
  );
  if (translated === undefined)
    return invalid('The TypeScript compiler cannot take this source: is it nested too deeply?');
  const { outputText, diagnostics = [] } = translated;
  const [first] = diagnostics;
  if (first === undefined) return { code: outputText };
  const { line, character } = first.file?.getLineAndCharacterOfPosition(first.start ?? 0) ?? {
    line: 0,
    character: 0,
  };
  const text = ts.flattenDiagnosticMessageText(first.messageText, ' ');
  return invalid(`${text} (${name}.ts:${line + 1}:${character + 1})`);
}

function invalid(msg: string): { error: RunError } {
  return { error: { code: 'invalid_code', msg: harmless(msg, 2_000) } };
}

function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
