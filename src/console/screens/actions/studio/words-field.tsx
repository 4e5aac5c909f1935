import { useState } from 'preact/hooks';
import { Icon } from '../../../parts/icon.tsx';
import { shownText, Untrusted } from '../../../parts/untrusted.tsx';

export interface WordsFieldProps {
  id: string;
  label: string;
  hint: string;
  words: readonly string[];
  /** Those that there are. */
  offered?: readonly string[];
  /** Only these may be added; absent: what `pattern` lets pass. */
  isClosed?: boolean;
  pattern?: RegExp;
  wordsMax: number;
  isDisabled: boolean;
  onChange: (words: readonly string[]) => void;
}

/** A list of words: one is chosen, or typed and added by Enter; its cross removes it. */
export function WordsField(props: WordsFieldProps) {
  const {
    id,
    label,
    hint,
    words,
    offered = [],
    isClosed = false,
    pattern,
    wordsMax,
    isDisabled,
    onChange,
  } = props;
  const [typed, setTyped] = useState('');
  const [wrong, setWrong] = useState('');
  const refusalOf = (word: string): string => {
    if (words.length >= wordsMax) return `At most ${wordsMax}.`;
    const isFit = isClosed ? offered.includes(word) : (pattern?.test(word) ?? true);
    return isFit ? '' : `Not one: ${hint}.`;
  };
  const add = (word: string): void => {
    if (word === '') return;
    const refusal = words.includes(word) ? '' : refusalOf(word);
    setWrong(refusal);
    if (refusal !== '') return;
    setTyped('');
    if (!words.includes(word)) onChange([...words, word]);
  };
  const type = (value: string): void => {
    setWrong('');
    setTyped(value);
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {words.length > 0 && <Words label={label} words={words} isDisabled={isDisabled} onChange={onChange} />}
      {isClosed ? (
        <Picker {...{ id, words, offered, isDisabled, onPick: add }} />
      ) : (
        <input
          id={id}
          class="input"
          aria-describedby={`${id}-hint`}
          aria-invalid={wrong !== ''}
          autocomplete="off"
          spellcheck={false}
          disabled={isDisabled}
          value={typed}
          onInput={({ currentTarget }) => type(currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Enter') return;
            event.preventDefault();
            add(typed.trim());
          }}
          onBlur={() => add(typed.trim())}
        />
      )}
      <span id={`${id}-hint`} class={wrong === '' ? 'hint' : 'wrong'}>
        {wrong === '' ? hint : wrong}
      </span>
    </div>
  );
}

function Words(props: Pick<WordsFieldProps, 'label' | 'words' | 'isDisabled' | 'onChange'>) {
  const { label, words, isDisabled, onChange } = props;
  return (
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
  );
}

interface PickerProps {
  id: string;
  words: readonly string[];
  offered: readonly string[];
  isDisabled: boolean;
  onPick: (word: string) => void;
}

/** Those that there are, but for those that were chosen. */
function Picker({ id, words, offered, isDisabled, onPick }: PickerProps) {
  return (
    <select
      id={id}
      class="select"
      aria-describedby={`${id}-hint`}
      disabled={isDisabled || offered.length === 0}
      value=""
      onChange={({ currentTarget }) => onPick(currentTarget.value)}
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
  );
}
