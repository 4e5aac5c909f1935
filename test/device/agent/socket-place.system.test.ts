import { spawn } from 'node:child_process';
import { chownSync, mkdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname } from 'node:path';
import { expect, it } from 'vitest';
import { until } from '../../harness/server/vitals.ts';
import { AgentProcess, agentFile } from './agent-process.ts';

it('what another user has put in the agent’s place is not asked', async () => {
  const agent = new AgentProcess({
    FOSTROM_FLEET_ID: 'ORCHARD1',
    FOSTROM_DEVICE_ID: 'PUMP000001',
    FOSTROM_DEVICE_SECRET: `FOS-${'x'.repeat(32)}`,
    FLEETPOST_URL: 'https://127.0.0.1:1',
  });
  const folder = dirname(agent.socketPath);
  mkdirSync(folder, { mode: 0o700 });
  const asked: string[] = [];
  const impostor = createServer((request, response) => {
    asked.push(request.url ?? '');
    response.end('{"connected":true}');
  });
  await new Promise<void>((resolve) => impostor.listen(agent.socketPath, resolve));
  chownSync(folder, 65_534, 65_534);
  for (const word of ['start', 'run', 'status', 'stop']) {
    const child = spawn(process.execPath, [agentFile, word], { env: agent.environment });
    let text = '';
    child.stdout.on('data', (part) => {
      text += part;
    });
    await until(() => child.exitCode !== null);
    expect([word, child.exitCode, text.split(':')[0]]).toEqual([word, 1, 'invalid_folder']);
  }
  expect(asked).toEqual([]);
  impostor.close();
});
