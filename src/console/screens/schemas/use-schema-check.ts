import { useEffect, useRef, useState } from 'preact/hooks';
import { pathTo } from '../../../contract/routes/path.ts';
import type { SchemaCheckDocument } from '../../../contract/schema.ts';
import { checkInTurn } from '../../editor/check-in-turn.ts';
import type { Fault } from '../../editor/faults.ts';
import { CallError } from '../../server/call-error.ts';
import { call } from '../../server/client.ts';

const delayMs = 400;
/** Pause before a check that could not be made is tried again. */
const retryMs = 4_000;

/** The server's verdict on a schema and a sample as they are written. */
export interface SchemaCheck {
  document: SchemaCheckDocument | undefined;
  error: CallError | undefined;
  isChecking: boolean;
  /** True if the verdict is on an earlier text. */
  isStale: boolean;
}

/** Checks a schema and a sample as they are typed, one check at a time. `isOff`: the session may not. */
export function useSchemaCheck(
  fleetId: string,
  kind: string,
  { text, sample }: { text: string; sample: string },
  isOff: boolean,
): SchemaCheck {
  const [{ checked, ...state }, setState] = useState<Omit<SchemaCheck, 'isStale'> & { checked: string }>({
    document: undefined,
    error: undefined,
    isChecking: false,
    checked: '',
  });
  const body = JSON.stringify({ kind, schema: text, sample });
  const [attempt, setAttempt] = useState(0);
  const path = pathTo('/fleets/{fleet_id}/schemas:check', { fleet_id: fleetId });
  const ask = useRef(checkInTurn((body) => call('POST', path, { body })));
  // Typing begins the pause anew
  useEffect(() => {
    if (isOff) return;
    let timer = setTimeout(() => {
      setState((before) => ({ ...before, isChecking: true }));
      ask.current(body).then(
        (document) => document && setState({ document, error: undefined, isChecking: false, checked: body }),
        (error: unknown) => {
          if (!(error instanceof CallError)) throw error;
          setState({ document: undefined, error, isChecking: false, checked: body });
          const isFinal = error.status >= 400 && error.status < 500 && error.status !== 429;
          if (!isFinal) timer = setTimeout(() => setAttempt((before) => before + 1), retryMs);
        },
      );
    }, delayMs);
    return () => clearTimeout(timer);
  }, [body, isOff, attempt]);
  return { ...state, isStale: checked !== body };
}

/** Places a fault in the schema, as far as its sentence says where: at a member of the schema, or a value of a body. */
export function faultsOfSchema({ document }: SchemaCheck): Fault[] {
  if (document === undefined || document.fault === null) return [];
  const msg = document.fault.replace(/^This is not a usable JSON Schema 2020-12: /, '');
  const [, value] = / at (\/\S*)$/.exec(msg) ?? [];
  const [, member = ''] = /(?:^|\s)(\/[^\s,]+)/.exec(msg) ?? [];
  return [{ msg, pointer: value === undefined ? member : schemaPointer(value) }];
}

/** The subschema that a value of a body is mostly held against. */
function schemaPointer(value: string): string {
  const tokens = value.split('/').slice(1);
  return tokens.map((token) => (token === '*' ? '/items' : `/properties/${token}`)).join('');
}

/** Faults as an editor is to mark them: none are known while those that are there are of an earlier text. */
export function markedFaults({ isStale }: SchemaCheck, faults: readonly Fault[]): Promise<readonly Fault[]> {
  return Promise.resolve(isStale ? [] : faults);
}

/** Changes when an editor is to mark faults anew. */
export function faultsKey({ isStale }: SchemaCheck, faults: readonly Fault[]): string {
  return `${isStale} ${faults.map(({ msg }) => msg).join()}`;
}

/** Faults of the sample, each at its member. */
export function faultsOfSample({ document }: SchemaCheck): Fault[] {
  return (document?.sample?.errors ?? []).map(({ path, msg }) => ({ msg, pointer: path }));
}
