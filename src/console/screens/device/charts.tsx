import { useMemo, useState } from 'preact/hooks';
import type { SeriesDocument } from '../../../contract/monitoring/series.ts';
import { below, type Path, pathTo } from '../../../contract/routes/path.ts';
import { Section } from '../../frame/frame.tsx';
import { FilterSelect } from '../../lists/filters.tsx';
import { Loaded } from '../../parts/banner.tsx';
import { Chart } from '../../parts/chart.tsx';
import { Choice } from '../../parts/choice.tsx';
import { Moment } from '../../parts/moment.tsx';
import { shownText } from '../../parts/untrusted.tsx';
import { call } from '../../server/client.ts';
import { serverNow } from '../../server/clock.ts';
import { pathOfDevice } from '../../server/device-path.ts';
import { useDocument, useResource } from '../../server/resource.ts';

const spans = [
  ['1', '1 h'],
  ['24', '24 h'],
  ['168', '7 d'],
] as const;
type Span = (typeof spans)[number][0];

/** Buckets of a line: more are not told apart on a screen. */
const points = 300;
const everySeconds = 15;

export interface ChartsProps {
  fleetId: string;
  deviceId: string;
  /** Schema of its last datapoint, if it has sent one lately. */
  lastSchema: string | undefined;
}

/** The numbers of a device's datapoints as lines. */
export function Charts({ fleetId, deviceId, lastSchema }: ChartsProps) {
  const [chosen, setChosen] = useState<string | undefined>();
  const [span, setSpan] = useState<Span>('1');
  const schemas = useDocument(pathTo('/fleets/{fleet_id}/schemas', { fleet_id: fleetId }));
  const names = schemas.value?.items.filter(({ kind }) => kind === 'datapoint').map(({ name }) => name) ?? [];
  const schema = chosen ?? lastSchema ?? names[0];
  return (
    <Section
      title="Charts"
      tools={
        <>
          {names.length > 1 && (
            <FilterSelect
              label="Schema"
              value={schema ?? ''}
              options={names.map((name) => [name, name])}
              onChange={setChosen}
            />
          )}
          <Choice label="How far back" value={span} options={spans} onChange={setSpan} />
        </>
      }
    >
      {schema === undefined ? (
        <p class="empty">Datapoints need a schema: fleetpost schema put datapoint NAME FILE.</p>
      ) : (
        <Lines
          key={schema + span}
          path={below(pathOfDevice(fleetId, deviceId), '/series', {})}
          schema={schema}
          span={span}
        />
      )}
    </Section>
  );
}

interface LinesProps {
  path: Path<'/fleets/{fleet_id}/devices/{device_id}/series'>;
  schema: string;
  span: Span;
}

function Lines({ path, schema, span }: LinesProps) {
  const hours = Number(span);
  const series = useResource(
    `${path}?${schema}&${span}`,
    (signal) => {
      const from = new Date(serverNow() - hours * 3_600_000).toISOString();
      return call('GET', path, { query: { schema, from, points }, signal });
    },
    everySeconds,
  );
  return (
    <Loaded resource={series}>
      {({ fields, from, bucket_ms, partial, complete_from }) => (
        <div class="below stack">
          {fields.length === 0 && <p class="soft">No numbers in this time.</p>}
          {fields.map((field) => (
            <Line
              key={field.field}
              field={field}
              fromMs={Date.parse(from)}
              bucketMs={bucket_ms}
              schema={schema}
              windowSeconds={hours * 3_600}
            />
          ))}
          {partial && (
            <p class="hint">
              Too much to read at once: whole from <Moment time={complete_from} />.
            </p>
          )}
        </div>
      )}
    </Loaded>
  );
}

interface LineProps {
  field: SeriesDocument['fields'][number];
  fromMs: number;
  bucketMs: number;
  schema: string;
  windowSeconds: number;
}

function Line({ field, fromMs, bucketMs, schema, windowSeconds }: LineProps) {
  const { buckets, mean, min, max } = field;
  const times = useMemo(
    () => buckets.map((bucket) => (fromMs + bucket * bucketMs) / 1_000),
    [buckets, fromMs, bucketMs],
  );
  return (
    <Chart
      label={`${schema} ${shownText(field.field.slice(1), 80)}`}
      times={times}
      values={mean}
      range={[min, max]}
      windowSeconds={windowSeconds}
      format={shortNumber}
    />
  );
}

/** A value of an axis: as many digits as are read at a glance. */
function shortNumber(value: number): string {
  return Math.abs(value) >= 1e6 || (value !== 0 && Math.abs(value) < 1e-3)
    ? value.toExponential(2)
    : String(Number(value.toPrecision(6)));
}
