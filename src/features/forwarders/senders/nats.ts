import { JetStreamApiError, type JetStreamClient, jetstream } from '@nats-io/jetstream';
import {
  type Authenticator,
  credsAuthenticator,
  errors,
  headers,
  type NatsConnection,
  NatsConnectionImpl,
  setTransportFactory,
} from '@nats-io/transport-node';
import { NodeTransport } from '@nats-io/transport-node/lib/node_transport.js';
import { deviceIdOf } from '../../../core/identity.ts';
import { formatUuid, generateUuid } from '../../../core/uuid.ts';
import type { StoredRecord } from '../../../domain/records/record.ts';
import { recordDocument } from '../../records/record-line.ts';
import { isAnyHostAllowed } from '../declaration/forward-hosts.ts';
import type { Forwarder, NatsDestination } from '../declaration/forwarder.ts';
import { addressesOf, errorCode, forbiddenAddressCode, forbiddenAddressReason } from './allowed-lookup.ts';
import { LinkedAbort } from './linked-abort.ts';
import type { Outcome, Sender, SendOptions } from './sender.ts';

/** JetStream's own number of a message that is larger than its stream takes. */
const messageTooLarge = 10_054;

/**
 * A message for every record. With JetStream each is acknowledged by the stream that keeps it, and carries an id by
 * which the stream drops one that comes again. The client does not reconnect by itself: the next attempt does, so that
 * nothing that has been given up is sent behind our back.
 */
export class NatsSender implements Sender {
  readonly #forwarder: Forwarder;
  readonly #destination: NatsDestination;
  #connecting: Promise<NatsConnection> | undefined;
  #isClosed = false;

  constructor(forwarder: Forwarder, destination: NatsDestination, forwardHosts: string) {
    this.#forwarder = forwarder;
    this.#destination = destination;
    const isNamed = !isAnyHostAllowed(forwardHosts);
    // As the library's own `connect` does, but for the addresses: it goes to those alone that are given here.
    setTransportFactory({
      factory: () => new NodeTransport(),
      dnsResolveFn: (host) => addressesOf(host, isNamed),
    });
  }

  async send(records: readonly StoredRecord[], stop: AbortSignal, how: SendOptions = {}): Promise<Outcome> {
    const { timeoutSeconds } = this.#forwarder;
    using ending = new LinkedAbort(stop, timeoutSeconds * 1_000);
    const ended = new Promise<never>((_, reject) => {
      ending.signal.addEventListener('abort', () => reject(new Error('ended')), { once: true });
    });
    try {
      const connection = await Promise.race([this.#connect(), ended]);
      const { max_payload: bytesMax = Number.POSITIVE_INFINITY } = connection.info ?? {};
      const documents = records.map(recordDocument);
      if (documents.some(({ length }) => length > bytesMax)) {
        return {
          result: 'refused',
          reason: 'The record is larger than the NATS server takes (max_payload).',
        };
      }
      await Promise.race([this.#publish(connection, records, documents, how, ending.signal), ended]);
      return { result: 'delivered' };
    } catch (error) {
      if (error instanceof JetStreamApiError && error.code === messageTooLarge) {
        return { result: 'refused', reason: 'The record is larger than the stream takes (max_msg_size).' };
      }
      const reason = ending.isLate
        ? `NATS has not acknowledged it within ${timeoutSeconds} seconds.`
        : reasonOf(error);
      return { result: 'failed', reason, ...(isAnswer(error) && { isAnswer: true }) };
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const connection = await this.#connecting?.catch(() => undefined);
    await connection?.close();
  }

  async #connect(): Promise<NatsConnection> {
    this.#connecting ??= this.#open().catch((error: unknown) => {
      this.#connecting = undefined;
      throw error;
    });
    return this.#connecting;
  }

  /** To the first server that can be had. */
  async #open(): Promise<NatsConnection> {
    const { servers } = this.#destination;
    const wantsTls =
      servers.some((server) => server.startsWith('tls:')) ||
      Object.keys(this.#forwarder.secrets.tls).length > 0;
    let failure: unknown;
    for (const server of servers) {
      if (this.#isClosed) break;
      try {
        return await this.#openTo(new URL(server), wantsTls);
      } catch (error) {
        failure = error;
      }
    }
    throw failure ?? new Error('closed');
  }

  async #openTo({ host, hostname }: URL, wantsTls: boolean): Promise<NatsConnection> {
    const { name, fleetId, secrets, timeoutSeconds } = this.#forwarder;
    // By itself the client would hold the certificate of a server that is given by its address against "localhost".
    const tls = { ...secrets.tls, host: hostname.replace(/^\[|\]$/g, '') };
    const connection = await NatsConnectionImpl.connect({
      name: `fleetpost ${fleetId} ${name}`,
      servers: host,
      reconnect: false,
      timeout: timeoutSeconds * 1_000,
      // Only where the operator said.
      ignoreClusterUpdates: true,
      ...authenticationOf(secrets.credentials),
      ...(wantsTls && { tls }),
    });
    const forget = (): void => {
      this.#connecting = undefined;
    };
    connection.closed().then(forget, forget);
    if (this.#isClosed) await connection.close();
    return connection;
  }

  async #publish(
    connection: NatsConnection,
    records: readonly StoredRecord[],
    documents: readonly Buffer[],
    how: SendOptions,
    signal: AbortSignal,
  ): Promise<void> {
    if (this.#destination.delivery === 'at-most-once') {
      for (const [index, record] of records.entries()) {
        connection.publish(this.#subjectOf(record), documents[index], { headers: this.#headersOf(record) });
      }
      await connection.flush();
      return;
    }
    const timeout = this.#forwarder.timeoutSeconds * 1_000;
    const stream = jetstream(connection, { timeout });
    const again = how.isAgain ? `.${formatUuid(generateUuid())}` : '';
    // Of each device one at a time: a later one must not be kept where an earlier one was not.
    const kept = await Promise.allSettled(
      byDevice(records).map(async (indexes) => {
        for (const index of indexes) {
          if (signal.aborted) return;
          const record = records[index] as StoredRecord;
          // With the forwarder's own: two of them may fill one stream with the same record.
          const msgID = `${this.#forwarder.id}.${formatUuid(record.id)}${again}`;
          await this.#keep(stream, record, documents[index] as Buffer, msgID);
        }
      }),
    );
    const failed = kept.find(({ status }) => status === 'rejected');
    if (failed?.status === 'rejected') throw failed.reason;
  }

  async #keep(stream: JetStreamClient, record: StoredRecord, document: Buffer, msgID: string): Promise<void> {
    await stream.publish(this.#subjectOf(record), document, {
      msgID,
      headers: this.#headersOf(record),
      retries: 0,
      timeout: this.#forwarder.timeoutSeconds * 1_000,
    });
  }

  #subjectOf({ device, kind, schema }: StoredRecord): string {
    const values: Record<string, string> = {
      fleet_id: this.#forwarder.fleetId,
      device_id: deviceIdOf(device),
      kind,
      schema,
    };
    return this.#destination.subject.replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? '');
  }

