/** Says what happened, and waits as long as it asks for. */
#include <string.h>

#include "device.h"

const char *fleetpost_describe(int result) {
  switch (result) {
    case FLEETPOST_OK: return "Done.";
    case FLEETPOST_CLOSED: return "The connection was closed.";
    case FLEETPOST_UNREACHABLE: return "No connection could be made.";
    case FLEETPOST_UNTRUSTED: return "The server's certificate is not trusted.";
    case FLEETPOST_NOT_PINNED: return "The server's key is none of the pinned ones.";
    case FLEETPOST_TIMED_OUT: return "Nothing came in time.";
    case FLEETPOST_MALFORMED: return "The answer is malformed.";
    case FLEETPOST_HEADERS_TOO_LARGE: return "The headers of the answer are too large.";
    case FLEETPOST_STORE_FAILED: return "The store failed.";
    case FLEETPOST_RANDOM_FAILED: return "The source of randomness failed.";
    case FLEETPOST_INVALID_OPTION: return "An option is invalid or missing.";
    case FLEETPOST_INVALID_NAME: return "A name has 1 to 255 letters, digits, '_' and '-'.";
    case FLEETPOST_INVALID_PAYLOAD: return "A payload is a JSON object that fits into the buffer.";
    case FLEETPOST_QUEUE_FULL: return "The queue has no place that could be freed.";
    default: return "Unknown.";
  }
}

int32_t fleetpost_backoff_ms(const struct fleetpost_device *device, int32_t attempt, int32_t ms_max) {
  const struct fleetpost_port *port = device->options.port;
  int32_t bound = 1000 * (INT32_C(1) << (attempt < 16 ? attempt : 16));
  uint32_t random = 0;
  if (bound > ms_max) bound = ms_max;
  // Without randomness all of it is waited: a device that cannot draw must not hurry.
  if (port->random(port->context, &random, sizeof random) < 0) return bound;
  return (int32_t)(random % ((uint32_t)bound + 1));
}

int32_t fleetpost_retry_after_seconds(const struct fleetpost_answer *answer) {
  if (answer->retry_after_seconds <= 0) return 0;
  return answer->retry_after_seconds < 3600 ? answer->retry_after_seconds : 3600;
}

static void tell(struct fleetpost_device *device, bool is_connected) {
  device->is_connected = is_connected;
  if (device->options.on_status == NULL) return;
  struct fleetpost_status status = fleetpost_status(device);
  device->options.on_status(device->options.status_context, &status);
}

void fleetpost_say(struct fleetpost_device *device, bool is_connected, const char *reason, const char *more) {
  struct fleetpost_text text = {device->reason, sizeof device->reason, 0, false};
  fleetpost_text_add(&text, reason);
  fleetpost_text_add(&text, more);
  tell(device, is_connected);
}

/** The text of a member of the server's error, up to its closing quote; NULL: there is none. */
static const char *find_member(const char *json, const char *name, const char **end) {
  const char *found = strstr(json, name);
  if (found == NULL) return NULL;
  found += strlen(name);
  for (*end = found; **end != '\0' && **end != '"'; (*end)++) {
    if (**end == '\\' && (*end)[1] != '\0') (*end)++;
  }
  return found;
}

bool fleetpost_answer_has_code(const struct fleetpost_device *device, const char *code) {
  const char *end, *found = find_member(device->options.buffer, "\"error\":\"", &end);
  return found != NULL && (size_t)(end - found) == strlen(code) && memcmp(found, code, strlen(code)) == 0;
}

/** Says something with a message of the server behind it, or the status where there is none. */
static void say_with(struct fleetpost_device *device, bool is_connected, const char *const reason[2], const char *msg, const char *end) {
  struct fleetpost_text text = {device->reason, sizeof device->reason, 0, false};
  fleetpost_text_add(&text, reason[0]);
  fleetpost_text_add(&text, reason[1]);
  fleetpost_text_add(&text, ": ");
  if (msg != NULL) fleetpost_text_add_foreign(&text, msg, end);
  else fleetpost_text_add_number(&text, (uint64_t)device->requests.answer.status, 3);
  tell(device, is_connected);
}

static void say_answer(struct fleetpost_device *device, bool is_connected, const char *reason, const char *more) {
  const char *end = NULL, *found = find_member(device->options.buffer, "\"msg\":\"", &end);
  say_with(device, is_connected, (const char *const[]){reason, more}, found, end);
}

void fleetpost_say_refused(struct fleetpost_device *device, const char *msg) {
  const char *reason = device->entry.is_message ? "The server refused msg/" : "The server refused datapoint/";
  if (msg == NULL) say_answer(device, true, reason, device->entry.name);
  else say_with(device, true, (const char *const[]){reason, device->entry.name}, msg, msg + strlen(msg));
}

static void wait(struct fleetpost_device *device, int64_t wait_ms) {
  device->wait_until_ms = fleetpost_steady_ms(device) + wait_ms;
  device->attempt++;
}

void fleetpost_wait_after(struct fleetpost_device *device, int result) {
  bool is_network = result > FLEETPOST_STORE_FAILED;
  fleetpost_say(device, is_network ? false : device->is_connected, is_network ? "The server cannot be reached: " : "", fleetpost_describe(result));
  wait(device, fleetpost_backoff_ms(device, device->attempt, device->timing.retry_ms_max));
}

void fleetpost_wait_after_item(struct fleetpost_device *device, int status) {
  char digits[4];
  struct fleetpost_text text = {digits, sizeof digits, 0, false};
  fleetpost_text_add_number(&text, (uint64_t)status, 3);
  fleetpost_say(device, device->is_connected, "The server did not take all of it: ", digits);
  wait(device, fleetpost_backoff_ms(device, device->attempt, device->timing.retry_ms_max));
}

void fleetpost_wait_after_answer(struct fleetpost_device *device, int32_t attempt_more) {
  const struct fleetpost_answer *answer = &device->requests.answer;
  int64_t asked_ms = INT64_C(1000) * fleetpost_retry_after_seconds(answer);
  if (answer->status == 401 || answer->status == 403) {
    // An operator may enable the device or restore its secret, so nothing is thrown away; but locked-out devices wait.
    say_answer(device, false, "The server refused this device", "");
    wait(device, asked_ms > 0 ? asked_ms : fleetpost_backoff_ms(device, device->attempt + 5, device->timing.unauthorized_ms_max));
    return;
  }
  say_answer(device, device->is_connected, "The server did not take it", "");
  wait(device, asked_ms + fleetpost_backoff_ms(device, device->attempt + attempt_more, device->timing.retry_ms_max));
}
