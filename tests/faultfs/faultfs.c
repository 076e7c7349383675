// SPDX-License-Identifier: Apache-2.0
//
// A preload shim that makes the n-th file call below a folder fail, for tests of crash safety. Environment:
//   FAULTFS_PREFIX  the folder whose calls count
//   FAULTFS_CALL    n, from 1; 0 or absent: never
//   FAULTFS_ACTION  kill     SIGKILL before the call
//                   torn     a write writes half its bytes, then SIGKILL
//                   power    SIGKILL after losing what was not fsynced: bytes of files, and new names in folders
//                   EIO, ENOSPC   the call fails; ENOSPC from then on for every call that needs space
//                   short    a write writes one byte only; EINTR: a write or read-like call is interrupted once
//   FAULTFS_LACKS   what the file system does not have, as those of networks do not: "exchange folder_fsync symlink lock
//                   map nameless"
//   FAULTFS_TRACE   file that gets one line per counted call, per open anywhere ("open-elsewhere") and per read below the
//                   folder ("read", "map")
// Single-threaded programs only.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { kMaxDescriptors = 1024, kMaxNames = 256 };

static char path_of[kMaxDescriptors][PATH_MAX];  // "" = not below the prefix
static char unsynced[kMaxNames][PATH_MAX];       // files with bytes that were not fsynced
static int num_unsynced;
static char renamed_from[kMaxNames][PATH_MAX];  // renames whose folder was not fsynced; "" = a first name
static char renamed_to[kMaxNames][PATH_MAX];
static int num_renamed;
static long calls_seen;
static int disk_is_full;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int below_prefix(const char* path) {
  const char* prefix = getenv("FAULTFS_PREFIX");
  return prefix != NULL && strncmp(path, prefix, strlen(prefix)) == 0;
}

static int action_is(const char* name) {
  const char* action = getenv("FAULTFS_ACTION");
  return action != NULL && strcmp(action, name) == 0;
}

static int lacks(const char* feature) {
  const char* features = getenv("FAULTFS_LACKS");
  return features != NULL && strstr(features, feature) != NULL;
}

