import { type RunEffects, sentDeviceIdOf, stateKeyOf } from './effects.ts';
import type { HostCallHead, HostReply } from './glue.ts';
import type { HostCalls } from './host-call-port.ts';
import type { HostCall } from './run.ts';

/** The run that calls host functions. */
export interface HostCaller {
  /** Number of the run in its sandbox. */
  run: number;
  effects: RunEffects;
  hostCalls: HostCalls;
  /** The action's function has returned. */
  onDone(): void;
  /** It has thrown. `described`: JSON text of the glue. */
  onFailed(described: string | undefined): void;
}

/**
 * Serves one call. `args` and `body`, a JSON text of its own, are the operator's: all are checked. Returns the JSON text
 * of a reply, if there is anything to say. @throws TypeError, RangeError for the action.
 */
type HostFunction = (
  caller: HostCaller,
  args: readonly unknown[],
  body: string | undefined,
) => string | undefined;

/** All that code in a sandbox can call. */
const hostFunctions: Readonly<Record<string, HostFunction>> = {
  send: ({ effects }, [to, name, options], payload) => void effects.send(to, name, payload, options),
  sendToTag: ({ effects }, [tag, name, options], payload) =>
    void effects.sendToTag(tag, name, payload, options),
  device: (caller, [id]) => ask(caller, { type: 'device', id: sentDeviceIdOf('device', id) }),
  state(caller, [name]) {
    const key = stateKeyOf('state.get', name);
    const written = caller.effects.written(key);
    return written === undefined ? ask(caller, { type: 'state', key }) : `["value",${written}]`;
  },
  set: ({ effects }, [key], value) => void effects.set(key, value),
  delete: ({ effects }, [key]) => void effects.delete(key),
  log: ({ effects }, [line]) => void effects.addLine(String(line)),
  done: ({ onDone }) => void onDone(),
  failed({ effects, onFailed }, _, described) {
    effects.checkArguments(described ?? '');
    onFailed(described);
    return undefined;
  },
};

/** Calls a host function, as the glue asks for it. Whatever the call is, it ends in a reply or in none, never in an error. */
export function callHost(caller: HostCaller | undefined, call: string): string | undefined {
  try {
    if (caller === undefined) throw new TypeError(hasEnded);
    const headLength = call.indexOf('\n');
    const head = call.slice(0, headLength);
    caller.effects.checkArguments(head);
    const [name, run, args] = JSON.parse(head) as Partial<HostCallHead>;
    if (run !== caller.run) throw new TypeError(hasEnded);
    if (name === undefined || !Object.hasOwn(hostFunctions, name))
      throw new TypeError('There is no such call.');
    return hostFunctions[name]?.(
      caller,
      Array.isArray(args) ? args : [],
      call.slice(headLength + 1) || undefined,
    );
  } catch (error) {
    const kind = error instanceof RangeError ? 'RangeError' : 'TypeError';
    const msg = error instanceof Error ? error.message : '';
    return JSON.stringify(['refused', kind, msg] satisfies HostReply);
  }
}

const hasEnded = 'The run that this belongs to has ended.';

/** Asks the server. @throws RangeError beyond what a run may ask. */
function ask({ effects, hostCalls }: HostCaller, call: HostCall): string {
  effects.countRead();
  // The id is digits.
  return `["pending","${hostCalls.add(call)}"]`;
}
