import { useMemo, useState } from 'preact/hooks';
import type { CheckDocument } from '../../../../contract/action.ts';
import { pathTo } from '../../../../contract/routes/path.ts';
import { checkInTurn } from '../../../editor/check-in-turn.ts';
import type { Fault } from '../../../editor/faults.ts';
import { CallError } from '../../../server/call-error.ts';
import { call } from '../../../server/client.ts';
import { type ActionText, triggerIn } from '../action-text.ts';

type PlacedFault = CheckDocument['items'][number];

/** Result of checking the types of a source. */
export interface ActionCheck {
  check: ((source: string) => Promise<readonly Fault[] | undefined>) | undefined;
  state: 'unchecked' | 'checking' | 'checked' | 'failed';
  /** Faults of the text as it is; none while another one is being checked. */
  faults: readonly PlacedFault[];
  /** Why it could not be checked. */
  msg: string;
}

interface Checked extends Omit<ActionCheck, 'check'> {
  /** The text that this is about. */
  source: string;
}

/** Checks the types of a source as it is typed: one check at a time, and answers for older texts are dropped. */
export function useActionCheck(fleetId: string, name: string, text: ActionText, isOff: boolean): ActionCheck {
  const [{ source, ...state }, setState] = useState<Checked>({
    source: '',
    state: 'unchecked',
    faults: [],
    msg: '',
  });
  const on = text.on.join();
  const check = useMemo(() => {
    const ask = checkInTurn((source) =>
      call('POST', pathTo('/fleets/{fleet_id}/actions:check', { fleet_id: fleetId }), {
        body: { source, on: on === '' ? [] : on.split(',').map(triggerIn), name },
      }),
    );
    return async (asked: string): Promise<readonly Fault[] | undefined> => {
      setState((before) => ({ ...before, state: 'checking' }));
      try {
        const answer = await ask(asked);
        // A later text is being checked, and says what it came to.
        if (answer === undefined) return undefined;
        setState({ source: asked, state: 'checked', faults: answer.items, msg: '' });
        return answer.items;
      } catch (error) {
        if (!(error instanceof CallError)) throw error;
        setState({ source: asked, state: 'failed', faults: [], msg: error.message });
        // A check that the server refuses would be refused again; but not one that a check in another window has
        // replaced.
        const isFinal = error.status >= 400 && error.status < 500 && ![409, 429].includes(error.status);
        return isFinal ? [] : undefined;
      }
    };
  }, [fleetId, name, on]);
  // Faults of an earlier text mislead whoever changes it. The editor ends lines by a line feed alone.
  const isStale = state.state === 'checked' && source !== text.source.replace(/\r\n?/g, '\n');
  return {
    ...state,
    ...((isStale || state.state === 'checking') && { state: 'checking', faults: [] }),
    check: isOff || text.language !== 'typescript' ? undefined : check,
  };
}
