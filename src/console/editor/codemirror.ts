import actionApi from 'fleetpost:action-api';
import {
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
} from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { javascript } from '@codemirror/lang-javascript';
import { json } from '@codemirror/lang-json';
import { bracketMatching, foldGutter, foldKeymap, indentOnInput, indentUnit } from '@codemirror/language';
import { linter, lintGutter, lintKeymap } from '@codemirror/lint';
import { unifiedMergeView } from '@codemirror/merge';
import { Annotation, EditorState, type Extension, StateEffect } from '@codemirror/state';
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from '@codemirror/view';
import { shownText } from '../parts/untrusted.tsx';
import { completeAction, type KnownOfFleet } from './completion.ts';
import { diagnosticsOf, type Fault, fadeFaults } from './faults.ts';
import { readApi } from './shapes.ts';
import { editorLook } from './theme.ts';
import { typeOver } from './type-over.ts';

export type EditorLanguage = 'javascript' | 'typescript' | 'json';

const api = readApi(actionApi);

/** Pause in the typing after which a text is checked. */
const checkDelayMs = 500;
/** Pause before a check that could not be made is tried again. */
const retryMs = 4_000;

export interface EditorOptions {
  text: string;
  label: string;
  language: EditorLanguage;
  isReadOnly: boolean;
  onChange: (text: string) => void;
  onRun: () => void;
  /** Faults of a text; undefined if they are not known, or no longer of use. */
  check?: ((text: string) => Promise<readonly Fault[] | undefined>) | undefined;
  /** Source of the completions; absent: there are none. */
  known?: (() => KnownOfFleet) | undefined;
}

/** An editor on the page. */
export interface Editor {
  setText(text: string): void;
  checkAgain(): void;
  goTo(line: number, column: number): void;
  focus(): void;
  destroy(): void;
}

/** Marks a text that comes from the page, which need not be told of it. */
const fromPage = Annotation.define<boolean>();

/** Has a text checked again that stayed the same. */
const checkAgain = StateEffect.define();

/** Besides controls, which are shown anyhow: what is not seen, or turns the line round. */
const hiddenCharacters = new RegExp(
  [
    String.raw`\p{Cf}|\p{Cs}|\p{Zl}|\p{Zp}|(?! )\p{Zs}`,
    String.raw`\u115f|\u1160|[\u180b-\u180f]|\u3164|\uffa0|[\ufe00-\ufe0f]`,
  ].join('|'),
  'gu',
);

const seen: Extension = [
  highlightSpecialChars({
    addSpecialChars: hiddenCharacters,
    render(code, description) {
      const mark = document.createElement('span');
      mark.className = 'cm-specialChar';
      mark.textContent = `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
      mark.title = description ?? 'A character that is not seen';
      return mark;
    },
  }),
  lineNumbers(),
  EditorView.lineWrapping,
  EditorState.tabSize.of(2),
  indentUnit.of('  '),
  editorLook,
];

function languageOf(language: EditorLanguage): Extension {
  return language === 'json' ? json() : javascript({ typescript: language === 'typescript' });
}

/** In a shadow root its styles are sheets of the document's own making, which the page's policy lets be. */
function rootIn(place: HTMLElement): ShadowRoot {
  return place.shadowRoot ?? place.attachShadow({ mode: 'open' });
}

function checking({ check, language }: EditorOptions): Extension {
  return [
    lintGutter(),
    fadeFaults,
    linter(
      async (view) => {
        const { doc } = view.state;
        const own = diagnosticsOf(view.state, language, []);
        if (own.length > 0 || check === undefined) return own;
        const faults = await check(doc.toString());
        if (faults === undefined && view.state.doc === doc)
          setTimeout(() => view.dispatch({ effects: checkAgain.of(null) }), retryMs);
        return diagnosticsOf(view.state, language, view.state.doc === doc ? (faults ?? []) : []);
      },
      {
        delay: checkDelayMs,
        needsRefresh: ({ transactions }) =>
          transactions.some(({ effects }) => effects.some((effect) => effect.is(checkAgain))),
      },
    ),
  ];
}

function writing(options: EditorOptions): Extension {
  const { known, onChange, onRun } = options;
  const complete = known && completeAction(api, known, shownText);
  return [
    history(),
    drawSelection(),
    indentOnInput(),
    bracketMatching(),
    closeBrackets(),
    foldGutter(),
    highlightActiveLine(),
    highlightActiveLineGutter(),
    autocompletion({ icons: false }),
    complete ? EditorState.languageData.of(() => [{ autocomplete: complete }]) : [],
    checking(options),
    typeOver,
    keymap.of([
      {
        key: 'Mod-Enter',
        run: () => {
          onRun();
          return true;
        },
      },
      ...closeBracketsKeymap,
      ...defaultKeymap,
      ...historyKeymap,
      ...foldKeymap,
      ...completionKeymap,
      ...lintKeymap,
      indentWithTab,
    ]),
    EditorView.updateListener.of(({ docChanged, state, transactions }) => {
      if (docChanged && !transactions.some((one) => one.annotation(fromPage))) onChange(state.doc.toString());
    }),
  ];
}

/** Puts an editor in a place of the page. */
export function openEditor(place: HTMLElement, options: EditorOptions): Editor {
  const root = rootIn(place);
  const { text, label, isReadOnly } = options;
  const extensions = [
    seen,
    languageOf(options.language),
    EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' }),
    isReadOnly ? [EditorState.readOnly.of(true), lintGutter()] : writing(options),
  ];
  const view = new EditorView({ state: EditorState.create({ doc: text, extensions }), parent: root, root });
  return {
    setText(changed) {
      if (changed === view.state.doc.toString()) return;
      view.dispatch({
        changes: { from: 0, to: view.state.doc.length, insert: changed },
        annotations: fromPage.of(true),
      });
    },
    checkAgain: () => view.dispatch({ effects: checkAgain.of(null) }),
    goTo(line, column) {
      const { from, to } = view.state.doc.line(Math.min(Math.max(line, 1), view.state.doc.lines));
      view.dispatch({ selection: { anchor: Math.min(from + column - 1, to) }, scrollIntoView: true });
      view.focus();
    },
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}

export interface DifferenceOptions {
  before: string;
  after: string;
  language: EditorLanguage;
  label: string;
}

/** Shows what changed between two texts, line by line. */
export function openDifference(place: HTMLElement, options: DifferenceOptions): { destroy(): void } {
  const root = rootIn(place);
  const { before, after, language, label } = options;
  const extensions = [
    seen,
    languageOf(language),
    EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' }),
    EditorState.readOnly.of(true),
    EditorView.editable.of(false),
    EditorState.phrases.of({ '$ unchanged lines': '$ lines unchanged' }),
    unifiedMergeView({
      original: before,
      mergeControls: false,
      highlightChanges: true,
      gutter: true,
      collapseUnchanged: { margin: 3, minSize: 6 },
      // Large texts that differ much get a coarser answer, rather than a page that stands still.
      diffConfig: { scanLimit: 2_000, timeout: 300 },
    }),
  ];
  const view = new EditorView({ state: EditorState.create({ doc: after, extensions }), parent: root, root });
  return { destroy: () => view.destroy() };
}