static void trace(const char* what, const char* path) {
  const char* file = getenv("FAULTFS_TRACE");
  if (file == NULL) return;
  const int descriptor = REAL(open)(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  char line[PATH_MAX + 64];
  const int length = snprintf(line, sizeof line, "%s %s\n", what, path);
  if (REAL(write)(descriptor, line, (size_t)length) < 0) _exit(99);
  REAL(close)(descriptor);
}

static void lose_power(void) {
  for (int i = num_renamed - 1; i >= 0; --i) {
    if (renamed_from[i][0] != '\0')
      REAL(rename)(renamed_to[i], renamed_from[i]);
    else
      REAL(unlinkat)(AT_FDCWD, renamed_to[i], 0);
  }
  for (int i = 0; i < num_unsynced; ++i)
    if (truncate(unsynced[i], 0) != 0 && errno != ENOENT) _exit(98);
  kill(getpid(), SIGKILL);
}

// Returns 1 when this call must fail with errno set, 2 when it must be cut short.
static int strike(const char* what, const char* path, int is_write, int needs_space) {
  if (!below_prefix(path)) return 0;
  trace(what, path);
  const char* at = getenv("FAULTFS_CALL");
  const int is_now = ++calls_seen == (at == NULL ? 0 : atol(at));
  if (disk_is_full && needs_space) {
    errno = ENOSPC;
    return 1;
  }
  if (!is_now) return 0;
  if (action_is("kill")) kill(getpid(), SIGKILL);
  if (action_is("power")) lose_power();
  if (action_is("ENOSPC")) disk_is_full = 1;
  if (action_is("ENOSPC") && !needs_space) return 0;
  if (action_is("ENOSPC") || action_is("EIO")) {
    errno = action_is("EIO") ? EIO : ENOSPC;
    return 1;
  }
  if (is_write && (action_is("torn") || action_is("short"))) return 2;
  if (action_is("torn")) kill(getpid(), SIGKILL);
  if (is_write && action_is("EINTR")) {
    errno = EINTR;
    return 1;
  }
  return 0;
}

static void forget_unsynced(const char* path) {
  for (int i = 0; i < num_unsynced; ++i)
    if (strcmp(unsynced[i], path) == 0) memmove(unsynced[i], unsynced[--num_unsynced], PATH_MAX);
}

static void remember_unsynced(const char* path) {
  forget_unsynced(path);
  if (num_unsynced == kMaxNames) _exit(97);
  strcpy(unsynced[num_unsynced++], path);
}

static void folder_synced(const char* folder) {
  const size_t length = strlen(folder);
  for (int i = 0; i < num_renamed;) {
    const char* name = renamed_to[i];
    if (strncmp(name, folder, length) == 0 && name[length] == '/' &&
        strchr(name + length + 1, '/') == NULL) {
      --num_renamed;
      memmove(renamed_from[i], renamed_from[num_renamed], PATH_MAX);
      memmove(renamed_to[i], renamed_to[num_renamed], PATH_MAX);
    } else {
      ++i;
    }
  }
}

// Names below a renamed folder or file follow it.
static void follow_rename(const char* from, const char* to) {
  const size_t length = strlen(from);
  for (int i = 0; i < num_unsynced; ++i) {
    char* name = unsynced[i];
    if (strncmp(name, from, length) != 0 || (name[length] != '/' && name[length] != '\0')) continue;
    char moved[2 * PATH_MAX];
    snprintf(moved, sizeof moved, "%s%s", to, name + length);
    memcpy(name, moved, PATH_MAX);
  }
}

static const char* full_path(int folder, const char* path, char* buffer) {
  if (path[0] == '/') return path;
  char link[64];
  char base[PATH_MAX];
  snprintf(link, sizeof link, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
  const ssize_t length = readlink(link, base, sizeof base - 1);
  base[length < 0 ? 0 : length] = '\0';
  if (snprintf(buffer, PATH_MAX, "%s/%s", base, path) >= PATH_MAX) _exit(96);
  return buffer;
}

static void remember_renamed(const char* from, const char* to) {
  if (num_renamed == kMaxNames) _exit(94);
  strcpy(renamed_from[num_renamed], from);
  strcpy(renamed_to[num_renamed++], to);
}

static int open_at(int folder, const char* path, int flags, mode_t mode) {
  char buffer[PATH_MAX];
  const char* full = full_path(folder, path, buffer);
  if (!below_prefix(full)) trace("open-elsewhere", full);
  const int creates = (flags & (O_CREAT | O_WRONLY | O_RDWR)) != 0;
  if (strike(creates ? "create" : "open", full, 0, creates) == 1) return -1;
  const int is_nameless = (flags & __O_TMPFILE) == __O_TMPFILE;
  if (is_nameless && below_prefix(full) && lacks("nameless")) {
    errno = EOPNOTSUPP;
    return -1;
  }
  const int descriptor = REAL(openat)(folder, path, flags, mode);
  if (descriptor < 0 || descriptor >= kMaxDescriptors) return descriptor;
  char* const known = path_of[descriptor];
  known[0] = '\0';
  if (!below_prefix(full)) return descriptor;
  // A file without a name is known under one that no other file has.
  if (is_nameless && snprintf(known, PATH_MAX, "%s/#%d", full, descriptor) >= PATH_MAX) _exit(96);
  if (!is_nameless) strcpy(known, full);
  return descriptor;
}

#define OPEN_BODY(folder)                \
  mode_t mode = 0;                       \
  if (flags & (O_CREAT | __O_TMPFILE)) { \
    va_list rest;                        \
    va_start(rest, flags);               \
    mode = va_arg(rest, mode_t);         \
    va_end(rest);                        \
  }                                      \
  return open_at(folder, path, flags, mode)

int open(const char* path, int flags, ...) { OPEN_BODY(AT_FDCWD); }
int open64(const char* path, int flags, ...) { OPEN_BODY(AT_FDCWD); }
int openat(int folder, const char* path, int flags, ...) { OPEN_BODY(folder); }
int openat64(int folder, const char* path, int flags, ...) { OPEN_BODY(folder); }

static const char* known_path(int descriptor) {
  return descriptor >= 0 && descriptor < kMaxDescriptors ? path_of[descriptor] : "";
}

ssize_t write(int descriptor, const void* bytes, size_t count) {
  const char* path = known_path(descriptor);
  if (path[0] == '\0') return REAL(write)(descriptor, bytes, count);
  const int struck = strike("write", path, 1, 1);
  if (struck == 1) return -1;
  if (struck == 2 && action_is("torn")) {
    if (REAL(write)(descriptor, bytes, count / 2) < 0) _exit(95);
    kill(getpid(), SIGKILL);
  }
  remember_unsynced(path);
  return REAL(write)(descriptor, bytes, struck == 2 && count > 0 ? 1 : count);
}

ssize_t read(int descriptor, void* bytes, size_t count) {
  const char* path = known_path(descriptor);
  if (path[0] != '\0') trace("read", path);
  return REAL(read)(descriptor, bytes, count);
}

ssize_t pread(int descriptor, void* bytes, size_t count, off_t offset) {
  const char* path = known_path(descriptor);
  if (path[0] != '\0') trace("read", path);
  return REAL(pread)(descriptor, bytes, count, offset);
}

void* mmap(void* address, size_t length, int protection, int flags, int descriptor, off_t offset) {
  const char* path = known_path(descriptor);
  if (path[0] != '\0') {
    trace("map", path);
    if (lacks("map")) {
      errno = ENODEV;
      return MAP_FAILED;
    }
  }
  return REAL(mmap)(address, length, protection, flags, descriptor, offset);
}

static int control(int descriptor, int command, void* argument) {
  const int locks = command == F_SETLK || command == F_OFD_SETLK;
  if (locks && known_path(descriptor)[0] != '\0' && lacks("lock")) {
    errno = ENOSYS;
    return -1;
  }
  return REAL(fcntl)(descriptor, command, argument);
}

#define CONTROL_BODY                       \
  va_list rest;                            \
  va_start(rest, command);                 \
  void* const argument = va_arg(rest, void*); \
  va_end(rest);                            \
  return control(descriptor, command, argument)

int fcntl(int descriptor, int command, ...) { CONTROL_BODY; }
int fcntl64(int descriptor, int command, ...) { CONTROL_BODY; }

static int is_folder(int descriptor) {
  struct stat facts;
  return fstat(descriptor, &facts) == 0 && S_ISDIR(facts.st_mode);
}

int fsync(int descriptor) {
  const char* path = known_path(descriptor);
  if (path[0] == '\0') return REAL(fsync)(descriptor);
  if (strike("fsync", path, 0, 1) == 1) return -1;
  // Without it, the server keeps a name before it answers.
  const int refused = is_folder(descriptor) && lacks("folder_fsync");
  const int status = refused ? 0 : REAL(fsync)(descriptor);
  if (status == 0) {
    forget_unsynced(path);
    folder_synced(path);
  }
  if (!refused) return status;
  errno = EINVAL;
  return -1;
}

int close(int descriptor) {
  char path[PATH_MAX];
  strcpy(path, known_path(descriptor));
  if (descriptor >= 0 && descriptor < kMaxDescriptors) path_of[descriptor][0] = '\0';
  const int struck = path[0] == '\0' ? 0 : strike("close", path, 0, 0);
  const int status = REAL(close)(descriptor);
  if (struck != 1) return status;
  errno = EIO;
  return -1;
}

static int rename_known(const char* from, const char* to, unsigned flags) {
  if (strike("rename", to, 0, 0) == 1) return -1;
  if (flags != 0 && lacks("exchange")) {
    errno = EINVAL;
    return -1;
  }
  const int is_new = access(to, F_OK) != 0;
  const int status = REAL(renameat2)(AT_FDCWD, from, AT_FDCWD, to, flags);
  if (status != 0 || !below_prefix(to)) return status;
  if (flags == 0) follow_rename(from, to);
  if (is_new) remember_renamed(from, to);
  return status;
}

int rename(const char* from, const char* to) { return rename_known(from, to, 0); }

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  char from_buffer[PATH_MAX];
  char to_buffer[PATH_MAX];
  return rename_known(full_path(from_folder, from, from_buffer),
                      full_path(to_folder, to, to_buffer), flags);
}

// Names a file that had none, by its link in /proc.
int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) {
  char buffer[PATH_MAX];
  const char* full = full_path(to_folder, to, buffer);
  if (strike("link", full, 0, 1) == 1) return -1;
  const int status = REAL(linkat)(from_folder, from, to_folder, to, flags);
  int descriptor = -1;
  if (status != 0 || sscanf(from, "/proc/self/fd/%d", &descriptor) != 1) return status;
  if (known_path(descriptor)[0] == '\0') return status;
  follow_rename(known_path(descriptor), full);
  strcpy(path_of[descriptor], full);
  remember_renamed("", full);
  return status;
}

int symlink(const char* target, const char* path) {
  if (strike("symlink", path, 0, 1) == 1) return -1;
  if (below_prefix(path) && lacks("symlink")) {
    errno = EOPNOTSUPP;
    return -1;
  }
  return REAL(symlink)(target, path);
}

int mkdir(const char* path, mode_t mode) {
  return strike("mkdir", path, 0, 1) == 1 ? -1 : REAL(mkdir)(path, mode);
}

int unlinkat(int folder, const char* path, int flags) {
  char buffer[PATH_MAX];
  return strike("unlink", full_path(folder, path, buffer), 0, 0) == 1
             ? -1
             : REAL(unlinkat)(folder, path, flags);
}

int unlink(const char* path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char* path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

int remove(const char* path) { return strike("unlink", path, 0, 0) == 1 ? -1 : REAL(remove)(path); }
