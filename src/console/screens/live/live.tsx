import { useMemo, useState } from 'preact/hooks';
import { pathTo } from '../../../contract/routes/path.ts';
import { Screen } from '../../frame/frame.tsx';
import { useKeys } from '../../page/keys.ts';
import { search } from '../../page/router.ts';
import { Banner } from '../../parts/banner.tsx';
import { Icon } from '../../parts/icon.tsx';
import { RecordRows, StreamNotice } from '../../parts/record-rows.tsx';
import { parseSpan, serverNow } from '../../server/clock.ts';
import { useFollowedRecords } from '../../server/followed-records.ts';
import type { StreamedRecord } from '../../server/record-stream.ts';
import { ExportButton } from './export-button.tsx';
import { filterOf, type LiveFilter, LiveFilters } from './live-filters.tsx';
import { LiveRefused } from './live-refused.tsx';

/** More are read by nobody; the server says how many it has skipped. */
const recordsPerSecondMax = 500;

/** True if a record that was seen before the filter changed still fits it. */
function fits({ kind, schema, device, text }: LiveFilter, record: StreamedRecord): boolean {
  if (kind !== '' && record.kind !== kind) return false;
  if (schema !== '' && record.schema !== schema) return false;
  if (device !== '' && record.device_id !== device) return false;
  return text === '' || record.line.includes(text);
}

/** Records as they come, or what devices are refused. */
export function LiveScreen({ fleetId }: { fleetId: string }) {
  const filter = filterOf(search.value);
  return filter.kind === 'refused' ? (
    <LiveRefused fleetId={fleetId} filter={filter} />
  ) : (
    <LiveRecords fleetId={fleetId} filter={filter} />
  );
}

/** Records as they come. The filter is one for those to come and those that were seen. */
function LiveRecords({ fleetId, filter }: { fleetId: string; filter: LiveFilter }) {
  const [isPaused, setPaused] = useState(false);
  const { kind, schema, device, since } = filter;
  const isDevice = device === '' || /^[A-Za-z0-9]{10}$/.test(device);
  const spanMs = parseSpan(since);
  // A beginning of its own for each answer to "since": it must not move while the filter changes.
  const from = useMemo(
    () => (spanMs === undefined ? undefined : new Date(serverNow() - spanMs).toISOString()),
    [spanMs],
  );
  const query = {
    kind: kind || undefined,
    schema: schema || undefined,
    device: isDevice ? device || undefined : undefined,
    from,
    after: from === undefined ? 'latest' : undefined,
    follow: true,
    max_per_second: recordsPerSecondMax,
  };
  const stream = useFollowedRecords(fleetId, `${fleetId} ${since}`, query, isPaused);
  const shown = stream.records.filter((record) => fits(filter, record));
  useKeys({ ' ': () => setPaused(!isPaused), p: () => setPaused(!isPaused) });
  const flags = [kind && ['--kind', kind], schema && ['--schema', schema], device && ['--device', device]];
  return (
    <Screen
      title="Live"
      beside={<LiveState stream={stream} isPaused={isPaused} />}
      tools={
        <>
          <ExportButton fleetId={fleetId} kind={kind} schema={schema} device={device} span={since} />
          <button
            type="button"
            class="button"
            aria-pressed={isPaused}
            title="p"
            onClick={() => setPaused(!isPaused)}
          >
            <Icon name={isPaused ? 'play' : 'pause'} />
            {isPaused ? 'Follow' : 'Pause'}
          </button>
        </>
      }
      commands={[
        {
          command: [
            'tail',
            '--fleet',
            fleetId,
            ...flags.filter(Array.isArray).flat(),
            ...(since ? ['--since', since] : []),
          ],
          request: { path: pathTo('/fleets/{fleet_id}/records', { fleet_id: fleetId }), query },
        },
      ]}
    >
      <LiveFilters fleetId={fleetId} filter={filter} />
      {!isDevice && <Banner kind="warn">A device id is 10 letters or digits.</Banner>}
      <StreamNotice stream={stream} />
      {shown.length === 0 && stream.error === undefined && (
        <p class="empty">
          {stream.records.length === 0
            ? 'Records appear here as they are stored.'
            : `None of the ${stream.records.length} records that were seen fits.`}
        </p>
      )}
      <RecordRows fleetId={fleetId} records={shown} isLive />
    </Screen>
  );
}

function LiveState(props: { stream: ReturnType<typeof useFollowedRecords>; isPaused: boolean }) {
  const { stream, isPaused } = props;
  const { isOpen, skipped, unseen, records } = stream;
  const count = (one: number): string => one.toLocaleString('en');
  return (
    <span class="inline read" role="status">
      <span class={`state ${isOpen && !isPaused ? 'is-connected' : ''}`}>
        {isPaused ? `paused, ${count(unseen)} came since` : isOpen ? 'following' : 'not open'}
      </span>
      <span>{count(records.length)} kept</span>
      {skipped > 0 && <span class="warn">{count(skipped)} skipped</span>}
    </span>
  );
}
