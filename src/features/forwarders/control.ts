import { EventLoopBudget, Mutex } from '../../core/async.ts';
import { ApiError } from '../../core/errors.ts';
import { formatUuid, generateUuid } from '../../core/uuid.ts';
import type { Hold } from '../../domain/hold.ts';
import { type ForwarderDeadLetters, forwarderKey } from './dead-letters.ts';
import type { Forwarder } from './declaration/forwarder.ts';
import { checkForwarder, checkSigningSecret, parsedDestination } from './declaration/forwarder-draft.ts';
import { mergedSecrets } from './declaration/forwarder-secrets.ts';
import type { Forwarders } from './declaration/forwarders.ts';
import { generateSigningSecret } from './declaration/signing-secret.ts';
import type { Subscriptions } from './delivery/log-source.ts';
import type { Forwarding } from './forwarding.ts';
import { unreachableReason } from './senders/reachability.ts';
import type {
  DeclaredForwarder,
  ForwarderDraft,
  ForwarderService,
  ForwarderStatus,
  ForwarderTrial,
} from './service.ts';

export interface ForwarderServiceOptions {
  config: { readonly forwardHosts: string; readonly forwardDeadLettersMax: number };
  forwarders: Forwarders;
  forwarding: Forwarding;
  subscriptions: Subscriptions;
  letters: ForwarderDeadLetters;
  hold: Hold;
}

/** Serves forwarders to the admin API. */
export class LocalForwarderService implements ForwarderService {
  readonly #options: ForwarderServiceOptions;
  readonly #budget = new EventLoopBudget();
  readonly #changes = new Mutex();

  constructor(options: ForwarderServiceOptions) {
    this.#options = options;
  }

  async list(fleetId: string): Promise<ForwarderStatus[]> {
    return Promise.all(this.#options.forwarders.list(fleetId).map((one) => this.#status(one)));
  }

  async *all(): AsyncGenerator<ForwarderStatus> {
    const logEnds = await this.#options.subscriptions.logEnds();
    for (const forwarder of this.#options.forwarders.all()) {
      await this.#budget.take();
      yield this.#statusAt(forwarder, logEnds);
    }
  }

  async get(fleetId: string, name: string): Promise<ForwarderStatus> {
    return this.#status(this.#options.forwarders.get(fleetId, name));
  }

  async put(
    fleetId: string,
    name: string,
    { settings: input, secrets, start }: ForwarderDraft,
  ): Promise<DeclaredForwarder> {
    const declared = await this.#changes.run(async () => {
      const { forwarders, subscriptions, config } = this.#options;
      const settings = { ...input, destination: parsedDestination(input.destination) };
      const known = forwarders.find(fleetId, name);
      if (known === undefined) forwarders.checkNew(fleetId, name);
      const merged = mergedSecrets(settings.destination, secrets, known);
      const isSigned = settings.destination.type === 'webhook';
      const generated = isSigned && merged.signing.length === 0 ? generateSigningSecret() : undefined;
      const forwarder: Forwarder = {
        id: known?.id ?? formatUuid(generateUuid()),
        fleetId,
        name,
        createdAtMs: known?.createdAtMs ?? Date.now(),
        ...settings,
        secrets: generated === undefined ? merged : { ...merged, signing: [{ secret: generated }] },
      };
      checkForwarder(forwarder, forwarder.secrets, config.forwardHosts);
      // The subscription is durable before the forwarder, so that no record is missed.
      await subscriptions.put(forwarder, start);
      await forwarders.put(forwarder).catch(async (error: unknown) => {
        if (known === undefined) await subscriptions.delete(forwarder).catch(() => {});
        throw error;
      });
      await this.#restart(forwarder);
      return { status: await this.#status(forwarder), isNew: known === undefined, secret: generated };
    });
    // Outside of the lock: it may take some seconds.
    return {
      ...declared,
      warning: await unreachableReason(
        declared.status.forwarder.destination,
        this.#options.config.forwardHosts,
      ),
    };
  }

  test(fleetId: string, name: string): Promise<ForwarderTrial> {
    return this.#options.forwarding.test(this.#options.forwarders.get(fleetId, name));
  }

  change(fleetId: string, name: string, change: { enabled: boolean }): Promise<ForwarderStatus> {
    return this.#changes.run(async () => {
      const { forwarders } = this.#options;
      const forwarder = { ...forwarders.get(fleetId, name), ...change };
      await forwarders.put(forwarder);
      await this.#restart(forwarder);
      return this.#status(forwarder);
    });
  }

  delete(fleetId: string, name: string): Promise<void> {
    return this.#changes.run(async () => {
      const { forwarders, forwarding, subscriptions, letters } = this.#options;
      const forwarder = await forwarders.delete(fleetId, name);
      await forwarding.end(forwarder);
      forwarding.forget(forwarder);
      await letters.forget(forwarderKey(forwarder.id));
      // Last: by it the next start finds the rest of an interrupted deletion.
      await subscriptions.delete(forwarder);
    });
  }

  rotateSecret(
    fleetId: string,
    name: string,
    input: string | undefined,
    graceSeconds: number,
  ): Promise<string> {
    return this.#changes.run(async () => {
      const { forwarders } = this.#options;
      const known = forwarders.get(fleetId, name);
      if (known.destination.type !== 'webhook') {
        throw new ApiError('invalid_forwarder', {
          msg: 'Only webhooks are signed: this forwarder has no signing secret.',
        });
      }
      const secret = input ?? generateSigningSecret();
      checkSigningSecret(secret);
      const [present] = known.secrets.signing;
      const untilMs = Date.now() + graceSeconds * 1_000;
      const before = present === undefined || graceSeconds === 0 ? [] : [{ secret: present.secret, untilMs }];
      const forwarder = { ...known, secrets: { ...known.secrets, signing: [{ secret }, ...before] } };
      await forwarders.put(forwarder);
      await this.#restart(forwarder);
      return secret;
    });
  }

  async #status(forwarder: Forwarder): Promise<ForwarderStatus> {
    return this.#statusAt(forwarder, await this.#options.subscriptions.logEnds());
  }

  #statusAt(forwarder: Forwarder, logEnds: readonly number[]): ForwarderStatus {
    const { forwarding, subscriptions, letters, hold } = this.#options;
    const stats = forwarding.stats(forwarder);
    const { behind, lost } = subscriptions.open(forwarder)?.lag(logEnds) ?? { behind: 0, lost: 0 };
    return {
      forwarder,
      state: !forwarder.enabled
        ? 'paused'
        : hold.isHeld
          ? 'held'
          : stats.blocked > 0
            ? 'dead_letters_full'
            : stats.backingOff > 0
              ? 'backing_off'
              : 'running',
      behind,
      lost,
      deadLetters: letters.count(forwarderKey(forwarder.id)),
      counts: stats.counts,
      lastDeliveredAtMs: stats.lastDeliveredAtMs,
      lastError: stats.lastError,
    };
  }

  async #restart(forwarder: Forwarder): Promise<void> {
    await this.#options.forwarding.restart(forwarder);
  }
}
