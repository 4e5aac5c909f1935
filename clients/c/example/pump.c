/** A pump with a valve: `example-openssl https://fleet.lan:8443 ca.pem FLEET DEVICE SECRET`. */
#include <stdio.h>
#include <string.h>

#include "posix.h"

static bool valve_ready(void) { return true; }
static bool valve_move(const char *how) { return printf("valve: %s\n", how) > 0; }

static enum fleetpost_verb on_mail(void *context, const struct fleetpost_mail *mail) {
  (void)context;
  if (strcmp(mail->name, "open") == 0 && !valve_ready()) return FLEETPOST_REQUEUE;  // put off: it comes again
  return valve_move(mail->name) ? FLEETPOST_ACK : FLEETPOST_REJECT;
}

static void on_status(void *context, const struct fleetpost_status *status) {
  (void)context;
  printf("%s (%lu wait)\n", status->reason, (unsigned long)status->queued);
}

int main(int count, char **args) {
  static struct fleetpost_device device;
  static struct fleetpost_place places[1000];
  static char buffer[FLEETPOST_HEAD_BYTES + 4096];
  if (count != 6) return fprintf(stderr, "%s URL CA-FILE FLEET DEVICE SECRET\n", args[0]), 2;

  struct fleetpost_options options = {.url = args[1], .fleet = args[3], .id = args[4], .secret = args[5],
      .buffer = buffer, .buffer_bytes = sizeof buffer, .places = places, .places_max = 1000, .on_status = on_status};
  options.port = fleetpost_posix_port(args[1], "pump.queue", &(struct fleetpost_trust){.ca = args[2]});
  if (options.port == NULL || fleetpost_start(&device, &options) < 0) return fprintf(stderr, "It cannot start.\n"), 1;
  fleetpost_on_mail(&device, on_mail, NULL);
  for (int64_t next_ms = 0;;) {
    int64_t now_ms = options.port->time(options.port->context, FLEETPOST_STEADY);
    if (now_ms >= next_ms) {
      fleetpost_datapoint(&device, "flow", "{\"litres\":12.5}", 0);
      next_ms = now_ms + 30000;
    }
    int32_t wait_ms = fleetpost_step(&device);
    fleetpost_posix_wait(options.port, wait_ms < next_ms - now_ms ? wait_ms : (int32_t)(next_ms - now_ms), -1);
  }
}
