import { Readable } from 'node:stream';
import type { FleetDocument } from '../../../contract/fleet.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { OperatorError } from '../../../core/errors.ts';
import { generateFleetId } from '../../../core/identity.ts';
import { simulatedDeviceId, simulatedSecret } from '../devices/simulated-identity.ts';
import { profileOf, type Scenario } from '../scenario/scenario.ts';
import type { AdminAccess } from './admin-access.ts';

const idPrefix = 'SIM';
const namePrefix = 'Simulation';
/** Devices of one piece of an import's body. */
const linesPerChunk = 1_000;

/** Makes a fleet of its own with the schemas of a scenario. @throws OperatorError */
export async function createSimulatedFleet(admin: AdminAccess, scenario: Scenario): Promise<string> {
  const fleetId = idPrefix + generateFleetId().slice(idPrefix.length);
  const name = `${namePrefix}: ${scenario.devices} devices, seed ${scenario.seed}`;
  await admin.request('POST', pathTo('/fleets', {}), { json: { fleet_id: fleetId, name } });
  for (const [kind, schemas] of Object.entries(scenario.schemas)) {
    for (const [schema, json] of Object.entries(schemas)) {
      const path = pathTo('/fleets/{fleet_id}/schemas/{kind}/{name}', {
        fleet_id: fleetId,
        kind,
        name: schema,
      });
      await admin.request('PUT', path, { json });
    }
  }
  return fleetId;
}

/** Imports the devices, with secrets that only this run can make. @throws OperatorError if one is refused. */
export async function importSimulatedDevices(
  admin: AdminAccess,
  fleetId: string,
  scenario: Scenario,
  salt: string,
): Promise<void> {
  function* lines(): Generator<string> {
    for (let first = 0; first < scenario.devices; first += linesPerChunk) {
      let chunk = '';
      const end = Math.min(first + linesPerChunk, scenario.devices);
      for (let device = first; device < end; device += 1) {
        const tag = scenario.names[profileOf(scenario, device)];
        const line = {
          device_id: simulatedDeviceId(device),
          secret: simulatedSecret(salt, device),
          tags: [tag],
        };
        chunk += `${JSON.stringify(line)}\n`;
      }
      yield chunk;
    }
  }
  const response = await admin.exchange(
    `/fleets/${fleetId}/devices:import`,
    'application/x-ndjson',
    Readable.from(lines()),
  );
  let created = 0;
  for await (const chunk of response.setEncoding('utf8')) {
    created += (chunk as string).split('"result":"created"').length - 1;
  }
  // A word may have come in two pieces.
  if (created < scenario.devices * 0.99)
    throw new OperatorError(`Of ${scenario.devices} devices only ${created} could be made.`);
}

/** Fleets that simulations have left. @throws OperatorError */
export async function simulatedFleets(admin: AdminAccess): Promise<FleetDocument[]> {
  const found: FleetDocument[] = [];
  for await (const { items } of admin.pages(pathTo('/fleets', {}))) {
    const own = items.filter(
      ({ fleet_id, name }) => fleet_id.startsWith(idPrefix) && name.startsWith(`${namePrefix}: `),
    );
    found.push(...own);
  }
  return found;
}

/** Removes a fleet with all that is in it. @throws OperatorError */
export async function removeSimulatedFleet(
  admin: AdminAccess,
  { fleet_id, name }: FleetDocument,
): Promise<void> {
  // Confirmed by its name, as a person would.
  await admin.request('DELETE', pathTo('/fleets/{fleet_id}', { fleet_id }), { query: { name } });
}
