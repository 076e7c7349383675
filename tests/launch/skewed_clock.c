/* SPDX-License-Identifier: Apache-2.0
 *
 * The time of day on a host that is CLOCK_AHEAD_S seconds ahead: loaded before the C library (LD_PRELOAD) by a test. Only the time of
 * day: what programs wait by is as it was. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
  const int result = (int)syscall(SYS_clock_gettime, clock, time);
  const char *const ahead = getenv("CLOCK_AHEAD_S");
  if (result == 0 && clock == CLOCK_REALTIME && ahead != NULL) time->tv_sec += atol(ahead);
  return result;
}
