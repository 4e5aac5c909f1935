/**
 * The error catalogue: code, HTTP status, default message. `deviceErrors` is D7's list, word for word, and
 * docs/reference/errors.md is made of them; `adminErrors` occur in the admin API only.
 */
export const deviceErrors = {
  malformed_credentials: { status: 400, msg: 'A credential header is missing or has the wrong format.' },
  fleet_host_mismatch: { status: 400, msg: 'The host name belongs to another fleet than X-Fleet-ID.' },
  bad_request: { status: 400, msg: 'The request is malformed.' },
  invalid_json: { status: 400, msg: 'The body is not JSON in UTF-8.' },
  invalid_body: { status: 400, msg: 'The body is not what this route takes.' },
  schema_mismatch: { status: 400, msg: 'The body does not match its schema.' },
  invalid_mail_id: { status: 400, msg: 'A mail id is a UUIDv7.' },
  invalid_idempotency_key: { status: 400, msg: 'Idempotency-Key must be a recently generated UUIDv7.' },
  invalid_recorded_at: { status: 400, msg: 'Recorded-At must be a recent time of RFC 3339 with its zone.' },
  idempotency_key_reused: { status: 400, msg: 'This Idempotency-Key was used for a different request.' },
  unauthorized: { status: 401, msg: 'The credentials were not accepted.' },
  route_not_found: { status: 404, msg: 'There is no such route.' },
  schema_not_found: { status: 404, msg: 'This fleet has no schema of that name.' },
  mail_not_found: { status: 404, msg: 'This mailbox has no mail of that id.' },
  mail_already_settled: { status: 409, msg: 'This mail was settled by another verb.' },
  request_too_large: { status: 413, msg: 'The body is larger than the limit.' },
  unsupported_media_type: { status: 415, msg: 'The body must be sent as application/json.' },
  rate_limited: { status: 429, msg: 'Too many requests.' },
  internal_error: { status: 500, msg: 'The server could not handle this request.' },
  unavailable: { status: 503, msg: 'The server cannot take this request now.' },
} as const;

/** Errors of `POST /v1/claim` only, besides D7's codes and `already_exists`. */
export const claimErrors = {
  claim_expired: { status: 403, msg: 'This claim token has expired.' },
  claim_limit_reached: { status: 403, msg: 'All devices have claimed that may claim with this claim token.' },
  claim_id_refused: { status: 403, msg: 'This claim token is not for a device of this id.' },
} as const;

/** Errors of the admin API only, besides D7's codes. */
export const adminErrors = {
  invalid_token: { status: 401, msg: 'The admin API needs a bearer token.' },
  forbidden: { status: 403, msg: 'This token may not do this.' },
  host_refused: {
    status: 403,
    msg: 'The admin API does not answer to this host name. Use its address, or add the name to adminHosts.',
  },
  fleet_not_found: { status: 404, msg: 'There is no such fleet.' },
  not_confirmed: {
    status: 409,
    msg: "This is not the fleet's name, nor the id of one without a name. Nothing was deleted.",
  },
  device_not_found: { status: 404, msg: 'There is no such device.' },
  letter_not_found: { status: 404, msg: 'This fleet has no such dead letter.' },
  already_exists: { status: 409, msg: 'This id is taken.' },
  mailbox_full: { status: 409, msg: 'The mailbox is full.' },
  fleet_mail_full: { status: 409, msg: 'The mail of this fleet has as many bytes as it may.' },
  limit_reached: { status: 409, msg: 'A limit of this server is reached.' },
  token_not_found: { status: 404, msg: 'There is no such token.' },
  broadcast_not_found: { status: 404, msg: 'This fleet has no such broadcast; it may have been removed.' },
  broadcast_ended: { status: 409, msg: 'This broadcast has ended.' },
  broadcast_running: { status: 409, msg: 'This broadcast is still running. Cancel it first.' },
  claim_token_not_found: { status: 404, msg: 'This fleet has no such claim token.' },
  backup_not_found: { status: 404, msg: 'No backup was made of this data folder yet.' },
  not_in_folder: {
    status: 409,
    msg: 'The data is in a database, not in the data folder. Use the tools of the database.',
  },
  backup_running: { status: 409, msg: 'A backup is already running. Retry when it has ended.' },
  unusable_folder: { status: 409, msg: 'This folder cannot be used.' },
  invalid_schema: { status: 400, msg: 'This is not a usable JSON Schema.' },
  action_not_found: { status: 404, msg: 'This fleet has no action of that name.' },
  action_version_not_found: {
    status: 404,
    msg: 'This action has no such version; it may have been removed.',
  },
  run_not_found: { status: 404, msg: 'This action has no such run, or no longer (actionRunsKept).' },
  state_key_not_found: { status: 404, msg: 'The state of this action has no such key.' },
  consumer_not_found: { status: 404, msg: 'This fleet has no consumer of that name.' },
  batch_not_found: {
    status: 404,
    msg: 'This batch is not leased: its lease expired and it was delivered again, or it was settled.',
  },
  invalid_action: { status: 400, msg: 'This is not a usable action.' },
  forwarder_not_found: { status: 404, msg: 'This fleet has no forwarder of that name.' },
  invalid_forwarder: { status: 400, msg: 'This is not a usable forwarder.' },
  dead_letter_not_found: { status: 404, msg: 'There is no such dead letter.' },
  server_held: { status: 409, msg: 'The server is held. Release it first (fleetpost release).' },
  replaced: { status: 409, msg: 'A newer request of this token for the same action has taken its place.' },
  action_test_failed: { status: 409, msg: 'A test of this version failed, so it was not deployed.' },
} as const;

