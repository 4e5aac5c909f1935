import { AsyncLocalStorage } from 'node:async_hooks';
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
import { groupBy } from '../../../core/groups.ts';
import { deviceIdOf } from '../../../core/identity.ts';
import { formatUuid, generateUuid } from '../../../core/uuid.ts';
import type { StoredRecord } from '../../../domain/records/record.ts';
import { recordJson } from '../../records/record-line.ts';
import { isAnyHostAllowed } from '../declaration/forward-hosts.ts';
import type { Forwarder, NatsDestination } from '../declaration/forwarder.ts';
import { addressesOf, errorCode, forbiddenAddressCode, forbiddenAddressReason } from './allowed-lookup.ts';
import { isTooMuchReceived } from './bounded-socket.ts';
import { BoundedTransport } from './bounded-transport.ts';
import { LinkedAbort } from './linked-abort.ts';
import type { Outcome, Sender, SendOptions } from './sender.ts';

/** Whose connection is being made: the library's lookups are told the host only. */
const connectingFleet = new AsyncLocalStorage<string>();
/** JetStream error code: message larger than the stream accepts. */
const messageTooLarge = 10_054;

/**
 * Publishes a message per record. With JetStream the stream acknowledges each, and drops duplicates by its message id.
 * The client does not reconnect by itself, as it would resend abandoned messages: the next attempt reconnects.
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
    // As the library's own `connect` does, but restricted to the addresses resolved here.
    setTransportFactory({
      factory: () => new BoundedTransport(),
      dnsResolveFn: (host) => addressesOf(connectingFleet.getStore() ?? '', host, isNamed),
    });
  }

  async send(records: readonly StoredRecord[], stop: AbortSignal, how: SendOptions = {}): Promise<Outcome> {
    const { timeoutSeconds } = this.#forwarder;
    using linked = new LinkedAbort(stop, timeoutSeconds * 1_000);
    const ended = new Promise<never>((_, reject) => {
      linked.signal.addEventListener('abort', () => reject(new Error('ended')), { once: true });
    });
    try {
      const connection = await Promise.race([this.#connect(), ended]);
      const { max_payload: bytesMax = Number.POSITIVE_INFINITY } = connection.info ?? {};
      const documents = records.map(recordJson);
      if (documents.some(({ length }) => length > bytesMax)) {
        return {
          result: 'refused',
          reason: 'The record is larger than the NATS server accepts (max_payload).',
        };
      }
      await Promise.race([this.#publish(connection, records, documents, how, linked.signal), ended]);
      return { result: 'delivered' };
    } catch (error) {
      if (error instanceof JetStreamApiError && error.code === messageTooLarge) {
        return { result: 'refused', reason: 'The record is larger than the stream accepts (max_msg_size).' };
      }
      const reason = linked.isLate
        ? `NATS did not acknowledge within ${timeoutSeconds} seconds.`
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

  /** Connects to the first server that is reachable. */
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
    // Without `host` the client would check the certificate of a server given by address against "localhost".
    const tls = { ...secrets.tls, host: hostname.replace(/^\[|\]$/g, '') };
    const options = {
      name: `fleetpost ${fleetId} ${name}`,
      servers: host,
      reconnect: false,
      timeout: timeoutSeconds * 1_000,
      // Connect to the operator's servers only.
      ignoreClusterUpdates: true,
      ...authenticationOf(secrets.credentials),
      ...(wantsTls && { tls }),
    };
    const connection = await connectingFleet.run(fleetId, () => NatsConnectionImpl.connect(options));
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
    // One at a time per device: a later record must not be stored where an earlier one was not.
    const results = await Promise.allSettled(
      byDevice(records).map(async (indexes) => {
        for (const index of indexes) {
          if (signal.aborted) return;
          const record = records[index] as StoredRecord;
          // Includes the forwarder's id: two forwarders may publish the same record to one stream.
          const msgID = `${this.#forwarder.id}.${formatUuid(record.id)}${again}`;
          await this.#publishToStream(stream, record, documents[index] as Buffer, msgID);
        }
      }),
    );
    const failed = results.find(({ status }) => status === 'rejected');
    if (failed?.status === 'rejected') throw failed.reason;
  }

  async #publishToStream(
    stream: JetStreamClient,
    record: StoredRecord,
    document: Buffer,
    msgID: string,
  ): Promise<void> {
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

/** Groups the indexes of records by device, in order. */
function byDevice(records: readonly StoredRecord[]): number[][] {
  return [...groupBy(records.keys(), (index) => records[index]?.device).values()];
}

function authenticationOf(
  credentials: Forwarder['secrets']['credentials'],
): { token: string } | { user: string; pass: string } | { authenticator: Authenticator } | undefined {
  if (credentials === undefined) return undefined;
  if ('token' in credentials) return { token: credentials.token };
  if ('user' in credentials) return { user: credentials.user, pass: credentials.password };
  return { authenticator: credsAuthenticator(new TextEncoder().encode(credentials.creds)) };
}

/** True if NATS itself rejected what was published, so that it may accept another record. */
function isAnswer(error: unknown): boolean {
  return [error, (error as Error).cause].some(
    (cause) =>
      cause instanceof JetStreamApiError ||
      cause instanceof errors.PermissionViolationError ||
      (cause instanceof errors.RequestError && cause.isNoResponders()),
  );
}

/** Describes an error in our own words: a server's text is never shown. */
function reasonOf(error: unknown): string {
  const causes = [error, (error as Error).cause];
  const is = (kind: abstract new (...args: never[]) => Error): boolean =>
    causes.some((cause) => cause instanceof kind);
  if (causes.some((cause) => cause instanceof errors.RequestError && cause.isNoResponders())) {
    return 'No JetStream stream accepts this subject.';
  }
  if (is(errors.AuthorizationError) || is(errors.UserAuthenticationExpiredError)) {
    return 'NATS rejected the credentials.';
  }
  if (is(errors.PermissionViolationError))
    return 'NATS does not allow these credentials to publish to this subject.';
  if (isTooMuchReceived(errorCode(error))) return 'NATS sends more than it is asked for.';
  if (is(errors.TimeoutError)) return 'NATS did not answer in time.';
  if (error instanceof JetStreamApiError) return `The stream rejected it (error ${error.code}).`;
  if (errorCode(error) === forbiddenAddressCode) return forbiddenAddressReason;
  return `NATS is unreachable (${errorCode(error) ?? 'unknown'}).`;
}
