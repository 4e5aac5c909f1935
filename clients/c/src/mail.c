/** Takes mail: hears of it by the event stream, has it handled, and remembers how it ended until the server has heard. */
#include <string.h>

#include "device.h"
#include "queue.h"

#define STREAM_FAILURES_MAX 3
#define SETTLED_BYTES (FLEETPOST_SETTLED_MAX * 17)

int fleetpost_mail_load(struct fleetpost_device *device) {
  uint8_t bytes[SETTLED_BYTES];
  long size = fleetpost_store(device, FLEETPOST_LOAD, FLEETPOST_SLOT_SETTLED, bytes, sizeof bytes);
  if (size < 0) return (int)size;
  for (size_t one = 0; size == SETTLED_BYTES && one < FLEETPOST_SETTLED_MAX; one++) {
    memcpy(device->settled[one].uuid, bytes + 17 * one, 16);
    device->settled[one].verb = bytes[17 * one + 16] <= FLEETPOST_REQUEUE ? bytes[17 * one + 16] : FLEETPOST_ACK;
  }
  return FLEETPOST_OK;
}

int fleetpost_mail_save(struct fleetpost_device *device) {
  uint8_t bytes[SETTLED_BYTES];
  for (size_t one = 0; one < FLEETPOST_SETTLED_MAX; one++) {
    memcpy(bytes + 17 * one, device->settled[one].uuid, 16);
    bytes[17 * one + 16] = device->settled[one].verb;
  }
  long saved = fleetpost_store(device, FLEETPOST_SAVE, FLEETPOST_SLOT_SETTLED, bytes, sizeof bytes);
  device->is_settled_saved = saved >= 0;
  return saved < 0 ? FLEETPOST_STORE_FAILED : FLEETPOST_OK;
}

void fleetpost_mail_not_asked(struct fleetpost_device *device) {
  if (device->asks_mail) device->is_mail_wanted = true;
  device->asks_mail = false;
}

static enum fleetpost_verb handle(struct fleetpost_device *device) {
  const struct fleetpost_answer *answer = &device->requests.answer;
  const struct fleetpost_mail mail = {answer->mail_id, answer->mail_name, device->options.buffer, device->body_bytes};
  if (device->body_bytes >= device->options.buffer_bytes) {
    fleetpost_say(device, true, "A mail is larger than the buffer, and was rejected: ", mail.name);
    return FLEETPOST_REJECT;
  }
  enum fleetpost_verb verb = device->on_mail(device->mail_context, &mail);
  return verb == FLEETPOST_ACK || verb == FLEETPOST_REQUEUE ? verb : FLEETPOST_REJECT;
}

/** What is put off comes again. Once the whole mailbox has come round, it rests for a while. */
static void note_round(struct fleetpost_device *device, uint8_t verb) {
  device->requeues = verb == FLEETPOST_REQUEUE ? device->requeues + 1 : 0;
  if (device->requeues == 0 || device->requeues < device->mailbox) return;
  int32_t attempt = device->mailbox > 0 ? device->requeues - device->mailbox : 0;
  device->mail_at_ms = fleetpost_steady_ms(device) + fleetpost_backoff_ms(device, attempt, device->timing.retry_ms_max);
}

void fleetpost_mail_fetched(struct fleetpost_device *device) {
  const struct fleetpost_answer *answer = &device->requests.answer;
  struct fleetpost_settled in_hand;
  size_t found = 0;
  if (!fleetpost_text_uuid(answer->mail_id, in_hand.uuid) || !fleetpost_text_fits(answer->mail_name, 1, 255, "_-")) {
    fleetpost_wait_after(device, FLEETPOST_MALFORMED);
    return;
  }
  while (found < FLEETPOST_SETTLED_MAX && memcmp(device->settled[found].uuid, in_hand.uuid, 16) != 0) found++;
  if (found < FLEETPOST_SETTLED_MAX) in_hand.verb = device->settled[found].verb;
  else {
    in_hand.verb = (uint8_t)handle(device);
    found = FLEETPOST_SETTLED_MAX - 1;
    device->is_settled_saved = false;
  }
  // The mail in hand comes first in the list; the oldest falls off its end.
  memmove(device->settled + 1, device->settled, found * sizeof *device->settled);
  device->settled[0] = in_hand;
  device->has_mail = true;
  note_round(device, in_hand.verb);
}

void fleetpost_mail_settled(struct fleetpost_device *device) {
  device->has_mail = false;
  if (device->settled[0].verb != FLEETPOST_REQUEUE) return;
  memset(device->settled, 0, sizeof *device->settled);  // It comes again, and is to be handled then.
  device->is_settled_saved = false;
  (void)fleetpost_mail_save(device);
}

/** Decides when, and whether, the next stream is tried after one has ended. */
static void stream_ended(struct fleetpost_device *device, int result, int64_t now_ms) {
  int32_t wait_ms = device->events.retry_ms;
  if (result < 0) {
    device->stream_failures++;
    wait_ms = fleetpost_backoff_ms(device, device->stream_failures, device->timing.retry_ms_max);
    wait_ms += 1000 * fleetpost_retry_after_seconds(&device->stream.answer);
    if (device->stream_failures >= STREAM_FAILURES_MAX) device->stream_again_at_ms = now_ms + device->timing.stream_again_ms;
  }
  device->stream_at_ms = now_ms + wait_ms;
  if (device->stream_failures >= STREAM_FAILURES_MAX) {
    // An event is a hint, and the mailbox the truth: without a stream it is looked at now and then.
    if (device->look_at_ms == INT64_MAX) device->look_at_ms = now_ms;
    if (device->stream_at_ms < device->stream_again_at_ms) device->stream_at_ms = device->stream_again_at_ms;
  }
}

bool fleetpost_stream_step(struct fleetpost_device *device, int64_t now_ms) {
  struct fleetpost_exchange *stream = &device->stream;
  if (stream->phase == FLEETPOST_IDLE) {
    if (device->on_mail == NULL || device->options.is_polling || !device->is_claimed || now_ms < device->stream_at_ms) return false;
    if (device->sleep == FLEETPOST_ASLEEP) return false;
    fleetpost_events_begin(&device->events);
    fleetpost_exchange_begin(stream, now_ms);
    return true;
  }
  int result = fleetpost_exchange_step(device, stream, now_ms);
  const struct fleetpost_answer *answer = &stream->answer;
  bool is_refused = stream->phase == FLEETPOST_READING && answer->status >= 200 && answer->status != 200;
  if (result == 2 || is_refused) {
    result = answer->status == 200 ? 2 : FLEETPOST_MALFORMED;
  }
  if (device->events.has_spoken) {
    device->stream_failures = 0;
    device->look_at_ms = INT64_MAX;
    device->events.has_spoken = false;
    if (device->events.mailbox_size >= 0) device->mailbox = device->events.mailbox_size;
    if (device->events.has_mail) device->is_mail_wanted = true;
    device->events.has_mail = false;
  }
  if (result >= 0 && result < 2) return result == 1;
  fleetpost_exchange_close(device, stream);
  stream_ended(device, result, now_ms);
  return true;
}
