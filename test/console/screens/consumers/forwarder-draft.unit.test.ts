import { expect, it } from 'vitest';
import {
  faultsOf,
  forwarderBodyOf,
  forwarderDraftOf,
  isComplete,
  type WrittenForwarder,
} from '../../../../src/console/screens/consumers/forwarder-draft.ts';

const empty = forwarderDraftOf(undefined);
const webhook: WrittenForwarder = {
  ...empty,
  name: 'warehouse',
  destination: { ...empty.destination, url: 'https://warehouse.example/records' },
};
const nats: WrittenForwarder = {
  ...empty,
  name: 'bus',
  type: 'nats',
  destination: { ...empty.destination, servers: 'tls://a.example:4222, nats://b.example' },
};

it('what is not written yet is incomplete, and not wrong', () => {
  expect([isComplete(empty), faultsOf(empty)]).toEqual([false, {}]);
  expect([isComplete(webhook), faultsOf(webhook)]).toEqual([true, {}]);
  expect([isComplete(nats), faultsOf(nats)]).toEqual([true, {}]);
});

it.each([
  [{ ...webhook, name: 'a b' }, 'name', /letters, digits/],
  [{ ...webhook, destination: { ...webhook.destination, url: 'ftp://a' } }, 'url', /https:\/\/ or http:\/\//],
  [{ ...webhook, destination: { ...webhook.destination, url: 'https://' } }, 'url', /and a host/],
  [{ ...webhook, destination: { ...webhook.destination, url: 'https://me:x@a.example' } }, 'url', /no user/],
  [
    { ...nats, destination: { ...nats.destination, servers: 'tls://a, https://b' } },
    'servers',
    /tls:\/\/ or nats/,
  ],
  [{ ...webhook, headers: 'Authorization Bearer x' }, 'headers', /colon/],
  [{ ...webhook, timeoutSeconds: '301' }, 'timeoutSeconds', /1 to 300/],
  [{ ...webhook, recordsMax: '' }, 'recordsMax', /1 to 1,000/],
  [{ ...nats, token: 'x', creds: 'y' }, 'token', /A token, or/],
  [{ ...nats, user: 'me' }, 'user', /go together/],
  [{ ...webhook, ca: 'none' }, 'ca', /PEM/],
] as const)('what the server would refuse is said as it is written: %#', (draft, member, fault) => {
  expect(faultsOf(draft)[member]).toMatch(fault);
});

it('the request has what is written, and no member of another kind', () => {
  expect(forwarderBodyOf({ ...webhook, headers: 'X-Key: a: b\n\n', kinds: ['datapoint'] }, true)).toEqual({
    type: 'webhook',
    url: 'https://warehouse.example/records',
    filter: { kinds: ['datapoint'] },
    start: 'latest',
    batch_records_max: 100,
    linger_milliseconds: 0,
    timeout_seconds: 30,
    headers: { 'X-Key': 'a: b' },
  });
  expect(forwarderBodyOf({ ...nats, token: 't', schemas: 'a, b', removed: ['tls'] }, false)).toEqual({
    type: 'nats',
    servers: ['tls://a.example:4222', 'nats://b.example'],
    delivery: 'jetstream',
    filter: { schemas: ['a', 'b'] },
    batch_records_max: 100,
    linger_milliseconds: 0,
    timeout_seconds: 30,
    credentials: { token: 't' },
    tls: null,
  });
});
