#ifndef FLEETPOST_H
#define FLEETPOST_H

/**
 * A device of a Fleetpost server: datapoints, messages, heartbeats and a mailbox, over HTTPS. C99, no allocation, no
 * threads: the caller gives the memory and calls `fleetpost_step` again and again. README.md has an example.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "answer.h"
#include "events.h"
#include "json.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes of `buffer` for the line and the headers of a request; the rest of it bounds payloads. */
#define FLEETPOST_HEAD_BYTES 1024
/** At least so many behind them, for what a sync says of mail. */
#define FLEETPOST_BODY_BYTES_MIN 128
/** Largest payload that the server takes (D9). */
#define FLEETPOST_BODY_BYTES_MAX 65536
/** Mails that were settled last, so that a crash has none of them handled twice. */
#define FLEETPOST_SETTLED_MAX 16

/** Results of a call. All but FLEETPOST_OK are negative; `fleetpost_describe` has a sentence for each. */
enum fleetpost_result {
  FLEETPOST_OK = 0,
  FLEETPOST_CLOSED = -1,
  FLEETPOST_UNREACHABLE = -2,
  FLEETPOST_UNTRUSTED = -3,
  FLEETPOST_NOT_PINNED = -4,
  FLEETPOST_TIMED_OUT = -5,
  FLEETPOST_MALFORMED = -6,
  FLEETPOST_HEADERS_TOO_LARGE = -7,
  FLEETPOST_STORE_FAILED = -8,
  FLEETPOST_RANDOM_FAILED = -9,
  FLEETPOST_INVALID_OPTION = -10,
  FLEETPOST_INVALID_NAME = -11,
  FLEETPOST_INVALID_PAYLOAD = -12,
  FLEETPOST_QUEUE_FULL = -13
};

const char *fleetpost_describe(int result);

/** The two connections that a device has at most. */
enum fleetpost_channel { FLEETPOST_REQUESTS, FLEETPOST_EVENTS };

/**
 * `WALL`: milliseconds since 1970, as well as the device knows. `STEADY`: milliseconds that only grow, from anywhere.
 */
enum fleetpost_clock { FLEETPOST_WALL, FLEETPOST_STEADY };

/** Operations of `store` on the bytes of a slot. */
enum fleetpost_operation { FLEETPOST_LOAD, FLEETPOST_SAVE, FLEETPOST_ERASE };

/**
 * The functions that a platform provides. None waits: what cannot be done yet returns 0. PORTING.md has what each
 * promises.
 */
struct fleetpost_port {
  void *context;
  /** Connects, and has the server prove itself: 1 when done, 0 to be called again, or a negative result. */
  int (*open)(void *context, enum fleetpost_channel channel);
  void (*close)(void *context, enum fleetpost_channel channel);
  /** Bytes read or written, 0 for none yet, or a negative result; FLEETPOST_CLOSED when the other end has closed. */
  long (*read)(void *context, enum fleetpost_channel channel, void *bytes, size_t size);
  long (*write)(void *context, enum fleetpost_channel channel, const void *bytes, size_t size);
  int64_t (*time)(void *context, enum fleetpost_clock clock);
  /** Fills with bytes that nobody can guess; FLEETPOST_OK or FLEETPOST_RANDOM_FAILED. */
  int (*random)(void *context, void *bytes, size_t size);
  /**
   * LOAD: the bytes that the slot has, 0 for none; never more than `size`. SAVE: replaces all of a slot, at once or not
   * at all, on the medium when it returns. ERASE: the slot has nothing from then on. A negative result on failure.
   */
  long (*store)(void *context, enum fleetpost_operation operation, uint32_t slot, void *bytes, size_t size);
};

/** Ways to settle a mail. */
enum fleetpost_verb { FLEETPOST_ACK, FLEETPOST_REJECT, FLEETPOST_REQUEUE };

struct fleetpost_mail {
  const char *id, *name;
  /** JSON as it was sent, with a '\0' behind it. Gone when the handler returns, as is all of the mail. */
  const char *payload;
  size_t payload_bytes;
};

