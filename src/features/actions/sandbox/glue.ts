/** File name of the glue in stack frames; no action has a name like this. */
export const glueFile = 'fleetpost:glue';

/**
 * Calls a function of the server, and returns its reply, JSON text of a `HostReply`; undefined if it has nothing to say.
 * The call is one text, as each handle that crosses costs microseconds: a `HostCallHead` as a line of JSON, and after it
 * the JSON text of the payload, value or error that it is about, whose size has a limit of its own.
 */
export type Host = (call: string) => string | undefined;

// Arrays, as the engine needs twice the time for objects.
export type HostCallHead = [name: string, run: number, args: unknown[]];
export type HostReply =
  | ['value', value: unknown]
  /** The value comes later, by `settle`. */
  | ['pending', id: string]
  | ['refused', error: 'TypeError' | 'RangeError', msg: string];

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

  // What is not JSON, a function say, must not be taken for nothing.
  const json = (value: unknown): string => stringify(value) ?? 'null';
  // Each of `args` is JSON text by itself, as the action may have given all arrays a `toJSON`.
  const call = (name: string, run: number, args = '', body = ''): HostReply | undefined => {
    const answer = host(`["${name}",${run},[${args}]]\n${body}`);
    if (answer === undefined) return undefined;
    const reply = parse(answer) as HostReply;
    if (reply[0] !== 'refused') return reply;
    refusal = reply[1] === 'TypeError' ? new TE(reply[2]) : new RE(reply[2]);
    throw refusal;
  };
  const tell = (name: string, run: number, args: string, body?: string): Promise<void> => {
    call(name, run, args, body);
    return new P((resolve) => resolve());
  };
  const ask = (name: string, run: number, key: unknown): Promise<unknown> => {
    const reply = call(name, run, json(key));
    return new P((resolve, reject) => {
      if (reply?.[0] === 'pending') waiting[reply[1]] = { resolve, reject };
      else resolve(reply?.[1]);
    });
  };
  const payloadOf = (payload: unknown) => (payload === undefined ? undefined : json(payload));
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
    call('log', run, json(line));
  };
  const fleetOf = (run: number) =>
    freeze({
      send: (to: unknown, name: unknown, payload: unknown, options: unknown) =>
        tell('send', run, `${json(to)},${json(name)},${json(options)}`, payloadOf(payload)),
      sendToTag: (tag: unknown, name: unknown, payload: unknown, options: unknown) =>
        tell('sendToTag', run, `${json(tag)},${json(name)},${json(options)}`, payloadOf(payload)),
      device: (id: unknown) => ask('device', run, id),
      state: freeze({
        get: async (key: unknown) => (await ask('state', run, key)) ?? undefined,
        set: (key: unknown, value: unknown) => tell('set', run, json(key), stringify(value)),
        delete: (key: unknown) => tell('delete', run, json(key)),
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
          call('done', run);
        } catch (error) {
          call('failed', run, '', describe(error));
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
