import { useState } from 'preact/hooks';
import { Icon } from '../../../parts/icon.tsx';
import { Untrusted } from '../../../parts/untrusted.tsx';

export interface WordsFieldProps {
  id: string;
  label: string;
  hint: string;
  words: readonly string[];
  /** Offered as somebody types. */
  offered?: readonly string[];
  /** Only these may be added; absent: what `pattern` lets pass. */
  isClosed?: boolean;
  pattern?: RegExp;
  wordsMax: number;
  isDisabled: boolean;
  onChange: (words: readonly string[]) => void;
}

/** A list of words: Enter adds one, its cross removes it. */
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
    // A choice from the list comes as input: it is meant at once.
    if (isClosed && offered.includes(value)) add(value);
    else setTyped(value);
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {words.length > 0 && <Words label={label} words={words} isDisabled={isDisabled} onChange={onChange} />}
      <input
        id={id}
        class="input"
        list={offered.length > 0 ? `${id}-offered` : undefined}
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
      {offered.length > 0 && (
        <Offered id={`${id}-offered`} words={offered.filter((one) => !words.includes(one))} />
      )}
      <span id={`${id}-hint`} class={wrong === '' ? 'hint' : 'wrong'}>
        {wrong === '' ? hint : wrong}
      </span>
    </div>
  );
}

function Offered({ id, words }: { id: string; words: readonly string[] }) {
  return (
    <datalist id={id}>
      {words.map((word) => (
        <option key={word} value={word} />
      ))}
    </datalist>
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
