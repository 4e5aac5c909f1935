/**
 * Lets a test drive the C client: commands come as JSON lines, what happens goes out as JSON lines. Its JSON is that of
 * JSON.stringify in the test, which has no space and no escape.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "posix.h"

static struct fleetpost_device device;
static struct fleetpost_place places[100000];
static char buffer[FLEETPOST_HEAD_BYTES + FLEETPOST_BODY_BYTES_MAX];
static const struct fleetpost_port *port;
static char requeued[64][37];
static size_t requeued_count;
static int64_t flush_until_ms, sleep_until_ms, busy_until_ms;

/** The place where the value of a member begins; NULL: there is none, or it is null. */
static const char *member(const char *json, const char *name) {
  char pattern[64];
  snprintf(pattern, sizeof pattern, "\"%s\":", name);
  const char *found = strstr(json, pattern);
  return found == NULL || strncmp(found + strlen(pattern), "null", 4) == 0 ? NULL : found + strlen(pattern);
}

/** A copy of a text, for as long as the process lives. */
static const char *text(const char *json, const char *name) {
  const char *value = member(json, name);
  if (value == NULL || *value != '"') return NULL;
  size_t length = strcspn(value + 1, "\"");
  char *copy = calloc(length + 1, 1);
  return memcpy(copy, value + 1, length);
}

static double number(const char *json, const char *name, double otherwise) {
  const char *value = member(json, name);
  return value == NULL ? otherwise : strtod(value, NULL);
}

static void say_status(const char *event, const char *more, const struct fleetpost_status *status) {
  printf("{\"event\":\"%s\",%s\"queued\":%lu,\"dropped\":%lu,\"refused\":%lu,\"doubtful\":%lu,\"reason\":\"", event, more,
         (unsigned long)status->queued, (unsigned long)status->dropped, (unsigned long)status->refused,
         (unsigned long)status->doubtful);
  for (const char *at = status->reason; *at != '\0'; at++) printf(*at == '"' || *at == '\\' ? "\\%c" : "%c", *at);
  printf("\"}\n");
}

static void on_status(void *context, const struct fleetpost_status *status) {
  (void)context;
  say_status("status", "", status);
}

static enum fleetpost_verb on_mail(void *context, const struct fleetpost_mail *mail) {
  const char *verb = member(mail->payload, "verb");
  (void)context;
  printf("{\"event\":\"mail\",\"id\":\"%s\",\"name\":\"%s\",\"payload\":%s}\n", mail->id, mail->name, mail->payload);
  fflush(stdout);
  int64_t now_ms = fleetpost_posix_time(NULL, FLEETPOST_STEADY);
  if (busy_until_ms == 0) busy_until_ms = now_ms + (int64_t)(1000 * number(mail->payload, "busy", 0));
  if (now_ms < busy_until_ms) return FLEETPOST_REQUEUE;
  if (verb == NULL || strncmp(verb, "\"ack\"", 5) == 0) return FLEETPOST_ACK;
  if (strncmp(verb, "\"requeue\"", 9) != 0) return FLEETPOST_REJECT;
  for (size_t one = 0; one < requeued_count; one++) {
    if (strcmp(requeued[one], mail->id) == 0) return FLEETPOST_ACK;
  }
  if (requeued_count < 64) strcpy(requeued[requeued_count++], mail->id);
  return FLEETPOST_REQUEUE;
}

static int64_t time_of(const char *at) {
  struct tm parts = {0};
  int milliseconds = 0;
  if (at == NULL) return 0;
  int found = sscanf(at, "%d-%d-%dT%d:%d:%d.%d", &parts.tm_year, &parts.tm_mon, &parts.tm_mday, &parts.tm_hour, &parts.tm_min,
                     &parts.tm_sec, &milliseconds);
  if (found != 7) abort();
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  return (int64_t)mktime(&parts) * 1000 + milliseconds;
}

