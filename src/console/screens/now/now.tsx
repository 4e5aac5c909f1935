import { pathTo } from '../../../contract/routes/path.ts';
import { Head } from '../../frame/frame.tsx';
import { useKeys } from '../../page/keys.ts';
import { Act } from '../../parts/act.tsx';
import { Loaded } from '../../parts/banner.tsx';
import { Commands } from '../../parts/commands.tsx';
import { Icon } from '../../parts/icon.tsx';
import { useDocument } from '../../server/resource.ts';
import { QueryBar } from '../devices/query-bar.tsx';
import { sendTo } from '../send/send-to.ts';
import { Attention } from './attention.tsx';
import { Figures } from './figures.tsx';
import { FirstSteps } from './first-steps.tsx';
import { Pulse } from './pulse-charts.tsx';

/** The first screen: find a device, see how many are well, and what is not. */
export function NowScreen({ fleetId }: { fleetId: string }) {
  const path = pathTo('/fleets/{fleet_id}/counts', { fleet_id: fleetId });
  const counts = useDocument(path, 5);
  const isNew = counts.value !== undefined && counts.value.devices <= 1;
  const send = (): void => {
    sendTo.value = { deviceId: '' };
  };
  useKeys({ s: send });
  return (
    <>
      <Head
        title="Now"
        read={counts}
        tools={
          <Act scope="mail" kind="main" onClick={send}>
            <Icon name="send" />
            Send mail <kbd>s</kbd>
          </Act>
        }
      />
      <div class="body">
        <QueryBar fleetId={fleetId} text="" isLarge />
        <Loaded resource={counts}>{(document) => <Figures fleetId={fleetId} counts={document} />}</Loaded>
        <div class="columns">
          <div>
            {isNew && <FirstSteps fleetId={fleetId} onMade={counts.refresh} />}
            <Attention fleetId={fleetId} />
          </div>
          <div>
            <Pulse fleetId={fleetId} />
          </div>
        </div>
      </div>
      <Commands command={['fleet', 'count', fleetId]} request={{ path }} />
    </>
  );
}
