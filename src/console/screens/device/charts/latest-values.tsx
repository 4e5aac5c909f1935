import { Section } from '../../../frame/frame.tsx';
import { Fact } from '../../../parts/facts.tsx';
import { Moment } from '../../../parts/moment.tsx';
import { shownText, Untrusted } from '../../../parts/untrusted.tsx';
import { writeExactly } from '../../../server/exact-json.ts';
import { payloadOf, type StreamedRecord } from '../../../server/record-stream.ts';

/** Fields of one datapoint that are shown: one with more is looked at in the timeline. */
const fieldsMax = 12;
const valueCharactersMax = 60;

/** The newest datapoint of each schema, field by field, with how old it is. */
export function LatestValues({ latest }: { latest: readonly StreamedRecord[] }) {
  if (latest.length === 0) return null;
  return (
    <Section title="Latest values">
      <dl class="facts is-values">
        {latest.flatMap((record) => {
          const fields = fieldsOf(record);
          return [
            ...fields.slice(0, fieldsMax).map(([name, value]) => (
              <Fact key={`${record.schema} ${name}`} name={<FieldName schema={record.schema} name={name} />}>
                <span class="strong">
                  <Untrusted text={value} lengthMax={valueCharactersMax} />
                </span>{' '}
                <span class="small soft">
                  <Moment time={timeOf(record)} />
                </span>
              </Fact>
            )),
            fields.length > fieldsMax && (
              <Fact key={`${record.schema} more`} name="">
                <span class="soft">{fields.length - fieldsMax} more fields in the timeline</span>
              </Fact>
            ),
          ];
        })}
      </dl>
    </Section>
  );
}

function FieldName({ schema, name }: { schema: string; name: string }) {
  return (
    <>
      <span class="faint">{shownText(schema, 40)}</span> {shownText(name, 60)}
    </>
  );
}

/** When it was recorded: what a device kept back is as old as that. */
export function timeOf({ recorded_at, stored_at }: StreamedRecord): string {
  return recorded_at ?? stored_at;
}

/** The fields at the top of a datapoint, as text. */
function fieldsOf(record: StreamedRecord): [name: string, value: string][] {
  const payload = payloadOf(record);
  if (typeof payload !== 'object' || payload === null) return [];
  return Object.entries(payload).map(([name, value]) => [
    name,
    typeof value === 'string' ? value : writeExactly(value, valueCharactersMax + 1),
  ]);
}

/** A field of a datapoint as a number, if it is one; `field` is a JSON Pointer to the top level. */
export function numberAt(record: StreamedRecord, field: string): number | undefined {
  const payload = payloadOf(record) as Record<string, unknown> | null;
  const name = field.slice(1).replaceAll('~1', '/').replaceAll('~0', '~');
  const value = payload !== null && Object.hasOwn(payload, name) ? Number(String(payload[name])) : Number.NaN;
  return Number.isFinite(value) ? value : undefined;
}
