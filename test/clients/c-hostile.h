#ifndef C_HOSTILE_H
#define C_HOSTILE_H

/** What the programs share that feed the C client what no server would say. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define REQUIRE(condition) \
  if (!(condition)) { \
    fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
    exit(1); \
  }

static uint64_t seed;

static uint32_t draw(uint32_t below) {
  seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(seed >> 33) % below;
}

#endif
