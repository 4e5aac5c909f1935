import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { Authorization, Client, Order } from 'acme-client';
import { sleep } from '../../core/async.ts';
import { certificateHosts } from '../../core/config/tls.ts';
import { plainText } from '../../core/plain-text.ts';
import { AcmeError, directoryAdapter, type Problem, problemText } from './acme-directory.ts';
import type { AcmeTerms } from './acme-terms.ts';
import type { KeyedCertificate } from './authority.ts';
import { openChallengeListener } from './challenge-listener.ts';

/** Time for a whole order. Directories validate within seconds. */
const orderTimeoutSeconds = 180;
const pollMinMs = 500;
const pollMaxMs = 8_000;

export interface AcmeOrder {
  terms: AcmeTerms;
  /** PEM. The directory knows the account by it, and creates the account at the first order. */
  accountKey: string;
  signal: AbortSignal;
}

/** Creates a private key of an account, PEM. */
export async function createAccountKey(): Promise<string> {
  const { crypto } = await import('acme-client');
  return (await crypto.createPrivateEcdsaKey('P-256')).toString();
}

/**
 * Orders a certificate by HTTP-01 challenges. One order at a time.
 * @throws AcmeError saying what went wrong, or Error when it cannot listen for challenges.
 */
export async function orderCertificate({ terms, accountKey, signal }: AcmeOrder): Promise<KeyedCertificate> {
  const timeout = AbortSignal.timeout(orderTimeoutSeconds * 1_000);
  const ending = AbortSignal.any([signal, timeout]);
  try {
    return await order({ terms, accountKey, signal: ending });
  } catch (error) {
    if (!timeout.aborted) throw error;
    throw new AcmeError(`The ACME directory did not complete the order within ${orderTimeoutSeconds} s.`);
  }
}

async function order({ terms, accountKey, signal }: AcmeOrder): Promise<KeyedCertificate> {
  const { domains, directory, directoryCaFile, contact } = terms;
  // Imported here: servers without ACME do not load it.
  const { axios, Client, crypto } = await import('acme-client');
  // The library has no other place for it; one order at a time uses it.
  axios.defaults.adapter = directoryAdapter({ caFile: directoryCaFile, signal });
  const client = new Client({ directoryUrl: directory, accountKey });
  await client.createAccount({
    termsOfServiceAgreed: true,
    ...(contact !== '' && { contact: [`mailto:${contact}`] }),
  });
  const created = await client.createOrder({
    identifiers: domains.map((value) => ({ type: 'dns', value })),
  });
  await authorize(client, created, terms, signal);
  const readOrder = (): Promise<Order> => client.getOrder(created);
  const ready = await poll(readOrder, ({ status }) => status !== 'pending', signal);
  checkOrder(ready);
  const [key, request] = await crypto.createCsr(
    { altNames: [...domains] },
    await crypto.createPrivateEcdsaKey('P-256'),
  );
  await client.finalizeOrder(ready, request);
  const issued = await poll(readOrder, ({ status }) => status === 'valid' || status === 'invalid', signal);
  checkOrder(issued);
  return checkIssued({ certificate: await client.getCertificate(issued), key: key.toString() }, domains);
}

/** Answers the challenges of all domains that the directory wants to see again. */
async function authorize(
  client: Client,
  created: Order,
  terms: AcmeTerms,
  signal: AbortSignal,
): Promise<void> {
  const authorizations = await client.getAuthorizations(created);
  const challenges = authorizations.filter(({ status }) => status === 'pending').map(challengeOf);
  if (challenges.length === 0) return authorizations.forEach(checkAuthorization);
  const answers = new Map<string, string>();
  for (const challenge of challenges) {
    answers.set(challenge.token, await client.getChallengeKeyAuthorization(challenge));
  }
  const listener = await openChallengeListener(terms.listen, answers);
  try {
    for (const challenge of challenges) await client.completeChallenge(challenge);
    const isSettled = (all: Authorization[]): boolean => all.every(({ status }) => status !== 'pending');
    const settled = await poll(() => client.getAuthorizations(created), isSettled, signal);
    settled.forEach(checkAuthorization);
  } finally {
    await listener.close();
  }
}

function challengeOf({ identifier, challenges }: Authorization): Authorization['challenges'][number] {
  const challenge = challenges.find(({ type }) => type === 'http-01');
  if (challenge !== undefined) return challenge;
  throw new AcmeError(`The ACME directory has no HTTP-01 challenge for ${plainText(identifier.value)}.`);
}

/** @throws AcmeError if the directory has not seen the answer. */
function checkAuthorization({ status, identifier, challenges }: Authorization): void {
  if (status === 'valid') return;
  const failed = challenges.find(({ error }) => error !== undefined);
  const reason = failed === undefined ? status : problemText(failed.error as Problem);
  throw new AcmeError(
    `The ACME directory could not verify ${plainText(identifier.value)} over HTTP on port 80: ${reason}`,
  );
}

function checkOrder({ status, error }: Order): void {
  if (status !== 'invalid') return;
  throw new AcmeError(`The ACME directory refused the order: ${problemText((error ?? {}) as Problem)}`);
}

/** @throws AcmeError for a certificate that would not serve. */
function checkIssued(issued: KeyedCertificate, domains: readonly string[]): KeyedCertificate {
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(issued.certificate);
  } catch {
    throw new AcmeError('The ACME directory issued something that is no certificate.');
  }
  const hosts = certificateHosts(certificate);
  const isOurs = certificate.checkPrivateKey(createPrivateKey(issued.key));
  if (isOurs && domains.every((domain) => hosts.includes(domain))) return issued;
  throw new AcmeError('The ACME directory issued a certificate for another key or other names.');
}

/** Reads a state until it is settled. @throws the signal's reason. */
async function poll<T>(
  read: () => Promise<T>,
  isSettled: (state: T) => boolean,
  signal: AbortSignal,
): Promise<T> {
  for (let delayMs = pollMinMs; ; delayMs = Math.min(2 * delayMs, pollMaxMs)) {
    const state = await read();
    if (isSettled(state)) return state;
    await sleep(delayMs, signal);
    signal.throwIfAborted();
  }
}
