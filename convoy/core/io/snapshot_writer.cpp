// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/io/snapshot_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/io/file_failure.h"
#include "convoy/core/io/model_folder.h"

namespace convoy::io {
namespace {

namespace fs = std::filesystem;

// A piece is small enough to be still in the cache when the kernel copies it after hashing.
constexpr size_t kPieceBytes = size_t{1} << 18;

}  // namespace

// The file is written under its final name, because the folder around it becomes visible only as a
// whole, by a rename.
class SnapshotWriter::File {
 public:
  explicit File(fs::path path)
      : path_(std::move(path)),
        descriptor_(
            ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644)) {
    if (descriptor_ < 0) throw_file_failure("create", path_, errno);
  }
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void append(std::string_view bytes) {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(kPieceBytes, bytes.size()))) {
      const std::string_view piece = bytes.substr(0, kPieceBytes);
      record_.crc32c = crc32c(piece, record_.crc32c);
      record_.bytes += std::ssize(piece);
      write_all(piece);
    }
  }

  FileRecord finish() {
    // A failed fsync is final, because the kernel may have dropped the pages: the file is given up.
    if (::fsync(descriptor_) != 0) throw_file_failure("fsync", path_, errno);
    if (::close(std::exchange(descriptor_, -1)) != 0) throw_file_failure("close", path_, errno);
    return record_;
  }

 private:
  void write_all(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) throw_file_failure("write", path_, count < 0 ? errno : ENOSPC);
      bytes.remove_prefix(static_cast<size_t>(count));
    }
  }

  fs::path path_;
  int descriptor_;
  FileRecord record_;
};

SnapshotWriter::SnapshotWriter(fs::path folder) : folder_(std::move(folder)) {}

fs::path SnapshotWriter::new_file(const std::string& name) {
  const fs::path relative(name);
  CONVOY_INVARIANT(!name.empty() && std::all_of(relative.begin(), relative.end(),
                                                [](const fs::path& part) {
                                                  return is_single_path_component(part.string());
                                                }),
                   "a snapshot file called `{}`", name);
  CONVOY_INVARIANT(!records_.contains(name), "two snapshot files called {}", name);
  for (fs::path parent = relative.parent_path(); !parent.empty(); parent = parent.parent_path())
    inner_folders_.insert(folder_ / parent);
  std::error_code error;
  if (relative.has_parent_path()) fs::create_directories((folder_ / relative).parent_path(), error);
  if (error) throw_file_failure("create", (folder_ / relative).parent_path(), error.value());
  return folder_ / relative;
}

void SnapshotWriter::write(const std::string& name, std::string_view bytes) {
  File file(new_file(name));
  file.append(bytes);
  records_[name] = file.finish();
}

void SnapshotWriter::write_tensors(const std::string& name, std::vector<TensorSource> tensors,
                                   const Metadata& metadata) {
  File file(new_file(name));
  stream_safetensors(
      std::move(tensors),
      [&file](std::span<const std::byte> bytes) {
        file.append({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      },
      metadata);
  records_[name] = file.finish();
}

void SnapshotWriter::add_written(const std::string& name, const FileRecord& record) {
  CONVOY_INVARIANT(!records_.contains(name), "two snapshot files called {}", name);
  records_[name] = record;
}

void SnapshotWriter::sync_folders() const {
  for (const fs::path& folder : inner_folders_) sync_folder(folder);
  sync_folder(folder_);
}

}  // namespace convoy::io
