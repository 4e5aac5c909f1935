import type { AuditEntryDocument } from '../access/audit.ts';
import type { AdminRoutes } from '../routes/admin-routes.ts';

type Change = Extract<keyof AdminRoutes, `${'POST' | 'PUT' | 'PATCH' | 'DELETE'} ${string}`>;

/** What each route does, as one would say it; in braces what an entry says it is about, left out where it does not. */
const words: Partial<Record<Change, string>> = {
  'POST /tokens': 'make the token {name} ({scopes})',
  'DELETE /tokens/{token_id}': 'revoke the token {name}',
  'POST /console-codes': 'make a login code ({scopes})',
  'POST /console-sessions': 'log in to the console',
  'DELETE /self': 'log out of the console',
  'DELETE /lockouts': 'lift lockouts',
  'POST /backup': 'take a backup',
  'DELETE /hold': 'release what the server holds',
  'POST /fleets': 'make a fleet',
  'PATCH /fleets/{fleet_id}': 'change the fleet {fleet_id}',
  'DELETE /fleets/{fleet_id}': 'delete the fleet {fleet_id}',
  'POST /fleets/{fleet_id}/devices': 'make the device {device_id}',
  'PATCH /fleets/{fleet_id}/devices/{device_id}': 'change the device {device_id}',
  'DELETE /fleets/{fleet_id}/devices/{device_id}': 'delete the device {device_id}',
  'POST /fleets/{fleet_id}/devices/{device_id}/rotate-secret': 'rotate the secret of {device_id}',
  'POST /fleets/{fleet_id}/devices:change': 'change many devices ({changed})',
  'POST /fleets/{fleet_id}/devices:import': 'import devices',
  'POST /fleets/{fleet_id}/devices/{device_id}/mail/{name}': 'send {name} to {device_id}',
  'DELETE /fleets/{fleet_id}/devices/{device_id}/mail/{mail_id}': 'withdraw a mail of {device_id}',
  'POST /fleets/{fleet_id}/dead-letters:replay': 'replay dead letters',
  'POST /fleets/{fleet_id}/dead-letters:drop': 'drop dead letters',
  'POST /fleets/{fleet_id}/broadcasts': 'start a broadcast',
  'DELETE /fleets/{fleet_id}/broadcasts/{broadcast_id}': 'delete a broadcast',
  'POST /fleets/{fleet_id}/broadcasts/{broadcast_id}/cancel': 'cancel a broadcast',
  'POST /fleets/{fleet_id}/broadcasts/{broadcast_id}/pause': 'pause a broadcast',
  'POST /fleets/{fleet_id}/broadcasts/{broadcast_id}/resume': 'resume a broadcast',
  'POST /fleets/{fleet_id}/claim-tokens': 'make a claim token',
  'DELETE /fleets/{fleet_id}/claim-tokens/{claim_token_id}': 'revoke a claim token',
  'PUT /fleets/{fleet_id}/schemas/{kind}/{name}': 'store the {kind} schema {name}',
  'DELETE /fleets/{fleet_id}/schemas/{kind}/{name}': 'delete the {kind} schema {name}',
  'PUT /fleets/{fleet_id}/actions/{name}': 'deploy the action {name}',
  'PATCH /fleets/{fleet_id}/actions/{name}': 'change the action {name}',
  'DELETE /fleets/{fleet_id}/actions/{name}': 'delete the action {name}',
  'POST /fleets/{fleet_id}/actions/{name}/rollback': 'roll back the action {name}',
  'POST /fleets/{fleet_id}/actions/{name}/test': 'try the action {name}',
  'POST /fleets/{fleet_id}/actions/{name}/dead-letters/replay':
    'replay {replayed} dead letters of the action {name}',
  'POST /fleets/{fleet_id}/actions/{name}/dead-letters/{run}/replay':
    'replay a dead letter of the action {name}',
  'DELETE /fleets/{fleet_id}/actions/{name}/dead-letters': 'drop {dropped} dead letters of the action {name}',
  'DELETE /fleets/{fleet_id}/actions/{name}/dead-letters/{run}': 'drop a dead letter of the action {name}',
  'DELETE /fleets/{fleet_id}/actions/{name}/state': 'delete the state of the action {name}',
  'PUT /fleets/{fleet_id}/actions/{name}/state/value': 'set {key} in the state of the action {name}',
  'DELETE /fleets/{fleet_id}/actions/{name}/state/value': 'delete {key} from the state of the action {name}',
  'PUT /fleets/{fleet_id}/consumers/{name}': 'declare the consumer {name}',
  'PATCH /fleets/{fleet_id}/consumers/{name}': 'change the consumer {name}',
  'DELETE /fleets/{fleet_id}/consumers/{name}': 'delete the consumer {name}',
  'PUT /fleets/{fleet_id}/forwarders/{name}': 'declare the forwarder {name}',
  'PATCH /fleets/{fleet_id}/forwarders/{name}': 'change the forwarder {name}',
  'DELETE /fleets/{fleet_id}/forwarders/{name}': 'delete the forwarder {name}',
  'POST /fleets/{fleet_id}/forwarders/{name}/test': 'test the forwarder {name}',
  'POST /fleets/{fleet_id}/forwarders/{name}/rotate-secret': 'rotate the secret of the forwarder {name}',
  'POST /fleets/{fleet_id}/forwarders/{name}/dead-letters/replay':
    'replay {replayed} dead letters of the forwarder {name}',
  'POST /fleets/{fleet_id}/forwarders/{name}/dead-letters/{record_id}/replay':
    'replay a dead letter of the forwarder {name}',
  'DELETE /fleets/{fleet_id}/forwarders/{name}/dead-letters':
    'drop {dropped} dead letters of the forwarder {name}',
  'DELETE /fleets/{fleet_id}/forwarders/{name}/dead-letters/{record_id}':
    'drop a dead letter of the forwarder {name}',
};

/** Past forms that do not end in `ed`. */
const irregular: Readonly<Record<string, string>> = {
  make: 'made',
  take: 'took',
  send: 'sent',
  set: 'set',
  withdraw: 'withdrew',
  drop: 'dropped',
  try: 'tried',
  log: 'logged',
  cancel: 'cancelled',
};

function pastOf(sentence: string): string {
  const [verb = '', ...rest] = sentence.split(' ');
  const past = irregular[verb] ?? (verb.endsWith('e') ? `${verb}d` : `${verb}ed`);
  return [past, ...rest].join(' ');
}

/** An entry in words. */
export interface AuditWords {
  sentence: string;
  /** Members of `about` that are in the sentence. */
  said: readonly string[];
}

/** Says what somebody did, or tried to; undefined for what is no change. */
export function auditWords({ method, route, about, status }: AuditEntryDocument): AuditWords | undefined {
  const path = route.replace(/^\/admin\/v1/, '').replaceAll(/\/:(\w+)/g, '/{$1}');
  const template = words[`${method} ${path}` as Change];
  if (template === undefined) return undefined;
  const said: string[] = [];
  const sentence = template.replaceAll(/ ?\(\{(\w+)\}\)| ?\{(\w+)\}/g, (part, inBrackets, bare) => {
    const name = String(inBrackets ?? bare);
    const value = about[name];
    if (value === undefined) return '';
    said.push(name);
    return part.replace(`{${name}}`, String(value));
  });
  if (status === null) return { sentence: `began to ${sentence}`, said };
  return { sentence: status < 400 ? pastOf(sentence) : `tried to ${sentence}`, said };
}
