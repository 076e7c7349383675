// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/hub/cache_entry.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/io/file_failure.h"

namespace convoy::hub {
namespace {

namespace fs = std::filesystem;

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) io::throw_file_failure("make the folder", folder, error.value());
}

}  // namespace

CacheEntry::CacheEntry(const fs::path& cache, const RepositoryName& repository)
    : cache_(cache), folder_(cache / io::hub_folder_name(repository.id, repository.kind)) {}

fs::path CacheEntry::snapshot(const std::string& commit) const {
  return folder_ / "snapshots" / commit;
}

fs::path CacheEntry::blob(const std::string& etag) const { return folder_ / "blobs" / etag; }

fs::path CacheEntry::part(const std::string& etag) const {
  return folder_ / "blobs" / (etag + ".incomplete");
}

fs::path CacheEntry::lock(const std::string& etag) const {
  return cache_ / ".locks" / folder_.filename() / (etag + ".lock");
}

bool CacheEntry::has_file(const std::string& commit, const std::string& path) const {
  std::error_code ignored;
  return fs::is_regular_file(snapshot(commit) / path, ignored);
}

void CacheEntry::make_folders(const std::string& commit) const {
  make_folder(folder_ / "blobs");
  make_folder(snapshot(commit));
  make_folder(cache_ / ".locks" / folder_.filename());
  // Tells backup programs to skip the folder (https://bford.info/cachedir).
  const fs::path tag = cache_ / "CACHEDIR.TAG";
  if (std::error_code ignored; !fs::exists(tag, ignored))
    write_file_atomic(tag,
                      "Signature: 8a477f597d28d172789f06886806bc55\n"
                      "# This file is a cache directory tag created by huggingface_hub.\n"
                      "# For information about cache directory tags, see:\n"
                      "#\thttps://bford.info/cachedir/\n");
}

void CacheEntry::link_file(const std::string& commit, const RemoteFile& file) const {
  const fs::path link = snapshot(commit) / file.path;
  make_folder(link.parent_path());
  const fs::path target = blob(file.etag).lexically_relative(link.parent_path());
  std::error_code error;
  if (fs::read_symlink(link, error) == target) return;
  fs::remove(link, error);
  fs::create_symlink(target, link, error);
  if (error)
    throw IoError(fmt::format("could not link {}: {}", link.string(), error.message()),
                  {.file = link.string(),
                   .hint = "the cache must lie on a file system with links: set HF_HUB_CACHE"});
}

void CacheEntry::forget_file(const std::string& commit, const std::string& path) const {
  const fs::path link = snapshot(commit) / path;
  std::error_code ignored;
  const fs::path target = fs::read_symlink(link, ignored);
  if (!target.empty()) fs::remove(link.parent_path() / target, ignored);
  fs::remove(link, ignored);
}

void CacheEntry::write_ref(const std::string& revision, const std::string& commit) const {
  const fs::path ref = folder_ / "refs" / revision;
  std::error_code ignored;
  if (revision == commit || (fs::exists(ref, ignored) && read_file(ref, 1024) == commit)) return;
  write_file_atomic(ref, commit);
}

FileLock::FileLock(const fs::path& path, const std::function<void()>& while_waiting)
    : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
  if (!file_.open()) io::throw_file_failure("open", path, errno);
  while (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) io::throw_file_failure("lock", path, errno);
    while_waiting();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

BlobPart::BlobPart(fs::path path, const RemoteFile& file)
    : path_(std::move(path)),
      file_(file),
      descriptor_(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)),
      hash_(file.etag, file.size_bytes) {
  if (!descriptor_.open()) io::throw_file_failure("open", path_, errno);
  std::array<char, 1 << 16> piece{};
  for (;;) {
    const ssize_t got = ::pread(descriptor_.get(), piece.data(), piece.size(), size_bytes_);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) io::throw_file_failure("read", path_, errno);
    if (got == 0) break;
    hash_.update({piece.data(), static_cast<size_t>(got)});
    size_bytes_ += got;
  }
  if (size_bytes_ > file_.size_bytes) restart();
}

void BlobPart::cut(int64_t size_bytes) {
  if (::ftruncate(descriptor_.get(), size_bytes) != 0) io::throw_file_failure("cut", path_, errno);
}

void BlobPart::restart() {
  cut(0);
  size_bytes_ = 0;
  hash_ = BlobHash(file_.etag, file_.size_bytes);
}

void BlobPart::write(int64_t begin, std::string_view bytes) {
  if (begin < size_bytes_) {
    CONVOY_INVARIANT(begin == 0, "a piece at {} of a part of {} bytes", begin, size_bytes_);
    restart();
  }
  if (size_bytes_ + static_cast<int64_t>(bytes.size()) > file_.size_bytes)
    throw DataError(
        fmt::format("{} is more than the {} bytes that the hub says", file_.path, file_.size_bytes),
        {.hint = "fetch again; if it stays, check HF_ENDPOINT"});
  hash_.update(bytes);
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(descriptor_.get(), bytes.data(), bytes.size(), size_bytes_);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) io::throw_file_failure("write", path_, errno);
    size_bytes_ += written;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

bool BlobPart::finish() {
  if (!hash_.matches()) return false;
  if (::fsync(descriptor_.get()) != 0) io::throw_file_failure("fsync", path_, errno);
  return true;
}

}  // namespace convoy::hub
