import { useState } from 'preact/hooks';
import type { BroadcastMailDocument } from '../../../contract/broadcast.ts';
import { below } from '../../../contract/routes/path.ts';
import { Section } from '../../frame/frame.tsx';
import { Loaded } from '../../parts/banner.tsx';
import { Choice } from '../../parts/choice.tsx';
import { ReadNote } from '../../parts/moment.tsx';
import { call } from '../../server/client.ts';
import { useDocument } from '../../server/resource.ts';
import { DeviceRows } from './device-rows.tsx';
import type { OfBroadcastProps } from './refusals.tsx';
import { stateTexts, whyOf } from './why.ts';

type State = BroadcastMailDocument['state'];

const states = Object.keys(stateTexts) as State[];
/** The server counts afresh at most so often, however long that takes it. */
const everySeconds = 5;

/** Counts the states of the mail since it was queued, and lists the devices of each. */
export function Outcomes({ fleetId, path, broadcast }: OfBroadcastProps) {
  const [chosen, setChosen] = useState<State | undefined>();
  const outcomes = useDocument(
    broadcast.queued === 0 ? undefined : below(path, '/outcomes', {}),
    everySeconds,
  );
  const mails = below(path, '/mails', {});
  return (
    <Section
      title="What became of it"
      note={<ReadNote readAtMs={outcomes.readAtMs} failingSinceMs={outcomes.failingSinceMs} />}
    >
      {broadcast.queued === 0 ? (
        <p class="empty">No device has got it yet.</p>
      ) : (
        <Loaded resource={outcomes}>
          {(counts) => {
            const found = states.filter((state) => counts[state] > 0);
            const shown = chosen !== undefined && found.includes(chosen) ? chosen : found[0];
            return (
              <>
                {shown !== undefined && (
                  <>
                    <Choice
                      label="State of the mail"
                      value={shown}
                      options={found.map((state) => [
                        state,
                        `${stateTexts[state]} ${counts[state].toLocaleString('en')}`,
                      ])}
                      onChange={setChosen}
                    />
                    <DeviceRows<BroadcastMailDocument>
                      key={shown}
                      fleetId={fleetId}
                      path={mails}
                      read={(page, signal) =>
                        call('GET', mails, { query: { ...page, state: [shown] }, signal })
                      }
                      everySeconds={everySeconds}
                      placeOf={({ device_id, mail_id }) => ['devices', device_id, 'mail', mail_id]}
                      nameOf={({ device }) => device?.name ?? null}
                      textOf={whyOf}
                      command={`fleetpost broadcast mails ${broadcast.broadcast_id} --state ${shown} --fleet ${fleetId}`}
                    />
                  </>
                )}
              </>
            );
          }}
        </Loaded>
      )}
    </Section>
  );
}
