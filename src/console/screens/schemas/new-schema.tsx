import { useState } from 'preact/hooks';
import { AskName } from '../../forms/ask-name.tsx';
import { SelectField } from '../../forms/field.tsx';
import type { SchemaKindName } from './schema-text.ts';

export interface NewSchemaProps {
  onClose: () => void;
  /** Returns why it cannot be begun. */
  onName: (kind: SchemaKindName, name: string) => string | undefined;
}

const kinds = [
  ['datapoint', 'Datapoint: a measurement, an object with fields'],
  ['message', 'Message: something that happened'],
  ['mail', 'Mail: what is sent to a device'],
  ['reply', 'Reply: what a device answers to mail of that name'],
] as const;

/** Asks of which kind and name a new schema is. */
export function NewSchema({ onClose, onName }: NewSchemaProps) {
  const [kind, setKind] = useState<SchemaKindName>('datapoint');
  return (
    <AskName
      title="New schema"
      hint="Letters, digits, _ and -, as devices name it in their requests"
      onName={(name) => onName(kind, name)}
      onClose={onClose}
    >
      <SelectField
        label="Kind"
        value={kind}
        options={kinds}
        onChange={(one) => setKind(one as SchemaKindName)}
      />
    </AskName>
  );
}
