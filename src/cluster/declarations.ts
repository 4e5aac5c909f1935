import type { Config } from '../core/config.ts';
import type { Log } from '../core/log.ts';
import { Actions } from '../registry/actions.ts';
import { ClaimTokens } from '../registry/claim-tokens.ts';
import { Forwarders } from '../registry/forwarders.ts';
import { Registry } from '../registry/registry.ts';
import { Tokens } from '../registry/tokens.ts';
import { openRegistry } from './environments.ts';

/** What operators declare: fleets with their schemas, and what hangs on them, in one environment. */
export interface Declarations {
  registry: Registry;
  actions: Actions;
  forwarders: Forwarders;
  tokens: Tokens;
  claimTokens: ClaimTokens;
  /** Finishes changes that are under way. */
  close(): Promise<void>;
}

/** @throws OperatorError where a record that others need is damaged. */
export function openDeclarations(path: string, config: Config, log: Log): Declarations {
  const environment = openRegistry(path, config);
  const registry = new Registry(environment, config);
  const actions = new Actions(environment, registry, config);
  const forwarders = new Forwarders(environment, registry, config);
  const tokens = new Tokens(environment, config, (token) =>
    log.error({ token }, 'the record of an API token is damaged: it lets nobody in'),
  );
  const claimTokens = new ClaimTokens(environment, registry, config, (token) =>
    log.error({ token }, 'the record of a claim token is damaged: no device can claim with it'),
  );
  const close = async (): Promise<void> => {
    for (const part of [actions, forwarders, tokens, claimTokens]) await part.close();
    // With the environment, so last.
    await registry.close();
  };
  return { registry, actions, forwarders, tokens, claimTokens, close };
}
