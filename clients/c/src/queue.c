/**
 * The queue of what waits to be sent, in the store. An entry is there when its record is: its payload is saved before
 * it and erased after it, so that whatever moment the power goes, there is a whole entry or none.
 */
#include "queue.h"

#include <string.h>

#include "text.h"

#define FORMAT 1
#define RECORD_BYTES 31
#define KEY_BYTES 37
#define COUNTS_BYTES 17

static void pack(uint8_t **at, uint64_t number, int bytes) {
  for (; bytes > 0; bytes--, number >>= 8) *(*at)++ = (uint8_t)number;
}

static uint64_t unpack(const uint8_t **at, int bytes) {
  uint64_t number = 0;
  for (int shift = 0; shift < 8 * bytes; shift += 8) number |= (uint64_t)*(*at)++ << shift;
  return number;
}

static uint32_t record_slot(uint32_t place) {
  return FLEETPOST_SLOT_ENTRIES + 2 * place;
}

long fleetpost_store(struct fleetpost_device *device, enum fleetpost_operation operation, uint32_t slot, void *bytes, size_t size) {
  const struct fleetpost_port *port = device->options.port;
  long result = port->store(port->context, operation, slot, bytes, size);
  if (result < 0 || (operation == FLEETPOST_LOAD && (size_t)result > size)) return FLEETPOST_STORE_FAILED;
  return result;
}

static int load_counts(struct fleetpost_device *device, uint32_t *places_before) {
  uint8_t bytes[COUNTS_BYTES];
  const uint8_t *at = bytes;
  long size = fleetpost_store(device, FLEETPOST_LOAD, FLEETPOST_SLOT_COUNTS, bytes, sizeof bytes);
  *places_before = 0;
  if (size < 0) return (int)size;
  if (size != COUNTS_BYTES || unpack(&at, 1) != FORMAT) return FLEETPOST_OK;
  for (int count = 0; count < 3; count++) device->queue.counts[count] = (uint32_t)unpack(&at, 4);
  uint32_t places = (uint32_t)unpack(&at, 4);
  if (places <= FLEETPOST_PLACES_MAX) *places_before = places;
  return FLEETPOST_OK;
}

static int save_counts(struct fleetpost_device *device) {
  uint8_t bytes[COUNTS_BYTES], *at = bytes;
  pack(&at, FORMAT, 1);
  for (int count = 0; count < 3; count++) pack(&at, device->queue.counts[count], 4);
  pack(&at, device->options.places_max, 4);
  return fleetpost_store(device, FLEETPOST_SAVE, FLEETPOST_SLOT_COUNTS, bytes, sizeof bytes) < 0 ? FLEETPOST_STORE_FAILED : FLEETPOST_OK;
}

int fleetpost_queue_count(struct fleetpost_device *device, enum fleetpost_count count, uint32_t by) {
  device->queue.counts[count] += by;
  return save_counts(device);
}

static int load_key(struct fleetpost_device *device) {
  struct fleetpost_key *key = &device->queue.key;
  uint8_t bytes[KEY_BYTES];
  const uint8_t *at = bytes;
  long size = fleetpost_store(device, FLEETPOST_LOAD, FLEETPOST_SLOT_KEY, bytes, sizeof bytes);
  if (size < 0) return (int)size;
  if (size != KEY_BYTES || unpack(&at, 1) != FORMAT) return FLEETPOST_OK;
  key->number = (uint32_t)unpack(&at, 4);
  memcpy(key->uuid, at, sizeof key->uuid);
  at += sizeof key->uuid;
  key->made_ms = (int64_t)unpack(&at, 8);
  key->at_ms = (int64_t)unpack(&at, 8);
  return FLEETPOST_OK;
}

int fleetpost_queue_save_key(struct fleetpost_device *device, const struct fleetpost_key *key) {
  uint8_t bytes[KEY_BYTES], *at = bytes;
  pack(&at, FORMAT, 1);
  pack(&at, key->number, 4);
  memcpy(at, key->uuid, sizeof key->uuid);
  at += sizeof key->uuid;
  pack(&at, (uint64_t)key->made_ms, 8);
  pack(&at, (uint64_t)key->at_ms, 8);
  device->queue.key = *key;
  return fleetpost_store(device, FLEETPOST_SAVE, FLEETPOST_SLOT_KEY, bytes, sizeof bytes) < 0 ? FLEETPOST_STORE_FAILED : FLEETPOST_OK;
}

/** Numbers go round after 2^32 entries, and leave out 0. */
static uint32_t next_of(uint32_t number) {
  return number == UINT32_MAX ? 1 : number + 1;
}

static bool is_older(uint32_t number, uint32_t other) {
  return number != other && number - other > UINT32_MAX / 2;
}

