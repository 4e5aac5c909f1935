import { schemaNamePattern } from '../../../core/identity.ts';
import { hostsOf, kindOf } from '../destinations/destinations.ts';
import { clientKeyProblem } from './client-key.ts';
import { isHostAllowed } from './forward-hosts.ts';
import type { ForwarderFilter, ForwarderSecrets, ForwarderSettings, ForwarderTls } from './forwarder.ts';
import { invalidForwarder } from './invalid-forwarder.ts';

const schemasMax = 100;

/** @throws ApiError invalid_forwarder with the reason. */
export function checkForwarder(
  { destination, filter }: ForwarderSettings,
  secrets: ForwarderSecrets,
  forwardHosts: string,
): void {
  const kind = kindOf(destination);
  kind.check(destination);
  if (hostsOf(destination).some((host) => !isHostAllowed(host, forwardHosts))) {
    throw invalidForwarder('Forwarders may not send to this host: add it to forwardHosts.');
  }
  checkFilter(filter);
  kind.checkSecrets(secrets);
  checkTls(secrets.tls);
}

/** Refuses empty lists, which would never forward anything. */
function checkFilter({ kinds, schemas }: ForwarderFilter): void {
  if (kinds?.length === 0) throw invalidForwarder('A filter of kinds must name at least one.');
  if (schemas === undefined) return;
  if (schemas.length < 1 || schemas.length > schemasMax) {
    throw invalidForwarder(`A filter of schemas must name 1 to ${schemasMax} of them.`);
  }
  if (!schemas.every((schema) => schemaNamePattern.test(schema))) {
    throw invalidForwarder('A schema name in the filter must be 1 to 255 letters, digits, _ and -.');
  }
}

function checkTls(tls: ForwarderTls): void {
  if (tls.ca !== undefined && !tls.ca.includes('-----BEGIN '))
    throw invalidForwarder('TLS files must be PEM.');
  const problem = clientKeyProblem(tls);
  if (problem !== undefined) throw invalidForwarder(problem);
}
