/** Writes requests, and decides the key of an entry at its first attempt. */
#include <string.h>

#include "device.h"
#include "queue.h"

/** The server remembers a key for 24 h (D18); an older one could be stored twice, so it is renewed before and counted. */
#define KEY_MS_MAX INT64_C(82800000)

static struct fleetpost_text begin(struct fleetpost_device *device, const char *method, const char *path, const char *more) {
  struct fleetpost_text text = {device->options.buffer, FLEETPOST_HEAD_BYTES, 0, false};
  fleetpost_text_add(&text, method);
  fleetpost_text_add(&text, path);
  fleetpost_text_add(&text, more);
  fleetpost_text_add(&text, " HTTP/1.1\r\nHost: ");
  fleetpost_text_add(&text, device->options.url + strlen("https://"));
  fleetpost_text_add(&text, "\r\n");
  return text;
}

static void add_header(struct fleetpost_text *text, const char *name, const char *value) {
  fleetpost_text_add(text, name);
  fleetpost_text_add(text, ": ");
  fleetpost_text_add(text, value);
  fleetpost_text_add(text, "\r\n");
}

static void add_credentials(const struct fleetpost_device *device, struct fleetpost_text *text) {
  add_header(text, "X-Fleet-ID", device->options.fleet);
  add_header(text, "X-Device-ID", device->options.id);
  add_header(text, "X-Device-Secret", device->secret);
}

static void add_length(struct fleetpost_text *text, size_t bytes) {
  fleetpost_text_add(text, "Content-Length: ");
  fleetpost_text_add_number(text, bytes, 1);
  fleetpost_text_add(text, "\r\n\r\n");
}

/** Chooses a secret, which is stored before it is sent: a lost answer is harmless then. */
static int choose_secret(struct fleetpost_device *device) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  const struct fleetpost_port *port = device->options.port;
  char secret[37] = "FOS-";
  for (size_t at = 4; at < 36;) {
    uint8_t bytes[16];
    if (port->random(port->context, bytes, sizeof bytes) < 0) return FLEETPOST_RANDOM_FAILED;
    for (size_t byte = 0; byte < sizeof bytes && at < 36; byte++) {
      if (bytes[byte] < 248) secret[at++] = letters[bytes[byte] % 62];  // 248 is 4 times 62: each letter is as likely.
    }
  }
  if (fleetpost_store(device, FLEETPOST_SAVE, FLEETPOST_SLOT_SECRET, secret, 36) < 0) return FLEETPOST_STORE_FAILED;
  memcpy(device->secret, secret, sizeof secret);
  return FLEETPOST_OK;
}

static int compose_claim(struct fleetpost_device *device, struct fleetpost_text *text) {
  char bytes[256];
  struct fleetpost_text body = {bytes, sizeof bytes, 0, false};
  int result = device->secret[0] == '\0' ? choose_secret(device) : FLEETPOST_OK;
  if (result < 0) return result;
  const char *const parts[] = {"{\"fleet_id\":\"",     device->options.fleet, "\",\"claim_token\":\"",   device->options.claim,
                               "\",\"device_id\":\"", device->options.id,    "\",\"device_secret\":\"", device->secret,
                               "\"}"};
  for (size_t part = 0; part < sizeof parts / sizeof *parts; part++) fleetpost_text_add(&body, parts[part]);
  *text = begin(device, "POST ", "/v1/claim", "");
  add_header(text, "Content-Type", "application/json");
  add_length(text, body.length);
  fleetpost_text_add(text, bytes);
  return FLEETPOST_OK;
}

/** Makes a UUIDv7 and decides which time goes with it; both are stored before the first attempt, if there is room. */
static int make_key(struct fleetpost_device *device, int64_t now_ms) {
  const struct fleetpost_port *port = device->options.port;
  const struct fleetpost_entry *entry = &device->entry;
  struct fleetpost_queue *queue = &device->queue;
  struct fleetpost_key key = {entry->number, {0}, now_ms, 0};
  bool is_doubtful = queue->key.number == entry->number;
  if (is_doubtful) {
    if (fleetpost_queue_count(device, FLEETPOST_DOUBTFUL, 1) < 0) return FLEETPOST_STORE_FAILED;
    fleetpost_say(device, device->is_connected, "An answer was missing for a day: an entry is sent again, and may be stored twice.", "");
  }
  key.at_ms = fleetpost_recorded_ms(device, entry, is_doubtful);
  if (port->random(port->context, key.uuid + 6, 10) < 0) return FLEETPOST_RANDOM_FAILED;
  for (int byte = 0; byte < 6; byte++) key.uuid[byte] = (uint8_t)((uint64_t)now_ms >> (40 - 8 * byte));
  key.uuid[6] = (uint8_t)((key.uuid[6] & 0x0F) | 0x70);
  key.uuid[8] = (uint8_t)((key.uuid[8] & 0x3F) | 0x80);
  (void)fleetpost_queue_save_key(device, &key);  // A store that is full must not hold up what would empty it.
  return FLEETPOST_OK;
}

