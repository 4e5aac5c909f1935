import { formatUuid, generateUuid } from '../../core/uuid.ts';
import type { LogFollower } from '../records/log-follower.ts';
import type { Forwarder } from './declaration/forwarder.ts';
import { checkForwarder } from './declaration/forwarder-draft.ts';
import { mergedSecrets } from './declaration/forwarder-secrets.ts';
import type { Forwarders } from './declaration/forwarders.ts';
import { invalidForwarder } from './declaration/invalid-forwarder.ts';
import { checkSigningSecret, generateSigningSecret } from './declaration/signing-secret.ts';
import { kindOf } from './destinations/destinations.ts';
import type { DeclaredForwarder, ForwarderDraft, ForwarderStatus, ForwarderWork } from './forwarder-work.ts';

export interface ForwarderDeclarationOptions {
  config: { readonly forwardHosts: string };
  forwarders: Forwarders;
  follower: Pick<LogFollower, 'ends'>;
  /** Work of the leader, whichever node that is. */
  work: ForwarderWork;
}

/**
 * Declares forwarders for the admin API of any node. What is declared is so without the leader; its status is the
 * leader's, which acts on every declaration before it tells of it. Every method throws ApiError fleet_not_found or, but for
 * `put`, forwarder_not_found.
 */
export class ForwarderDeclarations {
  readonly #options: ForwarderDeclarationOptions;

  constructor(options: ForwarderDeclarationOptions) {
    this.#options = options;
  }

  /** `draft` may be called more than once. @throws ApiError invalid_forwarder, limit_reached. */
  async put(
    fleetId: string,
    name: string,
    draft: (known: Forwarder | undefined) => ForwarderDraft,
  ): Promise<DeclaredForwarder> {
    const { forwarders, follower, config, work } = this.#options;
    // Read before it is declared, so that no record is missed.
    const logEnds = await follower.ends();
    let generated: string | undefined;
    const { isNew } = await forwarders.put(fleetId, name, (known) => {
      const { settings, secrets, start } = draft(known);
      const kind = kindOf(settings.destination);
      // First: whether its secrets may stay is told by its origin, which only a valid one has.
      kind.check(settings.destination);
      const merged = mergedSecrets(settings.destination, secrets, known);
      generated = kind.isSigned && merged.signing.length === 0 ? generateSigningSecret() : undefined;
      const forwarder: Forwarder = {
        id: known?.id ?? formatUuid(generateUuid()),
        fleetId,
        name,
        createdAtMs: known?.createdAtMs ?? Date.now(),
        since: known?.since ?? (start === 'earliest' ? logEnds.map(() => 0) : logEnds),
        ...settings,
        secrets:
          generated === undefined
            ? merged
            : { ...merged, signing: [{ secret: generated, sinceMs: Date.now() }] },
      };
      checkForwarder(forwarder, forwarder.secrets, config.forwardHosts);
      return forwarder;
    });
    const status = await work.get(fleetId, name);
    return { status, isNew, secret: generated, warning: await work.unreachable(fleetId, name) };
  }

  /** Pauses or resumes it; a paused one keeps its cursors. */
  async change(fleetId: string, name: string, change: { enabled: boolean }): Promise<ForwarderStatus> {
    await this.#options.forwarders.change(fleetId, name, (known) => ({ ...known, ...change }));
    return this.#options.work.get(fleetId, name);
  }

  /** Deletes its cursors and dead letters too. */
  async delete(fleetId: string, name: string): Promise<void> {
    await this.#options.forwarders.delete(fleetId, name);
    await this.#inForce();
  }

  /**
   * Signs with another secret and, for `graceSeconds`, with the previous one too. Returns the new one.
   * @throws ApiError invalid_forwarder.
   */
  async rotateSecret(
    fleetId: string,
    name: string,
    input: string | undefined,
    graceSeconds: number,
  ): Promise<string> {
    const secret = input ?? generateSigningSecret();
    await this.#options.forwarders.change(fleetId, name, (known) => {
      if (!kindOf(known.destination).isSigned) {
        throw invalidForwarder('Only webhooks are signed: this forwarder has no signing secret.');
      }
      checkSigningSecret(secret);
      const [present] = known.secrets.signing;
      const sinceMs = Date.now();
      const untilMs = sinceMs + graceSeconds * 1_000;
      const before = present === undefined || graceSeconds === 0 ? [] : [{ ...present, untilMs }];
      return { ...known, secrets: { ...known.secrets, signing: [{ secret, sinceMs }, ...before] } };
    });
    await this.#inForce();
    return secret;
  }

  /**
   * Waits until the leader runs what is declared. Ignores failures: it is declared all the same, and without a leader
   * nothing runs.
   */
  async #inForce(): Promise<void> {
    await this.#options.work.followed().catch(() => {});
  }
}
