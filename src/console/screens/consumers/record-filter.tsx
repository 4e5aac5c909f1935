import { Field } from '../../forms/field.tsx';
import type { FilterDraft, FilterKind } from './filter-draft.ts';

const kinds: readonly (readonly [FilterKind, string])[] = [
  ['datapoint', 'numbers and states of devices'],
  ['message', 'what devices tell once'],
  ['receipt', 'what became of mail'],
  ['reply', 'what devices answered to mail'],
];

/** Asks which records a reader gets. */
export function RecordFilter(props: { draft: FilterDraft; onChange: (draft: FilterDraft) => void }) {
  const { draft, onChange } = props;
  const toggle = (kind: FilterKind): void => {
    const isThere = draft.kinds.includes(kind);
    const kinds = isThere ? draft.kinds.filter((one) => one !== kind) : [...draft.kinds, kind];
    onChange({ ...draft, kinds });
  };
  return (
    <>
      <fieldset class="field choices">
        <legend class="label">Kinds of records; without a tick, all</legend>
        {kinds.map(([kind, meaning]) => (
          <label key={kind} class="choice">
            <input type="checkbox" checked={draft.kinds.includes(kind)} onChange={() => toggle(kind)} />
            <span class="strong">{kind}</span>
            <span class="hint">{meaning}</span>
          </label>
        ))}
      </fieldset>
      <Field
        label="Schemas"
        value={draft.schemas}
        spellcheck={false}
        hint="Separated by commas; empty: all. Of receipts and replies, names of mail"
        onText={(schemas) => onChange({ ...draft, schemas })}
      />
    </>
  );
}
