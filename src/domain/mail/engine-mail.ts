import type { DeviceKey } from '../../core/identity.ts';
import type { WriteSink } from '../write.ts';
import type { Broadcast, BroadcastOutcome } from './broadcast.ts';
import type {
  Enqueue,
  EnqueueOutcome,
  Replay,
  ReplayOutcome,
  Settle,
  SettleOutcome,
  Withdrawal,
} from './mail.ts';

/** The writes of mail, the same on every engine. */
export abstract class EngineMail {
  readonly #sink: WriteSink;

  constructor(sink: WriteSink) {
    this.#sink = sink;
  }

  enqueue(enqueue: Enqueue): Promise<EnqueueOutcome> {
    return this.#sink.write('enqueue', enqueue, enqueue.payload.length);
  }

  settle(settle: Settle): Promise<SettleOutcome> {
    return this.#sink.write('settle', settle);
  }

  withdraw(device: DeviceKey, mailId: Uint8Array): Promise<Withdrawal> {
    return this.#sink.write('withdrawMail', { device, mailId });
  }

  broadcast(broadcast: Broadcast): Promise<BroadcastOutcome> {
    return this.#sink.write('broadcast', broadcast, broadcast.mail.payload.length);
  }
}

/** The writes of dead letters, the same on every engine. */
export abstract class EngineDeadLetters {
  readonly #sink: WriteSink;

  constructor(sink: WriteSink) {
    this.#sink = sink;
  }

  replay(replay: Replay): Promise<ReplayOutcome> {
    return this.#sink.write('replayMail', replay);
  }

  drop(device: DeviceKey, mailId: Uint8Array): Promise<boolean> {
    return this.#sink.write('dropDeadLetter', { device, mailId });
  }
}
