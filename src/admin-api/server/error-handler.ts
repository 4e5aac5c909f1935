import type { FastifyError, FastifyReply, FastifyRequest, FastifySchemaValidationError } from 'fastify';
import { ApiError, type FieldError } from '../../core/errors.ts';
import type { Log } from '../../core/telemetry/log.ts';
import { describeRequest } from './request-log.ts';

const reportedErrorsMax = 20;
const reportedPathLengthMax = 256;

/** Answers whatever a route, a hook or Fastify itself throws, in D7's shape. */
export function errorHandler(
  log: Log,
): (error: unknown, request: FastifyRequest, reply: FastifyReply) => void {
  return (error, request, reply) => {
    const known = error instanceof ApiError ? error : fromFastify(error as FastifyError);
    if (known.code === 'internal_error') {
      const { requestId } = known.options;
      log.error(
        { err: error, ...describeRequest(request), ...(requestId && { caused_by: requestId }) },
        'an admin request failed',
      );
    }
    if (request.audited !== undefined) request.audited.error = known.code;
    const { retryAfterSeconds } = known.options;
    if (retryAfterSeconds !== undefined) reply.header('Retry-After', String(retryAfterSeconds));
    reply.code(known.status).type('application/json').send(JSON.stringify(known));
  };
}

function fromFastify(error: FastifyError): ApiError {
  if (error.validation !== undefined) {
    const code = error.validationContext === 'body' ? 'invalid_body' : 'bad_request';
    return new ApiError(code, { errors: error.validation.slice(0, reportedErrorsMax).map(report) });
  }
  const { statusCode = 500 } = error;
  if (statusCode === 413) return new ApiError('request_too_large');
  if (statusCode === 415) return new ApiError('unsupported_media_type');
  return new ApiError(statusCode >= 400 && statusCode < 500 ? 'bad_request' : 'internal_error');
}

/** A key that is not wanted is named, since most often it is one that was mistyped. */
function report({ instancePath, params, message }: FastifySchemaValidationError): FieldError {
  const { additionalProperty, allowedValues } = params;
  const key = typeof additionalProperty === 'string' ? `/${escaped(additionalProperty)}` : '';
  const path = `${instancePath}${key}`.slice(0, reportedPathLengthMax);
  if (key !== '') return { path, msg: 'is not a known field' };
  if (Array.isArray(allowedValues)) return { path, msg: `must be one of ${allowedValues.join(', ')}` };
  return { path, msg: message ?? 'is not valid' };
}

/** RFC 6901. */
function escaped(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}
