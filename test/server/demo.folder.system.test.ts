import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../harness/machine/temporary-folder.ts';
import { execute } from '../harness/server/command.ts';
import { mainFile } from '../harness/server/server.ts';

it('the commands that the first start prints work', async () => {
  const data = temporaryFolder();
  const loopback = ['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'];
  const server = spawn(process.execPath, [mainFile, 'serve', '--demo', '--data', data, ...loopback], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  try {
    let text = '';
    for await (const chunk of server.stdout) {
      text += chunk;
      if (text.includes('/v1/events\n')) break;
    }
    const commands = text.split('\n').filter((line) => line.startsWith('curl '));
    const outputs: string[] = [];
    for (const command of commands.slice(0, 4)) outputs.push((await execute('bash', ['-c', command])).stdout);
    const [heartbeat, datapoint, fetched, acked] = outputs;
    expect(heartbeat).toMatch(/^HTTP\/1.1 201[\s\S]*X-Messages-Available: true/);
    expect(datapoint).toMatch(/^HTTP\/1.1 201/);
    expect(fetched).toMatch(/^HTTP\/1.1 200[\s\S]*X-Mail-Name: welcome[\s\S]*Hello from Fleetpost/);
    expect(acked).toMatch(/^HTTP\/1.1 200[\s\S]*X-Mailbox-Size: 0/);
    const stream = await execute('bash', ['-c', `timeout 2 ${commands[4]}`]);
    expect(stream.stdout).toMatch(/^retry: \d+\n\nevent: connected\ndata: \{"fleet_id"/);
  } finally {
    server.kill('SIGTERM');
    await once(server, 'exit');
    rmSync(data, { recursive: true });
  }
});
