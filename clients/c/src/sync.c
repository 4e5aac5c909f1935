/** Says a whole wake in one request (D29): what waits, how the mail in hand ended, and that the next one is asked for. */
#include <string.h>

#include "device.h"
#include "queue.h"

#define RECORDS_MAX 500

/** Members of an answer: those of the first level, then those of an item. Others are read over. */
enum { OTHER, RECORDS, SETTLED, MAIL, STORED_TO, STATUS, ERROR, MSG, ID, NAME, PAYLOAD };

/** Base64 for URLs of the order's name and number: 16 characters, which is what the server takes. */
static void add_queue(struct fleetpost_text *body, const struct fleetpost_order *order) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  uint8_t bytes[12];
  char text[17] = {0};
  memcpy(bytes, order->name, 8);
  for (int byte = 0; byte < 4; byte++) bytes[8 + byte] = (uint8_t)(order->first_number >> 8 * byte);
  for (int at = 0; at < 16; at++) {
    int byte = 6 * at / 8, pair = bytes[byte] << 8 | (byte < 11 ? bytes[byte + 1] : 0);
    text[at] = letters[pair >> (10 - 6 * at % 8) & 63];
  }
  fleetpost_text_add(body, text);
}

/** Adds the payload of `entry` as it is. One that is no JSON object would spoil all of the request. */
static bool add_payload(struct fleetpost_device *device, struct fleetpost_text *body, uint32_t place) {
  uint32_t size = device->entry.body_bytes;
  char *to = body->bytes + body->length;
  if (size >= body->size - body->length) return false;
  long loaded = fleetpost_store(device, FLEETPOST_LOAD, FLEETPOST_SLOT_ENTRIES + 2 * place + 1, to, size);
  if (loaded != (long)size || !fleetpost_json_is_object(&device->sync.json, to, size)) return false;
  body->length += size;
  body->bytes[body->length] = '\0';
  return true;
}

/** Adds `entry`; false, and nothing is added, if it has to go alone or in the next request. */
static bool add_record(struct fleetpost_device *device, struct fleetpost_text *body, uint32_t place) {
  const struct fleetpost_entry *entry = &device->entry;
  size_t before = body->length;
  int64_t at_ms = fleetpost_recorded_ms(device, entry, false);
  fleetpost_text_add(body, device->sync.records_count > 0 ? "," : "");
  fleetpost_text_add(body, entry->is_message ? "{\"kind\":\"message\",\"schema\":\"" : "{\"kind\":\"datapoint\",\"schema\":\"");
  fleetpost_text_add(body, entry->name);
  fleetpost_text_add(body, "\",\"payload\":");
  bool is_added = add_payload(device, body, place);
  if (at_ms != 0) {
    fleetpost_text_add(body, ",\"recorded_at\":\"");
    fleetpost_text_add_time(body, at_ms);
    fleetpost_text_add(body, "\"");
  }
  fleetpost_text_add(body, "}");
  if (is_added && !body->is_cut) return true;
  body->is_cut = false;
  body->length = before;
  return false;
}

/** True if an entry was sent by its own route, or is to be: it must not be stored by another way too. */
static bool is_alone(const struct fleetpost_device *device, uint32_t number) {
  bool is_known = device->alone_to != 0 && device->alone_to - number <= UINT32_MAX / 2;
  return is_known || number == device->queue.key.number;
}

/** Begins the records with the order of the oldest, or tells whether another belongs to it too. */
static bool is_of_order(struct fleetpost_device *device, struct fleetpost_text *body, struct fleetpost_order *order) {
  const struct fleetpost_entry *entry = &device->entry;
  struct fleetpost_sync *sync = &device->sync;
  if (sync->records_count > 0) {
    bool is_same = memcmp(entry->order.name, order->name, sizeof order->name) == 0 && entry->order.first_number == order->first_number;
    return is_same && !fleetpost_needs_clock(device, entry);
  }
  *order = entry->order;
  sync->first_number = entry->number;
  sync->first_seq = entry->number - order->first_number + 1;
  fleetpost_text_add(body, ",\"queue\":\"");
  add_queue(body, order);
  fleetpost_text_add(body, "\",\"seq\":");
  fleetpost_text_add_number(body, sync->first_seq, 1);
  fleetpost_text_add(body, ",\"records\":[");
  return true;
}

