import { ApiError } from '../../core/errors.ts';
import type { FailedRecord } from './dead-letter-queue.ts';
import type { DeadLetterService } from './dead-letter-service.ts';

/** The dead letters of a resource, as the handlers of their routes need them. */
export interface DeadLetterParts<Letter extends FailedRecord, Id, Document> {
  service: DeadLetterService<Letter, Id>;
  /** The parameter that names a letter. */
  parameter: string;
  /** Undefined for what no letter can have. */
  parse(text: string): Id | undefined;
  format(id: Id): string;
  describe(letter: Letter): Document;
}

interface LetterRequest {
  params: { fleet_id: string; name: string; [parameter: string]: unknown };
  audited: { about?: Readonly<Record<string, string | number>> };
}

/** Handles the routes of `deadLettersOf`. */
export function deadLetterHandlers<Letter extends FailedRecord, Id, Document extends object>(
  parts: DeadLetterParts<Letter, Id, Document>,
) {
  const { service, parameter, parse, format, describe } = parts;
  /** @throws ApiError dead_letter_not_found for what no letter can have. */
  const idOf = (params: LetterRequest['params']): Id => {
    const id = parse(String(params[parameter]));
    if (id === undefined) throw new ApiError('dead_letter_not_found');
    return id;
  };
  const replay = async ({ params, audited }: LetterRequest, id?: Id) => {
    const replayed = await service.replay(params.fleet_id, params.name, id);
    audited.about = { replayed };
    return { replayed };
  };
  const drop = async ({ params, audited }: LetterRequest, id?: Id) => {
    const dropped = await service.drop(params.fleet_id, params.name, id);
    audited.about = { dropped };
    return { dropped };
  };
  return {
    list: async ({
      params,
      query,
    }: LetterRequest & { query: { after?: string | number; limit: number } }) => {
      const after = query.after === undefined ? undefined : parse(String(query.after));
      const wanted = { limit: query.limit, ...(after !== undefined && { after }) };
      const { items, next } = await service.list(params.fleet_id, params.name, wanted);
      return { items: items.map(describe), next: next === null ? null : format(next) };
    },
    /** Keeps the payload's own text (D11): numbers beyond 2^53 would not survive parsing. */
    show: async ({ params }: LetterRequest, reply: { type(contentType: string): unknown }) => {
      const letter = await service.get(params.fleet_id, params.name, idOf(params));
      reply.type('application/json');
      const front = JSON.stringify(describe(letter)).slice(0, -1);
      return `${front},"payload":${letter.record.payload.toString('utf8')}}`;
    },
    replay: (request: LetterRequest) => replay(request, idOf(request.params)),
    drop: (request: LetterRequest) => drop(request, idOf(request.params)),
    replayAll: (request: LetterRequest) => replay(request),
    dropAll: (request: LetterRequest) => drop(request),
  };
}