struct fleetpost_status {
  bool connected;
  /** Why it is not connected, or what happened last: a sentence. */
  const char *reason;
  uint32_t queued, queued_bytes;
  /** Entries thrown away because the queue was full; refused by the server for good; that may be stored twice. */
  uint32_t dropped, refused, doubtful;
  /** Mails waiting, as last heard; -1: never. */
  int32_t mailbox;
};

typedef enum fleetpost_verb fleetpost_mail_handler(void *context, const struct fleetpost_mail *mail);
typedef void fleetpost_status_handler(void *context, const struct fleetpost_status *status);

/** A place of the queue: what is in the store, as far as it is needed to choose. */
struct fleetpost_place {
  /** Grows with each entry; 0: the place is free. */
  uint32_t number;
  uint32_t body_bytes;
  bool is_message;
  /** A `fleetpost_verdict` of the sync under way. */
  uint8_t verdict;
};

/** How long things take. `fleetpost_start` fills it in; tests change it. */
struct fleetpost_timing {
  int32_t retry_ms_max, unauthorized_ms_max, stream_again_ms, poll_ms_min, poll_ms_max;
};

struct fleetpost_options {
  const struct fleetpost_port *port;
  /** https://HOST or https://HOST:PORT; 8 and 10 letters or digits. All texts stay the caller's, and must stay. */
  const char *url, *fleet, *id;
  /** NULL with `claim`, a claim token: then the device chooses a secret and keeps it in the store. */
  const char *secret, *claim;
  /** Holds one request or answer: FLEETPOST_HEAD_BYTES and the largest payload. */
  char *buffer;
  size_t buffer_bytes;
  /** The queue's bound in entries, and in bytes of payloads (0: none of its own). */
  struct fleetpost_place *places;
  uint32_t places_max, queue_bytes_max;
  /** A heartbeat after so long without any other request; 0: 60 s; negative: none. */
  int32_t heartbeat_seconds;
  /** The first connection waits up to this long at random; 0: 10 s; negative: not at all, as after waking from a sleep. */
  int32_t start_delay_seconds;
  /** Asks for mail instead of holding an event stream open: one connection instead of two. */
  bool is_polling;
  fleetpost_status_handler *on_status;
  void *status_context;
};

/** A name for the entries of one start, and the number of the first of them: by these the server knows each (D30). */
struct fleetpost_order {
  uint8_t name[8];
  uint32_t first_number;
};

/** An entry of the queue, as `store` has it beside the payload. */
struct fleetpost_entry {
  uint32_t number, body_bytes;
  struct fleetpost_order order;
  bool is_message;
  int64_t at_ms;
  char name[256];
};

/**
 * Idempotency key and time, chosen at the first attempt to send the entry `number` by its own route: the time is part of
 * what the key stands for.
 */
struct fleetpost_key {
  uint32_t number;
  uint8_t uuid[16];
  int64_t made_ms, at_ms;
};

struct fleetpost_queue {
  uint32_t entries, bytes;
  /** The first one of this start, and the one that was next when the server's clock was first heard. */
  uint32_t next_number, first_number, heard_number;
  uint32_t counts[3];
  struct fleetpost_key key;
  /** That of this start, once it has an entry. */
  struct fleetpost_order order;
  bool has_order;
};

struct fleetpost_settled {
  uint8_t uuid[16];
  uint8_t verb;
};

/** A request and its answer, on one of the channels. */
struct fleetpost_exchange {
  enum { FLEETPOST_IDLE, FLEETPOST_OPENING, FLEETPOST_WRITING, FLEETPOST_READING } phase;
  enum fleetpost_channel channel;
  bool is_open, is_reused;
  size_t request_bytes, written_bytes;
  int64_t deadline_ms, used_ms;
  struct fleetpost_answer answer;
};

/** What a sync says of a record: it is stored; refused for good; or its time is out of the server's range. */
enum fleetpost_verdict { FLEETPOST_STORED, FLEETPOST_IS_REFUSED, FLEETPOST_UNTIMED };

