/** A device of a Fleetpost server, for Node 18 or newer: datapoints, messages, heartbeats and a mailbox, over HTTPS. */
export {
  type ClientOptions as DeviceOptions,
  type ClientStatus as Status,
  DeviceClient as Device,
} from './device-client.ts';
export {
  ACK,
  type IncomingMail as Mail,
  type MailHandler,
  type MailVerb,
  REJECT,
  REQUEUE,
} from './mail-worker.ts';
