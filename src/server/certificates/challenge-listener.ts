import { HttpListener } from '../../admin-api/server/http-listener.ts';
import { bracketed, type HostPort } from '../../core/address.ts';

const path = '/.well-known/acme-challenge/';
/** A directory asks from a handful of places; the rest are strangers. */
const limits = { adminConnectionsMax: 256, adminUnreadBytesMax: 1_048_576 };

/**
 * Answers HTTP-01 challenges (RFC 8555, 8.3), and everything else with 404. There is no other plain HTTP for devices
 * (D22), so it is open only while an order waits for it.
 * @throws Error when it cannot listen on the address.
 */
export async function openChallengeListener(
  { host, port }: HostPort,
  answers: ReadonlyMap<string, string>,
): Promise<HttpListener> {
  try {
    return await HttpListener.open({ host, port }, limits, ({ method, url = '' }, response) => {
      const token = method === 'GET' && url.startsWith(path) ? url.slice(path.length) : '';
      const answer = answers.get(token);
      response.writeHead(answer === undefined ? 404 : 200, {
        'Content-Type': 'application/octet-stream',
        Connection: 'close',
      });
      response.end(answer);
    });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason =
      code === 'EADDRINUSE'
        ? 'is another server using it?'
        : code === 'EACCES'
          ? 'this user may not; allow it CAP_NET_BIND_SERVICE, or forward port 80 to another.'
          : `${message}.`;
    throw new Error(
      `Cannot listen on ${bracketed(host)}:${port} for ACME challenges (acmeListen): ${reason}`,
    );
  }
}
