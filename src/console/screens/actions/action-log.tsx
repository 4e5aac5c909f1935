import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { below } from '../../../contract/routes/path.ts';
import { FilterText } from '../../lists/filters.tsx';
import { useKeys } from '../../page/keys.ts';
import { Banner, ErrorBanner } from '../../parts/banner.tsx';
import { DeviceLink } from '../../parts/device.tsx';
import { Icon } from '../../parts/icon.tsx';
import { visible } from '../../parts/untrusted.tsx';
import { exactText, hourText } from '../../server/clock.ts';
import { pathOfAction } from './action-path.ts';
import { type FollowedLog, useFollowedLog } from './followed-log.ts';
import { countText } from './health.ts';

/** Follows the log of an action. */
export function ActionLog({ fleetId, name }: { fleetId: string; name: string }) {
  const [isPaused, setPaused] = useState(false);
  const [text, setText] = useState('');
  const [device, setDevice] = useState('');
  useKeys({ p: () => setPaused(!isPaused), ' ': () => setPaused(!isPaused) });
  const isDevice = /^[A-Za-z0-9]{10}$/.test(device);
  const filter = { text: text || undefined, device: isDevice ? [device] : undefined };
  const log = useFollowedLog(below(pathOfAction(fleetId, name), '/logs', {}), filter, isPaused);
  const { lines, isRead, error, brokenSinceMs } = log;
  const isRefused = error !== undefined && error.status >= 400 && error.status < 500;
  return (
    <div class="stack">
      <LogFilter text={text} device={device} onText={setText} onDevice={setDevice}>
        <FollowState log={log} isPaused={isPaused} onPaused={setPaused} />
      </LogFilter>
      {device !== '' && !isDevice && <Banner kind="warn">A device id is 10 letters or digits.</Banner>}
      {isRefused && <ErrorBanner error={error} />}
      {!isRefused && brokenSinceMs !== undefined && (
        <Banner kind="warn">
          The log cannot be read since {hourText(brokenSinceMs)}; it is tried again. What is below is older.
        </Banner>
      )}
      {isRead && lines.length === 0 && (
        <p class="empty">
          {text === '' && !isDevice
            ? 'Nothing is logged yet. An action logs by fleet.log(…) or console.log(…).'
            : 'No line fits.'}
        </p>
      )}
      {!isRead && error === undefined && (
        <p class="waiting" role="status">
          Reading…
        </p>
      )}
      <LogLines fleetId={fleetId} lines={lines} />
    </div>
  );
}

interface LogFilterProps {
  text: string;
  device: string;
  onText: (text: string) => void;
  onDevice: (device: string) => void;
  children: ComponentChildren;
}

function LogFilter({ text, device, onText, onDevice, children }: LogFilterProps) {
  return (
    <div class="filters">
      <FilterText label="Text in it" value={text} lengthMax={1_000} onChange={onText} />
      <FilterText
        label="Device id"
        value={device}
        lengthMax={10}
        isMono
        onChange={(typed) => onDevice(typed.trim())}
      />
      {children}
    </div>
  );
}

interface FollowStateProps {
  log: FollowedLog;
  isPaused: boolean;
  onPaused: (isPaused: boolean) => void;
}

/** Says whether the log is followed, with the button that changes it. */
function FollowState({ log: { lines, skipped, error }, isPaused, onPaused }: FollowStateProps) {
  return (
    <>
      <span class="inline read" role="status">
        <span class={`state ${isPaused || error ? '' : 'is-connected'}`}>
          {isPaused ? 'paused' : error ? 'not followed' : 'following'}
        </span>
        <span>{countText(lines.length)} lines</span>
        {skipped > 0 && <span class="warn">{countText(skipped)} skipped</span>}
      </span>
      <button
        type="button"
        class="button"
        aria-pressed={isPaused}
        title="p"
        onClick={() => onPaused(!isPaused)}
      >
        <Icon name={isPaused ? 'play' : 'pause'} />
        {isPaused ? 'Follow' : 'Pause'}
      </button>
    </>
  );
}

function LogLines({ fleetId, lines }: { fleetId: string; lines: FollowedLog['lines'] }) {
  return (
    <ol class="log" aria-label="Log lines">
      {lines.map(({ line, at, device: from, run, text: said }) => (
        <li key={line}>
          <time class="faint" dateTime={at} title={exactText(at)}>
            {exactText(at).slice(11, 23)}
          </time>
          <DeviceLink fleetId={fleetId} id={from} />
          <span class="faint less">run {run}</span>
          <code>{visible(said.slice(0, 4_000))}</code>
        </li>
      ))}
    </ol>
  );
}
