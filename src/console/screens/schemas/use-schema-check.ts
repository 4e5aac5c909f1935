import { useEffect, useRef, useState } from 'preact/hooks';
import type { SchemaCheckDocument } from '../../../contract/schema.ts';
import { checkInTurn } from '../../editor/check-in-turn.ts';
import type { Fault } from '../../editor/faults.ts';
import { CallError, call } from '../../server/client.ts';

const delayMs = 400;
/** Until a check that could not be made is tried again. */
const retryMs = 4_000;

/** What the server says of a schema and a sample as they are written. */
export interface SchemaCheck {
  document: SchemaCheckDocument | undefined;
  error: CallError | undefined;
  isChecking: boolean;
}

/** Checks a schema and a sample as they are typed, one check at a time. `isOff`: the session may not. */
export function useSchemaCheck(
  fleetId: string,
  kind: string,
  { text, sample }: { text: string; sample: string },
  isOff: boolean,
): SchemaCheck {
  const [state, setState] = useState<SchemaCheck>({
    document: undefined,
    error: undefined,
    isChecking: false,
  });
  const [attempt, setAttempt] = useState(0);
  const ask = useRef(
    checkInTurn((body) => call<SchemaCheckDocument>('POST', `/fleets/${fleetId}/schemas:check`, { body })),
  );
  // Typing begins the pause anew
  useEffect(() => {
    if (isOff) return;
    let timer = setTimeout(() => {
      setState((before) => ({ ...before, isChecking: true }));
      ask.current(JSON.stringify({ kind, schema: text, sample })).then(
        (document) => document && setState({ document, error: undefined, isChecking: false }),
        (error: unknown) => {
          if (!(error instanceof CallError)) throw error;
          setState({ document: undefined, error, isChecking: false });
          const isFinal = error.status >= 400 && error.status < 500 && error.status !== 429;
          if (!isFinal) timer = setTimeout(() => setAttempt((before) => before + 1), retryMs);
        },
      );
    }, delayMs);
    return () => clearTimeout(timer);
  }, [kind, text, sample, isOff, attempt]);
  return state;
}

/** Where in the schema a fault is, as far as its sentence says: a member of the schema, or a value of a body. */
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

/** What is wrong with the sample, each at its member. */
export function faultsOfSample({ document }: SchemaCheck): Fault[] {
  return (document?.sample?.errors ?? []).map(({ path, msg }) => ({ msg, pointer: path }));
}
