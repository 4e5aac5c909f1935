import { HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { EditorView } from '@codemirror/view';
import { tags } from '@lezer/highlight';

/** Colours by the tokens of the page, which reach into a shadow root: light and dark change with it. */
const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword], color: 'var(--accent)' },
  { tag: [tags.string, tags.regexp, tags.special(tags.string)], color: 'var(--good)' },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: 'var(--warn)' },
  { tag: [tags.comment], color: 'var(--ink-faint)', fontStyle: 'italic' },
  { tag: [tags.typeName, tags.className], color: 'var(--ink-soft)' },
  { tag: [tags.function(tags.variableName), tags.function(tags.propertyName)], fontWeight: '500' },
  { tag: tags.invalid, color: 'var(--bad)' },
]);

const look = EditorView.theme({
  '&': { color: 'var(--ink)', backgroundColor: 'var(--surface)', height: '100%' },
  '&.cm-focused': { outline: '0' },
  '.cm-scroller': { fontFamily: 'var(--mono)', fontSize: '0.8125rem', lineHeight: '1.55', overflow: 'auto' },
  '.cm-content': { caretColor: 'var(--ink)', padding: '0.5rem 0' },
  '.cm-cursor': { borderLeftColor: 'var(--ink)' },
  '.cm-gutters': { backgroundColor: 'var(--surface)', color: 'var(--ink-faint)', border: '0' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'transparent' },
  '&.cm-focused .cm-activeLine, &.cm-focused .cm-activeLineGutter': { backgroundColor: 'var(--hover)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    backgroundColor: 'var(--accent-soft)',
  },
  '.cm-selectionMatch, &.cm-focused .cm-matchingBracket': { backgroundColor: 'var(--accent-soft)' },
  '.cm-specialChar': {
    padding: '0 2px',
    borderRadius: '3px',
    backgroundColor: 'var(--warn-soft)',
    color: 'var(--warn)',
    unicodeBidi: 'isolate',
  },
  '.cm-foldPlaceholder': { border: '0', backgroundColor: 'var(--sunken)', color: 'var(--ink-soft)' },
  '.cm-tooltip': {
    border: '1px solid var(--line-strong)',
    borderRadius: '6px',
    backgroundColor: 'var(--surface)',
    color: 'var(--ink)',
    boxShadow: 'var(--shadow)',
    overflow: 'hidden',
    font: '400 0.78rem/1.45 var(--sans)',
  },
  '.cm-tooltip .cm-completionInfo': { maxWidth: '22rem', padding: '0.375rem 0.5rem' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul': {
    fontFamily: 'var(--mono)',
    fontSize: '0.78rem',
    maxHeight: '16em',
  },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li': { padding: '0.125rem 0.5rem' },
  '.cm-tooltip-autocomplete ul li[aria-selected]': {
    backgroundColor: 'var(--accent-fill)',
    color: 'var(--on-accent)',
  },
  '.cm-completionDetail': { fontStyle: 'normal', opacity: '1', color: 'var(--ink-faint)' },
  'li[aria-selected] .cm-completionDetail': { color: 'var(--on-accent)' },
  '.cm-completionMatchedText': { textDecoration: 'none', fontWeight: '600' },
  '.cm-diagnostic': { borderLeft: '3px solid var(--bad)', padding: '0.25rem 0.5rem', maxWidth: '34rem' },
  '.cm-lintRange-error': {
    backgroundImage: 'none',
    textDecoration: 'underline wavy var(--bad) 1px',
    textUnderlineOffset: '3px',
  },
  // Marks hints about the text as it was before it changed.
  '.cm-lintRange-hint': {
    backgroundImage: 'none',
    textDecoration: 'underline dotted var(--ink-faint) 1px',
    textUnderlineOffset: '3px',
  },
  '.cm-lint-marker-hint': { opacity: '0.5' },
  '.cm-gutter-lint': { width: '0.9em' },
  '.cm-gutter-lint .cm-gutterElement': { padding: '0' },
  '.cm-lint-marker': { width: '0.7em' },
  '.cm-deletedChunk': { backgroundColor: 'var(--bad-soft)' },
  '.cm-deletedChunk .cm-deletedText': {
    background: 'color-mix(in srgb, var(--bad) 22%, transparent)',
    color: 'var(--ink)',
  },
  '&.cm-merge-b .cm-changedLine': { backgroundColor: 'var(--good-soft)' },
  '&.cm-merge-b .cm-changedText': { background: 'color-mix(in srgb, var(--good) 22%, transparent)' },
  '&.cm-merge-b .cm-changedText, &.cm-merge-b .cm-changedText span': { color: 'var(--ink)' },
  '&.cm-merge-b .cm-changedLineGutter': { background: 'var(--good)' },
  '.cm-deletedLineGutter': { background: 'var(--bad)' },
  '.cm-collapsedLines': {
    background: 'var(--sunken)',
    color: 'var(--ink-soft)',
    fontFamily: 'var(--sans)',
    padding: '0.25rem 0.75rem',
  },
});

/** How an editor looks, in whatever theme the page has. */
export const editorLook = [look, syntaxHighlighting(colours)];
