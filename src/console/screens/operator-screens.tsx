import { search } from '../page/router.ts';
import { AccessScreen } from './access/access.tsx';
import { BroadcastScreen } from './broadcasts/broadcast.tsx';
import { BroadcastsScreen } from './broadcasts/broadcasts.tsx';
import { ConsumerScreen } from './consumers/consumer.tsx';
import { ConsumersScreen } from './consumers/consumers.tsx';
import { ForwarderScreen } from './consumers/forwarder.tsx';
import { DeadLettersScreen } from './dead-letters/dead-letters.tsx';
import { RunLettersScreen } from './dead-letters/run-letters.tsx';
import { FleetScreen } from './fleet/fleet.tsx';
import { NotFound } from './not-found.tsx';
import { ServerScreen } from './server/server.tsx';

export { KeyList } from './keys/keys.tsx';
export { Palette } from './palette/palette.tsx';
export { SendDrawer } from './send/send.tsx';

/** The screens of whoever sets up and runs a fleet, in a file that is loaded when one of them is first opened. */
export function OperatorScreens({ parts }: { parts: readonly string[] }) {
  const [fleetId = '', screen, name] = parts;
  if (screen === 'broadcasts' && name === undefined) return <BroadcastsScreen fleetId={fleetId} />;
  if (screen === 'broadcasts' && name !== undefined)
    return <BroadcastScreen key={name} fleetId={fleetId} broadcastId={name} />;
  if (screen === 'consumers' && name === undefined) return <ConsumersScreen fleetId={fleetId} />;
  if (screen === 'consumers' && name !== undefined)
    return <ConsumerScreen key={name} fleetId={fleetId} name={name} />;
  if (screen === 'forwarders' && name !== undefined)
    return <ForwarderScreen key={name} fleetId={fleetId} name={name} />;
  const ofAction = search.value.get('action');
  if (screen === 'dead-letters' && ofAction !== null)
    return <RunLettersScreen key={ofAction} fleetId={fleetId} name={ofAction} />;
  if (screen === 'dead-letters') return <DeadLettersScreen fleetId={fleetId} />;
  if (screen === 'access') return <AccessScreen fleetId={fleetId} part={name} />;
  if (screen === 'fleet') return <FleetScreen key={fleetId} fleetId={fleetId} />;
  if (screen === 'server') return <ServerScreen fleetId={fleetId} />;
  return <NotFound />;
}
