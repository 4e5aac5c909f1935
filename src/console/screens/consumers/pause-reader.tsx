import type { Path } from '../../../contract/routes/path.ts';
import { Act } from '../../parts/act.tsx';
import { call } from '../../server/client.ts';
import { useSubmit } from '../../server/submit.ts';

export interface PauseReaderProps {
  /** Path of the forwarder or consumer in the API. */
  path: Path<'/fleets/{fleet_id}/consumers/{name}' | '/fleets/{fleet_id}/forwarders/{name}'>;
  reader: { name: string; enabled: boolean };
  onDone: () => void;
}

/** Pauses a forwarder or a consumer, which keeps its place in the logs, or lets it go on from there. */
export function PauseReader({ path, reader: { name, enabled }, onDone }: PauseReaderProps) {
  const { error, isBusy, submit } = useSubmit();
  const change = (): void =>
    void submit(() => call('PATCH', path, { body: { enabled: !enabled } })).then(onDone);
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
