#ifndef FLEETPOST_POSIX_H
#define FLEETPOST_POSIX_H

#include "fleetpost.h"

/**
 * State that the ports for POSIX share: sockets, clocks, and a folder as the store. TLS is in openssl.c or mbedtls.c.
 */
struct fleetpost_posix {
  int folder, lock;
  int sockets[2];
  bool is_connected[2], wants_write[2];
  /** Chooses the address of the host that is tried, so that one that is dead does not hide another. */
  unsigned attempts;
  char host[256], service[8];
};

/**
 * Trust: a file of authorities in PEM, or public keys as base64 of their SHA-256 (two, so that one can be replaced), or
 * both.
 */
struct fleetpost_trust {
  const char *ca;
  const char *pins[2];
};

/** A port, ready for `fleetpost_options`. One of these is in openssl.c, another in mbedtls.c: link one. */
struct fleetpost_port *fleetpost_posix_port(const char *url, const char *folder, const struct fleetpost_trust *trust);
/** Frees what the TLS library holds, and the lock of the folder. */
void fleetpost_posix_end(struct fleetpost_port *port);
/** Waits until a connection or `file` (-1: none) has something to read, or for so long. */
void fleetpost_posix_wait(const struct fleetpost_port *port, int32_t wait_ms, int file);

/** Called by openssl.c and mbedtls.c, whose own state begins with a `struct fleetpost_posix`. */
int fleetpost_posix_begin(struct fleetpost_posix *posix, const char *url, const char *folder);
void fleetpost_posix_release(struct fleetpost_posix *posix);
int fleetpost_posix_connect(struct fleetpost_posix *posix, enum fleetpost_channel channel);
void fleetpost_posix_disconnect(struct fleetpost_posix *posix, enum fleetpost_channel channel);
bool fleetpost_posix_is_pinned(const struct fleetpost_trust *trust, const unsigned char digest[32]);
/** True if the host of the URL is this address, of 4 or 16 bytes. */
bool fleetpost_posix_has_address(const struct fleetpost_posix *posix, const unsigned char *bytes, size_t size);
int64_t fleetpost_posix_time(void *posix, enum fleetpost_clock clock);
long fleetpost_posix_store(void *posix, enum fleetpost_operation operation, uint32_t slot, void *bytes, size_t size);

#endif
