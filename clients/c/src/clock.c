/** Keeps the time by the server's clock: a device may have none, or one that is wrong. */
#include "device.h"

#define CLOCK_MS_TOLERATED 30000
/** What is not late needs no time; beyond the others the server would refuse it (D25). */
#define LATE_MS 1000
#define AGO_MS_MAX INT64_C(2592000000)
#define AHEAD_MS_MAX 300000

int64_t fleetpost_steady_ms(const struct fleetpost_device *device) {
  const struct fleetpost_port *port = device->options.port;
  return port->time(port->context, FLEETPOST_STEADY);
}

int64_t fleetpost_now_ms(const struct fleetpost_device *device) {
  const struct fleetpost_port *port = device->options.port;
  return port->time(port->context, FLEETPOST_WALL) + device->clock_ahead_ms;
}

void fleetpost_hear_date(struct fleetpost_device *device, int64_t date_ms) {
  const struct fleetpost_port *port = device->options.port;
  int64_t ahead_ms = date_ms - port->time(port->context, FLEETPOST_WALL);
  bool is_tolerated = ahead_ms < CLOCK_MS_TOLERATED && ahead_ms > -CLOCK_MS_TOLERATED;
  device->clock_ahead_ms = is_tolerated ? 0 : ahead_ms;
  if (device->is_clock_heard) return;
  device->is_clock_heard = true;
  device->first_ahead_ms = device->clock_ahead_ms;
  device->queue.heard_number = device->queue.next_number;
}

static bool is_late(int64_t at_ms, int64_t now_ms) {
  return at_ms < now_ms - LATE_MS || at_ms > now_ms + LATE_MS;
}

bool fleetpost_needs_clock(const struct fleetpost_device *device, const struct fleetpost_entry *entry) {
  int64_t now_ms = fleetpost_now_ms(device);
  return !device->is_clock_heard && (now_ms < FLEETPOST_RELEASED_MS || is_late(entry->at_ms, now_ms));
}

int64_t fleetpost_recorded_ms(const struct fleetpost_device *device, const struct fleetpost_entry *entry, bool may_be_late) {
  const struct fleetpost_queue *queue = &device->queue;
  int64_t now_ms = fleetpost_now_ms(device), at_ms = entry->at_ms;
  // What was queued before the server's clock was heard has the time of a clock that may have been wrong.
  if (entry->number - queue->first_number < queue->heard_number - queue->first_number) at_ms += device->first_ahead_ms;
  if (at_ms < FLEETPOST_RELEASED_MS || at_ms < now_ms - AGO_MS_MAX || at_ms > now_ms + AHEAD_MS_MAX) return 0;
  return may_be_late || is_late(at_ms, now_ms) ? at_ms : 0;
}
