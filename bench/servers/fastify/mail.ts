import { hash, timingSafeEqual } from 'node:crypto';
import Fastify, { type FastifyInstance, type FastifyRequest } from 'fastify';
import { uuidv7 } from 'uuidv7';
import { answerHeaders, deviceOf, Refused } from './app.ts';

export interface QueuedMail {
  id: string;
  name: string;
  /** Mails that wait, this one with them. */
  size: number;
}

/** Mailboxes that the app keeps elsewhere. */
export interface MailStore {
  /** Settles once it is on disk; false for a device that there is not. */
  queue(device: string, id: string, name: string, payload: string): Promise<boolean>;
  next(device: string): Promise<QueuedMail | undefined>;
  /** How many mails wait then; undefined for a mail that there is not. Twice is as once. */
  acknowledge(device: string, id: string): Promise<number | undefined>;
}

/** Who may queue mail, and where: plain HTTP on loopback, like Fleetpost's admin API. */
export interface AdminOptions {
  port: number;
  token: string;
}

/** Adds the routes by which a device works on its mailbox. */
export function addMailRoutes(
  app: FastifyInstance,
  mails: MailStore,
  authenticate: (request: FastifyRequest) => Promise<void>,
): void {
  app.head('/v1/mailbox/next', { onRequest: authenticate }, async (request, reply) => {
    const mail = await mails.next(deviceOf(request));
    reply.headers(answerHeaders).header('x-mailbox-size', mail?.size ?? 0);
    if (mail === undefined) reply.code(204);
    else reply.headers({ 'x-mail-id': mail.id, 'x-mail-name': mail.name });
    return reply.send();
  });

  app.put<{ Params: { id: string } }>(
    '/v1/mailbox/ack/:id',
    {
      schema: { params: { type: 'object', properties: { id: { type: 'string', format: 'uuid' } } } },
      onRequest: authenticate,
    },
    async (request, reply) => {
      const size = await mails.acknowledge(deviceOf(request), request.params.id);
      if (size === undefined) throw new Refused(404, 'There is no such mail.');
      reply.headers(answerHeaders).header('x-mailbox-size', size);
      return '{"ok":true}';
    },
  );
}

/** The way in for mail. Without an audit log, which Fleetpost has. */
export async function serveAdmin(mails: MailStore, { port, token }: AdminOptions): Promise<void> {
  const digest = hash('sha256', `Bearer ${token}`, 'buffer');
  const app = Fastify();
  app.post<{ Params: { fleetId: string; deviceId: string; name: string } }>(
    '/admin/v1/fleets/:fleetId/devices/:deviceId/mail/:name',
    {
      async onRequest({ headers: { authorization = '' } }) {
        if (!timingSafeEqual(hash('sha256', authorization, 'buffer'), digest)) {
          throw new Refused(401, 'The token was not accepted.');
        }
      },
    },
    async (request, reply) => {
      const { fleetId, deviceId, name } = request.params;
      const id = uuidv7();
      if (!(await mails.queue(fleetId + deviceId, id, name, JSON.stringify(request.body)))) {
        throw new Refused(404, 'There is no such device.');
      }
      reply.code(201);
      return { mail_id: id };
    },
  );
  await app.listen({ host: '127.0.0.1', port });
}
