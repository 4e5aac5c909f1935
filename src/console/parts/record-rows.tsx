import { useState } from 'preact/hooks';
import { hourText } from '../server/clock.ts';
import type { FollowedRecords } from '../server/followed-records.ts';
import { payloadOf, type StreamedRecord } from '../server/record-stream.ts';
import { Act } from './act.tsx';
import { Banner, ErrorBanner } from './banner.tsx';
import { DeviceLink } from './device.tsx';
import { Moment } from './moment.tsx';
import { Payload } from './payload.tsx';
import { Untrusted, visible } from './untrusted.tsx';

/** Rows drawn at first; the rest when they are asked for. */
const drawnRows = 200;

export interface RecordRowsProps {
  fleetId: string;
  records: readonly StreamedRecord[];
  /** The device is named in each row. */
  withDevice?: boolean;
}

/** Records, newest first; a click on one shows its payload. */
export function RecordRows({ fleetId, records, withDevice = false }: RecordRowsProps) {
  const [drawn, setDrawn] = useState(drawnRows);
  return (
    <>
      <ul class="list">
        {records.slice(0, drawn).map((record) => (
          <RecordRow key={record.record_id} fleetId={fleetId} record={record} withDevice={withDevice} />
        ))}
      </ul>
      {records.length > drawn && (
        <Act kind="plain" onClick={() => setDrawn(drawn * 3)}>
          Show more
        </Act>
      )}
    </>
  );
}

function RecordRow(props: { fleetId: string; record: StreamedRecord; withDevice: boolean }) {
  const { fleetId, record, withDevice } = props;
  const { device_id, kind, schema, stored_at, preview } = record;
  const [isOpen, setOpen] = useState(false);
  return (
    <li>
      <div class="row">
        <span class="when small faint">
          <Moment time={stored_at} />
        </span>
        {withDevice && <DeviceLink fleetId={fleetId} id={device_id} />}
        <button type="button" class="record" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          <span class="tag kind">{kind}</span>
          <span class="strong cut record-name">
            <Untrusted text={schema} lengthMax={80} />
          </span>
          <code class="cut grow soft small">
            <bdi>{visible(preview)}</bdi>
          </code>
        </button>
      </div>
      {isOpen && <Payload value={payloadOf(record)} />}
    </li>
  );
}

/** That a stream is not open, and since when. */
export function StreamNotice({ stream }: { stream: FollowedRecords }) {
  const { error, brokenSinceMs } = stream;
  if (error === undefined || brokenSinceMs === undefined) return null;
  if (error.status >= 400 && error.status < 500) return <ErrorBanner error={error} />;
  return (
    <Banner kind="warn">
      The stream broke at {hourText(brokenSinceMs)}; it is opened again where it was. What is below is older.
    </Banner>
  );
}
