import type { Log } from '../../core/telemetry/log.ts';
import { ClaimTokens } from '../../declarations/claim-tokens.ts';
import { DeclaredHold } from '../../declarations/declared-hold.ts';
import { Registry } from '../../declarations/registry.ts';
import { Tokens } from '../../declarations/tokens.ts';
import { Actions } from '../../features/actions/declaration/actions.ts';
import { Forwarders } from '../../features/forwarders/declaration/forwarders.ts';
import type { StoredChange, TableStore } from '../../storage/tables/table-store.ts';
import type { RunningConfig } from '../configuration/config.ts';

/** The declarations, in tables of which every node has a copy. */
export interface Declarations {
  registry: Registry;
  tokens: Tokens;
  claimTokens: ClaimTokens;
  hold: DeclaredHold;
  actions: Actions;
  forwarders: Forwarders;
  /** Applies what another node has declared; settles when every thread of this one has it. */
  follow(changes: readonly StoredChange[]): Promise<void>;
  /** Finishes changes in flight and closes the tables. */
  close(): Promise<void>;
}

/** @throws OperatorError when a record that others depend on is damaged. */
export function openDeclarations(stored: TableStore, config: RunningConfig, log: Log): Declarations {
  const registry = new Registry(stored, config);
  const tokens = new Tokens(stored, config.settings, (token) =>
    log.error({ token }, 'API token record is damaged; token refused'),
  );
  const claimTokens = new ClaimTokens(stored, registry, config.settings, (token) =>
    log.error({ token }, 'claim token record is damaged; token refused'),
  );
  const hold = new DeclaredHold(stored);
  const actions = new Actions(stored, registry, config);
  const forwarders = new Forwarders(stored, registry, config);
  const follow = async (changes: readonly StoredChange[]): Promise<void> => {
    // First: what is declared with a hold waits for its release.
    hold.follow(changes);
    tokens.follow(changes);
    claimTokens.follow(changes);
    const published = registry.follow(changes);
    // The work that they make the leader do is not waited for here, where other changes would wait too.
    actions.follow(changes);
    forwarders.follow(changes);
    await published;
  };
  const close = async (): Promise<void> => {
    for (const part of [tokens, claimTokens, hold, actions, forwarders]) await part.close();
    // Last, because it closes the tables.
    await registry.close();
  };
  return { registry, tokens, claimTokens, hold, actions, forwarders, follow, close };
}
