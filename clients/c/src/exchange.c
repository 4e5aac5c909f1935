/** Carries one request out and its answer in, on a connection that stays open while it is used. */
#include <string.h>

#include "device.h"

/** The server closes connections that idle for 8 s (D22). */
#define IDLE_MS_MAX 7000
#define CHUNK_BYTES 256
/** An exchange ends after so long without a byte in either direction; for an event stream that is two keep_alives. */
#define SILENCE_MS_MAX 30000
#define STREAM_SILENCE_MS_MAX 60000
/** The largest is that to a sync, with a mail and an error for each record. */
#define ANSWER_BYTES_MAX (4 * FLEETPOST_BODY_BYTES_MAX)

void fleetpost_exchange_close(struct fleetpost_device *device, struct fleetpost_exchange *exchange) {
  const struct fleetpost_port *port = device->options.port;
  if (exchange->is_open || exchange->phase != FLEETPOST_IDLE) port->close(port->context, exchange->channel);
  exchange->is_open = false;
  exchange->phase = FLEETPOST_IDLE;
}

static void set_deadline(struct fleetpost_exchange *exchange, int64_t now_ms) {
  exchange->deadline_ms = now_ms + (exchange->channel == FLEETPOST_EVENTS ? STREAM_SILENCE_MS_MAX : SILENCE_MS_MAX);
}

void fleetpost_exchange_begin(struct fleetpost_exchange *exchange, int64_t now_ms) {
  exchange->is_reused = exchange->is_open;
  exchange->phase = FLEETPOST_OPENING;
  set_deadline(exchange, now_ms);
}

/** Keeps of a body what fits into `buffer`, and counts all of it. */
static void take_body(void *context, const char *bytes, size_t size) {
  struct fleetpost_device *device = context;
  size_t rest = device->options.buffer_bytes - 1;
  if (device->body_bytes < rest) {
    rest -= device->body_bytes;
    memcpy(device->options.buffer + device->body_bytes, bytes, size < rest ? size : rest);
  }
  device->body_bytes += size;
  size_t end = device->body_bytes < device->options.buffer_bytes ? device->body_bytes : device->options.buffer_bytes - 1;
  device->options.buffer[end] = '\0';
}

/** Whatever is no sync's 200 is an error, to be shown. */
static void take_sync(void *context, const char *bytes, size_t size) {
  struct fleetpost_device *device = context;
  if (device->requests.answer.status != 200) {
    take_body(device, bytes, size);
    return;
  }
  device->body_bytes += size;
  fleetpost_sync_feed(device, bytes, size);
}

static void begin_answer(struct fleetpost_device *device, struct fleetpost_exchange *exchange) {
  if (exchange->channel == FLEETPOST_EVENTS) {
    fleetpost_answer_begin(&exchange->answer, false, fleetpost_events_feed, &device->events);
    return;
  }
  device->body_bytes = 0;
  device->options.buffer[0] = '\0';
  bool is_sync = device->job == FLEETPOST_JOB_SYNC;
  if (is_sync) fleetpost_sync_begin_answer(device);
  fleetpost_answer_begin(&exchange->answer, device->job == FLEETPOST_JOB_LOOK, is_sync ? take_sync : take_body, device);
}

/** An idle connection that the server has ended, or speaks on out of turn, is of no use. */
static int check_idle(struct fleetpost_device *device, struct fleetpost_exchange *exchange, int64_t now_ms) {
  const struct fleetpost_port *port = device->options.port;
  char byte;
  if (!exchange->is_open) return 0;
  if (now_ms - exchange->used_ms < IDLE_MS_MAX && port->read(port->context, exchange->channel, &byte, 1) == 0) return 0;
  fleetpost_exchange_close(device, exchange);
  return 1;
}

static int step_open(struct fleetpost_device *device, struct fleetpost_exchange *exchange) {
  const struct fleetpost_port *port = device->options.port;
  if (!exchange->is_open) {
    int result = port->open(port->context, exchange->channel);
    if (result <= 0) return result;
    exchange->is_open = true;
  }
  // `buffer` serves both channels: a stream is asked for when no request or answer is in it.
  if (exchange->channel == FLEETPOST_EVENTS && device->requests.phase >= FLEETPOST_WRITING) return 0;
  exchange->written_bytes = 0;
  if (exchange->channel == FLEETPOST_REQUESTS) {
    int result = fleetpost_compose(device);
    if (result < 0) return result;
  }
  exchange->phase = FLEETPOST_WRITING;
  return 1;
}

static int step_write(struct fleetpost_device *device, struct fleetpost_exchange *exchange) {
  const struct fleetpost_port *port = device->options.port;
  if (exchange->channel == FLEETPOST_EVENTS) {
    if (device->requests.phase >= FLEETPOST_WRITING) return 0;
    fleetpost_compose_stream(device);  // The same each time: what is written already is a part of it.
  }
  const char *from = device->options.buffer + exchange->written_bytes;
  long written = port->write(port->context, exchange->channel, from, exchange->request_bytes - exchange->written_bytes);
  if (written <= 0) return (int)written;
  exchange->written_bytes += (size_t)written;
  if (exchange->written_bytes < exchange->request_bytes) return 1;
  begin_answer(device, exchange);
  exchange->phase = FLEETPOST_READING;
  return 1;
}

static int step_read(struct fleetpost_device *device, struct fleetpost_exchange *exchange, int64_t now_ms) {
  const struct fleetpost_port *port = device->options.port;
  char bytes[CHUNK_BYTES];
  size_t used;
  long size = port->read(port->context, exchange->channel, bytes, sizeof bytes);
  if (size <= 0) return (int)size;
  exchange->is_reused = false;
  exchange->used_ms = now_ms;
  int result = fleetpost_answer_feed(&exchange->answer, bytes, (size_t)size, &used);
  if (result < 0) return result;
  if (result == 0) return device->body_bytes <= ANSWER_BYTES_MAX ? 1 : FLEETPOST_MALFORMED;
  exchange->phase = FLEETPOST_IDLE;
  if (exchange->answer.will_close || used < (size_t)size) fleetpost_exchange_close(device, exchange);
  return 2;
}

int fleetpost_exchange_step(struct fleetpost_device *device, struct fleetpost_exchange *exchange, int64_t now_ms) {
  int result = 0;
  if (exchange->phase == FLEETPOST_IDLE) return check_idle(device, exchange, now_ms);
  if (exchange->phase == FLEETPOST_OPENING) result = step_open(device, exchange);
  else if (exchange->phase == FLEETPOST_WRITING) result = step_write(device, exchange);
  else result = step_read(device, exchange, now_ms);
  if (result == 0 && now_ms >= exchange->deadline_ms) result = FLEETPOST_TIMED_OUT;
  if (result > 0) set_deadline(exchange, now_ms);
  if (result >= 0) return result;
  bool is_again = exchange->is_reused && exchange->phase >= FLEETPOST_WRITING;
  fleetpost_exchange_close(device, exchange);
  if (!is_again) return result;
  // The server may have closed it meanwhile. Everything sent can be repeated.
  fleetpost_exchange_begin(exchange, now_ms);
  return 1;
}