/** Adds the oldest entries, as long as their numbers follow each other and there is room. */
static void add_records(struct fleetpost_device *device, struct fleetpost_text *body) {
  struct fleetpost_sync *sync = &device->sync;
  struct fleetpost_order order = {{0}, 0};
  uint32_t place = device->place, number = place == FLEETPOST_NO_PLACE ? 0 : device->options.places[place].number;
  size_t before = body->length;
  sync->records_count = 0;
  body->size -= 2;  // For what ends the list and the body.
  while (place != FLEETPOST_NO_PLACE && number != 0 && sync->records_count < RECORDS_MAX && !is_alone(device, number)) {
    int result = fleetpost_queue_read(device, place, &device->entry);
    if (result != FLEETPOST_OK || device->entry.number != number) break;
    if (!is_of_order(device, body, &order) || !add_record(device, body, place)) break;
    device->options.places[place].verdict = FLEETPOST_STORED;
    sync->records_count++;
    place = fleetpost_queue_find(device, ++number, place + 1);
  }
  body->size += 2;
  if (sync->records_count > 0) {
    fleetpost_text_add(body, "]");
    return;
  }
  body->is_cut = false;
  body->length = before;
}

void fleetpost_sync_write(struct fleetpost_device *device, struct fleetpost_text *body) {
  static const char *const verbs[] = {"ack", "reject", "requeue"};
  size_t bytes_max = device->options.buffer_bytes - 1;
  fleetpost_text_add(body, "{\"mail\":{\"max\":");
  fleetpost_text_add(body, device->asks_mail ? "1" : "0");
  fleetpost_text_add(body, ",\"bytes\":");
  fleetpost_text_add_number(body, bytes_max < FLEETPOST_BODY_BYTES_MAX ? bytes_max : FLEETPOST_BODY_BYTES_MAX, 1);
  fleetpost_text_add(body, "}");
  if (device->has_mail) {
    fleetpost_text_add(body, ",\"settle\":[{\"id\":\"");
    fleetpost_text_add_uuid(body, device->settled[0].uuid);
    fleetpost_text_add(body, "\",\"verb\":\"");
    fleetpost_text_add(body, verbs[device->settled[0].verb]);
    fleetpost_text_add(body, "\"}]");
  }
  add_records(device, body);
  fleetpost_text_add(body, "}");
}

static void begin_item(struct fleetpost_sync *sync) {
  sync->item_status = -1;
  sync->is_untimed = false;
  sync->member = OTHER;
}

void fleetpost_sync_begin_answer(struct fleetpost_device *device) {
  struct fleetpost_sync *sync = &device->sync;
  fleetpost_json_begin(&sync->json);
  sync->list = OTHER;
  sync->is_malformed = sync->has_mail = sync->has_payload = false;
  sync->records = sync->refused_number = 0;
  sync->stored_to = sync->settled_status = -1;
  sync->later_status = 0;
  sync->payload_bytes = 0;
  sync->msg[0] = '\0';
  begin_item(sync);
}

static uint8_t member_of(const struct fleetpost_json *json, uint8_t first, uint8_t last) {
  static const char *const names[] = {"", "records", "settled", "mail", "stored_to", "status", "error", "msg", "id", "name", "payload"};
  for (uint8_t member = first; member <= last; member++) {
    if (!json->is_cut && strcmp(json->text, names[member]) == 0) return member;
  }
  return OTHER;
}