static int compose_send(struct fleetpost_device *device, struct fleetpost_text *text) {
  const struct fleetpost_entry *entry = &device->entry;
  const struct fleetpost_key *key = &device->queue.key;
  int64_t now_ms = fleetpost_now_ms(device);
  int result = fleetpost_queue_read(device, device->place, &device->entry);
  if (result < 0) return result;
  if (result > 0 || entry->number != device->options.places[device->place].number) return FLEETPOST_INVALID_PAYLOAD;
  if (key->number != entry->number || now_ms - key->made_ms > KEY_MS_MAX) {
    result = make_key(device, now_ms);
    if (result < 0) return result;
  }
  *text = begin(device, "POST ", entry->is_message ? "/v1/msg/" : "/v1/datapoint/", entry->name);
  add_credentials(device, text);
  add_header(text, "Content-Type", "application/json");
  fleetpost_text_add(text, "Idempotency-Key: ");
  fleetpost_text_add_uuid(text, key->uuid);
  fleetpost_text_add(text, "\r\n");
  if (key->at_ms != 0) {
    fleetpost_text_add(text, "Recorded-At: ");
    fleetpost_text_add_time(text, key->at_ms);
    fleetpost_text_add(text, "\r\n");
  }
  add_length(text, entry->body_bytes);
  if (text->is_cut || entry->body_bytes == 0) return FLEETPOST_OK;
  size_t rest = device->options.buffer_bytes - text->length;
  uint32_t slot = FLEETPOST_SLOT_ENTRIES + 2 * device->place + 1;
  long loaded = entry->body_bytes > rest ? 0 : fleetpost_store(device, FLEETPOST_LOAD, slot, text->bytes + text->length, rest);
  if (loaded < 0) return FLEETPOST_STORE_FAILED;
  if (loaded != (long)entry->body_bytes) return FLEETPOST_INVALID_PAYLOAD;
  text->length += entry->body_bytes;
  return FLEETPOST_OK;
}

/** Writes the body behind the room for the head, which says how long it is. False: the oldest entry has to go alone. */
static bool compose_sync(struct fleetpost_device *device, struct fleetpost_text *text) {
  size_t rest = device->options.buffer_bytes - FLEETPOST_HEAD_BYTES;
  size_t size = rest < FLEETPOST_BODY_BYTES_MAX + 1 ? rest : FLEETPOST_BODY_BYTES_MAX + 1;
  struct fleetpost_text body = {device->options.buffer + FLEETPOST_HEAD_BYTES, size, 0, false};
  fleetpost_sync_write(device, &body);
  // In turns, so that neither what has to go alone nor a full mailbox holds up the other.
  bool is_for_mail = device->has_mail || (device->asks_mail && device->is_mail_turn);
  if (device->sync.records_count == 0 && device->place != FLEETPOST_NO_PLACE && !is_for_mail) return false;
  *text = begin(device, "POST ", "/v1/sync", "");
  add_credentials(device, text);
  add_header(text, "Content-Type", "application/json");
  add_length(text, body.length);
  text->is_cut = text->is_cut || body.is_cut;
  memmove(text->bytes + text->length, body.bytes, body.length);
  text->length += body.length;
  return true;
}

static void compose_settle(struct fleetpost_device *device, struct fleetpost_text *text) {
  static const char *const verbs[] = {"/v1/mailbox/ack/", "/v1/mailbox/reject/", "/v1/mailbox/requeue/"};
  char bytes[37];
  struct fleetpost_text id = {bytes, sizeof bytes, 0, false};
  fleetpost_text_add_uuid(&id, device->settled[0].uuid);
  *text = begin(device, "PUT ", verbs[device->settled[0].verb], bytes);
}

int fleetpost_compose(struct fleetpost_device *device) {
  struct fleetpost_text text = {NULL, 0, 0, false};
  int result = FLEETPOST_OK;
  if (device->job == FLEETPOST_JOB_SYNC && !compose_sync(device, &text)) {
    device->job = FLEETPOST_JOB_SEND;
    fleetpost_mail_not_asked(device);
  }
  if (device->job == FLEETPOST_JOB_CLAIM) result = compose_claim(device, &text);
  else if (device->job == FLEETPOST_JOB_SEND) result = compose_send(device, &text);
  else if (device->job != FLEETPOST_JOB_SYNC) {
    if (device->job == FLEETPOST_JOB_SETTLE) compose_settle(device, &text);
    else if (device->job == FLEETPOST_JOB_HEARTBEAT) text = begin(device, "POST ", "/v1/heartbeat", "");
    else text = begin(device, device->job == FLEETPOST_JOB_LOOK ? "HEAD " : "GET ", "/v1/mailbox/next", "");
    add_credentials(device, &text);
    if (device->job == FLEETPOST_JOB_SETTLE || device->job == FLEETPOST_JOB_HEARTBEAT) add_length(&text, 0);
    else fleetpost_text_add(&text, "\r\n");
  }
  if (result == FLEETPOST_OK && text.is_cut) result = FLEETPOST_INVALID_OPTION;
  device->requests.request_bytes = text.length;
  return result;
}

void fleetpost_compose_stream(struct fleetpost_device *device) {
  struct fleetpost_text text = begin(device, "GET ", "/v1/events", "");
  add_credentials(device, &text);
  fleetpost_text_add(&text, "Accept: text/event-stream\r\n\r\n");
  device->stream.request_bytes = text.length;
}
