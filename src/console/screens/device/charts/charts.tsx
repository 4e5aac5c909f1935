import { useMemo } from 'preact/hooks';
import type { SeriesDocument } from '../../../../contract/monitoring/series.ts';
import { below, pathTo } from '../../../../contract/routes/path.ts';
import { Chart } from '../../../charts/chart.tsx';
import { Section } from '../../../frame/frame.tsx';
import { FilterSelect } from '../../../lists/filters.tsx';
import { go, href, search } from '../../../page/router.ts';
import { Loaded } from '../../../parts/banner.tsx';
import { Choice } from '../../../parts/choice.tsx';
import { Moment } from '../../../parts/moment.tsx';
import { shownText } from '../../../parts/untrusted.tsx';
import { call } from '../../../server/client.ts';
import { serverNow, spanText } from '../../../server/clock.ts';
import { pathOfDevice } from '../../../server/device-path.ts';
import type { StreamedRecord } from '../../../server/record-stream.ts';
import { useDocument, useResource } from '../../../server/resource.ts';
import { gapped } from './chart-gaps.ts';
import { type ChartSpan, endsOf, namedSpans, parametersOf, spanOf } from './chart-span.ts';
import { numberAt, timeOf } from './latest-values.tsx';
import { SpanFields } from './span-fields.tsx';

/** Buckets of a line: more are not told apart on a screen. */
const points = 300;
const everySeconds = 30;

export interface ChartsProps {
  fleetId: string;
  deviceId: string;
  /** The newest datapoint of each schema, newest first; undefined until it is known. */
  latest: readonly StreamedRecord[] | undefined;
}

/** The numbers of a device's datapoints as lines. Schema and span are in the address. */
export function Charts({ fleetId, deviceId, latest }: ChartsProps) {
  const place = [fleetId, 'devices', deviceId];
  const parameters = search.value;
  const span = spanOf(parameters);
  const schemas = useDocument(pathTo('/fleets/{fleet_id}/schemas', { fleet_id: fleetId }));
  const names = schemas.value?.items.filter(({ kind }) => kind === 'datapoint').map(({ name }) => name) ?? [];
  // Which one it last sent must be known, or the charts would change under the reader.
  const schema = parameters.get('schema') ?? (latest && (latest[0]?.schema ?? names[0]));
  const change = (changed: Record<string, string | undefined>, replace = true): void =>
    go(href(place, { ...Object.fromEntries(parameters), ...changed }), { replace });
  // A step of its own: Back is the way out.
  const zoom = (fromMs: number, toMs: number): void => change(parametersOf([fromMs, toMs]), false);
  return (
    <Section
      title="Charts"
      tools={
        <>
          {names.length > 1 && schema !== undefined && (
            <FilterSelect
              label="Schema"
              value={schema}
              options={[...new Set([schema, ...names])].sort().map((name) => [name, name])}
              onChange={(name) => change({ schema: name })}
            />
          )}
          <Choice
            label="How far back"
            value={span.name}
            options={[...namedSpans.map(([name, text]) => [name, text] as const), ['custom', 'Custom']]}
            onChange={(name) => change(parametersOf(name === 'custom' ? endsOf(span, serverNow()) : name))}
          />
        </>
      }
    >
      {span.name === 'custom' && (
        <SpanFields span={span} onChange={(fromMs, toMs) => change(parametersOf([fromMs, toMs]))} />
      )}
      {span.name !== 'custom' && (parameters.has('from') || parameters.has('to')) && (
        <p class="hint below">
          The address has no span that can be shown: this is the last {spanText(span.ms)}.
        </p>
      )}
      {schema !== undefined && (
        <Lines
          key={schema + parameters.toString()}
          {...{ fleetId, deviceId, schema, span }}
          latest={latest?.find((record) => record.schema === schema)}
          onZoom={zoom}
        />
      )}
      {schema === undefined && latest !== undefined && schemas.value !== undefined && (
        <p class="empty">Datapoints need a schema: fleetpost schema put datapoint NAME FILE.</p>
      )}
    </Section>
  );
}

interface LinesProps {
  fleetId: string;
  deviceId: string;
  schema: string;
  span: ChartSpan;
  latest: StreamedRecord | undefined;
  onZoom: (fromMs: number, toMs: number) => void;
}