/** Copies a text of the answer; an empty one if it does not fit. */
static void copy(char *to, size_t size, const char *text) {
  size_t length = text == NULL ? size : strlen(text);
  to[0] = '\0';
  if (length < size) memcpy(to, text, length + 1);
}

static void take_member(struct fleetpost_device *device) {
  struct fleetpost_sync *sync = &device->sync;
  struct fleetpost_answer *answer = &device->requests.answer;
  const char *number = fleetpost_json_text(&sync->json, 3, false), *string = fleetpost_json_text(&sync->json, 3, true);
  if (sync->member == STATUS) sync->item_status = number == NULL ? -1 : fleetpost_text_number(number);
  else if (sync->member == ERROR) sync->is_untimed = string != NULL && strcmp(string, "invalid_recorded_at") == 0;
  else if (sync->member == MSG && sync->refused_number == 0) copy(sync->msg, sizeof sync->msg, string);
  else if (sync->member == ID) copy(answer->mail_id, sizeof answer->mail_id, string);
  else if (sync->member == NAME) copy(answer->mail_name, sizeof answer->mail_name, string);
  else if (sync->member == PAYLOAD) sync->has_payload = true;
  sync->member = OTHER;
}

static bool is_later(int32_t status) {
  return status >= 400 && !fleetpost_is_final(status);
}

static void end_record(struct fleetpost_device *device) {
  struct fleetpost_sync *sync = &device->sync;
  uint32_t number = sync->first_number + sync->records++;
  if (sync->item_status < 400 || is_later(sync->item_status)) return;
  uint32_t place = fleetpost_queue_find(device, number, device->place);
  if (place == FLEETPOST_NO_PLACE) return;  // It was dropped meanwhile.
  device->options.places[place].verdict = sync->is_untimed ? FLEETPOST_UNTIMED : FLEETPOST_IS_REFUSED;
  if (!sync->is_untimed && sync->refused_number == 0) sync->refused_number = number;
}

static void end_item(struct fleetpost_device *device) {
  struct fleetpost_sync *sync = &device->sync;
  if (sync->list == MAIL) {
    sync->is_malformed = sync->is_malformed || sync->has_mail || !sync->has_payload || !device->asks_mail;
    sync->has_mail = true;
    return;
  }
  if (sync->item_status < 100 || (sync->list == RECORDS && sync->records >= sync->records_count)) {
    sync->is_malformed = true;
    return;
  }
  if (is_later(sync->item_status) && sync->later_status == 0) sync->later_status = sync->item_status;
  if (sync->list == RECORDS) end_record(device);
  else sync->settled_status = sync->item_status;
}

static void take_value(struct fleetpost_device *device, uint8_t depth) {
  struct fleetpost_sync *sync = &device->sync;
  bool is_list = sync->list == RECORDS || sync->list == SETTLED || sync->list == MAIL;
  if (is_list && depth == 3) take_member(device);
  if (is_list && depth == 2) {
    end_item(device);
    begin_item(sync);
  }
  if (depth != 1) return;
  const char *number = fleetpost_json_text(&sync->json, 1, false);
  if (sync->list == STORED_TO) sync->stored_to = number == NULL ? -1 : fleetpost_text_number(number);
  sync->list = OTHER;
}

static void take_name(struct fleetpost_sync *sync, uint8_t depth) {
  if (depth == 1) sync->list = member_of(&sync->json, RECORDS, STORED_TO);
  else if (depth == 3) sync->member = member_of(&sync->json, STATUS, PAYLOAD);
  else if (depth == 2 && sync->list != OTHER) sync->is_malformed = true;
}

/** Keeps the payload of the mail byte for byte, as far as there is room. */
static void keep_payload(struct fleetpost_device *device, char byte) {
  size_t at = device->sync.payload_bytes++;
  if (at + 1 >= device->options.buffer_bytes) return;
  device->options.buffer[at] = byte;
  device->options.buffer[at + 1] = '\0';
}

