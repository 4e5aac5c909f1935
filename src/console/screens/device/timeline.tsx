import { useEffect, useState } from 'preact/hooks';
import { Section } from '../../frame/frame.tsx';
import { Act } from '../../parts/act.tsx';
import { ErrorBanner } from '../../parts/banner.tsx';
import { RecordRows, StreamNotice } from '../../parts/record-rows.tsx';
import { readSoon } from '../../server/resource.ts';
import { Charts } from './charts/charts.tsx';
import { useDeviceRecords } from './charts/device-records.ts';
import { LatestValues } from './charts/latest-values.tsx';

/** Records that are read at first, and when more are asked for: what the API has in one answer. */
const firstRecords = 50;
const moreRecords = 1_000;

/** What the device has sent and what became of its mail, newest first, then as it comes; above it, its numbers. */
export function Timeline({ fleetId, deviceId }: { fleetId: string; deviceId: string }) {
  const [limit, setLimit] = useState(firstRecords);
  const { records, latest, stream, before } = useDeviceRecords(fleetId, deviceId, limit);
  const newest = stream.records[0];
  // What became of its mail changes its mailbox, and why it is stuck.
  useEffect(() => {
    if (newest?.kind === 'receipt') readSoon();
  }, [newest?.record_id]);
  const isWhole = before.value !== undefined && before.value.records.length < limit;
  return (
    <>
      {latest && <LatestValues latest={latest} />}
      <Charts fleetId={fleetId} deviceId={deviceId} latest={latest} />
      <Section
        title="Timeline"
        note={<span class="read">{before.value && stream.isOpen ? 'live' : ''}</span>}
      >
        <StreamNotice stream={stream} />
        {before.error && <ErrorBanner error={before.error} onRetry={before.refresh} />}
        {records.length === 0 && before.error === undefined && (
          <p class="empty">
            {before.value === undefined
              ? 'Reading…'
              : 'It has sent nothing that is still kept. What comes appears here.'}
          </p>
        )}
        <RecordRows fleetId={fleetId} records={records} />
        {before.value && !isWhole && limit < moreRecords && (
          <Act kind="plain" onClick={() => setLimit(moreRecords)}>
            Read older ones
          </Act>
        )}
        {before.value?.isPartial && <p class="hint">Older ones are there, further back than is read here.</p>}
      </Section>
    </>
  );
}
