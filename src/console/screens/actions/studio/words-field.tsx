import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { Icon } from '../../../parts/icon.tsx';
import { shownText, Untrusted } from '../../../parts/untrusted.tsx';

export interface WordsFieldProps {
  id: string;
  label: string;
  hint: string;
  words: readonly string[];
  wordsMax: number;
  isDisabled: boolean;
  onChange: (words: readonly string[]) => void;
}

/** A list of words that are typed, each added by Enter; its cross removes it. */
export function WordsField(props: WordsFieldProps & { pattern: RegExp }) {
  const { id, hint, words, pattern, wordsMax, isDisabled, onChange } = props;
  const [typed, setTyped] = useState('');
  const [wrong, setWrong] = useState('');
  const refusalOf = (word: string): string => {
    if (words.length >= wordsMax) return `At most ${wordsMax}.`;
    return pattern.test(word) ? '' : `Not one: ${hint}.`;
  };
  const add = (word: string): void => {
    if (word === '') return;
    const refusal = words.includes(word) ? '' : refusalOf(word);
    setWrong(refusal);
    if (refusal !== '') return;
    setTyped('');
    if (!words.includes(word)) onChange([...words, word]);
  };
  return (
    <Words {...props} wrong={wrong}>
      <input
        id={id}
        class="input"
        aria-describedby={`${id}-hint`}
        aria-invalid={wrong !== ''}
        autocomplete="off"
        spellcheck={false}
        disabled={isDisabled}
        value={typed}
        onInput={({ currentTarget }) => {
          setWrong('');
          setTyped(currentTarget.value);
        }}
        onKeyDown={(event) => {
          if (event.key !== 'Enter') return;
          event.preventDefault();
          add(typed.trim());
        }}
        onBlur={() => add(typed.trim())}
      />
    </Words>
  );
}

/** A list of words that are chosen from those that there are; its cross removes one. */
export function ChosenWordsField(props: WordsFieldProps & { offered: readonly string[] }) {
  const { id, words, offered, wordsMax, isDisabled, onChange } = props;
  const [wrong, setWrong] = useState('');
  const add = (word: string): void => {
    const isFull = words.length >= wordsMax;
    setWrong(isFull ? `At most ${wordsMax}.` : '');
    if (!isFull && word !== '') onChange([...words, word]);
  };
  return (
    <Words {...props} wrong={wrong}>
      <select
        id={id}
        class="select"
        aria-describedby={`${id}-hint`}
        disabled={isDisabled || offered.length === 0}
        value=""
        onChange={({ currentTarget }) => add(currentTarget.value)}
      >
        <option value="">{words.length === 0 ? 'Choose one…' : 'Add another…'}</option>
        {offered
          .filter((one) => !words.includes(one))
          .map((word) => (
            <option key={word} value={word}>
              {shownText(word, 120)}
            </option>
          ))}
      </select>
    </Words>
  );
}

interface WordsProps extends Omit<WordsFieldProps, 'wordsMax'> {
  /** Why the last one was not added; empty if it was. */
  wrong: string;
  children: ComponentChildren;
}

/** The words that there are, around the way to add one. */
function Words({ id, label, hint, words, isDisabled, onChange, wrong, children }: WordsProps) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {words.length > 0 && (
        <ul class="tags" aria-label={label}>
          {words.map((word) => (
            <li key={word} class="tag is-removable">
              <Untrusted text={word} lengthMax={60} />
              {!isDisabled && (
                <button
                  type="button"
                  aria-label={`Remove ${word}`}
                  title="Remove"
                  onClick={() => onChange(words.filter((one) => one !== word))}
                >
                  <Icon name="close" />
                </button>
              )}
            </li>
          ))}
        </ul>
      )}
      {children}
      <span id={`${id}-hint`} class={wrong === '' ? 'hint' : 'wrong'}>
        {wrong === '' ? hint : wrong}
      </span>
    </div>
  );
}
