import type { ForwarderDocument } from '../../../contract/forwarder.ts';
import { Act } from '../../parts/act.tsx';
import { call } from '../../server/client.ts';
import { useSubmit } from '../../server/submit.ts';

export interface PauseForwarderProps {
  fleetId: string;
  forwarder: Pick<ForwarderDocument, 'name' | 'enabled'>;
  onDone: () => void;
}

/** Pauses a forwarder, which keeps its place in the logs, or lets it go on from there. */
export function PauseForwarder({ fleetId, forwarder, onDone }: PauseForwarderProps) {
  const { name, enabled } = forwarder;
  const { error, isBusy, submit } = useSubmit();
  const change = (): void =>
    void submit(() =>
      call('PATCH', `/fleets/${fleetId}/forwarders/${name}`, { body: { enabled: !enabled } }),
    ).then(onDone);
  const verb = enabled ? 'Pause' : 'Resume';
  return (
    <Act
      scope="admin"
      kind={enabled ? 'plain' : 'main'}
      onClick={change}
      unless={isBusy ? 'On its way' : undefined}
      title={error?.message ?? `${verb} ${name}`}
    >
      {error ? 'Failed; again' : verb}
    </Act>
  );
}
