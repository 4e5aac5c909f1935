import type { MessagePort } from 'node:worker_threads';
import { Allowance } from './allowance.ts';
import { Effects } from './effects.ts';
import { begin, type Progress } from './progress.ts';
import { Questions } from './questions.ts';
import type { Question, RunError, RunLimits, RunReport, RunRequest } from './run.ts';
import { Realm, type RunUnderWay } from './sandbox.ts';
import { javascriptOf } from './typescript.ts';

/** What the pool hands to a thread, for a run and for a compilation. */
export interface RunTask {
  request: RunRequest;
  /** Questions go out on it and their answers come back. */
  port: MessagePort;
  progress: Progress;
}

export interface CompileTask {
  source: string;
  language: 'javascript' | 'typescript';
  limits: RunLimits;
  progress: Progress;
}

export interface AnswerMessage {
  number: number;
  answer?: string;
  error?: string;
}

const realmsMax = 8;
/** A realm keeps what its action leaves in it: after so many runs a new one is made, so that it cannot grow. */
const runsOfRealmMax = 1_000;

interface KeptRealm {
  realm: Realm;
  runs: number;
}

/** The one used last is last. */
const realms = new Map<string, KeptRealm>();

export async function run({ request, port, progress }: RunTask): Promise<RunReport> {
  const { key, code, record, limits } = request;
  const name = `${limits.memoryBytes} ${key}`;
  const kept = realms.get(name) ?? { realm: await Realm.make(limits.memoryBytes), runs: 0 };
  realms.delete(name);
  const underWay = newRun(limits, progress, new Questions(asker(port)));
  const { effects, allowance } = underWay;
  const error =
    (kept.runs === 0 ? kept.realm.load(code, underWay) : undefined) ??
    (await kept.realm.run(record, underWay));
  kept.runs += 1;
  // What a failed run leaves may be half of something.
  if (error === undefined && kept.runs < runsOfRealmMax) keep(name, kept);
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
  language,
  limits,
  progress,
}: CompileTask): Promise<{ code: string } | { error: RunError }> {
  begin(progress);
  const compiled = language === 'typescript' ? await javascriptOf(source) : { code: source };
  if ('error' in compiled) return compiled;
  const realm = await Realm.make(limits.memoryBytes);
  const nothing = new Questions(() => Promise.reject(new Error('There is no run.')));
  const error = realm.load(compiled.code, newRun(limits, progress, nothing));
  return error === undefined ? compiled : { error };
}

function newRun(limits: RunLimits, progress: Progress, questions: Questions): RunUnderWay {
  return { effects: new Effects(limits), allowance: new Allowance(limits, progress), questions };
}

function keep(name: string, kept: KeptRealm): void {
  realms.set(name, kept);
  const [eldest] = realms.keys();
  if (realms.size > realmsMax && eldest !== undefined) realms.delete(eldest);
}

function asker(port: MessagePort): (question: Question) => Promise<string> {
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
