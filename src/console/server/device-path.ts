import { below, pathTo } from '../../contract/routes/path.ts';

/** Path of a device in the API. */
export function pathOfDevice(fleetId: string, deviceId: string) {
  return pathTo('/fleets/{fleet_id}/devices/{device_id}', { fleet_id: fleetId, device_id: deviceId });
}

/** Path of a mail, by its receipt. */
export function pathOfMail(fleetId: string, deviceId: string, mailId: string) {
  return below(pathOfDevice(fleetId, deviceId), '/mail/{mail_id}', { mail_id: mailId });
}
