/* SPDX-License-Identifier: Apache-2.0
 *
 * A slow file system for one rank: files whose path holds SLOW_FILES (several, with `:` between) take SLOW_SECONDS to open in the
 * process with RANK=0, each once. Loaded before the C library (LD_PRELOAD) by a test. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void dawdle(const char *path) {
  static int done[16];
  const char *const rank = getenv("RANK");
  const char *const seconds = getenv("SLOW_SECONDS");
  const char *const parts = getenv("SLOW_FILES");
  if (path == NULL || rank == NULL || seconds == NULL || parts == NULL || strcmp(rank, "0") != 0)
    return;
  char list[1024];
  snprintf(list, sizeof(list), "%s", parts);
  char *rest = list;
  for (int index = 0; index < 16 && rest != NULL; ++index) {
    const char *const part = strsep(&rest, ":");
    if (done[index] || *part == '\0' || strstr(path, part) == NULL) continue;
    done[index] = 1;
    fprintf(stderr, "slow: %s\n", part);
    sleep((unsigned)atoi(seconds));
  }
}

#define SLOW_OPEN(name)                                                              \
  int name(const char *path, int flags, ...) {                                       \
    static int (*next)(const char *, int, ...);                                      \
    if (next == NULL) next = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #name); \
    va_list rest;                                                                    \
    va_start(rest, flags);                                                           \
    const mode_t mode = (flags & (O_CREAT | __O_TMPFILE)) ? va_arg(rest, mode_t) : 0; \
    va_end(rest);                                                                    \
    dawdle(path);                                                                    \
    return next(path, flags, mode);                                                  \
  }
SLOW_OPEN(open)
SLOW_OPEN(open64)

#define SLOW_FOPEN(name)                                                                     \
  FILE *name(const char *path, const char *mode) {                                           \
    static FILE *(*next)(const char *, const char *);                                        \
    if (next == NULL) next = (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, #name); \
    dawdle(path);                                                                            \
    return next(path, mode);                                                                 \
  }
SLOW_FOPEN(fopen)
SLOW_FOPEN(fopen64)
