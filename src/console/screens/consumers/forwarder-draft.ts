import { type DestinationField, destinationForm } from '../../../contract/destination-text.ts';
import type { ForwarderBody, ForwarderDocument } from '../../../contract/forwarder.ts';
import { wordsIn } from '../../forms/words.ts';
import { type FilterDraft, filterDraftOf } from './filter-draft.ts';

/** What is written in the form of a forwarder. Secrets are empty: the server has never shown them. */
export interface WrittenForwarder extends FilterDraft {
  name: string;
  type: ForwarderBody['type'];
  destination: Readonly<Record<DestinationField['member'], string>>;
  isAtMostOnce: boolean;
  start: NonNullable<ForwarderBody['start']>;
  recordsMax: string;
  lingerMilliseconds: string;
  timeoutSeconds: string;
  /** A header a line: `Authorization: Bearer …`. */
  headers: string;
  token: string;
  user: string;
  password: string;
  /** Text of a credentials file. */
  creds: string;
  ca: string;
  /** Secrets of the forwarder that are to be removed. */
  removed: readonly SecretMember[];
}
export type SecretMember = 'headers' | 'credentials' | 'tls';

/** The form of a new forwarder, or of one as it is. */
export function forwarderDraftOf(known: ForwarderDocument | undefined): WrittenForwarder {
  return {
    name: known?.name ?? '',
    type: known?.type ?? 'webhook',
    destination: {
      url: known?.url ?? '',
      servers: known?.servers?.join(', ') ?? '',
      subject: known?.subject ?? '',
    },
    isAtMostOnce: known?.delivery === 'at-most-once',
    ...filterDraftOf(known?.filter ?? {}),
    start: 'latest',
    recordsMax: String(known?.batch_records_max ?? 100),
    lingerMilliseconds: String(known?.linger_milliseconds ?? 0),
    timeoutSeconds: String(known?.timeout_seconds ?? 30),
    headers: '',
    token: '',
    user: '',
    password: '',
    creds: '',
    ca: '',
    removed: [],
  };
}

const namePattern = /^[A-Za-z0-9_-]{1,255}$/;
const headerPattern = /^([A-Za-z0-9!#$%&'*+.^_`|~-]{1,100})\s*:\s*([\x20-\x7e]*)$/;

/** A part of the form whose text is not taken, and why. */
export type DraftFaults = Partial<Record<keyof WrittenForwarder | DestinationField['member'], string>>;

/** Why a draft would be refused, as far as the page can know. Fields that are still empty are only incomplete. */
export function faultsOf(draft: WrittenForwarder): DraftFaults {
  const faults: DraftFaults = {};
  if (draft.name !== '' && !namePattern.test(draft.name)) faults.name = '1 to 255 letters, digits, _ and -';
  for (const { member, protocols } of destinationForm(draft.type).fields) {
    const fault = protocols && addressFault(draft.destination[member], protocols);
    if (fault !== undefined) faults[member] = fault;
  }
  const ranges = [
    ['recordsMax', 1, 1_000],
    ['lingerMilliseconds', 0, 60_000],
    ['timeoutSeconds', 1, 300],
  ] as const;
  for (const [member, least, most] of ranges) {
    if (!isWithin(draft[member], least, most))
      faults[member] = `A whole number from ${least} to ${most.toLocaleString('en')}`;
  }
  const { secrets } = destinationForm(draft.type);
  if (secrets === 'headers' && !headerLines(draft).every((line) => headerPattern.test(line)))
    faults.headers = 'A header a line, its name, a colon and its value';
  if (secrets === 'credentials' && waysIn(draft).length > 1)
    faults.token = 'A token, or a user with a password, or a credentials file';
  if (secrets === 'credentials' && (draft.user === '') !== (draft.password === ''))
    faults.user = 'A user and a password go together';
  if (draft.ca !== '' && !draft.ca.includes('-----BEGIN '))
    faults.ca = 'A certificate in PEM begins with -----BEGIN';
  return faults;
}

/** True once all that a forwarder cannot be without is written. */
export function isComplete({ name, type, destination }: WrittenForwarder): boolean {
  return (
    name !== '' &&
    destinationForm(type).fields.every(({ member, protocols }) => !protocols || destination[member] !== '')
  );
}

function addressFault(text: string, protocols: readonly string[]): string | undefined {
  const begins = `Begins with ${protocols.map((one) => `${one}//`).join(' or ')} and a host`;
  const isAddress = (word: string): boolean => {
    const url = URL.canParse(word) ? new URL(word) : undefined;
    return url !== undefined && protocols.includes(url.protocol) && url.hostname !== '';
  };
  if (!(wordsIn(text) ?? []).every(isAddress)) return begins;
  return /\/\/[^/]*@/.test(text) ? 'Has no user: all who may read see it' : undefined;
}

function isWithin(text: string, least: number, most: number): boolean {
  return /^\d{1,6}$/.test(text) && Number(text) >= least && Number(text) <= most;
}

function headerLines({ headers }: WrittenForwarder): string[] {
  return headers
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);
}

/** The ways that are written to be let in by NATS: one is right. */
function waysIn({
  token,
  user,
  password,
  creds,
}: WrittenForwarder): NonNullable<ForwarderBody['credentials']>[] {
  return [
    ...(token === '' ? [] : [{ token }]),
    ...(user === '' && password === '' ? [] : [{ user, password }]),
    ...(creds === '' ? [] : [{ creds }]),
  ];
}

/** Members of the request that say where to, by kind. */
const destinationBody: Readonly<
  Record<WrittenForwarder['type'], (draft: WrittenForwarder) => Partial<ForwarderBody>>
> = {
  webhook: ({ destination: { url } }) => ({ url }),
  nats: ({ destination: { servers, subject }, isAtMostOnce }) => ({
    servers: wordsIn(servers) ?? [],
    ...(subject !== '' && { subject }),
    delivery: isAtMostOnce ? 'at-most-once' : 'jetstream',
  }),
};

/** The request that declares it; what is not written of an existing one stays as it is. */
export function forwarderBodyOf(draft: WrittenForwarder, isNew: boolean): ForwarderBody {
  const { type, kinds, schemas, removed } = draft;
  const { secrets } = destinationForm(type);
  const headers = headerLines(draft).map((line) => headerPattern.exec(line)?.slice(1, 3) ?? []);
  const [credentials] = waysIn(draft);
  const isGone = (member: SecretMember): boolean => removed.includes(member);
  return {
    type,
    ...destinationBody[type](draft),
    filter: {
      ...(kinds.length > 0 && { kinds: [...kinds] }),
      ...(wordsIn(schemas) !== undefined && { schemas: wordsIn(schemas) ?? [] }),
    },
    ...(isNew && { start: draft.start }),
    batch_records_max: Number(draft.recordsMax),
    linger_milliseconds: Number(draft.lingerMilliseconds),
    timeout_seconds: Number(draft.timeoutSeconds),
    ...(secrets === 'headers' && headers.length > 0 && { headers: Object.fromEntries(headers) }),
    ...(secrets === 'credentials' && credentials !== undefined && { credentials }),
    ...(draft.ca !== '' && { tls: { ca: draft.ca } }),
    ...(isGone('headers') && { headers: null }),
    ...(isGone('credentials') && { credentials: null }),
    ...(isGone('tls') && { tls: null }),
  };
}
