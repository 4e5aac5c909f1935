/** File name of the glue in stack frames; no action has a name like this. */
export const glueFile = 'fleetpost:glue';

/**
 * Sends a message out of the sandbox: one text, as each handle that crosses costs microseconds. Its lines are the
 * operation, the number of the run and up to two JSON texts, which have no line breaks.
 */
export type Host = (message: string) => string | undefined;

export interface Glue {
  /** Parses the record. A call of its own, as nothing of the action has run before it. */
  read(record: string): unknown;
  start(action: (record: unknown, fleet: unknown) => unknown, run: number, record: unknown): void;
  /** Settles a host call with its answer as JSON text, or with an error. */
  settle(id: string, answer: string | undefined, error: string | undefined): void;
  /** Describes a thrown value as JSON text. */
  describe(error: unknown): string;
}

/**
 * The API's side inside the sandbox. Passed to the engine as source text, so it is one function whatever its length and
 * may reference nothing outside itself. It runs before the action's module and takes aside what it needs of the
 * language, as the action may replace all of it. Should the action subvert it nonetheless, that affects only the
 * action's own run.
 */
export function glue(host: Host): Glue {
  const { parse, stringify } = JSON;
  const { apply } = Reflect;
  const { slice } = String.prototype;
  const { freeze, create } = Object;
  const [P, E, TE, RE, IE] = [Promise, Error, TypeError, RangeError, InternalError];
  const text = String;
  const waiting: Record<string, { resolve(value: unknown): void; reject(error: Error): void }> = create(null);
  let current = 0;
  let refusal: unknown = create(null);

  const refuse = (answer: string): never => {
    const message = apply(slice, answer, [1]);
    refusal = answer[0] === 'T' ? new TE(message) : new RE(message);
    throw refusal;
  };
  const post = (operation: string, run: number, a?: string, b?: string): string | undefined =>
    host(`${operation}\n${run}\n${a ?? ''}\n${b ?? ''}`);
  const call = (operation: string, run: number, a?: string, b?: string): Promise<void> => {
    const refused = post(operation, run, a, b);
    if (refused !== undefined) refuse(refused);
    return new P((resolve) => resolve());
  };
  const ask = (type: string, run: number, key: unknown): Promise<unknown> => {
    const answer = post(type, run, stringify(key)) ?? '';
    if (answer[0] === '#') {
      return new P((resolve, reject) => {
        waiting[apply(slice, answer, [1])] = { resolve, reject };
      });
    }
    if (answer[0] !== '=') refuse(answer);
    return new P((resolve) => resolve(parse(apply(slice, answer, [1]))));
  };
  // A payload that is not JSON, a function say, must not be taken for no payload.
  const payloadOf = (payload: unknown) =>
    payload === undefined ? undefined : (stringify(payload) ?? 'null');
  const shown = (value: unknown): string => {
    try {
      if (typeof value === 'string') return value;
      if (value instanceof E) return apply(slice, text(value), [0]);
      return (typeof value === 'object' && stringify(value)) || text(value);
    } catch {
      return '(cannot be shown)';
    }
  };
  const log = (run: number, values: unknown[]): void => {
    let line = '';
    for (let at = 0; at < values.length && line.length < 2_000; at += 1) {
      line += (at === 0 ? '' : ' ') + apply(slice, shown(values[at]), [0, 2_000]);
    }
    post('log', run, stringify(line));
  };
  const fleetOf = (run: number) =>
    freeze({
      send: (to: unknown, name: unknown, payload: unknown, options: unknown) =>
        call('send', run, stringify([to, name, options]), payloadOf(payload)),
      sendToTag: (tag: unknown, name: unknown, payload: unknown, options: unknown) =>
        call('sendToTag', run, stringify([tag, name, options]), payloadOf(payload)),
      device: (id: unknown) => ask('device', run, id),
      state: freeze({
        get: async (key: unknown) => (await ask('state', run, key)) ?? undefined,
        set: (key: unknown, value: unknown) => call('set', run, stringify(key), stringify(value)),
        delete: (key: unknown) => call('delete', run, stringify(key)),
      }),
      log: (...values: unknown[]) => log(run, values),
    });

  const logCurrent = (...values: unknown[]): void => log(current, values);
  const console = {
    log: logCurrent,
    debug: logCurrent,
    info: logCurrent,
    warn: logCurrent,
    error: logCurrent,
  };
  globalThis.console = console as unknown as Console;

  const describe = (error: unknown): string => {
    const described = { code: 'threw', msg: '', stack: '' };
    try {
      if (error === refusal) described.code = 'invalid_call';
      // The engine throws null when memory does not suffice even for an error.
      if (error === null) described.code = 'memory_exceeded';
      if (error instanceof IE && error.message === 'out of memory') described.code = 'memory_exceeded';
      if (error instanceof IE && error.message === 'stack overflow') described.code = 'stack_exceeded';
      described.msg = apply(slice, error instanceof E ? text(error) : shown(error), [0, 2_000]);
      if (error instanceof E) described.stack = apply(slice, text(error.stack), [0, 2_000]);
    } catch {
      described.msg ||= 'It threw something that cannot be shown.';
    }
    return stringify(described);
  };
  return {
    describe,
    read: (record) => parse(record),
    start(action, run, record) {
      current = run;
      const fleet = fleetOf(run);
      const settle = async () => {
        try {
          await action(record, fleet);
          post('done', run);
        } catch (error) {
          post('failed', run, describe(error));
        }
      };
      settle();
    },
    settle(id, answer, error) {
      const asked = waiting[id];
      delete waiting[id];
      if (answer !== undefined) asked?.resolve(parse(answer));
      else asked?.reject(new E(error));
    },
  };
}

/** Thrown by QuickJS when memory or stack run out. */
declare const InternalError: ErrorConstructor;
