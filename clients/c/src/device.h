#ifndef FLEETPOST_DEVICE_H
#define FLEETPOST_DEVICE_H

#include "fleetpost.h"
#include "text.h"

/** 2026-01-01. A clock that is before it is one of a device that has none. */
#define FLEETPOST_RELEASED_MS INT64_C(1767225600000)

int64_t fleetpost_steady_ms(const struct fleetpost_device *device);
/** The time by the server's clock once it was heard, since a device may have none that is right. */
int64_t fleetpost_now_ms(const struct fleetpost_device *device);
/** Takes the server's clock from an answer. */
void fleetpost_hear_date(struct fleetpost_device *device, int64_t date_ms);
/** True if the time of an entry matters, and is by a clock that may be wrong. */
bool fleetpost_needs_clock(const struct fleetpost_device *device, const struct fleetpost_entry *entry);
/** The time that goes with an entry; 0: none, for what is not late, or cannot be right. */
int64_t fleetpost_recorded_ms(const struct fleetpost_device *device, const struct fleetpost_entry *entry, bool is_late);
/** Full jitter: devices that lost the same server do not come back at the same moment. */
int32_t fleetpost_backoff_ms(const struct fleetpost_device *device, int32_t attempt, int32_t ms_max);

/** Seconds that an answer asks to wait, an hour at most; 0: none. */
int32_t fleetpost_retry_after_seconds(const struct fleetpost_answer *answer);

/** Says what happened: `reason`, with what follows it. `connected` is what it was, or what it has become. */
void fleetpost_say(struct fleetpost_device *device, bool is_connected, const char *reason, const char *more);
/** Says that the server refused `entry`, and why; NULL: as its answer says, whose body is in `buffer`. */
void fleetpost_say_refused(struct fleetpost_device *device, const char *msg);
/** True if the server's error in `buffer` has this code. */
bool fleetpost_answer_has_code(const struct fleetpost_device *device, const char *code);

/** Waits as long as a failure without an answer asks for. */
void fleetpost_wait_after(struct fleetpost_device *device, int result);
/** Waits as long as an answer asks for that was not the one hoped for. */
void fleetpost_wait_after_answer(struct fleetpost_device *device, int32_t attempt_more);
/** Waits after an answer to a sync of which an item was not taken. */
void fleetpost_wait_after_item(struct fleetpost_device *device, int status);
/** True if a status of 4xx is the last word on what was sent. */
bool fleetpost_is_final(int status);

/** Writes the request of the job into `buffer`; a negative result when the store or the randomness fails. */
int fleetpost_compose(struct fleetpost_device *device);
/** Writes the body of a sync: as many of the oldest entries as fit, how the mail in hand ended, and whether mail is asked for. */
void fleetpost_sync_write(struct fleetpost_device *device, struct fleetpost_text *body);
void fleetpost_sync_begin_answer(struct fleetpost_device *device);
/** A `fleetpost_body_sink` for the answer 200 to a sync. */
void fleetpost_sync_feed(void *device, const char *bytes, size_t size);
/** Acts on the whole answer; a negative result when it is not as it should be, or the store fails. */
int fleetpost_sync_finish(struct fleetpost_device *device);

/** Writes the request of the event stream into `buffer`. */
void fleetpost_compose_stream(struct fleetpost_device *device);

/** Takes an exchange one step on: 0 nothing to do yet, 1 something was done, 2 the answer is complete, or a negative result. */
int fleetpost_exchange_step(struct fleetpost_device *device, struct fleetpost_exchange *exchange, int64_t now_ms);
void fleetpost_exchange_begin(struct fleetpost_exchange *exchange, int64_t now_ms);
void fleetpost_exchange_close(struct fleetpost_device *device, struct fleetpost_exchange *exchange);

int fleetpost_mail_load(struct fleetpost_device *device);
/** The request under way has not asked for mail after all, or had no answer to that: it is still wanted. */
void fleetpost_mail_not_asked(struct fleetpost_device *device);
/** An answer has the mail that was asked for: it is handled, and what becomes of it is to be settled. */
void fleetpost_mail_fetched(struct fleetpost_device *device);
/** Stores how the mail in hand ended, before the server is told. */
int fleetpost_mail_save(struct fleetpost_device *device);
void fleetpost_mail_settled(struct fleetpost_device *device);
/** Takes the event stream one step on; whether something was done. */
bool fleetpost_stream_step(struct fleetpost_device *device, int64_t now_ms);

#endif
