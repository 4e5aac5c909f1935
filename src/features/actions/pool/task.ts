import type { MessagePort } from 'node:worker_threads';
import { Piscina } from 'piscina';
import { RunEffects } from '../sandbox/effects.ts';
import { useEngine } from '../sandbox/engine.ts';
import { HostCalls } from '../sandbox/host-call-port.ts';
import type { HostCall, RunError, RunLimits, RunReport, RunRequest } from '../sandbox/run.ts';
import { RunBudget } from '../sandbox/run-budget.ts';
import { type RunUnderWay, Sandbox } from '../sandbox/sandbox.ts';
import { harmless } from '../sandbox/text.ts';
import { WarmSandboxes } from '../sandbox/warm-sandboxes.ts';
import { begin, type RunHeartbeat } from './run-heartbeat.ts';

/** TypeScript's JavaScript; its types are taken off, not checked. `name`: of the action, for its errors. */
async function javascriptOf(source: string, name: string): Promise<{ code: string } | { error: RunError }> {
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

/** What every thread is started with. */
export interface ThreadData {
  engine: object;
  warmMemoryBytesMax: number;
}

/** What the pool hands to a thread, for a run and for a compilation. */
export interface RunTask {
  request: RunRequest;
  /** Questions go out on it and their answers come back. */
  port: MessagePort;
  progress: RunHeartbeat;
}

export interface CompileTask {
  source: string;
  /** Of the action. */
  name: string;
  language: 'javascript' | 'typescript';
  limits: RunLimits;
  progress: RunHeartbeat;
}

export interface AnswerMessage {
  number: number;
  answer?: string;
  error?: string;
}

const { engine, warmMemoryBytesMax } = Piscina.workerData as ThreadData;
useEngine(engine);
const warm = new WarmSandboxes(warmMemoryBytesMax);

export async function run({ request, port, progress }: RunTask): Promise<RunReport> {
  const { key, code, name, record, limits } = request;
  const keptAs = key && `${limits.memoryBytes} ${key}`;
  const underWay = newRun(limits, progress, new HostCalls(asker(port)));
  const { effects, allowance } = underWay;
  let realm = keptAs === undefined ? undefined : warm.take(keptAs);
  let error = await realm?.run(record, underWay);
  // What others left in a realm may be why; as no code of this run has run, it can begin anew.
  if (realm === undefined || error?.code === 'unreadable_record') {
    realm = await Sandbox.make(limits.memoryBytes, name);
    error = realm.load(code, underWay) ?? (await realm.run(record, underWay));
  }
  // What a failed run leaves may be half of something.
  if (error === undefined && keptAs !== undefined) warm.keep(keptAs, realm);
  port.close();
  return {
    error,
    sends: error === undefined ? effects.sends : [],
    writes: error === undefined ? effects.writes : [],
    log: effects.lines,
    cpuMilliseconds: allowance.cpuMilliseconds,
    wallMilliseconds: allowance.wallMilliseconds,
  };
}

export async function compile({
  source,
  name,
  language,
  limits,
  progress,
}: CompileTask): Promise<{ code: string } | { error: RunError }> {
  begin(progress);
  const compiled = language === 'typescript' ? await javascriptOf(source, name) : { code: source };
  if ('error' in compiled) return compiled;
  const realm = await Sandbox.make(limits.memoryBytes, name);
  const nothing = new HostCalls(() => Promise.reject(new Error('There is no run.')));
  const error = realm.load(compiled.code, newRun(limits, progress, nothing));
  return error === undefined ? compiled : { error };
}

function newRun(limits: RunLimits, progress: RunHeartbeat, questions: HostCalls): RunUnderWay {
  return { effects: new RunEffects(limits), allowance: new RunBudget(limits, progress), questions };
}

function asker(port: MessagePort): (question: HostCall) => Promise<string> {
  const waiting = new Map<number, (message: AnswerMessage) => void>();
  let numbered = 0;
  port.on('message', (data: AnswerMessage) => {
    waiting.get(data.number)?.(data);
    waiting.delete(data.number);
  });
  return (question) =>
    new Promise((resolve, reject) => {
      numbered += 1;
      waiting.set(numbered, ({ answer, error }) =>
        answer === undefined ? reject(new Error(error)) : resolve(answer),
      );
      port.postMessage({ number: numbered, question });
    });
}
