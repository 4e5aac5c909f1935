import type { deviceEndpointRoutes } from '../../contract/server.ts';
import type { Handlers } from '../request/routes.ts';

/** Where devices find this server, and the certificate that they have to be given. */
export interface DeviceEndpoint {
  url: string;
  /** Undefined where devices trust the server without it. */
  authorityFile: string | undefined;
}

interface Parts {
  /** `host`: the name by which the server was asked. */
  deviceEndpoint(host: string): DeviceEndpoint;
}

/** Handles `/device-endpoint`. */
export function deviceEndpointHandlers({ deviceEndpoint }: Parts): Handlers<typeof deviceEndpointRoutes> {
  return {
    'GET /device-endpoint': async ({ hostname }) => {
      const { url, authorityFile } = deviceEndpoint(hostname);
      return { url, ca_file: authorityFile ?? null };
    },
  };
}