static void start(const char *json) {
  const char *pins = member(json, "pins");
  struct fleetpost_trust trust = {text(json, "ca"), {NULL, NULL}};
  if (pins != NULL) trust.pins[1] = strndup(pins + 2, 44);
  double delay = number(json, "start_delay_seconds", 10);
  struct fleetpost_options options = {.url = text(json, "url"), .fleet = text(json, "fleet"), .id = text(json, "id"),
      .secret = text(json, "secret"), .claim = text(json, "claim"), .buffer = buffer, .buffer_bytes = sizeof buffer,
      .places = places, .places_max = (uint32_t)number(json, "queue_entries_max", 500), .on_status = on_status,
      .start_delay_seconds = delay > 0 ? (int32_t)delay : -1, .is_polling = member(json, "polls") != NULL};
  options.port = port = fleetpost_posix_port(options.url, text(json, "queue"), &trust);
  if (port == NULL || fleetpost_start(&device, &options) < 0) {
    fprintf(stderr, "It cannot start: %s\n", strerror(errno));
    exit(1);
  }
  device.timing.retry_ms_max = (int32_t)(1000 * number(json, "retry_seconds_max", 60));
  device.timing.stream_again_ms = device.timing.poll_ms_min = device.timing.unauthorized_ms_max = device.poll_ms = 1000;
}

/** True if the test has said to close. */
static bool command(const char *json) {
  const char *what = text(json, "do");
  if (strcmp(what, "close") == 0) return true;
  if (strcmp(what, "mail") == 0) fleetpost_on_mail(&device, on_mail, NULL);
  else if (strcmp(what, "heartbeat") == 0) fleetpost_heartbeat(&device);
  else if (strcmp(what, "flush") == 0) {
    flush_until_ms = fleetpost_posix_time(NULL, FLEETPOST_STEADY) + (int64_t)(1000 * number(json, "seconds", 0));
  } else if (strcmp(what, "sleep") == 0) {
    sleep_until_ms = fleetpost_posix_time(NULL, FLEETPOST_STEADY) + (int64_t)(1000 * number(json, "seconds", 0));
  } else {
    static char payload[65536];
    const char *from = member(json, "payload");
    size_t size = strcspn(from, "}") + 1;
    memcpy(payload, from, size);
    payload[size] = '\0';
    // A name that follows `payload` replaces the one before it, as in JSON.
    const char *name = text(from, "name") != NULL ? text(from, "name") : text(json, "name");
    bool is_message = strcmp(what, "message") == 0;
    int result = (is_message ? fleetpost_message : fleetpost_datapoint)(&device, name, payload, time_of(text(json, "at")));
    if (result < 0) {
      fprintf(stderr, "%s\n", fleetpost_describe(result));
      exit(1);
    }
    printf("{\"event\":\"queued\",\"payload\":%s}\n", payload);
  }
  return false;
}

static void check_flush(void) {
  struct fleetpost_status status = fleetpost_status(&device);
  bool is_late = fleetpost_posix_time(NULL, FLEETPOST_STEADY) > flush_until_ms;
  if (flush_until_ms == 0 || (status.queued > 0 && !is_late)) return;
  flush_until_ms = 0;
  say_status("flushed", status.queued == 0 ? "\"empty\":true," : "\"empty\":false,", &status);
}

static void check_sleep(void) {
  if (sleep_until_ms == 0) return;
  bool is_asleep = fleetpost_sleep(&device), is_late = fleetpost_posix_time(NULL, FLEETPOST_STEADY) > sleep_until_ms;
  struct fleetpost_status status = fleetpost_status(&device);
  if (!is_asleep && !is_late) return;
  sleep_until_ms = 0;
  say_status("slept", is_asleep ? "\"empty\":true," : "\"empty\":false,", &status);
}

int main(void) {
  static char input[65536];
  size_t length = 0;
  bool is_started = false, is_closing = false;
  setenv("TZ", "UTC0", 1);
  fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
  while (!is_closing) {
    ssize_t size = read(STDIN_FILENO, input + length, sizeof input - 1 - length);
    if (size == 0) break;
    if (size > 0) length += (size_t)size;
    input[length] = '\0';
    for (char *end; !is_closing && (end = strchr(input, '\n')) != NULL;) {
      *end = '\0';
      if (is_started) is_closing = command(input);
      else start(input);
      is_started = true;
      length -= (size_t)(end + 1 - input);
      memmove(input, end + 1, length + 1);
    }
    int32_t wait_ms = is_started ? fleetpost_step(&device) : 0;
    check_flush();
    if (is_started) check_sleep();
    fflush(stdout);
    struct pollfd commands = {STDIN_FILENO, POLLIN, 0};
    if (is_started) fleetpost_posix_wait(port, wait_ms < 200 ? wait_ms : 200, STDIN_FILENO);
    else poll(&commands, 1, -1);
  }
  fleetpost_close(&device);
  return 0;
}
