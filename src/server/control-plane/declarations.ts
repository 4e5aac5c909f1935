import type { Log } from '../../core/telemetry/log.ts';
import { ClaimTokens } from '../../declarations/claim-tokens.ts';
import { DeclaredHold } from '../../declarations/declared-hold.ts';
import { Registry } from '../../declarations/registry.ts';
import { Tokens } from '../../declarations/tokens.ts';
import { Actions } from '../../features/actions/declaration/actions.ts';
import { Forwarders } from '../../features/forwarders/declaration/forwarders.ts';
import type { TableStore } from '../../storage/tables/table-store.ts';
import type { RunningConfig } from '../configuration/config.ts';

/** Declarations that every node needs to answer requests. */
export interface Declarations {
  registry: Registry;
  tokens: Tokens;
  claimTokens: ClaimTokens;
  hold: DeclaredHold;
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
  const close = async (): Promise<void> => {
    await tokens.close();
    await claimTokens.close();
    await hold.close();
    // Last, because it closes the tables.
    await registry.close();
  };
  return { registry, tokens, claimTokens, hold, close };
}

/** Declarations of background work, in the same tables; opened only where it runs. */
export interface DeclaredWork {
  actions: Actions;
  forwarders: Forwarders;
  /** Finishes changes in flight. */
  close(): Promise<void>;
}

/** @throws OperatorError when a record is damaged. */
export function openDeclaredWork(
  stored: TableStore,
  registry: Registry,
  config: RunningConfig,
): DeclaredWork {
  const actions = new Actions(stored, registry, config);
  const forwarders = new Forwarders(stored, registry, config);
  const close = async (): Promise<void> => {
    await actions.close();
    await forwarders.close();
  };
  return { actions, forwarders, close };
}
