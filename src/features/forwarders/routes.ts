import { Type } from 'typebox';
import type { AdminApp, AdminContext, Handler } from '../../admin-api/request/context.ts';
import { errorAnswers, fleetPath, listOf } from '../../admin-api/request/documents.ts';
import {
  describeForwarder,
  forwarderDocument,
  forwarderDraftOf,
  forwarderParameters,
  forwarderPutAnswer,
  putForwarder,
  signingSecret,
} from './documents.ts';

/** A forwarder makes the server send a fleet's records to any host: the scope for declaring devices is too low. */
const scope = 'admin';

const listing = {
  summary: 'List forwarders',
  params: fleetPath,
  response: { 200: listOf(forwarderDocument), ...errorAnswers },
};

const listForwarders =
  ({ forwarders }: AdminContext): Handler<typeof listing> =>
  async ({ params }) => ({
    items: (await forwarders.list(params.fleet_id)).map(describeForwarder),
    next: null,
  });

const declaring = {
  summary: 'Create or change a forwarder',
  description: 'Forwards the records of the fleet at least once, in order per device.',
  params: forwarderParameters,
  body: putForwarder,
  response: { 200: forwarderPutAnswer, 201: forwarderPutAnswer, ...errorAnswers },
};

const declareForwarder =
  ({ forwarders, registry }: AdminContext): Handler<typeof declaring> =>
  async ({ params: { fleet_id, name }, body }, reply) => {
    registry.fleet(fleet_id);
    const known = (await forwarders.list(fleet_id)).find(({ forwarder }) => forwarder.name === name);
    const { status, isNew, secret } = await forwarders.put(
      fleet_id,
      name,
      forwarderDraftOf(body, known?.forwarder),
    );
    reply.code(isNew ? 201 : 200);
    return { ...describeForwarder(status), secret: secret ?? null };
  };

const showing = {
  summary: 'Show a forwarder',
  params: forwarderParameters,
  response: { 200: forwarderDocument, ...errorAnswers },
};

const showForwarder =
  ({ forwarders }: AdminContext): Handler<typeof showing> =>
  async ({ params: { fleet_id, name } }) =>
    describeForwarder(await forwarders.get(fleet_id, name));

const changing = {
  summary: 'Pause or resume a forwarder',
  description: 'A paused forwarder keeps its cursors: records stored meanwhile are sent once it is resumed.',
  params: forwarderParameters,
  body: Type.Object({ enabled: Type.Boolean() }, { additionalProperties: false }),
  response: { 200: forwarderDocument, ...errorAnswers },
};

const changeForwarder =
  ({ forwarders }: AdminContext): Handler<typeof changing> =>
  async ({ params: { fleet_id, name }, body: { enabled } }) =>
    describeForwarder(await forwarders.change(fleet_id, name, { enabled }));

const deletion = {
  summary: 'Delete a forwarder',
  description: 'Deletes its cursors and dead letters too.',
  params: forwarderParameters,
  response: { 204: Type.Null(), ...errorAnswers },
};

const deleteForwarder =
  ({ forwarders }: AdminContext): Handler<typeof deletion> =>
  async ({ params: { fleet_id, name } }, reply) => {
    await forwarders.delete(fleet_id, name);
    return reply.code(204).send(null);
  };

const rotation = {
  summary: 'Rotate the signing secret of a webhook',
  description: 'Signs batches with the new secret and, for `grace_seconds`, with the previous one too.',
  params: forwarderParameters,
  body: Type.Object(
    {
      secret: Type.Optional(signingSecret),
      grace_seconds: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 2_592_000,
          description: 'How long the previous secret is used too. Default: one day.',
        }),
      ),
    },
    { additionalProperties: false },
  ),
  response: { 200: Type.Object({ secret: signingSecret }), ...errorAnswers },
};

const rotateSecret =
  ({ forwarders }: AdminContext): Handler<typeof rotation> =>
  async ({ params: { fleet_id, name }, body: { secret, grace_seconds = 86_400 } }) => ({
    secret: await forwarders.rotateSecret(fleet_id, name, secret, grace_seconds),
  });

/** `/fleets/{fleet_id}/forwarders` and each forwarder by name. */
export function addForwarderRoutes(app: AdminApp, context: AdminContext): void {
  app.get(
    '/fleets/:fleet_id/forwarders',
    { config: { scope: 'read' }, schema: listing },
    listForwarders(context),
  );
  app.put(
    '/fleets/:fleet_id/forwarders/:name',
    { config: { scope }, schema: declaring },
    declareForwarder(context),
  );
  app.get(
    '/fleets/:fleet_id/forwarders/:name',
    { config: { scope: 'read' }, schema: showing },
    showForwarder(context),
  );
  app.patch(
    '/fleets/:fleet_id/forwarders/:name',
    { config: { scope }, schema: changing },
    changeForwarder(context),
  );
  app.delete(
    '/fleets/:fleet_id/forwarders/:name',
    { config: { scope }, schema: deletion },
    deleteForwarder(context),
  );
  app.post(
    '/fleets/:fleet_id/forwarders/:name/rotate-secret',
    { config: { scope }, schema: rotation },
    rotateSecret(context),
  );
}
