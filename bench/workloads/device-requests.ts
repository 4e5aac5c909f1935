import type { DeviceRequest } from '../load/requests.ts';
import { datapointSchema, messageSchema, payloadOf } from '../servers/payload-schema.ts';

/** One kind of request, the same from every device. */
export interface Workload {
  /** Its name in the tables, and the NAME of `npm run bench -- NAME`. */
  name: string;
  about: string;
  request: DeviceRequest;
  /** That every answer must have. */
  status: number;
  /** True if the answer promises that something is stored. */
  isDurable: boolean;
  /** A mail waits in every mailbox. */
  hasMail: boolean;
  payloadBytes?: number;
}

export const payloadBytes = 100;
export const payload = payloadOf(payloadBytes);

export const heartbeat: Workload = {
  name: 'heartbeat',
  about: 'An authenticated heartbeat, answered with whether mail waits.',
  request: { method: 'POST', path: '/v1/heartbeat' },
  status: 201,
  isDurable: false,
  hasMail: false,
};

export const datapoint: Workload = {
  name: 'datapoint',
  about: 'A datapoint, checked against its schema and on disk before its 201.',
  request: { method: 'POST', path: `/v1/datapoint/${datapointSchema}`, body: payload },
  status: 201,
  isDurable: true,
  hasMail: false,
  payloadBytes,
};

export const datapointWithKey: Workload = {
  ...datapoint,
  name: 'datapoint-with-key',
  about: 'A datapoint with an Idempotency-Key, a fresh one each time.',
  request: { ...datapoint.request, isKeyed: true },
};

export const message: Workload = {
  ...datapoint,
  name: 'message',
  about: 'A message, checked against its schema and on disk before its 201.',
  request: { method: 'POST', path: `/v1/msg/${messageSchema}`, body: payload },
};

export const headNext: Workload = {
  name: 'head-next',
  about: 'HEAD of the next mail where one waits.',
  request: { method: 'HEAD', path: '/v1/mailbox/next' },
  status: 200,
  isDurable: false,
  hasMail: true,
};

export const getNext: Workload = {
  name: 'get-next',
  about: 'GET of the next mail where one waits.',
  request: { method: 'GET', path: '/v1/mailbox/next' },
  status: 200,
  isDurable: false,
  hasMail: true,
  payloadBytes,
};
