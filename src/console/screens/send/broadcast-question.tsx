import { Confirm } from '../../forms/confirm.tsx';
import { SelectField } from '../../forms/field.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { type DeviceCount, devicesText } from '../devices/selection.ts';

/** A mail to so many is asked about once: it cannot be called back. */
export const askedFrom = 100;
/** From so many on a first part may be sent before the rest. */
const partedFrom = 20;

const number = (count: number): string => count.toLocaleString('en');

/** The share that it is, which of few devices is more than was asked for. */
function shareText(share: number): string {
  return share.toLocaleString('en', { style: 'percent', maximumFractionDigits: 1 }).replace('%', ' %');
}

/** How many there are, how many of them are not there now, and how many of them get it at first. */
export function Recipients(props: {
  count: DeviceCount | undefined;
  pauseAfter: string;
  onPauseAfter: (devices: string) => void;
}) {
  const { count, pauseAfter, onPauseAfter } = props;
  if (count === undefined) return <p class="soft">They are being counted…</p>;
  const { devices, offline } = count;
  const parts = [...new Set([0.01, 0.1].map((share) => Math.ceil(devices * share)))];
  return (
    <>
      <p>
        {devices === 0 ? 'None fits.' : `To ${devicesText(devices)}`}
        {offline !== undefined &&
          devices > 0 &&
          (offline === 0
            ? ', none of them offline.'
            : `, ${number(offline)} of them offline: they get it when they call, unless it has expired.`)}
      </p>
      {devices >= partedFrom && (
        <SelectField
          label="Begin with"
          value={pauseAfter}
          options={[
            ['', 'all of them'],
            ...parts.map(
              (first) =>
                [
                  String(first),
                  `the first ${number(first)} (${shareText(first / devices)}), then pause`,
                ] as const,
            ),
          ]}
          onChange={onPauseAfter}
        />
      )}
    </>
  );
}

/** `Send to 20,000 devices`, or to the first of them. */
export function sendText(count: DeviceCount | undefined, pauseAfter: string): string {
  if (count === undefined) return 'Send';
  const { devices } = count;
  return pauseAfter === ''
    ? `Send to ${devicesText(devices)}`
    : `Send to the first ${number(Number(pauseAfter))} of ${number(devices)}`;
}

/** Asks once before many devices get a mail. */
export function BroadcastQuestion(props: {
  name: string;
  whom: string;
  count: DeviceCount;
  pauseAfter: string;
  onSend: () => void;
  onClose: () => void;
}) {
  const { name, whom, count, pauseAfter, onSend, onClose } = props;
  return (
    <Confirm
      title={`Send ${name}?`}
      kind="main"
      isCareful
      verb={sendText(count, pauseAfter)}
      work={onSend}
      onClose={onClose}
    >
      It goes to <Untrusted text={whom} lengthMax={300} />: {devicesText(count.devices)}
      {count.offline !== undefined && count.offline > 0 && `, ${number(count.offline)} of them offline`}.{' '}
      {pauseAfter === ''
        ? 'What is in a mailbox already stays there if you cancel the broadcast.'
        : 'Then it pauses, until you resume it.'}
    </Confirm>
  );
}