/** A sync: the records in its request, and its answer while it arrives. */
struct fleetpost_sync {
  struct fleetpost_json json;
  uint32_t first_number, first_seq, records_count;
  /** What the member means that is being read, at the first level and in an item. */
  uint8_t list, member;
  bool is_malformed, is_untimed, has_mail, has_payload;
  uint32_t records;
  int32_t stored_to, item_status, settled_status;
  /** The first status that says to come again; 0: none. */
  int32_t later_status;
  size_t payload_bytes;
  /** The first record that was refused, and why. */
  uint32_t refused_number;
  char msg[128];
};

enum fleetpost_job {
  FLEETPOST_JOB_NONE,
  FLEETPOST_JOB_CLAIM,
  FLEETPOST_JOB_SYNC,
  FLEETPOST_JOB_SETTLE,
  FLEETPOST_JOB_FETCH,
  FLEETPOST_JOB_SEND,
  FLEETPOST_JOB_HEARTBEAT,
  FLEETPOST_JOB_LOOK
};

/** A device. Only its size is the caller's business. */
struct fleetpost_device {
  struct fleetpost_options options;
  struct fleetpost_timing timing;
  struct fleetpost_queue queue;
  struct fleetpost_exchange requests, stream;
  struct fleetpost_sync sync;
  struct fleetpost_events events;
  struct fleetpost_settled settled[FLEETPOST_SETTLED_MAX];
  fleetpost_mail_handler *on_mail;
  void *mail_context;
  enum { FLEETPOST_AWAKE, FLEETPOST_DROWSY, FLEETPOST_ASLEEP } sleep;
  enum fleetpost_job job;
  uint32_t place;
  struct fleetpost_entry entry;
  char secret[37], reason[192];
  bool is_claimed, is_connected, is_clock_heard, is_heartbeat_asked, is_mail_turn, is_mail_wanted, has_mail, is_settled_saved;
  /** The request under way asks for mail; the next mail is too large for a sync. */
  bool asks_mail, is_mail_large;
  /** Up to there entries go by their own route: a sync that has one of them was refused as a whole, or has no room. 0: none. */
  uint32_t alone_to;
  int64_t sync_again_at_ms;
  int64_t clock_ahead_ms, first_ahead_ms, wait_until_ms, mail_at_ms, last_ms, look_at_ms, stream_at_ms, stream_again_at_ms;
  int32_t attempt, stream_failures, requeues, poll_ms, mailbox;
  size_t body_bytes;
};

/** Opens the queue. Nothing is sent before `fleetpost_step`. */
int fleetpost_start(struct fleetpost_device *device, const struct fleetpost_options *options);

/**
 * Does what can be done now, and returns after how many milliseconds it wants to be called again, at the latest: 0 for
 * at once. Call it earlier when a connection has something to read, or after one of the calls below.
 */
int32_t fleetpost_step(struct fleetpost_device *device);

/** Queues a datapoint of the schema `name`: when it returns FLEETPOST_OK it is in the store. `at_ms` 0: now. */
int fleetpost_datapoint(struct fleetpost_device *device, const char *name, const char *json, int64_t at_ms);
/** Queues a message. `json` NULL: it has no payload. */
int fleetpost_message(struct fleetpost_device *device, const char *name, const char *json, int64_t at_ms);
/** Sends a heartbeat as soon as the server is reached. */
void fleetpost_heartbeat(struct fleetpost_device *device);
/**
 * Begins to take mail, one at a time. The handler may queue datapoints and messages; it must not call `fleetpost_step`.
 */
void fleetpost_on_mail(struct fleetpost_device *device, fleetpost_mail_handler *handler, void *context);
struct fleetpost_status fleetpost_status(const struct fleetpost_device *device);
/**
 * Puts the device to sleep: sends what waits, takes mail until the mailbox is empty, or all in it was put off. Call it
 * after each step until it returns true: then its connections are closed, and it does nothing until something is queued or
 * a heartbeat is asked for.
 */
bool fleetpost_sleep(struct fleetpost_device *device);
/** Closes both connections. What waits stays in the store. */
void fleetpost_close(struct fleetpost_device *device);

#ifdef __cplusplus
}
#endif

#endif
