/**
 * With `node --import` of this file Node runs TypeScript, its types taken away and nothing else changed. tsx,
 * which runs the suite, keeps the names of functions and maps every stack: a server that is measured should
 * not pay for that, however little it is.
 */
import { readFile } from 'node:fs/promises';
import { register } from 'node:module';
import { isMainThread } from 'node:worker_threads';
import ts from 'typescript';

const compilerOptions = {
  target: ts.ScriptTarget.ES2023,
  module: ts.ModuleKind.ESNext,
  verbatimModuleSyntax: true,
};

export async function load(url, context, nextLoad) {
  if (!url.endsWith('.ts')) return nextLoad(url, context);
  const { outputText } = ts.transpileModule(await readFile(new URL(url), 'utf8'), { compilerOptions });
  return { format: 'module', source: outputText, shortCircuit: true };
}

// Node loads this file once more in a thread of its own, where it calls `load`.
if (isMainThread) register(import.meta.url);
