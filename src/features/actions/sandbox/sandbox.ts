import type { QuickJSHandle } from 'quickjs-emscripten-core';
import type { RunEffects } from './effects.ts';
import { type Engine, newEngine } from './engine.ts';
import type { ActionSource } from './fault.ts';
import { engineFault, errorOf } from './fault.ts';
import { glue, glueFile } from './glue.ts';
import type { HostCalls } from './host-call-port.ts';
import { callHost, type HostCaller } from './host-functions.ts';
import type { RunError, RunRecord } from './run.ts';
import type { RunBudget } from './run-budget.ts';

/** Promise jobs executed between two checks of the limits. */
const jobsAtOnce = 64;

/** The state of a run outside the engine. */
export interface RunUnderWay {
  effects: RunEffects;
  budget: RunBudget;
  hostCalls: HostCalls;
}

/** Runs one action's code in an engine of its own, which can reach only what glue.ts hands it. */
export class Sandbox {
  readonly #engine: Engine;
  readonly #file: string;
  readonly #glue: QuickJSHandle;
  #source: ActionSource = { file: '', code: '' };
  #action: QuickJSHandle | undefined;
  #underWay: RunUnderWay | undefined;
  #caller: HostCaller | undefined;
  #run = 0;
  /** How the current run failed, and whether the action's function has returned. */
  #failure: RunError | undefined;
  #done = false;

  /** `name`: the action's, for error messages. */
  static async make(memoryBytes: number, name: string): Promise<Sandbox> {
    const sandbox = new Sandbox(await newEngine(memoryBytes), `${name}.js`);
    sandbox.#engine.runtime.setMemoryLimit(memoryBytes);
    return sandbox;
  }

  private constructor(engine: Engine, file: string) {
    this.#engine = engine;
    this.#file = file;
    const { context, runtime } = engine;
    const host = context.newFunction('host', (message) => {
      const answer = callHost(this.#caller, this.#textOf(message) ?? '');
      return answer === undefined ? context.undefined : context.newString(answer);
    });
    const make = context.unwrapResult(context.evalCode(`'use strict';(${glue})`, glueFile));
    this.#glue = context.unwrapResult(context.callFunction(make, context.undefined, host));
    make.dispose();
    host.dispose();
    runtime.setInterruptHandler(() => this.#isOver());
  }

  /** Memory that its code has used at most. */
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
      // A module with top-level await evaluates to a promise of its exports.
      const state = context.getPromiseState(evaluated.value);
      if (state.type === 'rejected') return this.#fail(state.error, 'invalid_code');
      if (state.type === 'pending')
        return this.#end('invalid_code', 'The module awaits something that never settles.');
      const exported = context.getProp(state.value, 'default');
      if (context.typeof(exported) === 'function') this.#action = exported;
      else this.#end('invalid_code', 'The default export of the module must be a function.');
      if (state.value !== evaluated.value) state.value.dispose();
      evaluated.value.dispose();
    });
    return this.#failure;
  }

  /** Runs the action, and waits for everything it left under way when its function returned. */
  async run(record: RunRecord, underWay: RunUnderWay): Promise<RunError | undefined> {
    this.#begin(underWay);
    const { hostCalls, budget } = underWay;
    const { payload, ...others } = record;
    this.#enter(() => {
      const input = this.#read(`${JSON.stringify(others).slice(0, -1)},"payload":${payload}}`);
      if (input === undefined) return;
      this.#callGlue('start', [this.#action, this.#engine.context.newNumber(this.#run), input]);
      this.#runJobs();
    });
    while (this.#failure === undefined && hostCalls.open > 0) {
      const results = await hostCalls.next(budget.wallMillisecondsLeft);
      this.#failure ??= budget.exceeded();
      if (this.#failure !== undefined) break;
      this.#enter(() => {
        for (const { id, answer, error } of results) this.#callGlue('settle', [id, answer, error]);
        this.#runJobs();
      });
    }
    if (this.#failure === undefined && !this.#done)
      this.#end('never_settled', 'The action awaits something that never settles.');
    this.#underWay = undefined;
    this.#caller = undefined;
    return this.#failure;
  }

  #begin(underWay: RunUnderWay): void {
    this.#run += 1;
    this.#underWay = underWay;
    this.#failure = undefined;
    this.#done = false;
    const { effects, hostCalls } = underWay;
    this.#caller = {
      run: this.#run,
      effects,
      hostCalls,
      onDone: () => {
        this.#done = true;
      },
      onFailed: (described) => {
        this.#failure ??= effects.failure ?? errorOf(described, this.#source);
      },
    };
  }

  #end(code: RunError['code'], msg: string): void {
    this.#failure ??= { code, msg };
  }

  #isOver(): boolean {
    const { effects, budget } = this.#underWay ?? {};
    this.#failure ??= effects?.failure ?? budget?.exceeded();
    return this.#failure !== undefined;
  }

  /**
   * The only place where the action's code runs. Exceptions here come from the engine's own failure, not the action.
   */
  #enter(work: () => void): void {
    const { budget } = this.#underWay ?? {};
    budget?.enter();
    try {
      work();
    } catch (error) {
      this.#failure ??= engineFault(error);
    } finally {
      budget?.leave();
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

  /** Parses the record inside the engine, whose recursive parser limits the nesting depth by its stack. */
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
      // The engine crashed. It is not reused, as after any failed run.
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

  /** Records what the action threw, described by the glue if memory and time are left for that. */
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
    // For anything but a string this would call the action's own toString.
    return context.typeof(handle) === 'string' ? context.getString(handle) : undefined;
  }
}
