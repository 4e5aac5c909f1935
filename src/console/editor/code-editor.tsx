import { useEffect, useRef, useState } from 'preact/hooks';
import type { Editor, EditorLanguage } from './codemirror.ts';
import type { KnownOfFleet } from './completion.ts';
import type { Fault } from './faults.ts';

/** The editor itself, in a file of its own that is loaded with the first text that is edited. */
const loading = (): Promise<typeof import('./codemirror.ts')> => import('./codemirror.ts');

export interface CodeEditorProps {
  label: string;
  text: string;
  language: EditorLanguage;
  isReadOnly?: boolean;
  /** Lines that it has room for at least. */
  size?: 'large' | 'small';
  onChange?: (text: string) => void;
  onRun?: () => void;
  check?: ((text: string) => Promise<readonly Fault[] | undefined>) | undefined;
  /** Changes when a text that stayed the same is to be checked again. */
  checkKey?: string | undefined;
  /** Names and shapes of the fleet that completion offers. */
  known?: KnownOfFleet | undefined;
  /** Gets the editor once it is there. */
  editor?: { current: Editor | null };
}

/** A text with the colours of its language, checked and completed as somebody types. */
export function CodeEditor(props: CodeEditorProps) {
  const { label, text, language, isReadOnly = false, size = 'large', checkKey } = props;
  const place = useRef<HTMLDivElement>(null);
  const own = useRef<Editor | null>(null);
  const [state, setState] = useState<'loading' | 'open' | 'failed'>('loading');
  // The text typed last, until it comes back: an older text must not overwrite what is typed meanwhile.
  const awaited = useRef<string | undefined>(undefined);
  const latest = useRef(props);
  latest.current = props;
  useEffect(() => {
    let isGone = false;
    loading().then(
      ({ openEditor }) => {
        if (isGone || place.current === null) return;
        const editor = openEditor(place.current, {
          text: latest.current.text,
          label,
          language,
          isReadOnly,
          onChange: (changed) => {
            awaited.current = changed;
            latest.current.onChange?.(changed);
          },
          onRun: () => latest.current.onRun?.(),
          check: latest.current.check && ((one) => latest.current.check?.(one) ?? Promise.resolve([])),
          known: latest.current.known && (() => latest.current.known ?? { payloads: [], mailNames: [] }),
        });
        own.current = editor;
        if (latest.current.editor) latest.current.editor.current = editor;
        setState('open');
      },
      () => setState('failed'),
    );
    return () => {
      isGone = true;
      own.current?.destroy();
      own.current = null;
    };
  }, [language, isReadOnly, label]);
  useEffect(() => {
    if (awaited.current === text) awaited.current = undefined;
    else if (awaited.current === undefined) own.current?.setText(text);
  });
  useEffect(() => own.current?.checkAgain(), [checkKey]);
  return (
    <div class={`editor is-${size}`}>
      <div ref={place} class="editor-place" />
      {state === 'loading' && (
        <p class="waiting" role="status">
          Loading the editor…
        </p>
      )}
      {state === 'failed' && (
        <textarea
          class="area"
          aria-label={label}
          spellcheck={false}
          readOnly={isReadOnly}
          value={text}
          onInput={({ currentTarget }) => props.onChange?.(currentTarget.value)}
        />
      )}
    </div>
  );
}

export interface DifferenceProps {
  label: string;
  before: string;
  after: string;
  language: EditorLanguage;
}

/** Shows what changed between two texts. */
export function Difference({ label, before, after, language }: DifferenceProps) {
  const place = useRef<HTMLDivElement>(null);
  const [hasFailed, setFailed] = useState(false);
  useEffect(() => {
    let shown: { destroy(): void } | undefined;
    let isGone = false;
    loading().then(
      ({ openDifference }) => {
        if (!isGone && place.current)
          shown = openDifference(place.current, { label, before, after, language });
      },
      () => setFailed(true),
    );
    return () => {
      isGone = true;
      shown?.destroy();
    };
  }, [label, before, after, language]);
  return (
    <div class="editor is-difference">
      <div ref={place} class="editor-place" />
      {hasFailed && <p class="wrong">The difference cannot be drawn: a file of the console did not load.</p>}
    </div>
  );
}
