import { useMemo, useState } from 'preact/hooks';
import { Section } from '../../frame/frame.tsx';
import { Choice } from '../../parts/choice.tsx';
import { RecordRows, StreamNotice } from '../../parts/record-rows.tsx';
import { serverNow } from '../../server/clock.ts';
import { useFollowedRecords } from '../../server/followed-records.ts';
import { Charts } from './charts.tsx';

const spans = [
  ['15', '15 min'],
  ['60', '1 h'],
  ['1440', '24 h'],
] as const;
type Span = (typeof spans)[number][0];

/** Shows what the device has sent lately and what became of its mail, as it comes; above it, its numbers as lines. */
export function Timeline({ fleetId, deviceId }: { fleetId: string; deviceId: string }) {
  const [span, setSpan] = useState<Span>('15');
  // A time of its own for each span: the log is read from there.
  const from = useMemo(() => new Date(serverNow() - Number(span) * 60_000).toISOString(), [span]);
  const stream = useFollowedRecords(
    fleetId,
    `${deviceId} ${span}`,
    { device: deviceId, from, follow: true },
    false,
  );
  return (
    <>
      <Charts
        fleetId={fleetId}
        deviceId={deviceId}
        lastSchema={stream.records.find(({ kind }) => kind === 'datapoint')?.schema}
      />
      <Section
        title="Timeline"
        note={<span class="read">{stream.isOpen ? 'live' : ''}</span>}
        tools={<Choice label="How far back" value={span} options={spans} onChange={setSpan} />}
      >
        <StreamNotice stream={stream} />
        {stream.records.length === 0 && stream.error === undefined && (
          <p class="empty">{stream.isOpen ? 'Nothing in this time. What comes appears here.' : 'Reading…'}</p>
        )}
        <RecordRows fleetId={fleetId} records={stream.records} />
      </Section>
    </>
  );
}
