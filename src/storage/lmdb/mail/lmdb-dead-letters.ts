import type { DeviceKey } from '../../../core/identity.ts';
import type {
  DeadLetter,
  DeadLetterFilter,
  DeadLetterWithPayload,
  LetterOrder,
} from '../../../domain/mail/ended-mail.ts';
import { ShardDeadLetters } from '../../../domain/mail/shard-mail.ts';
import type { Page } from '../../../domain/page.ts';
import type { Environment } from '../environment/environment.ts';
import type { Tables } from '../layout/tables.ts';
import type { WriteQueue } from '../shard/write-queue.ts';
import { readDeadLetter, readDeadLetters } from './read-dead-letters.ts';

/** The dead letters of a shard on LMDB. */
export class LmdbDeadLetters extends ShardDeadLetters {
  readonly #environment: Environment;
  readonly #tables: Tables;

  constructor(environment: Environment, tables: Tables, queue: WriteQueue) {
    super(queue);
    this.#environment = environment;
    this.#tables = tables;
  }

  list(
    fleetId: string,
    filter: DeadLetterFilter,
    after: string,
    limit: number,
    order: LetterOrder = 'oldest',
  ): Page<DeadLetter> {
    this.#environment.refresh();
    return readDeadLetters(this.#tables, fleetId, filter, after, limit, order);
  }

  get(device: DeviceKey, mailId: Uint8Array): DeadLetterWithPayload | undefined {
    this.#environment.refresh();
    return readDeadLetter(this.#tables, device, mailId);
  }
}
