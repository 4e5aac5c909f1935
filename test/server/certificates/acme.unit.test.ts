/** ACME: times of renewal and retry, texts of a directory, configuration. */

import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { problemText, retryAfterSecondsOf } from '../../../src/server/certificates/acme-directory.ts';
import { renewalMsOf } from '../../../src/server/certificates/acme-files.ts';
import { orderDelayMs } from '../../../src/server/certificates/acme-renewal.ts';
import { acmeTerms } from '../../../src/server/certificates/acme-terms.ts';
import { type Config, loadConfig, runningConfig } from '../../../src/server/configuration/config.ts';
import { temporaryFolder } from '../../harness/machine/temporary-folder.ts';

const dayMs = 86_400_000;
const { values } = loadConfig(undefined, {}, {});

function termsOf(changes: Partial<Config>) {
  return acmeTerms(runningConfig({ ...values, acmeTermsAgreed: true, ...changes }));
}

describe('when a certificate is renewed', () => {
  it.each([
    [90, 60],
    [6, 4],
    [1, 2 / 3],
  ])('one of %d days after %d days', (days, renewedAfterDays) => {
    const fromMs = Date.parse('2026-01-01T00:00:00Z');
    const [validFrom = '', validTo = ''] = [fromMs, fromMs + days * dayMs].map((ms) =>
      new Date(ms).toString(),
    );
    expect((renewalMsOf({ validFrom, validTo }) - fromMs) / dayMs).toBeCloseTo(renewedAfterDays, 6);
  });
});

describe('when a failed order is repeated', () => {
  const delays = (isUnreachable: boolean, random: number): number[] =>
    Array.from({ length: 13 }, (_, index) => orderDelayMs(index + 1, isUnreachable, random) / 1_000);

  it('soon where the directory was not reached, later and later, at most six hours', () => {
    expect(delays(true, 0).slice(0, 4)).toEqual([5, 10, 20, 40]);
    expect(delays(false, 0).slice(0, 4)).toEqual([60, 120, 240, 480]);
    expect([delays(true, 0).at(-1), delays(false, 0).at(-1)]).toEqual([20_480, 21_600]);
    expect(orderDelayMs(5_000, true, 0)).toBe(21_600_000);
  });

  it('up to a quarter sooner, by chance', () => {
    expect(delays(false, 1).slice(0, 2)).toEqual([45, 90]);
  });

  it('not before the directory wants it, but within a week', () => {
    const nowMs = Date.parse('2026-01-01T00:00:00Z');
    const seconds = (header: string | undefined): number => retryAfterSecondsOf(header, nowMs);
    expect(seconds('120')).toBe(120);
    expect(seconds('Thu, 01 Jan 2026 00:01:30 GMT')).toBe(90);
    expect(seconds('Wed, 31 Dec 2025 00:00:00 GMT')).toBe(0);
    expect(seconds('99999999999')).toBe(7 * 86_400);
    expect([undefined, '', '-5', 'soon', '0'].map(seconds)).toEqual([0, 0, 0, 0, 0]);
  });
});

it('what a directory says is shown without control characters, and not for ever', () => {
  const detail = `a\u001b[31m\nb${'c'.repeat(10_000)}`;
  const text = problemText({ type: 'urn:ietf:params:acme:error:rateLimited', detail });
  expect(text.startsWith('rateLimited: a\u{fffd}[31m\u{fffd}bccc')).toBe(true);
  expect(text.length).toBeLessThanOrEqual(500);
  expect(problemText({ type: 5, detail: {} })).toBe('no reason given');
});

describe('the configuration of ACME', () => {
  it('is off without domains', () => {
    expect(termsOf({})).toBeUndefined();
  });

  it('names each domain once, in lower case', () => {
    expect(termsOf({ acmeDomains: 'Fleet.Example, b.example,fleet.example' })?.domains).toEqual([
      'fleet.example',
      'b.example',
    ]);
  });

  it('is refused beside certificate files, and without agreement to the terms', () => {
    const acmeDomains = 'fleet.example';
    expect(() => termsOf({ acmeDomains, tlsCertFile: 'a.pem', tlsKeyFile: 'b.pem' })).toThrow(
      'acmeDomains obtains a certificate, and tlsCertFile or tlsKeyFile names another. Set one or the other.',
    );
    expect(() => termsOf({ acmeDomains, acmeTermsAgreed: false })).toThrow(
      'agree to them with acmeTermsAgreed',
    );
    const many = Array.from({ length: 101 }, (_, index) => `n${index}.example`).join();
    expect(() => termsOf({ acmeDomains: many })).toThrow('at most 100 names');
  });

  it.each(['*.fleet.example', '192.168.1.1', 'a..b', '-a.example', 'a.example,', 'a b', 'a.example;b'])(
    'has no domain like "%s"',
    (domains) => {
      const load = () => loadConfig(undefined, { FLEETPOST_ACME_DOMAINS: domains }, {});
      expect(load).toThrow('must be domain names separated by commas, without wildcards and addresses');
    },
  );
});

describe('what an order needs is looked at when the server starts', () => {
  it('the authority of a private directory is a certificate in PEM', () => {
    const folder = temporaryFolder();
    const file = join(folder, 'ca.pem');
    const terms = () => termsOf({ acmeDomains: 'fleet.example', acmeDirectoryCaFile: file });
    expect(terms).toThrow(/acmeDirectoryCaFile .*ca\.pem cannot be used: ENOENT/);
    writeFileSync(file, 'no certificate');
    expect(terms).toThrow(/acmeDirectoryCaFile .* has no certificate in PEM/);
    writeFileSync(file, '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n');
    expect(terms).toThrow(/acmeDirectoryCaFile .* cannot be used/);
    rmSync(folder, { recursive: true });
  });

  it('the contact may be given as the directory wants it', () => {
    const { values: given } = loadConfig(
      undefined,
      { FLEETPOST_ACME_CONTACT: 'mailto:you@fleet.example' },
      {},
    );
    expect(termsOf({ ...given, acmeDomains: 'fleet.example', acmeTermsAgreed: true })?.contact).toBe(
      'you@fleet.example',
    );
  });
});
