/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker of `convoy process` that comes to a stand in the middle: once its segment of finished rows holds STALL_BYTES, it
 * makes the file STALL_MARK and writes no more. Loaded before the C library (LD_PRELOAD) by a test. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static void stall_at(int file, off_t offset) {
  const char *const bytes = getenv("STALL_BYTES");
  const char *const mark = getenv("STALL_MARK");
  char link[64];
  char path[4096];
  if (bytes == NULL || mark == NULL || offset < atol(bytes)) return;
  snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, sizeof(path) - 1);
  if (length < 4) return;
  path[length] = '\0';
  if (strcmp(path + length - 4, ".seg") != 0 || strstr(path, "/input") != NULL) return;
  close(open(mark, O_CREAT | O_WRONLY, 0600));
  for (;;) pause();
}

#define STALLING(name)                                                                  \
  ssize_t name(int file, const struct iovec *pieces, int count, off_t offset) {         \
    static ssize_t (*next)(int, const struct iovec *, int, off_t);                      \
    if (next == NULL)                                                                   \
      next = (ssize_t(*)(int, const struct iovec *, int, off_t))dlsym(RTLD_NEXT, #name); \
    stall_at(file, offset);                                                             \
    return next(file, pieces, count, offset);                                           \
  }
STALLING(pwritev)
STALLING(pwritev64)
