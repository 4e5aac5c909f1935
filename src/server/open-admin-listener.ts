import { AdminListener } from '../admin-api/server/admin-listener.ts';
import { Probe } from '../admin-api/server/probe.ts';
import { OperatorError } from '../core/errors.ts';
import { isLoopback, parseHostPort } from '../core/host-port.ts';
import type { Config } from './configuration/config.ts';
import type { Readiness } from './readiness.ts';

/** @throws OperatorError for an admin address that other machines can reach. */
export function checkAdminAddress({ admin }: Config): void {
  const { host } = parseHostPort(admin);
  if (isLoopback(host)) return;
  throw new OperatorError(
    `The admin API speaks plain HTTP and cannot listen on ${host}: keep it on 127.0.0.1 and reach it through a tunnel or a TLS proxy. Only health and metrics can be served elsewhere (probe).`,
  );
}

/** Opens before a reshard, which may take minutes, so that a port in use fails at once and health is answered meanwhile. */
export async function openAdminListener(config: Config, readiness: Readiness): Promise<AdminListener> {
  const reasons = () => readiness.reasons();
  const address = parseHostPort(config.admin);
  const probe =
    config.probe === ''
      ? undefined
      : await opened(config.probe, 'probe', () => Probe.open(parseHostPort(config.probe), config, reasons));
  try {
    return await opened(config.admin, 'the admin API', () =>
      AdminListener.open({ address, probe, config, reasons }),
    );
  } catch (error) {
    await probe?.close();
    throw error;
  }
}

async function opened<T>(address: string, what: string, open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch {
    throw new OperatorError(`Cannot listen on ${address} for ${what}. Is another server using it?`);
  }
}
