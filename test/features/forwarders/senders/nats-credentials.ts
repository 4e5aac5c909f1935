import { nkeys } from '@nats-io/transport-node';

/** Server settings that make it trust an operator, and the text of the credentials file of a user of that operator. */
export interface TrustedUser {
  /** Lines of the server's configuration file. */
  lines: readonly string[];
  creds: string;
}

type Keys = nkeys.KeyPair;

const unlimited = -1;
const accountLimits = {
  ...{ subs: unlimited, data: unlimited, payload: unlimited, conn: unlimited, leaf: unlimited },
  ...{ imports: unlimited, exports: unlimited, wildcards: true },
};
const streamLimits = {
  ...{ mem_storage: unlimited, disk_storage: unlimited, streams: unlimited, consumer: unlimited },
};

/** An operator, an account with JetStream, and a user of it, as `nsc` would make them. */
export function trustUser(): TrustedUser {
  const operator = nkeys.createOperator();
  const system = nkeys.createAccount();
  const account = nkeys.createAccount();
  const user = nkeys.createUser();
  const operatorToken = signed(operator, operator, { type: 'operator' });
  const systemToken = signed(operator, system, { type: 'account', limits: accountLimits });
  const limits = { ...accountLimits, ...streamLimits };
  const accountToken = signed(operator, account, { type: 'account', limits });
  const userToken = signed(account, user, {
    type: 'user',
    ...{ subs: unlimited, data: unlimited, payload: unlimited, pub: {}, sub: {} },
  });
  return {
    lines: [
      `operator: "${operatorToken}"`,
      `system_account: "${system.getPublicKey()}"`,
      'resolver: MEMORY',
      'resolver_preload: {',
      `  ${system.getPublicKey()}: "${systemToken}"`,
      `  ${account.getPublicKey()}: "${accountToken}"`,
      '}',
    ],
    creds: [
      '-----BEGIN NATS USER JWT-----',
      userToken,
      '------END NATS USER JWT------',
      '-----BEGIN USER NKEY SEED-----',
      Buffer.from(user.getSeed()).toString(),
      '------END USER NKEY SEED------',
      '',
    ].join('\n'),
  };
}

/** Signs the claims of `issuer` about `subject`, as a token (JWT) of NATS. */
function signed(issuer: Keys, subject: Keys, claims: object): string {
  const encode = (value: object | Uint8Array): string =>
    Buffer.from(value instanceof Uint8Array ? value : JSON.stringify(value)).toString('base64url');
  const iss = issuer.getPublicKey();
  const sub = subject.getPublicKey();
  const nowSeconds = Math.floor(Date.now() / 1_000);
  const said = { jti: sub, iat: nowSeconds, iss, sub, name: 'test', nats: { ...claims, version: 2 } };
  const text = `${encode({ typ: 'JWT', alg: 'ed25519-nkey' })}.${encode(said)}`;
  return `${text}.${encode(issuer.sign(Buffer.from(text)))}`;
}
