import { jsonParseLinter } from '@codemirror/lang-json';
import { syntaxTree } from '@codemirror/language';
import { type Diagnostic, forEachDiagnostic, setDiagnosticsEffect } from '@codemirror/lint';
import { EditorState } from '@codemirror/state';
import type { EditorView } from '@codemirror/view';
import { shownText } from '../parts/untrusted.tsx';

/** Something wrong with a text, at a line and column that count from 1, or at a member of JSON by its pointer. */
export type Fault = { msg: string } & (
  | { line: number; column: number; length: number }
  | { pointer: string }
);

const faultsMax = 100;
const parseJson = jsonParseLinter();

/** Faults as the editor marks them: what is known of the language at once, and those of a check. */
export function diagnosticsOf(state: EditorState, language: string, faults: readonly Fault[]): Diagnostic[] {
  const own = language === 'json' ? jsonFaults(state) : language === 'javascript' ? syntaxFaults(state) : [];
  const checked = faults.map((fault): Diagnostic => {
    const { from, to } = 'pointer' in fault ? memberAt(state, fault.pointer) : spanAt(state, fault);
    return { from, to, severity: 'error', message: shownText(fault.msg, 1_000) };
  });
  return [...own, ...checked].slice(0, faultsMax);
}

/**
 * As soon as a text changes, what was found in it is of an earlier one: faults on lines that change go, and the others
 * move with their text and are drawn as doubtful until the next check.
 */
export const fadeFaults = EditorState.transactionExtender.of(({ docChanged, startState, changes }) => {
  if (!docChanged) return null;
  const left: Diagnostic[] = [];
  forEachDiagnostic(startState, (one, from, to) => {
    const isChanged = changes.touchesRange(startState.doc.lineAt(from).from, startState.doc.lineAt(to).to);
    if (isChanged !== false) return;
    left.push({ ...one, severity: 'hint', from: changes.mapPos(from, 1), to: changes.mapPos(to, -1) });
  });
  return { effects: setDiagnosticsEffect.of(left) };
});

function jsonFaults(state: EditorState): Diagnostic[] {
  if (state.doc.toString().trim() === '') return [];
  // It reads no more of a view than its state.
  return parseJson({ state } as EditorView).map((one) => ({ ...one, message: shownText(one.message, 300) }));
}

function syntaxFaults(state: EditorState): Diagnostic[] {
  const found: Diagnostic[] = [];
  syntaxTree(state).iterate({
    enter({ type, from, to }) {
      if (type.isError && found.length < faultsMax)
        found.push({
          from,
          to: Math.min(to + 1, state.doc.length),
          severity: 'error',
          message: 'A syntax error.',
        });
    },
  });
  return found;
}

function spanAt(
  { doc }: EditorState,
  { line, column, length }: { line: number; column: number; length: number },
): { from: number; to: number } {
  const { from: start } = doc.line(Math.min(Math.max(line, 1), doc.lines));
  const from = Math.min(start + column - 1, doc.length);
  return { from, to: Math.min(from + Math.max(length, 1), doc.length) };
}

/** The deepest member that a JSON Pointer leads to; where it leads nowhere, what is around it. */
function memberAt(state: EditorState, pointer: string): { from: number; to: number } {
  const tokens = pointer
    .split('/')
    .slice(1)
    .map((one) => one.replaceAll('~1', '/').replaceAll('~0', '~'));
  let node = syntaxTree(state).topNode.firstChild;
  let found = node ? { from: node.from, to: Math.min(node.to, node.from + 1) } : { from: 0, to: 0 };
  for (const token of tokens) {
    if (node?.name === 'Object') {
      const property = node.getChildren('Property').find((one) => {
        const name = one.getChild('PropertyName');
        return name !== null && nameIn(state.sliceDoc(name.from, name.to)) === token;
      });
      const name = property?.getChild('PropertyName');
      if (!property || !name) return found;
      found = { from: name.from, to: name.to };
      node = property.lastChild;
    } else if (node?.name === 'Array') {
      const items = [];
      for (let at = node.firstChild; at; at = at.nextSibling)
        if (!['[', ']', ',', '⚠'].includes(at.name)) items.push(at);
      const item = items[Number(token)];
      if (item === undefined) return found;
      found = { from: item.from, to: item.to };
      node = item;
    } else return found;
  }
  return found;
}

function nameIn(text: string): string | undefined {
  try {
    return JSON.parse(text) as string;
  } catch {
    return undefined;
  }
}
