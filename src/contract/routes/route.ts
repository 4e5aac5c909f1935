import { type Static, type TObject, type TSchema, type TString, Type } from 'typebox';
import type { Scope } from '../../core/scope.ts';

type AuditBook = 'change' | 'traffic';
export type RouteMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** A body that is no JSON document, or not always, as OpenAPI describes it: by its media types. */
interface Content {
  content: Readonly<Record<string, { schema: TSchema }>>;
}
interface ContentAnswer extends Content {
  description: string;
}

/** Settings of a route that say how the server treats its requests. */
export interface RouteSettings {
  /**
   * Scope that a token needs; `any` for what concerns the token itself, `none` for what needs no token. A route of
   * `/admin/v1` without one prevents the server from starting.
   */
  scope: Scope | 'any' | 'none';
  /** Has no fleet in its path, and answers a token for one fleet with data of that fleet only. */
  narrowsToFleet?: boolean;
  /** Waits for other threads or programs, within a limit of its own: does not count as under way meanwhile. */
  hasOwnLimit?: boolean;
  /** Its body may take any time as long as chunks keep arriving. */
  hasLongBody?: boolean;
  /**
   * Book of the audit log that has its requests: `traffic` for what senders of mail do all the time. By default,
   * whatever may change something is a `change`.
   */
  book?: AuditBook | ((request: { query: unknown }) => AuditBook | undefined);
  /** Config key of the limit of its body; undefined if that is fixed. */
  bodyLimitKey?: 'bodyBytesMax' | 'schemaBytesMax';
}

/**
 * A route of the admin API. Registration, OpenAPI document, reference page and the types of every client follow from
 * it. Each has the answers to errors besides its own.
 */
export interface RouteDeclaration extends RouteSettings {
  summary: string;
  description?: string;
  /** Parameters of the path that are more than a text. */
  params?: Readonly<Record<string, TSchema>>;
  query?: TSchema;
  headers?: TSchema;
  body?: TSchema | Content;
  /** The documents that it answers with, by status. */
  answers: Readonly<Record<number, TSchema | ContentAnswer>>;
}

/** Routes by method and path, which is relative to `/admin/v1`: `GET /fleets/{fleet_id}`. */
export type Routes = Readonly<Record<RouteKey, RouteDeclaration>>;
export type RouteKey = `${RouteMethod} /${string}`;

/** Declares the routes of a noun, in the order of the OpenAPI document. */
export function declareRoutes<const R extends Routes>(routes: R): R {
  return routes;
}

/** Names of the parameters in a path. */
export type ParameterName<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParameterName<Rest>
  : never;

/** Parameters of a route's path, each a text where the route does not say more. */
export type PathParameters<Key extends string, R extends RouteDeclaration> = TObject<{
  [Name in ParameterName<Key>]: Name extends keyof R['params']
    ? Extract<R['params'][Name], TSchema>
    : TString;
}>;

export function pathParameters(key: string, { params = {} }: RouteDeclaration): TObject {
  const names = [...key.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
  return Type.Object(Object.fromEntries(names.map((name) => [name, params[name] ?? Type.String()])));
}

/** The answer to a request that succeeded: nothing is undefined. */
export type AnswerOf<R extends RouteDeclaration> = {
  [Status in keyof R['answers']]: Document<R['answers'][Status]>;
}[keyof R['answers']];

type Document<Answer> = Answer extends TSchema
  ? Static<Answer> extends null
    ? undefined
    : Static<Answer>
  : Answer extends ContentAnswer
    ? string
    : never;

export const noDocument = Type.Null();
