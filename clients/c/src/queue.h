#ifndef FLEETPOST_QUEUE_H
#define FLEETPOST_QUEUE_H

#include "fleetpost.h"

/** Slots of the store. Entry `place` has two of its own, so that a payload goes into the store from the caller's text. */
enum {
  FLEETPOST_SLOT_COUNTS = 0,
  FLEETPOST_SLOT_KEY = 1,
  FLEETPOST_SLOT_SECRET = 2,
  FLEETPOST_SLOT_SETTLED = 3,
  FLEETPOST_SLOT_ENTRIES = 16
};

enum fleetpost_count { FLEETPOST_DROPPED, FLEETPOST_REFUSED, FLEETPOST_DOUBTFUL };

#define FLEETPOST_NO_PLACE UINT32_MAX
#define FLEETPOST_PLACES_MAX 1000000

long fleetpost_store(struct fleetpost_device *device, enum fleetpost_operation operation, uint32_t slot, void *bytes, size_t size);

int fleetpost_queue_load(struct fleetpost_device *device);
int fleetpost_queue_add(struct fleetpost_device *device, struct fleetpost_entry *entry, const char *body);
/** The place of the oldest entry, or FLEETPOST_NO_PLACE. */
uint32_t fleetpost_queue_head(const struct fleetpost_device *device);
/** Number 0: there is none. Returns 1 for one that cannot be read. */
int fleetpost_queue_read(struct fleetpost_device *device, uint32_t place, struct fleetpost_entry *entry);
int fleetpost_queue_remove(struct fleetpost_device *device, uint32_t place);
/** The place of the entry with this number, looked for from a place on; FLEETPOST_NO_PLACE. */
uint32_t fleetpost_queue_find(const struct fleetpost_device *device, uint32_t number, uint32_t from);
/** Puts an entry behind all others, and without its time. */
int fleetpost_queue_renumber(struct fleetpost_device *device, uint32_t place);
/** Adds to a count, in the store first. */
int fleetpost_queue_count(struct fleetpost_device *device, enum fleetpost_count count, uint32_t by);
/** Takes the key of the entry that is sent next, and stores it; a negative result when it is in memory alone. */
int fleetpost_queue_save_key(struct fleetpost_device *device, const struct fleetpost_key *key);

#endif
