import type { Destination, Forwarder, ForwarderSecrets, NatsDestination } from '../declaration/forwarder.ts';
import type { Sender } from '../senders/sender.ts';

/** Members of a request that make destinations, those of all kinds; undefined for those it does not have. */
export interface DestinationInput {
  url: string | undefined;
  servers: readonly string[] | undefined;
  subject: string | undefined;
  delivery: NatsDestination['delivery'] | undefined;
}

/** All that one kind of destination does in its own way. */
export interface DestinationKind<D extends Destination> {
  /** True if its forwarders have a signing secret, which is generated if none is given. */
  readonly isSigned: boolean;
  /** Protocols of its URLs, each with its port. */
  readonly ports: Readonly<Record<string, number>>;
  /**
   * Destination that a request declares; absent members stay as they are. @throws ApiError invalid_forwarder for
   * those of others.
   */
  declared(input: DestinationInput, known: D | undefined): D;
  urlsOf(destination: D): readonly string[];
  /** @throws ApiError invalid_forwarder. */
  check(destination: D): void;
  /** @throws ApiError invalid_forwarder, also for secrets that only other kinds have. */
  checkSecrets(secrets: ForwarderSecrets): void;
  /** Loads the library of the sender when the first forwarder needs it. */
  openSender(forwarder: Forwarder, destination: D, forwardHosts: string): Promise<Sender>;
}