/** Number 0: there is none. Returns 1 for one that cannot be read. */
int fleetpost_queue_read(struct fleetpost_device *device, uint32_t place, struct fleetpost_entry *entry) {
  uint8_t bytes[RECORD_BYTES + sizeof entry->name];
  const uint8_t *at = bytes;
  long size = fleetpost_store(device, FLEETPOST_LOAD, record_slot(place), bytes, sizeof bytes - 1);
  entry->number = 0;
  if (size < 0) return (int)size;
  if (size == 0) return FLEETPOST_OK;
  if (size <= RECORD_BYTES || unpack(&at, 1) != FORMAT) return 1;
  uint32_t number = (uint32_t)unpack(&at, 4);
  entry->body_bytes = (uint32_t)unpack(&at, 4);
  entry->is_message = unpack(&at, 1) != 0;
  entry->at_ms = (int64_t)unpack(&at, 8);
  memcpy(entry->order.name, at, sizeof entry->order.name);
  at += sizeof entry->order.name;
  entry->order.first_number = (uint32_t)unpack(&at, 4);
  size_t length = (size_t)unpack(&at, 1);
  if (length != (size_t)size - RECORD_BYTES) return 1;
  memcpy(entry->name, at, length);
  entry->name[length] = '\0';
  if (entry->body_bytes > FLEETPOST_BODY_BYTES_MAX || !fleetpost_text_fits(entry->name, 1, 255, "_-")) return 1;
  entry->number = number;
  return number == 0;
}

static int save_entry(struct fleetpost_device *device, uint32_t place, const struct fleetpost_entry *entry) {
  uint8_t bytes[RECORD_BYTES + sizeof entry->name], *at = bytes;
  size_t length = strlen(entry->name);
  pack(&at, FORMAT, 1);
  pack(&at, entry->number, 4);
  pack(&at, entry->body_bytes, 4);
  pack(&at, entry->is_message, 1);
  pack(&at, (uint64_t)entry->at_ms, 8);
  memcpy(at, entry->order.name, sizeof entry->order.name);
  at += sizeof entry->order.name;
  pack(&at, entry->order.first_number, 4);
  pack(&at, length, 1);
  memcpy(at, entry->name, length);
  return fleetpost_store(device, FLEETPOST_SAVE, record_slot(place), bytes, RECORD_BYTES + length) < 0 ? FLEETPOST_STORE_FAILED : FLEETPOST_OK;
}

int fleetpost_queue_load(struct fleetpost_device *device) {
  struct fleetpost_queue *queue = &device->queue;
  struct fleetpost_entry entry;
  uint32_t newest = 0, places_before;
  if (load_counts(device, &places_before) < 0 || load_key(device) < 0) return FLEETPOST_STORE_FAILED;
  for (uint32_t place = 0; place < device->options.places_max || place < places_before; place++) {
    int result = fleetpost_queue_read(device, place, &entry);
    if (result == 1 && fleetpost_store(device, FLEETPOST_ERASE, record_slot(place), NULL, 0) >= 0) {
      result = fleetpost_queue_count(device, FLEETPOST_DROPPED, 1);
    }
    if (result != FLEETPOST_OK) return FLEETPOST_STORE_FAILED;
    if (place >= device->options.places_max) {  // Fewer places than before: an entry there would be lost in silence.
      if (entry.number != 0) return FLEETPOST_QUEUE_FULL;
      continue;
    }
    struct fleetpost_place *at = &device->options.places[place];
    at->number = entry.number;
    if (entry.number == 0) continue;
    at->body_bytes = entry.body_bytes;
    at->is_message = entry.is_message;
    queue->entries++;
    queue->bytes += entry.body_bytes;
    if (newest == 0 || is_older(newest, entry.number)) newest = entry.number;
  }
  // Above that of the key too: a number that comes twice would find the key of another entry.
  if (newest == 0 || (queue->key.number != 0 && is_older(newest, queue->key.number))) newest = queue->key.number;
  queue->next_number = queue->first_number = queue->heard_number = next_of(newest);
  return places_before == device->options.places_max ? FLEETPOST_OK : save_counts(device);
}

/** True if an entry is being sent, or was: it may be stored already, so it must not be replaced by another. */
static bool is_tried(const struct fleetpost_device *device, uint32_t place) {
  bool is_sending = (device->job == FLEETPOST_JOB_SEND || device->job == FLEETPOST_JOB_SYNC) && device->place == place;
  return is_sending || device->options.places[place].number == device->queue.key.number;
}

