import {
  type Completion,
  type CompletionContext,
  type CompletionResult,
  snippetCompletion,
} from '@codemirror/autocomplete';
import { syntaxTree } from '@codemirror/language';
import { Resolver } from './resolve.ts';
import type { ApiShapes, Member } from './shapes.ts';

const identifier = /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u;

/** A whole action, for a file that is empty; `#{…}` are its places. */
const template = snippetCompletion(
  [
    "import type { Action } from 'fleetpost/action';",
    '',
    'const #{action}: Action = async (record, fleet) => {',
    '\t#{}',
    '};',
    '',
    'export default #{action};',
    '',
  ].join('\n'),
  { label: 'action', detail: 'a whole action', type: 'keyword' },
);

/** Makes a text of a schema's author harmless to be drawn, cut at a length. */
export type Shown = (text: string, lengthMax: number) => string;

function optionOf({ name, isMethod, detail, info }: Member, shown: Shown): Completion {
  return {
    label: name,
    type: isMethod ? 'method' : 'property',
    detail: shown(detail, 120),
    ...(info !== '' && { info: shown(info, 600) }),
  };
}

/** Names and shapes of a fleet that completion offers. */
export interface KnownOfFleet {
  /** Schemas of the payloads that the action runs for. */
  payloads: readonly unknown[];
  mailNames: readonly string[];
}

/** Completes members of the record, its payload and the fleet, and names of mail where one is sent. */
export function completeAction(api: ApiShapes, known: () => KnownOfFleet, shown: Shown) {
  return (context: CompletionContext): CompletionResult | null => {
    const { state, pos } = context;
    const { payloads, mailNames } = known();
    const word = context.matchBefore(/[\p{ID_Continue}$]*/u);
    const from = word?.from ?? pos;
    const names = mailNameAt(context, mailNames);
    if (names !== undefined) return names;
    const members = new Resolver(state, { api, payloads }).membersAt(pos);
    if (members !== undefined) {
      // A member whose name is no identifier is written in brackets, by its author.
      const options = members
        .filter(({ name }) => identifier.test(name))
        .map((member) => optionOf(member, shown));
      return options.length === 0 ? null : { from, options, validFor: /^[\p{ID_Continue}$]*$/u };
    }
    if (word === null || (from === pos && !context.explicit)) return null;
    return state.doc.lines < 3 ? { from, options: [template] } : null;
  };
}

/** The second argument of `send` and `sendToTag` is the name of a mail. */
function mailNameAt(
  { state, pos }: CompletionContext,
  names: readonly string[],
): CompletionResult | undefined {
  const text = syntaxTree(state).resolveInner(pos, -1);
  if (text.name !== 'String' || text.parent?.name !== 'ArgList') return undefined;
  const callee = text.parent.parent?.firstChild;
  const isSending = callee && /\.(send|sendToTag)$/.test(state.sliceDoc(callee.from, callee.to));
  const isSecond = text.prevSibling?.prevSibling?.prevSibling?.name === '(';
  if (!isSending || !isSecond) return undefined;
  return {
    from: text.from + 1,
    options: names.map((label) => ({ label, type: 'constant', detail: 'mail' })),
  };
}
