import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TlsFiles } from '../../src/core/config/tls.ts';
import { freePort } from '../../src/device/simulator/run/free-port.ts';
import { certificate } from './certificate.ts';
import { generateDevices } from './devices.ts';
import { Peer } from './peer.ts';
import { ServerProcess } from './server-process.ts';
import type { Subject } from './subject.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { accepts, untilReady } from './until-ready.ts';

/** The answer to a heartbeat, for whatever is asked, with nothing looked at. */
const configuration = (folder: string, port: number, workers: number, tls: TlsFiles): string => `
daemon off;
worker_processes ${workers};
pid ${folder}/pid;
error_log stderr;
events { worker_connections 65536; }
http {
  access_log off;
  server_tokens off;
  keepalive_requests 1000000000;
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${folder}/${kind};`).join(' ')}
  server {
    listen 127.0.0.1:${port} ssl backlog=4096;
    ssl_certificate ${tls.certFile};
    ssl_certificate_key ${tls.keyFile};
    ssl_protocols TLSv1.2 TLSv1.3;
    location / {
      default_type application/json;
      add_header Cache-Control no-store always;
      add_header X-Messages-Available false always;
      return 201 '{"ok":true}';
    }
  }
}
`;

/** A constant answer over TLS: the floor of what a server in C does here. */
export const nginx: Subject = {
  name: 'nginx',
  durability: 'none',
  constantStatus: 201,
  missing: () =>
    spawnSync('nginx', ['-v']).error === undefined
      ? undefined
      : 'nginx is not installed: run bench/install-peers.sh.',
  async start({ shards, devices, tls }) {
    const files = tls ?? (await certificate());
    const folder = temporaryFolder();
    const port = await freePort();
    writeFileSync(join(folder, 'nginx.conf'), configuration(folder, port, shards, files));
    const server = await ServerProcess.start('nginx', ['-e', 'stderr', '-p', folder, '-c', 'nginx.conf']);
    await untilReady(server, () => accepts({ host: '127.0.0.1', port }));
    return new Peer({ port, tls: files, devices: generateDevices(devices), processes: [server], folder });
  },
};
