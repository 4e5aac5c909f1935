import { useState } from 'preact/hooks';
import { Act } from '../../parts/act.tsx';
import { madeSecret } from './made-secrets.ts';
import { Rotate } from './rotate.tsx';

/** Stands in commands for a secret that the page does not know. */
export const secretPlaceholder = 'FOS-…';

/** Says how to come to the secret of commands that have none; nothing where they have it. */
export function UnknownSecret({ fleetId, deviceId }: { fleetId: string; deviceId: string }) {
  const [isRotating, setRotating] = useState(false);
  const isKnown = madeSecret(fleetId, deviceId) !== undefined;
  return (
    <>
      {!isKnown && (
        <p class="inline">
          <span>
            Its secret was shown once, when it was made, and is not known here: put it in the place of{' '}
            <code>{secretPlaceholder}</code>, or make a new one.
          </span>
          <Act scope="provision" onClick={() => setRotating(true)}>
            Make a new secret
          </Act>
        </p>
      )}
      {isRotating && <Rotate fleetId={fleetId} deviceId={deviceId} onClose={() => setRotating(false)} />}
    </>
  );
}
