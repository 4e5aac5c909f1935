import { randomBytes, webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import { AsnConvert } from '@peculiar/asn1-schema';
import { GeneralName, GeneralSubtree, GeneralSubtrees, NameConstraints } from '@peculiar/asn1-x509';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  Extension,
  type JsonGeneralName,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const nameConstraintsId = '2.5.29.30';
/** Certificates begin a day ago: the clock of a device may be behind. */
const earlierMs = 86_400_000;

/** A certificate with its private key, both PEM. */
export interface KeyedCertificate {
  certificate: string;
  key: string;
}

/** Terms of a self-made certificate. */
export interface CertificateTerms {
  /** Host names, also `*.` with a domain, and IP addresses. */
  hosts: readonly string[];
  days: number;
}

/** Creates a certificate for these hosts that nobody else has signed, and that is no authority: for loopback. */
export async function createSelfSigned(terms: CertificateTerms): Promise<KeyedCertificate> {
  const keys = await generateKeys();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    ...validity(terms.days),
    name: subjectOf(commonNameOf(terms.hosts)),
    keys,
    signingAlgorithm: algorithm,
    extensions: serverExtensions(terms.hosts),
  });
  return { certificate: certificate.toString('pem'), key: await pemOf(keys.privateKey) };
}

/**
 * Creates an authority that can sign for these hosts alone (RFC 5280, 4.2.1.10). The constraint is not critical,
 * against that RFC: Mbed TLS, which many devices have, refuses a chain with a critical extension that it does not know.
 */
export async function createAuthority({ hosts, days }: CertificateTerms): Promise<KeyedCertificate> {
  const keys = await generateKeys();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    ...validity(days),
    name: subjectOf(`Fleetpost CA ${randomBytes(4).toString('hex')}`),
    keys,
    signingAlgorithm: algorithm,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      new Extension(nameConstraintsId, false, AsnConvert.serialize(constraintsOf(hosts))),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certificate: certificate.toString('pem'), key: await pemOf(keys.privateKey) };
}

/** Creates a server's certificate, signed by the authority. It ends no later than that. */
export async function createServerCertificate(
  authority: KeyedCertificate,
  { hosts, days }: CertificateTerms,
): Promise<KeyedCertificate> {
  const keys = await generateKeys();
  const issuer = new X509Certificate(authority.certificate);
  const { notBefore, notAfter } = validity(days);
  const signingKey = await webcrypto.subtle.importKey(
    'pkcs8',
    PemConverter.decodeFirst(authority.key),
    algorithm,
    false,
    ['sign'],
  );
  const certificate = await X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    notBefore,
    notAfter: notAfter < issuer.notAfter ? notAfter : issuer.notAfter,
    subject: subjectOf(commonNameOf(hosts)),
    issuer: issuer.subject,
    publicKey: keys.publicKey,
    signingKey,
    signingAlgorithm: algorithm,
    extensions: [...serverExtensions(hosts), await AuthorityKeyIdentifierExtension.create(issuer)],
  });
  return { certificate: certificate.toString('pem'), key: await pemOf(keys.privateKey) };
}

function generateKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
}

function validity(days: number): { notBefore: Date; notAfter: Date; serialNumber: string } {
  const now = Date.now();
  return {
    notBefore: new Date(now - earlierMs),
    notAfter: new Date(now + days * 86_400_000),
    serialNumber: serialNumber(),
  };
}

/** Positive: its first bit is 0. */
function serialNumber(): string {
  return `01${randomBytes(15).toString('hex')}`;
}

/**
 * Never an address: where a certificate names no host, OpenSSL takes its common name for one, which the constraints of
 * the authority do not permit. A blank is in no host name.
 */
function commonNameOf(hosts: readonly string[]): string {
  return hosts.find((host) => isIP(host) === 0) ?? 'Fleetpost server';
}

function subjectOf(commonName: string): { CN: string[] }[] {
  return [{ CN: [commonName] }];
}

function serverExtensions(hosts: readonly string[]): Extension[] {
  const names = hosts.map(
    (host): JsonGeneralName => ({ type: isIP(host) === 0 ? 'dns' : 'ip', value: host }),
  );
  return [
    new BasicConstraintsExtension(false, undefined, true),
    new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
    new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
    new SubjectAlternativeNameExtension(names),
  ];
}

/** A name is permitted with those below it; an address alone. Of the kind that has none, one that nobody has. */
function constraintsOf(hosts: readonly string[]): NameConstraints {
  const names = hosts.filter((host) => isIP(host) === 0).map((host) => host.replace(/^\*\./, ''));
  const addresses = hosts.flatMap((host) => {
    const family = isIP(host);
    return family === 0 ? [] : [`${host}/${family === 4 ? 32 : 128}`];
  });
  const bases = [
    ...(names.length > 0 ? names : ['invalid']).map((dNSName) => new GeneralName({ dNSName })),
    ...(addresses.length > 0 ? addresses : ['0.0.0.0/32']).map((iPAddress) => new GeneralName({ iPAddress })),
  ];
  const subtrees = bases.map((base) => new GeneralSubtree({ base }));
  return new NameConstraints({ permittedSubtrees: new GeneralSubtrees(subtrees) });
}

async function pemOf(key: webcrypto.CryptoKey): Promise<string> {
  return PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY');
}
