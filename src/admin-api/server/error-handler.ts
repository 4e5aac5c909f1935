import type { FastifyError, FastifyReply, FastifyRequest, FastifySchemaValidationError } from 'fastify';
import { patternWords } from '../../contract/document.ts';
import { ApiError, type FieldError } from '../../core/errors.ts';
import { deviceIdPattern, fleetIdPattern } from '../../core/identity.ts';
import type { Log } from '../../core/telemetry/log.ts';
import { describeRequest } from './request-log.ts';

const reportedErrorsMax = 20;
const reportedPathLengthMax = 256;

/** True for a stream that ended with its client, before its first piece: no failure, and nobody is there to be answered. */
function isAbandoned(error: unknown, reply: FastifyReply): boolean {
  return reply.raw.destroyed && (error as { code?: unknown }).code === 'ERR_STREAM_PREMATURE_CLOSE';
}

/** Creates the handler that answers every error of a route, a hook or Fastify itself, in D7's shape. */
export function errorHandler(
  log: Log,
): (error: unknown, request: FastifyRequest, reply: FastifyReply) => void {
  return (error, request, reply) => {
    const known =
      error instanceof ApiError ? named(error, request) : fromFastify(error as FastifyError, request);
    if (known.code === 'internal_error' && !isAbandoned(error, reply)) {
      const { requestId } = known.options;
      log.error(
        { err: error, ...describeRequest(request), ...(requestId && { caused_by: requestId }) },
        'admin request failed',
      );
    }
    if (request.audited !== undefined) request.audited.error = known.code;
    const { retryAfterSeconds } = known.options;
    if (retryAfterSeconds !== undefined) reply.header('Retry-After', String(retryAfterSeconds));
    reply.code(known.status).type('application/json').send(JSON.stringify(known));
  };
}

/** Names the fleet or the device of the path that is not there. */
function named(error: ApiError, { params }: FastifyRequest): ApiError {
  const { fleet_id: fleet = '', device_id: device = '' } = (params ?? {}) as Partial<Record<string, string>>;
  if (error.options.msg !== undefined || !fleetIdPattern.test(fleet)) return error;
  if (error.code === 'fleet_not_found') {
    return new ApiError(error.code, { ...error.options, msg: `There is no fleet ${fleet}.` });
  }
  if (error.code !== 'device_not_found' || !deviceIdPattern.test(device)) return error;
  return new ApiError(error.code, { ...error.options, msg: `Fleet ${fleet} has no device ${device}.` });
}

function fromFastify(error: FastifyError, request: FastifyRequest): ApiError {
  if (error.validation !== undefined) {
    const code = error.validationContext === 'body' ? 'invalid_body' : 'bad_request';
    return new ApiError(code, { errors: error.validation.slice(0, reportedErrorsMax).map(report) });
  }
  const { statusCode = 500 } = error;
  if (statusCode === 413) return tooLarge(request);
  if (statusCode === 415) return new ApiError('unsupported_media_type');
  return new ApiError(statusCode >= 400 && statusCode < 500 ? 'bad_request' : 'internal_error');
}

function tooLarge({ routeOptions: { bodyLimit, config } }: FastifyRequest): ApiError {
  const key = config.bodyLimitKey === undefined ? '' : ` (${config.bodyLimitKey})`;
  return new ApiError('request_too_large', { msg: `The body is larger than ${bodyLimit} bytes${key}.` });
}

/** Converts an error of Ajv. Names an unknown key, since most often it is mistyped. */
function report({ instancePath, params, message }: FastifySchemaValidationError): FieldError {
  const { additionalProperty, allowedValues } = params;
  const key = typeof additionalProperty === 'string' ? `/${escaped(additionalProperty)}` : '';
  const path = `${instancePath}${key}`.slice(0, reportedPathLengthMax);
  if (key !== '') return { path, msg: 'is not a known field' };
  if (Array.isArray(allowedValues)) return { path, msg: `must be one of ${allowedValues.join(', ')}` };
  return { path, msg: patternWords.get(String(params.pattern)) ?? message ?? 'is not valid' };
}

/** Escapes a key for a JSON Pointer (RFC 6901). */
function escaped(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}