  #headersOf({ device }: StoredRecord) {
    const own = headers();
    own.set('Fleetpost-Fleet', this.#forwarder.fleetId);
    own.set('Fleetpost-Device', deviceIdOf(device));
    return own;
  }
}

/** Places of the records of each device, in order. */
function byDevice(records: readonly StoredRecord[]): number[][] {
  const devices = new Map<string, number[]>();
  for (const [index, { device }] of records.entries()) {
    const indexes = devices.get(device);
    if (indexes === undefined) devices.set(device, [index]);
    else indexes.push(index);
  }
  return [...devices.values()];
}

function authenticationOf(
  credentials: Forwarder['secrets']['credentials'],
): { token: string } | { user: string; pass: string } | { authenticator: Authenticator } | undefined {
  if (credentials === undefined) return undefined;
  if ('token' in credentials) return { token: credentials.token };
  if ('user' in credentials) return { user: credentials.user, pass: credentials.password };
  return { authenticator: credsAuthenticator(new TextEncoder().encode(credentials.creds)) };
}

/** Whether NATS was there and said it of what was published, so that another record may be taken. */
function isAnswer(error: unknown): boolean {
  return [error, (error as Error).cause].some(
    (cause) =>
      cause instanceof JetStreamApiError ||
      cause instanceof errors.PermissionViolationError ||
      (cause instanceof errors.RequestError && cause.isNoResponders()),
  );
}

/** Sentences of ours: what a server writes of an error is not shown. */
function reasonOf(error: unknown): string {
  const causes = [error, (error as Error).cause];
  const is = (kind: abstract new (...args: never[]) => Error): boolean =>
    causes.some((cause) => cause instanceof kind);
  if (causes.some((cause) => cause instanceof errors.RequestError && cause.isNoResponders())) {
    return 'No stream of JetStream takes this subject.';
  }
  if (is(errors.AuthorizationError) || is(errors.UserAuthenticationExpiredError)) {
    return 'NATS does not accept the credentials.';
  }
  if (is(errors.PermissionViolationError)) return 'NATS does not let these credentials publish there.';
  if (is(errors.TimeoutError)) return 'NATS has not answered in time.';
  if (error instanceof JetStreamApiError) return `The stream does not take it now (error ${error.code}).`;
  if (errorCode(error) === forbiddenAddressCode) return forbiddenAddressReason;
  return `NATS cannot be reached (${errorCode(error) ?? 'unknown'}).`;
}
