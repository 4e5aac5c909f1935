import type { QuickJSHandle } from 'quickjs-emscripten-core';
import { type RunEffects, sentDeviceIdOf, stateKeyOf } from './effects.ts';
import { type Engine, newEngine } from './engine.ts';
import type { ActionSource } from './fault.ts';
import { engineFault, errorOf } from './fault.ts';
import { glue, glueFile } from './glue.ts';
import type { HostCalls } from './host-call-port.ts';
import type { RunError, RunRecord } from './run.ts';
import type { RunBudget } from './run-budget.ts';

/** Jobs of promises between two looks at whether the run is over. */
const jobsAtOnce = 64;

/** What a run may take and what it has asked for so far. */
export interface RunUnderWay {
  effects: RunEffects;
  allowance: RunBudget;
  questions: HostCalls;
}

/** One action's code in an engine of its own: it knows of nothing but what glue.ts hands it. */
export class Sandbox {
  readonly #engine: Engine;
  readonly #file: string;
  readonly #glue: QuickJSHandle;
  #source: ActionSource = { file: '', code: '' };
  #action: QuickJSHandle | undefined;
  #underWay: RunUnderWay | undefined;
  #run = 0;
  /** Of the run under way: what ended it, or that the action's function has returned. */
  #failure: RunError | undefined;
  #done = false;

  /** `name`: of the action, which its errors are to name. */
  static async make(memoryBytes: number, name: string): Promise<Sandbox> {
    const realm = new Sandbox(await newEngine(memoryBytes), `${name}.js`);
    realm.#engine.runtime.setMemoryLimit(memoryBytes);
    return realm;
  }

  private constructor(engine: Engine, file: string) {
    this.#engine = engine;
    this.#file = file;
    const { context, runtime } = engine;
    const host = context.newFunction('host', (said) => {
      const answer = this.#hear(this.#textOf(said) ?? '');
      return answer === undefined ? context.undefined : context.newString(answer);
    });
    const make = context.unwrapResult(context.evalCode(`'use strict';(${glue})`, glueFile));
    this.#glue = context.unwrapResult(context.callFunction(make, context.undefined, host));
    make.dispose();
    host.dispose();
    runtime.setInterruptHandler(() => this.#isOver());
  }

  /** Memory that its code has ever used. */
  grownBytes(): number {
    return this.#engine.memory.grownBytes();
  }

  /** Evaluates the module, whose default export must be a function. */
  load(code: string, underWay: RunUnderWay): RunError | undefined {
    this.#begin(underWay);
    this.#source = { file: this.#file, code };
    const { context } = this.#engine;
    this.#enter(() => {
      const evaluated = context.evalCode(code, this.#file, { type: 'module', strict: true });
      if (evaluated.error) return this.#fail(evaluated.error, 'invalid_code');
      this.#runJobs();
      // A module that awaits is a promise of its exports.
      const state = context.getPromiseState(evaluated.value);
      if (state.type === 'rejected') return this.#fail(state.error, 'invalid_code');
      if (state.type === 'pending')
        return this.#end('invalid_code', 'The module waits for something that never comes.');
      const exported = context.getProp(state.value, 'default');
      if (context.typeof(exported) === 'function') this.#action = exported;
      else this.#end('invalid_code', 'The module has no function as its default export.');
      if (state.value !== evaluated.value) state.value.dispose();
      evaluated.value.dispose();
    });
    return this.#failure;
  }