void fleetpost_sync_feed(void *context, const char *bytes, size_t size) {
  struct fleetpost_device *device = context;
  struct fleetpost_sync *sync = &device->sync;
  for (size_t at = 0; at < size && !sync->is_malformed; at++) {
    uint8_t depth = sync->json.depth;
    bool is_payload = sync->list == MAIL && sync->member == PAYLOAD && !sync->has_mail;
    int event = fleetpost_json_take(&sync->json, bytes[at]);
    if (event < 0) sync->is_malformed = true;
    else if (event == FLEETPOST_JSON_VALUE && depth <= 3) take_value(device, depth);
    else if (is_payload) keep_payload(device, bytes[at]);
    else if (event == FLEETPOST_JSON_NAME) take_name(sync, depth);
  }
}

/** Takes from the queue what is stored, and what was refused for good. */
static int finish_records(struct fleetpost_device *device) {
  const struct fleetpost_sync *sync = &device->sync;
  struct fleetpost_place *places = device->options.places;
  // The server may know of more than was sent now: by a start before this one.
  int64_t known = (int64_t)sync->stored_to - sync->first_seq + 1;
  uint32_t done = known < 0 ? 0 : known > sync->records_count ? sync->records_count : (uint32_t)known, refused = 0;
  if (done < sync->records_count && sync->later_status == 0) return FLEETPOST_MALFORMED;
  for (uint32_t place = 0; place < device->options.places_max; place++) {
    bool is_done = places[place].number != 0 && places[place].number - sync->first_number < done;
    if (is_done && places[place].verdict == FLEETPOST_IS_REFUSED) refused++;
  }
  if (refused > 0 && fleetpost_queue_count(device, FLEETPOST_REFUSED, refused) < 0) return FLEETPOST_STORE_FAILED;
  if (refused > 0) {
    uint32_t place = fleetpost_queue_find(device, sync->refused_number, device->place);
    bool is_read = place != FLEETPOST_NO_PLACE && fleetpost_queue_read(device, place, &device->entry) == FLEETPOST_OK;
    if (is_read) fleetpost_say_refused(device, sync->msg);
  }
  for (uint32_t place = 0; place < device->options.places_max; place++) {
    if (places[place].number == 0 || places[place].number - sync->first_number >= done) continue;
    // Its number is used, so it gets another one.
    bool is_again = places[place].verdict == FLEETPOST_UNTIMED;
    int result = is_again ? fleetpost_queue_renumber(device, place) : fleetpost_queue_remove(device, place);
    if (result < 0) return result;
  }
  return FLEETPOST_OK;
}

static void receive(struct fleetpost_device *device) {
  bool is_waiting = device->requests.answer.mailbox_size > 0;
  if (device->sync.has_mail) {
    device->is_mail_wanted = true;
    device->body_bytes = device->sync.payload_bytes;
    fleetpost_mail_fetched(device);
  } else if (device->asks_mail && is_waiting) device->is_mail_wanted = device->is_mail_large = true;
  else if (device->asks_mail) device->requeues = 0;
  else if (is_waiting && device->on_mail != NULL) device->is_mail_wanted = true;
  device->asks_mail = false;
}

int fleetpost_sync_finish(struct fleetpost_device *device) {
  const struct fleetpost_sync *sync = &device->sync;
  bool is_whole = !sync->is_malformed && fleetpost_json_is_done(&sync->json) && sync->records == sync->records_count;
  if (!is_whole || (sync->records_count > 0 && sync->stored_to < 0)) return FLEETPOST_MALFORMED;
  if (device->has_mail && sync->settled_status < 0) return FLEETPOST_MALFORMED;
  int result = sync->records_count > 0 ? finish_records(device) : FLEETPOST_OK;
  if (result < 0) return result;
  if (device->has_mail && !is_later(sync->settled_status)) fleetpost_mail_settled(device);
  if (!device->has_mail) receive(device);
  if (sync->later_status != 0) fleetpost_wait_after_item(device, sync->later_status);
  return FLEETPOST_OK;
}
