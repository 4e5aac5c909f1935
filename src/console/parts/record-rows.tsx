import { useState } from 'preact/hooks';
import { exactText, hourText } from '../server/clock.ts';
import type { FollowedRecords } from '../server/followed-records.ts';
import { payloadOf, type StreamedRecord } from '../server/record-stream.ts';
import { Act } from './act.tsx';
import { Banner, ErrorBanner } from './banner.tsx';
import { DeviceLink } from './device.tsx';
import { ClockMoment, Moment } from './moment.tsx';
import { Payload } from './payload.tsx';
import { Untrusted, visible } from './untrusted.tsx';

/** Rows drawn at first; the rest when they are asked for. */
const drawnRows = 200;

export interface RecordRowsProps {
  fleetId: string;
  records: readonly StreamedRecord[];
  /** Set for records of many devices as they come: a row names its device, and the clock's time shows order and gaps. */
  isLive?: boolean;
}

/** Records, newest first; a click on one shows all of it. */
export function RecordRows({ fleetId, records, isLive = false }: RecordRowsProps) {
  const [drawn, setDrawn] = useState(drawnRows);
  return (
    <>
      <ul class="list">
        {records.slice(0, drawn).map((record) => (
          <RecordRow key={record.record_id} fleetId={fleetId} record={record} isLive={isLive} />
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

function RecordRow(props: { fleetId: string; record: StreamedRecord; isLive: boolean }) {
  const { fleetId, record, isLive } = props;
  const { device_id, kind, schema, stored_at, preview } = record;
  const [isOpen, setOpen] = useState(false);
  return (
    <li>
      <div class="row">
        <span class={`when small faint ${isLive ? 'is-clock' : ''}`}>
          {isLive ? <ClockMoment time={stored_at} /> : <Moment time={stored_at} />}
        </span>
        {isLive && <DeviceLink fleetId={fleetId} id={device_id} />}
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
      {isOpen && <WholeRecord record={record} />}
    </li>
  );
}

/** A record with what its row has no room for. */
function WholeRecord({ record }: { record: StreamedRecord }) {
  const { record_id, stored_at, recorded_at, mail_id } = record;
  return (
    <div>
      <p class="record-head small soft">
        <span>
          stored <time dateTime={stored_at}>{exactText(stored_at)}</time>
        </span>
        {recorded_at !== undefined && (
          <span>
            recorded <time dateTime={recorded_at}>{exactText(recorded_at)}</time>
          </span>
        )}
        {mail_id !== undefined && (
          <span>
            answers mail <code>{mail_id}</code>
          </span>
        )}
        <span>
          record <code>{record_id}</code>
        </span>
      </p>
      <Payload value={payloadOf(record)} />
    </div>
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