function Lines({ fleetId, deviceId, schema, span, latest, onZoom }: LinesProps) {
  const path = below(pathOfDevice(fleetId, deviceId), '/series', {});
  const fleet = useDocument(pathTo('/fleets/{fleet_id}', { fleet_id: fleetId }));
  const series = useResource(
    `${path}?${schema}&${JSON.stringify(span)}`,
    (signal) => {
      const [from, to] = endsOf(span, serverNow()).map((ms) => new Date(ms).toISOString());
      return call('GET', path, { query: { schema, from, to, points }, signal });
    },
    // What is over changes no more.
    span.name === 'custom' && span.toMs < serverNow() ? undefined : everySeconds,
  );
  return (
    <Loaded resource={series}>
      {(document) => (
        <SeriesLines
          {...{ document, schema, latest, onZoom }}
          keptSeconds={fleet.value?.log_retention_seconds}
        />
      )}
    </Loaded>
  );
}

interface SeriesLinesProps {
  document: SeriesDocument;
  schema: string;
  latest: StreamedRecord | undefined;
  /** How long the fleet's records are kept. */
  keptSeconds: number | undefined;
  onZoom: (fromMs: number, toMs: number) => void;
}

function SeriesLines({ document, schema, latest, keptSeconds, onZoom }: SeriesLinesProps) {
  const { fields, from, to, partial, complete_from } = document;
  const fromMs = Date.parse(from);
  const keptFromMs = keptSeconds === undefined ? fromMs : serverNow() - keptSeconds * 1_000;
  const readFromMs = partial ? Date.parse(complete_from) : fromMs;
  const knownFromMs = Math.max(fromMs, keptFromMs, readFromMs);
  return (
    <div class="below stack">
      {fields.length === 0 && (
        <p class="soft">
          No numbers in this time.
          {latest !== undefined && Date.parse(timeOf(latest)) < fromMs && (
            <>
              {' '}
              The last datapoint is of <Moment time={timeOf(latest)} />.
            </>
          )}
        </p>
      )}
      {fields.map((field) => (
        <Line
          key={field.field}
          {...{ document, field, schema, latest, onZoom }}
          unknownUntil={knownFromMs > fromMs ? knownFromMs / 1_000 : undefined}
        />
      ))}
      {readFromMs > Math.max(fromMs, keptFromMs) && (
        <p class="hint">
          Too much to read at once: what came before <Moment time={complete_from} /> is not shown.
        </p>
      )}
      {keptFromMs > fromMs && keptSeconds !== undefined && Date.parse(to) > fromMs && (
        <p class="hint">
          Records of this fleet are kept for {spanText(keptSeconds * 1_000)}: older ones are gone.
        </p>
      )}
    </div>
  );
}

interface LineProps {
  document: SeriesDocument;
  field: SeriesDocument['fields'][number];
  schema: string;
  latest: StreamedRecord | undefined;
  unknownUntil: number | undefined;
  onZoom: (fromMs: number, toMs: number) => void;
}

function Line({ document, field, schema, latest, unknownUntil, onZoom }: LineProps) {
  const fromMs = Date.parse(document.from);
  const { times, mean, min, max } = useMemo(
    () => gapped(field, fromMs, document.bucket_ms),
    [field, fromMs, document.bucket_ms],
  );
  const value = latest && numberAt(latest, field.field);
  return (
    <Chart
      label={`${schema} ${shownText(field.field.slice(1), 80)}`}
      times={times}
      values={mean}
      range={[min, max]}
      span={[fromMs / 1_000, Date.parse(document.to) / 1_000]}
      unknownUntil={unknownUntil}
      latest={
        latest !== undefined && value !== undefined ? (
          <>
            <span class="strong">{shortNumber(value)}</span>{' '}
            <span class="small soft">
              <Moment time={timeOf(latest)} />
            </span>
          </>
        ) : (
          <span />
        )
      }
      onZoom={(from, to) => onZoom(Math.floor(from * 1_000), Math.ceil(to * 1_000))}
      format={shortNumber}
    />
  );
}

/** A value as it is read at a glance. */
function shortNumber(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e7 || (value !== 0 && size < 1e-3)) {
    return Number(value.toPrecision(3)).toExponential().replace('e+', 'e');
  }
  return String(Number(value.toPrecision(size >= 1e4 ? 9 : 6)));
}
