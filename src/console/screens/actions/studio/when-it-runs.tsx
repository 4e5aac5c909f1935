import type { SchemaDocument } from '../../../../contract/schema.ts';
import { CodeEditor } from '../../../editor/code-editor.tsx';
import { Field } from '../../../forms/field.tsx';
import { href } from '../../../page/router.ts';
import { Banner } from '../../../parts/banner.tsx';
import type { ActionText } from '../action-text.ts';
import { ChosenWordsField, WordsField } from './words-field.tsx';

const triggersMax = 32;
const devicesMax = 1_000;
const tagsMax = 32;

export interface WhenItRunsProps {
  fleetId: string;
  text: ActionText;
  isNew: boolean;
  isReadOnly: boolean;
  /** Runs a second that it may have now. */
  rate: number | undefined;
  /** Undefined while they are read. */
  schemas: readonly SchemaDocument[] | undefined;
  onChange: (changed: Partial<ActionText>) => void;
}

/** Which records run an action, and how many a second: the options of `action put`. */
export function WhenItRuns(props: WhenItRunsProps) {
  const { fleetId, text, isNew, isReadOnly, rate, schemas, onChange } = props;
  const triggers = (schemas ?? [])
    .filter(({ kind }) => kind !== 'mail')
    .map(({ kind, name }) => `${kind}:${name}`);
  return (
    <div class="stack">
      {schemas !== undefined && triggers.length === 0 && (
        <Banner kind="warn">
          <p>
            The fleet has no schema of messages, datapoints or replies yet, and an action runs for one at
            least. <a href={href([fleetId, 'schemas'])}>Put a schema</a>
          </p>
        </Banner>
      )}
      <ChosenWordsField
        id="action-on"
        label="Runs for"
        hint="schemas of the fleet"
        words={text.on}
        offered={triggers}
        wordsMax={triggersMax}
        isDisabled={isReadOnly}
        onChange={(on) => onChange({ on })}
      />
      <div class="pair">
        <WordsField
          id="action-tags"
          label="Only devices with a tag"
          hint="one of these; empty: any"
          words={text.tags}
          wordsMax={tagsMax}
          pattern={/^.{1,64}$/u}
          isDisabled={isReadOnly}
          onChange={(tags) => onChange({ tags })}
        />
        <WordsField
          id="action-devices"
          label="Only these devices"
          hint="ids of 10 letters or digits; empty: all"
          words={text.devices}
          wordsMax={devicesMax}
          pattern={/^[A-Za-z0-9]{10}$/}
          isDisabled={isReadOnly}
          onChange={(devices) => onChange({ devices })}
        />
      </div>
      <Where text={text} isReadOnly={isReadOnly} onChange={onChange} />
      <Rate text={text} isNew={isNew} isReadOnly={isReadOnly} rate={rate} onChange={onChange} />
    </div>
  );
}

function Where({ text, isReadOnly, onChange }: Pick<WhenItRunsProps, 'text' | 'isReadOnly' | 'onChange'>) {
  return (
    <div class="field">
      <span class="label">Only payloads that match this JSON Schema</span>
      <CodeEditor
        label="JSON Schema of the payloads"
        language="json"
        size="small"
        text={text.where}
        isReadOnly={isReadOnly}
        onChange={(where) => onChange({ where })}
      />
      <span class="hint">
        Runs no code, so what it leaves out costs next to nothing. Like{' '}
        <code>{'{"properties":{"celsius":{"exclusiveMinimum":30}}}'}</code>; empty: any
      </span>
    </div>
  );
}

function Rate(props: Omit<WhenItRunsProps, 'fleetId' | 'schemas'>) {
  const { text, isNew, isReadOnly, rate, onChange } = props;
  return (
    <div class="pair">
      <Field
        label="Runs a second at most"
        isDisabled={isReadOnly}
        placeholder={rate === undefined ? 'the configured number' : `as it is: ${rate.toLocaleString('en')}`}
        value={text.rate}
        onText={(typed) => onChange({ rate: typed.trim() })}
        hint="“default” for the configured number"
      />
      {isNew && (
        <label class="inline">
          <input
            type="checkbox"
            checked={text.isDisabled}
            onChange={({ currentTarget }) => onChange({ isDisabled: currentTarget.checked })}
          />
          Deploy it disabled
        </label>
      )}
    </div>
  );
}
