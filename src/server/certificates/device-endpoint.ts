import type { DeviceEndpoint } from '../../admin-api/server/device-endpoint.ts';
import { bracketed, parseHostPort } from '../../core/address.ts';
import type { RunningConfig } from '../configuration/config.ts';
import { certificateFiles } from './certificate.ts';
import { authorityFileOf, hostToName, isNamed } from './certificate-content.ts';

export interface Listening {
  config: RunningConfig;
  tlsFolder: string;
  /** The one that was taken, if any was asked for. */
  port: number;
}

/** Says where devices find this server, by the name that it was asked by if its certificate has that. */
export function deviceEndpointOf({ config, tlsFolder, port }: Listening, askedHost: string): DeviceEndpoint {
  const { certFile } = certificateFiles(config, tlsFolder);
  const { publicUrl } = config.settings.current;
  if (publicUrl !== '') {
    // In front of the server may stand another certificate.
    const isOwn = isNamed(certFile, new URL(publicUrl).hostname);
    return { url: publicUrl, authorityFile: isOwn ? authorityFileOf(certFile) : undefined };
  }
  const { host } = parseHostPort(config.listen);
  const isAny = host === '0.0.0.0' || host === '::';
  const name = isAny && isNamed(certFile, askedHost) ? askedHost : hostToName(host, certFile);
  return { url: `https://${bracketed(name)}:${port}`, authorityFile: authorityFileOf(certFile) };
}