/** The oldest entry of all, or of those that may go: datapoints before messages. */
static uint32_t oldest(const struct fleetpost_device *device, bool may_go) {
  const struct fleetpost_place *places = device->options.places;
  uint32_t found = FLEETPOST_NO_PLACE;
  for (uint32_t place = 0; place < device->options.places_max; place++) {
    const struct fleetpost_place *one = &places[place];
    if (one->number == 0 || (may_go && is_tried(device, place))) continue;
    bool is_same_kind = found != FLEETPOST_NO_PLACE && (!may_go || one->is_message == places[found].is_message);
    if (found == FLEETPOST_NO_PLACE || (is_same_kind ? is_older(one->number, places[found].number) : places[found].is_message && may_go)) found = place;
  }
  return found;
}

uint32_t fleetpost_queue_head(const struct fleetpost_device *device) {
  return device->queue.entries == 0 ? FLEETPOST_NO_PLACE : oldest(device, false);
}

uint32_t fleetpost_queue_find(const struct fleetpost_device *device, uint32_t number, uint32_t from) {
  uint32_t places = device->options.places_max;
  for (uint32_t count = 0; count < places; count++, from++) {
    if (from >= places) from = 0;
    if (device->options.places[from].number == number) return from;
  }
  return FLEETPOST_NO_PLACE;
}

int fleetpost_queue_remove(struct fleetpost_device *device, uint32_t place) {
  struct fleetpost_place *at = &device->options.places[place];
  if (fleetpost_store(device, FLEETPOST_ERASE, record_slot(place), NULL, 0) < 0) return FLEETPOST_STORE_FAILED;
  // Without its record it is of no meaning: if it stays, the next entry of this place replaces it.
  (void)fleetpost_store(device, FLEETPOST_ERASE, record_slot(place) + 1, NULL, 0);
  device->queue.entries--;
  device->queue.bytes -= at->body_bytes;
  at->number = 0;
  return FLEETPOST_OK;
}

/** Makes room for one more entry; counts what had to go before it goes. */
static int make_room(struct fleetpost_device *device, uint32_t body_bytes) {
  const struct fleetpost_options *options = &device->options;
  while (device->queue.entries >= options->places_max ||
         (options->queue_bytes_max > 0 && device->queue.bytes + body_bytes > options->queue_bytes_max)) {
    uint32_t place = oldest(device, true);
    if (place == FLEETPOST_NO_PLACE) return FLEETPOST_QUEUE_FULL;
    int result = fleetpost_queue_count(device, FLEETPOST_DROPPED, 1);
    if (result == FLEETPOST_OK) result = fleetpost_queue_remove(device, place);
    if (result < 0) return result;
  }
  return FLEETPOST_OK;
}

/**
 * Gives an entry the next number of this start, of an order of its own: numbers begin again after a start that finds
 * nothing. A number is given once, whatever becomes of its entry: two that had it would be one to the server.
 */
static int take_number(struct fleetpost_device *device, struct fleetpost_entry *entry) {
  struct fleetpost_queue *queue = &device->queue;
  const struct fleetpost_port *port = device->options.port;
  if (!queue->has_order) {
    if (port->random(port->context, queue->order.name, sizeof queue->order.name) < 0) return FLEETPOST_RANDOM_FAILED;
    queue->order.first_number = queue->next_number;
    queue->has_order = true;
  }
  entry->order = queue->order;
  entry->number = queue->next_number;
  queue->next_number = next_of(queue->next_number);
  return FLEETPOST_OK;
}

int fleetpost_queue_renumber(struct fleetpost_device *device, uint32_t place) {
  struct fleetpost_entry *entry = &device->entry;
  int result = fleetpost_queue_read(device, place, entry);
  if (result != FLEETPOST_OK || entry->number == 0) return FLEETPOST_STORE_FAILED;
  entry->at_ms = 0;
  result = take_number(device, entry);
  if (result == FLEETPOST_OK) result = save_entry(device, place, entry);
  if (result == FLEETPOST_OK) device->options.places[place].number = entry->number;
  return result;
}

int fleetpost_queue_add(struct fleetpost_device *device, struct fleetpost_entry *entry, const char *body) {
  struct fleetpost_queue *queue = &device->queue;
  uint32_t place = 0;
  int result = make_room(device, entry->body_bytes);
  if (result < 0) return result;
  while (device->options.places[place].number != 0) place++;
  result = take_number(device, entry);
  if (result < 0) return result;
  if (entry->body_bytes > 0) {
    // SAVE does not change what it is given; only one function serves both directions.
    long saved = fleetpost_store(device, FLEETPOST_SAVE, record_slot(place) + 1, (void *)(uintptr_t)body, entry->body_bytes);
    if (saved < 0) return FLEETPOST_STORE_FAILED;
  }
  result = save_entry(device, place, entry);
  if (result < 0) return result;
  struct fleetpost_place *at = &device->options.places[place];
  at->number = entry->number;
  at->body_bytes = entry->body_bytes;
  at->is_message = entry->is_message;
  queue->entries++;
  queue->bytes += entry->body_bytes;
  return FLEETPOST_OK;
}