const catalogue = { ...deviceErrors, ...claimErrors, ...adminErrors };

export type ErrorCode = keyof typeof catalogue;

export function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(catalogue, code);
}

/** D4's values of `detail`, for `malformed_credentials` and `unauthorized`. */
export const credentialDetails = [
  'invalid_credentials',
  'invalid_fleet_id',
  'invalid_device_id',
  'invalid_device_secret',
  'fleet_not_found',
  'device_not_found',
  'device_secret_incorrect',
  'device_disabled',
  'unknown',
] as const;
export type CredentialDetail = (typeof credentialDetails)[number];

/** One invalid part of a body: `path` is a JSON Pointer, `msg` a sentence. */
export interface FieldError {
  path: string;
  msg: string;
}

export interface ErrorOptions {
  /** Replaces the default message. Must not repeat unchecked input. */
  msg?: string;
  detail?: CredentialDetail;
  errors?: FieldError[];
  /** What the first of them is about, short: operators see it, and no answer has it. */
  refusedValue?: string | undefined;
  /** The `X-Mailbox-Size` that D15 asks for on mail errors. */
  mailboxSize?: number;
  retryAfterSeconds?: number;
  /** Set if the request may have been carried out. Absent: it was not. */
  isOutcomeUnknown?: boolean;
  /** Correlates the answer with the log. */
  requestId?: string;
  /** The connection's state does not allow reading further (D9). */
  closeConnection?: boolean;
}

/** The only error whose message reaches a client; anything else thrown becomes `internal_error`. */
export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly options: ErrorOptions;

  /** Skips the stack trace: nobody reads it, and capturing it costs more than the rest of a refusal. */
  constructor(code: ErrorCode, options: ErrorOptions = {}) {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(options.msg ?? catalogue[code].msg);
    Error.stackTraceLimit = stackTraceLimit;
    this.name = 'ApiError';
    this.code = code;
    this.options = options;
  }

  get status(): number {
    return catalogue[this.code].status;
  }

  /** D7's body: `error`, `msg`, and `detail` or `errors` if present. */
  toJSON(): { error: ErrorCode; msg: string; detail?: CredentialDetail; errors?: FieldError[] } {
    const { detail, errors } = this.options;
    return { error: this.code, msg: this.message, ...(detail && { detail }), ...(errors && { errors }) };
  }
}

/** Refusal for lack of space or time: 503 with `Retry-After`, naming the limit (D7). */
export function unavailable(msg: string, retryAfterSeconds = 1): ApiError {
  return new ApiError('unavailable', { msg, retryAfterSeconds });
}

/** True if the error is temporary: out of space or time, or a dependency that is down. */
export function isUnavailable(error: unknown): error is ApiError {
  return error instanceof ApiError && error.code === 'unavailable';
}

/** Refusal by a full write queue. */
export function queueFull(): ApiError {
  return unavailable('The write queue of this shard is full (shardQueueMax, shardQueueBytesMax).');
}

/** Refusal by every writer while less than the minimum of disk space is free. */
export function diskFull(): ApiError {
  return unavailable('The disk of the data folder is full (diskFreeBytesMin).', 5);
}

/** 429 with `Retry-After`, naming the limit (D7). */
export function rateLimited(msg: string, retryAfterSeconds: number): ApiError {
  return new ApiError('rate_limited', { msg, retryAfterSeconds: Math.max(1, Math.ceil(retryAfterSeconds)) });
}

/** An error shown to the operator at start or on the command line, without a stack. */
export class OperatorError extends Error {
  override name = 'OperatorError';
}
