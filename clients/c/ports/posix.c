#include "posix.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int fleetpost_posix_begin(struct fleetpost_posix *posix, const char *url, const char *folder) {
  const char *host = strncmp(url, "https://", 8) == 0 ? url + 8 : "", *end = host[0] == '[' ? strchr(host, ']') : NULL;
  const char *port = strrchr(end == NULL ? host : end, ':');
  size_t length = port == NULL ? strlen(host) : (size_t)(port - host);
  if (end != NULL) host++, length = (size_t)(end - host);
  if (length == 0 || length >= sizeof posix->host || (port != NULL && strlen(port + 1) >= sizeof posix->service)) return FLEETPOST_INVALID_OPTION;
  memcpy(posix->host, host, length);
  strcpy(posix->service, port == NULL ? "443" : port + 1);
  posix->sockets[0] = posix->sockets[1] = posix->lock = -1;
  if (mkdir(folder, 0700) < 0 && errno != EEXIST) return FLEETPOST_STORE_FAILED;
  posix->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (posix->folder >= 0) posix->lock = openat(posix->folder, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  // Two processes with one folder would send the same entries, and lose each other's.
  return posix->lock >= 0 && fcntl(posix->lock, F_SETLK, &whole) == 0 ? FLEETPOST_OK : FLEETPOST_STORE_FAILED;
}

void fleetpost_posix_release(struct fleetpost_posix *posix) {
  close(posix->lock);
  close(posix->folder);
}

void fleetpost_posix_disconnect(struct fleetpost_posix *posix, enum fleetpost_channel channel) {
  if (posix->sockets[channel] >= 0) close(posix->sockets[channel]);
  posix->sockets[channel] = -1;
  posix->is_connected[channel] = posix->wants_write[channel] = false;
}

/** Looks the host up, which may take a while: use an address where that matters. */
static int dial(struct fleetpost_posix *posix) {
  const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
  struct addrinfo *all, *one;
  unsigned count = 0, chosen;
  if (getaddrinfo(posix->host, posix->service, &hints, &all) != 0) return -1;
  for (one = all; one != NULL; one = one->ai_next) count++;
  chosen = posix->attempts % count;
  for (one = all; chosen > 0; chosen--) one = one->ai_next;
  int file = socket(one->ai_family, SOCK_STREAM, 0);
  if (file >= 0 && (fcntl(file, F_SETFL, O_NONBLOCK) < 0 || fcntl(file, F_SETFD, FD_CLOEXEC) < 0 ||
                    (connect(file, one->ai_addr, one->ai_addrlen) < 0 && errno != EINPROGRESS))) {
    close(file);
    file = -1;
  }
  freeaddrinfo(all);
  return file;
}

int fleetpost_posix_connect(struct fleetpost_posix *posix, enum fleetpost_channel channel) {
  int *file = &posix->sockets[channel], failure = 0;
  socklen_t size = sizeof failure;
  if (posix->is_connected[channel]) return 1;
  if (*file < 0) {
    *file = dial(posix);
    posix->wants_write[channel] = true;
  }
  struct pollfd writable = {*file, POLLOUT, 0};
  if (*file >= 0 && poll(&writable, 1, 0) == 0) return 0;
  if (*file < 0 || getsockopt(*file, SOL_SOCKET, SO_ERROR, &failure, &size) < 0 || failure != 0) {
    posix->attempts++;
    fleetpost_posix_disconnect(posix, channel);
    return FLEETPOST_UNREACHABLE;
  }
  posix->is_connected[channel] = true;
  posix->wants_write[channel] = false;
  return 1;
}

/** Compares base64 with a digest without decoding it: 43 characters and a '='. */
bool fleetpost_posix_is_pinned(const struct fleetpost_trust *trust, const unsigned char digest[32]) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  char text[45] = {0};
  for (int at = 0; at < 43; at++) {
    int bit = 6 * at, byte = bit / 8, pair = digest[byte] << 8 | (byte < 31 ? digest[byte + 1] : 0);
    text[at] = letters[pair >> (10 - bit % 8) & 63];
  }
  text[43] = '=';
  for (int pin = 0; pin < 2; pin++) {
    if (trust->pins[pin] != NULL && strcmp(trust->pins[pin], text) == 0) return true;
  }
  return false;
}

bool fleetpost_posix_has_address(const struct fleetpost_posix *posix, const unsigned char *bytes, size_t size) {
  unsigned char address[16];
  int family = size == 4 ? AF_INET : size == 16 ? AF_INET6 : AF_UNSPEC;
  return family != AF_UNSPEC && inet_pton(family, posix->host, address) == 1 && memcmp(address, bytes, size) == 0;
}

int64_t fleetpost_posix_time(void *posix, enum fleetpost_clock clock) {
  struct timespec now;
  (void)posix;
  clock_gettime(clock == FLEETPOST_WALL ? CLOCK_REALTIME : CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void fleetpost_posix_wait(const struct fleetpost_port *port, int32_t wait_ms, int file) {
  const struct fleetpost_posix *posix = port->context;
  struct pollfd files[3] = {{file, POLLIN, 0}};
  for (int channel = 0; channel < 2; channel++) {
    files[channel + 1] = (struct pollfd){posix->sockets[channel], posix->wants_write[channel] ? POLLOUT : POLLIN, 0};
  }
  (void)poll(files, 3, wait_ms);
}

static long load(int folder, const char *name, void *bytes, size_t size) {
  int file = openat(folder, name, O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno == ENOENT ? 0 : FLEETPOST_STORE_FAILED;
  ssize_t result = read(file, bytes, size);
  close(file);
  return result < 0 ? FLEETPOST_STORE_FAILED : (long)result;
}

/** A slot is a file: written beside it, and renamed over it once it is on disk. */
static long save(int folder, const char *name, const void *bytes, size_t size) {
  int file = openat(folder, "new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return FLEETPOST_STORE_FAILED;
  bool is_written = write(file, bytes, size) == (ssize_t)size && fsync(file) == 0;
  if (close(file) < 0 || !is_written || renameat(folder, "new", folder, name) < 0) return FLEETPOST_STORE_FAILED;
  return fsync(folder) < 0 ? FLEETPOST_STORE_FAILED : FLEETPOST_OK;
}

long fleetpost_posix_store(void *context, enum fleetpost_operation operation, uint32_t slot, void *bytes, size_t size) {
  const struct fleetpost_posix *posix = context;
  char name[16];
  snprintf(name, sizeof name, "%lu", (unsigned long)slot);
  if (operation == FLEETPOST_LOAD) return load(posix->folder, name, bytes, size);
  if (operation == FLEETPOST_SAVE) return save(posix->folder, name, bytes, size);
  // Not synced: that of the next SAVE, which a next key is, syncs it too; until then the entry's own key is still there.
  return unlinkat(posix->folder, name, 0) == 0 || errno == ENOENT ? FLEETPOST_OK : FLEETPOST_STORE_FAILED;
}
