import type { AuditEntryDocument } from '../access/audit.ts';
import type { LockoutDocument } from '../access/lockout.ts';
import type { ClaimTokenDocument, TokenDocument } from '../access/token.ts';
import type { ListColumns } from './column.ts';

export const tokenColumns = [
  { name: 'token_id' },
  { name: 'kind' },
  { name: 'name', label: 'Name' },
  { name: 'scopes', label: 'Scopes' },
  { name: 'fleet_id', label: 'Fleet', kind: 'id', none: 'all', isLesser: true },
  { name: 'last_used_at', label: 'Last used', kind: 'time', none: 'not since the start', isLesser: true },
  { name: 'expires_at', label: 'Expires', kind: 'time', none: 'never' },
  { name: 'expired' },
  { name: 'created_at', label: 'Made', kind: 'time', isPageOnly: true, isLesser: true },
] as const satisfies ListColumns<TokenDocument>;

/** Those of a token that is a session of the console. */
export const sessionColumns = [
  { name: 'name', label: 'Session of' },
  { name: 'scopes', label: 'Scopes' },
  { name: 'fleet_id', label: 'Fleet', kind: 'id', none: 'all', isLesser: true },
  { name: 'browser', label: 'From', none: 'not known' },
  { name: 'last_used_at', label: 'Last used', kind: 'time', none: 'not since the start' },
  { name: 'expires_at', label: 'Ends', kind: 'time', isLesser: true },
] as const satisfies ListColumns<TokenDocument>;

export const claimTokenColumns = [
  { name: 'claim_token_id' },
  { name: 'name', label: 'Name' },
  { name: 'devices_claimed', label: 'Claimed', kind: 'count' },
  { name: 'devices_max' },
  { name: 'id_pattern', label: 'Ids', none: 'any', isLesser: true },
  { name: 'tags', label: 'Tags', isLesser: true },
  { name: 'expires_at', label: 'Expires', kind: 'time', none: 'never' },
  { name: 'expired' },
  { name: 'created_at', label: 'Made', kind: 'time', isPageOnly: true, isLesser: true },
] as const satisfies ListColumns<ClaimTokenDocument>;

/** `POST devices/mail`: what was asked for, without what `about` says. */
export function requestText({ method, route }: AuditEntryDocument): string {
  const path = route.replace(/^\/admin\/v1\/(fleets\/:fleet_id\/?)?/, '').replaceAll(/\/?:\w+/g, '');
  return `${method} ${path || 'fleet'}`;
}

/** The facts of an entry, but for some. */
export function factsText({ about }: AuditEntryDocument, but: readonly string[] = []): string {
  const facts = Object.entries(about).filter(([key]) => !but.includes(key));
  return facts.map(([key, value]) => `${key}=${value}`).join(' ');
}

/** Who, what, about what, and how it ended. */
export const auditColumns = [
  { name: 'time', label: 'When', kind: 'word' },
  { name: 'by', label: 'Who', value: ({ by }) => by.name || by.kind.replaceAll('_', ' ') },
  { name: 'what', label: 'What', value: requestText },
  { name: 'about', label: 'About', value: (entry) => factsText(entry), isLesser: true },
  { name: 'status', label: 'Answer', kind: 'count', none: 'open' },
  { name: 'refusal', value: ({ error }) => error },
] as const satisfies ListColumns<AuditEntryDocument>;

export const lockoutColumns = [
  { name: 'fleet_id' },
  { name: 'device_id' },
  { name: 'address' },
  { name: 'until' },
] as const satisfies ListColumns<LockoutDocument>;
