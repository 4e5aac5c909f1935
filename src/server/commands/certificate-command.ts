import { X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join, resolve } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { certificateHosts } from '../../core/config/tls.ts';
import { OperatorError } from '../../core/errors.ts';
import { type Replacement, replaceFile } from '../../core/replace-file.ts';
import { orderFailureOf } from '../certificates/acme-files.ts';

const authorityDays = 3_650;
const hostsMax = 100;

interface CreateOptions {
  host: readonly string[];
  out: string;
  days: string;
  forgetCaKey?: boolean;
  json?: boolean;
}

/** Files of a folder that `create` has made. */
function filesIn(folder: string) {
  return {
    authority: join(folder, 'ca.pem'),
    authorityKey: join(folder, 'ca-key.pem'),
    certificate: join(folder, 'server.pem'),
    key: join(folder, 'server-key.pem'),
  };
}

/** Adds `fleetpost certificate`: an own authority for devices to trust, and the server's certificate. */
export function addCertificateCommands(program: Command): void {
  const certificate = program
    .command('certificate')
    .description("create, show and renew a server's certificate, signed by an authority of your own");
  certificate
    .command('create')
    .description('create an authority for devices to trust, and a certificate for the server')
    .requiredOption(
      '--host <name>',
      'host name or IP address that devices connect to; repeatable',
      (host: string, hosts: readonly string[] = []) => [...hosts, checkHost(host)],
    )
    .option('--out <dir>', 'folder to create', './certificates')
    .option('--days <n>', 'validity of the server certificate; the authority lasts ten years', '365')
    .option('--forget-ca-key', 'keep no private key of the authority: the certificate cannot be renewed')
    .option('--json', 'print one JSON document')
    .action(create);
  certificate
    .command('show <file>')
    .description(
      'print the hosts, the validity and the fingerprint of a certificate, and why its ACME renewal failed',
    )
    .option('--json', 'print one JSON document')
    .action((file: string, { json }: { json?: boolean }) => {
      const shown = describe(file);
      if (json) return console.log(JSON.stringify(shown));
      for (const [name, value] of Object.entries(shown)) {
        console.log(`${name}: ${Array.isArray(value) ? value.join(', ') : value}`);
      }
    });
  certificate
    .command('renew <dir>')
    .description('renew the certificate in a folder of "certificate create"; a running server takes it')
    .option('--days <n>', 'validity of the server certificate', '365')
    .option('--json', 'print one JSON document')
    .action(renew);
}

async function create({ host: hosts, out, days, forgetCaKey = false, json }: CreateOptions): Promise<void> {
  if (hosts.length > hostsMax) throw new OperatorError(`A certificate has at most ${hostsMax} hosts.`);
  const folder = resolve(out);
  const files = filesIn(folder);
  if (existsSync(folder)) throw new OperatorError(`${folder} exists. Name a new folder with --out.`);
  const { createAuthority, createServerCertificate } = await import('../certificates/authority.ts');
  const serverDays = checkDays(days);
  const authority = await createAuthority({ hosts, days: authorityDays });
  const server = await createServerCertificate(authority, { hosts, days: serverDays });
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(files.authority, authority.certificate, { mode: 0o644 });
  if (!forgetCaKey) writeFileSync(files.authorityKey, authority.key, { mode: 0o600 });
  writeFileSync(files.certificate, server.certificate, { mode: 0o644 });
  writeFileSync(files.key, server.key, { mode: 0o600 });
  if (json) return console.log(JSON.stringify({ folder, ...describe(files.certificate) }));
  console.log(`Created a certificate for ${hosts.join(', ')}, valid for ${serverDays} days.
  Devices trust:  ${files.authority} (copy it to them; it can vouch for these hosts alone)
  The server has: "tlsCertFile": "${files.certificate}", "tlsKeyFile": "${files.key}"
                  in its configuration; the user that it runs as must be able to read them.
  ${forgetCaKey ? "The authority's key was not kept: the next certificate needs a new authority on all devices." : `Renew it with:  fleetpost certificate renew ${folder} (with the authority's key in it, which the server need not read)`}`);
}

async function renew(dir: string, { days, json }: { days: string; json?: boolean }): Promise<void> {
  const files = filesIn(resolve(dir));
  const serverDays = checkDays(days);
  if (!existsSync(files.authorityKey) && existsSync(files.certificate)) {
    throw new OperatorError(
      `The authority's key, ${files.authorityKey}, is not there: put it back to renew. If it was not kept, make a new authority with "fleetpost certificate create" in another folder, bring its ca.pem to all devices, and then have the server use its certificate.`,
    );
  }
  const [certificate, key] = [readFile(files.authority), readFile(files.authorityKey)];
  const hosts = certificateHosts(readCertificate(files.certificate));
  const { createServerCertificate } = await import('../certificates/authority.ts');
  const server = await createServerCertificate({ certificate, key }, { hosts, days: serverDays });
  // The key first: a server that looks in between finds a pair that does not match, and waits for the next change.
  replaceFile(files.key, server.key, { mode: 0o600, ...ownerOf(files.key) });
  replaceFile(files.certificate, server.certificate, { mode: 0o644, ...ownerOf(files.certificate) });
  if (json) return console.log(JSON.stringify(describe(files.certificate)));
  console.log(
    `Renewed ${files.certificate} for ${hosts.join(', ')}, until ${describe(files.certificate).not_after}.`,
  );
}

function describe(file: string) {
  const certificate = readCertificate(file);
  const failure = orderFailureOf(file);
  return {
    hosts: certificateHosts(certificate),
    subject: certificate.subject,
    issuer: certificate.issuer,
    not_before: new Date(certificate.validFrom).toISOString(),
    not_after: new Date(certificate.validTo).toISOString(),
    fingerprint_sha256: certificate.fingerprint256,
    ...(failure !== undefined && {
      order_failed_at: failure.failed_at,
      order_failure: failure.reason,
      order_retry_at: failure.retry_at,
    }),
  };
}

function readCertificate(file: string): X509Certificate {
  const pem = readFile(file);
  try {
    return new X509Certificate(pem);
  } catch (error) {
    throw new OperatorError(`${file} is no certificate: ${(error as Error).message}.`);
  }
}

function readFile(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new OperatorError(`${file} cannot be read: ${(error as Error).message}.`);
  }
}

/** The owner of a file that root replaces: it may be the user of the server. */
function ownerOf(file: string): Pick<Replacement, 'owner'> {
  return process.getuid?.() === 0 ? { owner: statSync(file) } : {};
}

function checkHost(host: string): string {
  if (isIP(host) !== 0) return host;
  const label = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?';
  if (host.length <= 253 && new RegExp(`^(?:\\*\\.)?${label}(?:\\.${label})*$`, 'i').test(host)) return host;
  throw new InvalidArgumentError('It must be a host name or an IP address, without a port.');
}

function checkDays(text: string): number {
  const days = Number(text);
  if (Number.isInteger(days) && days >= 1 && days <= authorityDays) return days;
  throw new OperatorError(`--days must be a whole number from 1 to ${authorityDays}.`);
}
