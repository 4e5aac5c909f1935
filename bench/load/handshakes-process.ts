import { readFileSync } from 'node:fs';
import { createHistogram } from 'node:perf_hooks';
import { createSecureContext } from 'node:tls';
import type { GeneratorReport } from './generator.ts';
import type { HandshakeProcessOptions } from './handshakes.ts';
import { visit } from './visit.ts';
import { Sleeper } from './wake.ts';

const options = JSON.parse(process.argv[2] ?? '') as HandshakeProcessOptions;
const { url, certFile, version, resumed, requests, isWake, status, connections, seconds, warmUpSeconds } =
  options;
const { hostname: host, port } = new URL(url);
const secureContext = createSecureContext({
  ca: readFileSync(certFile),
  minVersion: version,
  maxVersion: version,
});

const latencyMicroseconds = createHistogram();
const errors = { status: 0, connection: 0, notResumed: 0, notFull: 0 };
const sleepers = isWake ? requests.map((template) => new Sleeper(template)) : [];
let begun = 0;
let answered = 0;

/** One visit, counted. Settles with the session that it leaves behind for the next. */
async function count(offered: Buffer | undefined): Promise<Buffer | undefined> {
  const startMs = performance.now();
  const turn = begun++ % requests.length;
  const sleeper = sleepers[turn];
  const request = sleeper?.next() ?? requests[turn] ?? '';
  const { answer, isResumed, session } = await visit({
    host,
    port: Number(port),
    secureContext,
    session: offered,
    request,
  });
  if (answer === undefined) {
    errors.connection += 1;
    return session;
  }
  latencyMicroseconds.record(Math.max(1, Math.round((performance.now() - startMs) * 1_000)));
  answered += 1;
  if (!answer.startsWith(`HTTP/1.1 ${status} `)) errors.status += 1;
  sleeper?.hear(answer);
  if (offered !== undefined && !isResumed) errors.notResumed += 1;
  if (offered === undefined && isResumed) errors.notFull += 1;
  return session;
}

const startMs = performance.now();
const endMs = startMs + (warmUpSeconds + seconds) * 1_000;
let isSteady = false;

async function visitAgainAndAgain(): Promise<void> {
  let session: Buffer | undefined;
  while (performance.now() < endMs && errors.connection === 0) {
    const left = await count(session);
    if (resumed) session = left;
    if (isSteady || performance.now() < startMs + warmUpSeconds * 1_000) continue;
    isSteady = true;
    process.stderr.write(`steady ${answered}\n`);
    latencyMicroseconds.reset();
  }
}

await Promise.all(Array.from({ length: connections }, visitAgainAndAgain));
process.stderr.write('end\n');
const report: GeneratorReport = {
  requests: answered,
  p50Microseconds: latencyMicroseconds.percentile(50),
  p99Microseconds: latencyMicroseconds.percentile(99),
  p999Microseconds: latencyMicroseconds.percentile(99.9),
  errors,
};
process.stdout.write(`${JSON.stringify(report)}\n`);
