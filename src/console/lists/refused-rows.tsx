import type { FleetRefusalDocument, RefusalDocument } from '../../contract/monitoring/refusal.ts';
import { DeviceLink } from '../parts/device.tsx';
import { ClockMoment, Moment } from '../parts/moment.tsx';
import { Untrusted } from '../parts/untrusted.tsx';

/** Why a device is refused, in words. */
export const refusalWords: Readonly<Record<FleetRefusalDocument['reason'], string>> = {
  wrong_secret: 'wrong secret',
  schema_mismatch: 'schema',
  rate_limited: 'too many requests',
  disabled: 'disabled',
  other: 'refused',
};

/** Why it was refused: where its body does not match, and what it had there. */
export function whyRefused({
  msg,
  path,
  path_msg,
  value,
}: Pick<RefusalDocument, 'msg' | 'path' | 'path_msg' | 'value'>): string {
  if (path_msg === null) return msg;
  return `${path || '/'} ${path_msg}${value === null ? '' : `; it was ${value}`}`;
}

/** Lists what devices are refused, the last one first: equal refusals of a device in one row. */
export function RefusedRows(props: {
  fleetId: string;
  items: readonly FleetRefusalDocument[];
  /** Set beside records, whose rows have the clock's time. */
  isLive?: boolean;
}) {
  const { fleetId, items, isLive = false } = props;
  return (
    <ul class="list">
      {items.map((one) => {
        const { device_id, route, name, error, reason, path, count, last_at, accepted_at } = one;
        return (
          <li key={[device_id, route, name, error, reason, path].join(' ')} class="row refused">
            <span class={`when small faint ${isLive ? 'is-clock' : ''}`}>
              {isLive ? <ClockMoment time={last_at} /> : <Moment time={last_at} />}
            </span>
            <DeviceLink fleetId={fleetId} id={device_id} />
            <span class="tag kind">{refusalWords[reason]}</span>
            {name !== null && (
              <span class="strong cut record-name">
                <Untrusted text={name} lengthMax={80} />
              </span>
            )}
            <span class="cut grow soft small">
              <Untrusted text={whyRefused(one)} lengthMax={200} />
            </span>
            {accepted_at !== null && accepted_at > last_at && <span class="small soft">accepted since</span>}
            {count > 1 && <span class="small soft">{count.toLocaleString('en')}×</span>}
          </li>
        );
      })}
    </ul>
  );
}