  /** Once the action's function has returned, it is waited for all that it left under way. */
  async run(record: RunRecord, underWay: RunUnderWay): Promise<RunError | undefined> {
    this.#begin(underWay);
    const { questions, allowance } = underWay;
    const { payload, ...others } = record;
    this.#enter(() => {
      const given = this.#read(`${JSON.stringify(others).slice(0, -1)},"payload":${payload}}`);
      if (given === undefined) return;
      this.#callGlue('start', [this.#action, this.#engine.context.newNumber(this.#run), given]);
      this.#runJobs();
    });
    while (this.#failure === undefined && questions.open > 0) {
      const arrivals = await questions.next(allowance.wallMillisecondsLeft);
      this.#failure ??= allowance.exceeded();
      if (this.#failure !== undefined) break;
      this.#enter(() => {
        for (const { id, answer, error } of arrivals) this.#callGlue('settle', [id, answer, error]);
        this.#runJobs();
      });
    }
    if (this.#failure === undefined && !this.#done)
      this.#end('never_settled', 'The action waits for something that never comes.');
    this.#underWay = undefined;
    return this.#failure;
  }

  #begin(underWay: RunUnderWay): void {
    this.#run += 1;
    this.#underWay = underWay;
    this.#failure = undefined;
    this.#done = false;
  }

  #end(code: RunError['code'], msg: string): void {
    this.#failure ??= { code, msg };
  }

  #isOver(): boolean {
    const { effects, allowance } = this.#underWay ?? {};
    this.#failure ??= effects?.failure ?? allowance?.exceeded();
    return this.#failure !== undefined;
  }

  /** Only here does the action's code run. What is thrown here is the engine's own end, not the action's. */
  #enter(work: () => void): void {
    const { allowance } = this.#underWay ?? {};
    allowance?.enter();
    try {
      work();
    } catch (error) {
      this.#failure ??= engineFault(error);
    } finally {
      allowance?.leave();
    }
    this.#isOver();
  }

  #runJobs(): void {
    const { runtime } = this.#engine;
    while (runtime.hasPendingJob() && !this.#isOver()) {
      const done = runtime.executePendingJobs(jobsAtOnce);
      if (done.error) this.#fail(done.error);
    }
  }

  /** The engine's own parser recurses, so its stack bounds how deep a record may be nested. */
  #read(record: string): QuickJSHandle | undefined {
    const { context } = this.#engine;
    try {
      const text = context.newString(record);
      const read = context
        .getProp(this.#glue, 'read')
        .consume((method) => context.callFunction(method, context.undefined, text));
      text.dispose();
      if (read.error === undefined) return read.value;
      read.error.dispose();
    } catch {
      // The engine broke off: it is not used again, as after any run that failed.
    }
    if (!this.#isOver())
      this.#end('unreadable_record', 'The engine cannot read this record: its JSON is nested too deeply.');
    return undefined;
  }

  #callGlue(name: 'start' | 'settle', values: (QuickJSHandle | string | undefined)[]): void {
    const { context } = this.#engine;
    const handles = values.map((value) => {
      if (value === undefined) return context.undefined;
      return typeof value === 'string' ? context.newString(value) : value;
    });
    const called = context
      .getProp(this.#glue, name)
      .consume((method) => context.callFunction(method, context.undefined, ...handles));
    for (const handle of handles) if (handle !== this.#action) handle.dispose();
    if (called.error) this.#fail(called.error);
    else called.value.dispose();
  }

  /** The action threw this: the glue says what it is, if there is memory and time left for that. */
  #fail(error: QuickJSHandle, code?: RunError['code']): void {
    if (this.#isOver()) return;
    const { context } = this.#engine;
    const described = context
      .getProp(this.#glue, 'describe')
      .consume((method) => context.callFunction(method, context.undefined, error));
    const found = errorOf(described.error ? undefined : this.#textOf(described.value), this.#source);
    this.#failure ??= code !== undefined && found.code === 'threw' ? { ...found, code } : found;
  }

  #textOf(handle: QuickJSHandle): string | undefined {
    const { context } = this.#engine;
    // Of anything but a text this would call the action's own toString.
    return context.typeof(handle) === 'string' ? context.getString(handle) : undefined;
  }

  /** What the glue says. An answer of undefined is well; T and R refuse, = answers at once, # later. */
  #hear(said: string): string | undefined {
    const underWay = this.#underWay;
    const [operation, run, a = '', b] = said.split('\n', 4);
    if (underWay === undefined || run !== String(this.#run))
      return 'TThe run that this belongs to has ended.';
    const { effects, questions } = underWay;
    try {
      effects.checkArguments(a);
      const first: unknown = operation === 'failed' || a === '' ? undefined : JSON.parse(a);
      const [to, name, options] = Array.isArray(first) ? first : [];
      switch (operation) {
        case 'send':
          return void effects.send(to, name, b || undefined, options);
        case 'sendToTag':
          return void effects.sendToTag(to, name, b || undefined, options);
        case 'set':
          return void effects.set(first, b || undefined);
        case 'delete':
          return void effects.delete(first);
        case 'log':
          return void effects.addLine(String(first));
        case 'device':
          return `#${questions.add({ type: 'device', id: sentDeviceIdOf('device', first) })}`;
        case 'state': {
          const key = stateKeyOf('state.get', first);
          const written = effects.written(key);
          return written === undefined ? `#${questions.add({ type: 'state', key })}` : `=${written}`;
        }
        case 'done':
          this.#done = true;
          return undefined;
        case 'failed':
          this.#failure ??= effects.failure ?? errorOf(a, this.#source);
          return undefined;
        default:
          return 'TThere is no such call.';
      }
    } catch (error) {
      const message = error instanceof Error ? error.message : '';
      return `${error instanceof RangeError ? 'R' : 'T'}${message}`;
    }
  }
}
