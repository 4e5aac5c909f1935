import { useState } from 'preact/hooks';
import type { BroadcastDocument } from '../../contract/broadcast.ts';
import { call } from './client.ts';
import { type Resource, useResource } from './resource.ts';

/** A broadcast, read each second until it has ended. */
export function useBroadcast(path: string): { broadcast: Resource<BroadcastDocument>; isEnded: boolean } {
  const [isEnded, setEnded] = useState(false);
  const broadcast = useResource(
    path,
    async (signal) => {
      const document = await call<BroadcastDocument>('GET', path, { signal });
      setEnded(document.ended_at !== null);
      return document;
    },
    isEnded ? undefined : 1,
  );
  return { broadcast, isEnded };
}
