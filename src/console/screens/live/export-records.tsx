import { useState } from 'preact/hooks';
import { pathTo } from '../../../contract/routes/path.ts';
import { ExportLines } from '../../exports/export-lines.tsx';
import { Field, SelectField } from '../../forms/field.tsx';
import { shellWord } from '../../parts/hidden-characters.ts';
import type { Query } from '../../server/client.ts';
import { parseSpan, serverNow } from '../../server/clock.ts';

export interface ExportRecordsProps {
  fleetId: string;
  /** What is on the screen, to begin with. */
  kind?: string;
  schema?: string;
  device?: string;
  span?: string;
  onClose: () => void;
}

const kinds = [
  ['', 'all kinds'],
  ['datapoint', 'datapoint'],
  ['message', 'message'],
  ['receipt', 'receipt'],
  ['reply', 'reply'],
] as const;

const spans = [
  ['1h', 'the last hour'],
  ['1d', 'the last day'],
  ['7d', 'the last 7 days'],
  ['30d', 'the last 30 days'],
  ['', 'all that is in the log'],
  ['between', 'between two times'],
] as const;

/** True for a span that is offered; what is shown from now on has none to export. */
function isSpan(text: string | undefined): text is string {
  return text !== '' && spans.some(([one]) => one === text);
}

/** Time of a field, which is in the zone of the reader; undefined: it is empty. */
function timeOf(text: string): string | undefined {
  return text === '' ? undefined : new Date(text).toISOString();
}

/** Writes the records that fit to a file, oldest first. */
export function ExportRecords(props: ExportRecordsProps) {
  const { fleetId, onClose } = props;
  const [kind, setKind] = useState(props.kind ?? '');
  const [schema, setSchema] = useState(props.schema ?? '');
  const [device, setDevice] = useState(props.device ?? '');
  const [span, setSpan] = useState(isSpan(props.span) ? props.span : '1d');
  const [from, setFrom] = useState('');
  const [to, setTo] = useState('');
  const query = (): Query => {
    const spanMs = parseSpan(span);
    return {
      kind,
      schema: schema.trim(),
      device: device.trim(),
      from: spanMs === undefined ? timeOf(from) : new Date(serverNow() - spanMs).toISOString(),
      to: timeOf(to),
    };
  };
  const flags = [
    ['--kind', kind],
    ['--schema', schema.trim()],
    ['--device', device.trim()],
    ['--since', parseSpan(span) === undefined ? (timeOf(from) ?? '') : span],
    ['--until', timeOf(to) ?? ''],
  ].flatMap(([flag = '', value = '']) => (value === '' ? [] : [flag, shellWord(value)]));
  const command = ['fleetpost export --fleet', fleetId, ...flags, '--out records.ndjson'].join(' ');
  return (
    <ExportLines
      title="Export records"
      path={pathTo('/fleets/{fleet_id}/records', { fleet_id: fleetId })}
      query={query}
      fileName={`records-${fleetId}${device.trim() && `-${device.trim()}`}.ndjson`}
      what="records"
      command={command}
      onClose={onClose}
    >
      <SpanFields span={span} onSpan={setSpan} from={from} onFrom={setFrom} to={to} onTo={setTo} />
      <div class="pair">
        <SelectField label="Kind" value={kind} options={kinds} onChange={setKind} />
        <Field label="Schema" maxLength={255} spellcheck={false} value={schema} onText={setSchema} />
      </div>
      <Field
        label="Device"
        class="mono"
        maxLength={10}
        spellcheck={false}
        placeholder="all"
        value={device}
        onText={setDevice}
      />
      <p class="hint">
        Oldest first, a record a line (NDJSON), payloads as they were sent. CSV and Parquet:{' '}
        <code>fleetpost export --format csv</code>
      </p>
    </ExportLines>
  );
}

interface SpanFieldsProps {
  span: string;
  onSpan: (span: string) => void;
  from: string;
  onFrom: (text: string) => void;
  to: string;
  onTo: (text: string) => void;
}

function SpanFields({ span, onSpan, from, onFrom, to, onTo }: SpanFieldsProps) {
  return (
    <>
      <SelectField
        label="Stored in"
        value={span}
        options={spans}
        onChange={(chosen) => {
          onSpan(chosen);
          onFrom('');
          onTo('');
        }}
      />
      {span === 'between' && (
        <div class="pair">
          <Field label="From" type="datetime-local" value={from} onText={onFrom} />
          <Field label="To" type="datetime-local" value={to} onText={onTo} />
        </div>
      )}
    </>
  );
}
