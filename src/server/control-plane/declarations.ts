import type { Log } from '../../core/telemetry/log.ts';
import { ClaimTokens } from '../../declarations/claim-tokens.ts';
import { Registry } from '../../declarations/registry.ts';
import { Tokens } from '../../declarations/tokens.ts';
import { Actions } from '../../features/actions/declaration/actions.ts';
import { Forwarders } from '../../features/forwarders/declaration/forwarders.ts';
import type { StoredTables } from '../../storage/lmdb/environment/stored-tables.ts';
import type { Config } from '../configuration/config.ts';

/** What operators declare, as far as every node answers requests by it. */
export interface Declarations {
  registry: Registry;
  tokens: Tokens;
  claimTokens: ClaimTokens;
  /** Finishes changes that are under way, and closes the tables. */
  close(): Promise<void>;
}

/** @throws OperatorError where a record that others need is damaged. */
export function openDeclarations(stored: StoredTables, config: Config, log: Log): Declarations {
  const registry = new Registry(stored, config);
  const tokens = new Tokens(stored, config, (token) =>
    log.error({ token }, 'the record of an API token is damaged: it lets nobody in'),
  );
  const claimTokens = new ClaimTokens(stored, registry, config, (token) =>
    log.error({ token }, 'the record of a claim token is damaged: no device can claim with it'),
  );
  const close = async (): Promise<void> => {
    await tokens.close();
    await claimTokens.close();
    // With the tables, so last.
    await registry.close();
  };
  return { registry, tokens, claimTokens, close };
}

/** What operators declare of work that goes on by itself, in the same tables: where it is done. */
export interface DeclaredWork {
  actions: Actions;
  forwarders: Forwarders;
  /** Finishes changes that are under way. */
  close(): Promise<void>;
}

/** @throws OperatorError where a record is damaged. */
export function openDeclaredWork(stored: StoredTables, registry: Registry, config: Config): DeclaredWork {
  const actions = new Actions(stored, registry, config);
  const forwarders = new Forwarders(stored, registry, config);
  const close = async (): Promise<void> => {
    await actions.close();
    await forwarders.close();
  };
  return { actions, forwarders, close };
}
