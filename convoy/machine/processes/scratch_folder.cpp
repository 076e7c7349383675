// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/processes/scratch_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "convoy/core/base/error.h"
#include "convoy/machine/processes/run_id.h"

namespace convoy::processes {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kName = "convoy-launch-";

// Named after the running kernel: a lock is visible to processes under the same kernel only, and a
// folder for temporary files may be shared with other machines.
std::string owner_name() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  file >> id;
  return "owner-" + id;
}

// The file is locked before it has a name, so no process finds it unlocked while this process
// lives. Some file systems cannot do that: the result is not open then, and the folder is never
// taken for an abandoned one.
Descriptor locked_owner_file(const fs::path& folder) {
  Descriptor file(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  const std::string link = fmt::format("/proc/self/fd/{}", file.get());
  if (file.open() && (::flock(file.get(), LOCK_EX | LOCK_NB) != 0 ||
                      ::linkat(AT_FDCWD, link.c_str(), AT_FDCWD, (folder / owner_name()).c_str(),
                               AT_SYMLINK_FOLLOW) != 0))
    file.reset();
  return file;
}

bool is_abandoned(const fs::path& folder, const std::string& owner, Descriptor& lock) {
  lock = Descriptor(::open((folder / owner).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  struct stat facts {};
  return lock.open() && ::fstat(lock.get(), &facts) == 0 && facts.st_uid == ::geteuid() &&
         ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
}

void remove_abandoned(const fs::path& temporary) {
  const std::string owner = owner_name();
  std::error_code error;
  for (fs::directory_iterator entry(temporary, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!entry->path().filename().string().starts_with(kName)) continue;
    Descriptor lock;  // held during the removal: another launch leaves the folder to this one
    std::error_code ignored;
    if (is_abandoned(entry->path(), owner, lock)) fs::remove_all(entry->path(), ignored);
  }
}

}  // namespace

ScratchFolder::ScratchFolder() {
  std::error_code error;
  fs::path folder = fs::temp_directory_path(error);
  if (error || ::access(folder.c_str(), W_OK | X_OK) != 0) folder = "/tmp";
  path_ = folder / fmt::format("{}{}", kName, new_run_id());
}

void ScratchFolder::make() {
  remove_abandoned(path_.parent_path());
  if (::mkdir(path_.c_str(), 0700) != 0)
    throw IoError(
        fmt::format("no folder for temporary files could be made: {}", std::strerror(errno)),
        {.file = path_.parent_path(),
         .hint = "set TMPDIR to a folder on a disk that is not full and may be written to"});
  owner_ = locked_owner_file(path_);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

fs::path ScratchFolder::error_file(int attempt, int local_rank) const {
  const fs::path folder = path_ / fmt::format("attempt_{}", attempt) / std::to_string(local_rank);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw IoError(
        fmt::format("no folder for error files could be made: {}", error.message()),
        {.file = folder,
         .hint = "set TMPDIR to a folder on a disk that is not full and may be written to"});
  return folder / "error.json";
}

}  // namespace convoy::processes
