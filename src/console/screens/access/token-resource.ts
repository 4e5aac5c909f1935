import type { TokenDocument } from '../../../contract/access/token.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { call } from '../../server/client.ts';
import { type Resource, useResource } from '../../server/resource.ts';

/** Says what a token may do, in few words. */
export function scopesText(scopes: TokenDocument['scopes']): string {
  return scopes.includes('admin') ? 'everything' : scopes.join(', ');
}

export const tokensPath = pathTo('/tokens', {});
const everySeconds = 10;
const pageMax = 1_000;

export interface ListedTokens {
  items: readonly TokenDocument[];
  /** Further ones were not read: a table holds no more. */
  isCut: boolean;
}

/** Tokens of one kind, newest first: at most as many as a table holds. */
export function useTokens(kind: TokenDocument['kind']): Resource<ListedTokens> {
  return useResource(`tokens ${kind}`, (signal) => readTokens(kind, signal), everySeconds);
}

async function readTokens(kind: TokenDocument['kind'], signal: AbortSignal): Promise<ListedTokens> {
  const first = await readPage('', signal);
  const second = first.next === null ? { items: [], next: null } : await readPage(first.next, signal);
  const items = [...first.items, ...second.items].filter((token) => token.kind === kind);
  return { items: items.reverse(), isCut: second.next !== null };
}

function readPage(after: string, signal: AbortSignal) {
  return call('GET', tokensPath, { query: { after, limit: pageMax }, signal });
}
