import { SingleBar } from 'cli-progress';
import type { Command } from 'commander';

/** Drawn where a person watches. */
export function progressBar(what: string, unit: string, isShown: boolean): SingleBar | undefined {
  if (!isShown || !process.stderr.isTTY) return undefined;
  return new SingleBar({
    format: `${what} {bar} {value} of {total} ${unit}, {eta_formatted} left`,
    stream: process.stderr,
  });
}

/** `fleetpost verify`: offline, so that it can be trusted about a folder that no server would take. */
export function addVerifyCommand(program: Command): void {
  program
    .command('verify')
    .description('walk every record of a stopped data folder or of a backup')
    .option('--data <dir>', 'the folder', process.env.FLEETPOST_DATA ?? './data')
    .option('--json', 'print one JSON document')
    .action(async ({ data, json }: { data: string; json?: boolean }) => {
      const { verifyFolder } = await import('../../maintenance/verify.ts');
      const bar = progressBar('Verify', 'records', !json);
      const { findings, ...counts } = await verifyFolder(data, {
        start: (records) => bar?.start(records, 0),
        onRecord: () => bar?.increment(),
      }).finally(() => bar?.stop());
      if (findings.count > 0) process.exitCode = 1;
      const { count, sentences } = findings;
      if (json) return console.log(JSON.stringify({ ...counts, findings: sentences, findings_total: count }));
      const {
        folder,
        shards,
        fleets,
        schemas,
        actions,
        parkedRuns,
        consumers,
        forwarders,
        devices,
        mails,
        logRecords,
        idempotencyKeys,
      } = counts;
      console.log(
        `${folder}: ${shards} shards, ${fleets} fleets, ${schemas} schemas, ${actions} actions, ${parkedRuns} parked runs, ${consumers} consumers, ${forwarders} forwarders, ${devices} devices, ${mails} mails, ${logRecords} log records, ${idempotencyKeys} idempotency keys.`,
      );
      for (const sentence of sentences) console.log(`- ${sentence}`);
      console.log(count === 0 ? 'It is sound.' : `It is not sound: ${count} findings.`);
    });
}
