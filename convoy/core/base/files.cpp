// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/nameless_file.h"
#include "convoy/core/base/nearby_files.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;

std::string errno_text(int code) { return std::strerror(code); }

[[noreturn]] void throw_write_error(const fs::path& path, const char* what, int code) {
  throw IoError(fmt::format("could not {} {}: {}", what, path.string(), errno_text(code)),
                {.file = path.string(), .hint = "check free space and permissions"});
}

int open_for_read(const fs::path& path, struct stat& status) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    const int code = errno;
    throw DataError(fmt::format("cannot read the file: {}", errno_text(code)),
                    {.file = path.string(), .hint = unreadable_file_hint(path, code)});
  }
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    throw DataError("wanted a regular file",
                    {.file = path.string(),
                     .hint = "name a file; a folder, a pipe or a device cannot be read here"});
  }
  return descriptor;
}

// Returns MAP_FAILED, with errno set, when memory is short or the file cannot be read.
void* read_into_memory(int descriptor, size_t size) {
  void* const memory =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  size_t done = memory == MAP_FAILED ? size : 0;
  while (done < size) {
    const ssize_t count = ::pread(descriptor, static_cast<char*>(memory) + done, size - done,
                                  static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      const int code = count < 0 ? errno : EIO;
      ::munmap(memory, size);
      errno = code;
      return MAP_FAILED;
    }
    done += static_cast<size_t>(count);
  }
  return memory;
}

}  // namespace

std::string read_file(const fs::path& path, int64_t max_bytes) {
  struct stat status {};
  const int descriptor = open_for_read(path, status);
  if (status.st_size > max_bytes) {
    ::close(descriptor);
    throw DataError(fmt::format("the file has {} bytes, more than the {} allowed here",
                                status.st_size, max_bytes),
                    {.file = path.string(), .hint = "name a smaller file"});
  }
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::read(descriptor, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    done += static_cast<size_t>(count);
  }
  ::close(descriptor);
  if (done != bytes.size())
    throw DataError(
        fmt::format("read {} of {} bytes", done, bytes.size()),
        {.file = path.string(),
         .hint = "the file was cut while it was read: run this again when nothing writes to it"});
  return bytes;
}

namespace {

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// True for /dev/null, /dev/stdout or a FIFO. Such a path is written to directly: renaming a file
// over it would destroy the device or pipe.
bool is_device_or_pipe(const fs::path& path) {
  std::error_code ignored;
  const fs::file_type type = fs::status(path, ignored).type();
  return type == fs::file_type::character || type == fs::file_type::block ||
         type == fs::file_type::fifo || type == fs::file_type::socket;
}

// A folder that can be synced even when it is renamed meanwhile.
class OpenFolder {
 public:
  explicit OpenFolder(const fs::path& folder)
      : path_(folder), descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (descriptor_ < 0) throw_write_error(path_, "open folder", errno);
  }
  ~OpenFolder() { ::close(descriptor_); }
  OpenFolder(const OpenFolder&) = delete;
  OpenFolder& operator=(const OpenFolder&) = delete;

  void sync() const {
    if (::fsync(descriptor_) != 0 && errno != EINVAL && errno != ENOTSUP)
      throw_write_error(path_, "fsync folder", errno);
  }

 private:
  fs::path path_;
  int descriptor_;
};

}  // namespace

void sync_folder(const fs::path& folder) { OpenFolder(folder).sync(); }

AtomicFile::AtomicFile(fs::path path) : path_(std::move(path)) {
  std::error_code ignored;
  if (path_.has_parent_path()) fs::create_directories(path_.parent_path(), ignored);
  if (is_device_or_pipe(path_)) {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) throw_write_error(path_, "open", errno);
    return;
  }
  temporary_ = free_name_beside(path_);
  descriptor_ = open_nameless(folder_of(path_));
  if (descriptor_ >= 0) return;
  descriptor_ =
      ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (descriptor_ < 0) throw_write_error(temporary_, "create", errno);
  is_named_ = true;
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (is_named_) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::string_view bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::write(descriptor_, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw_write_error(path_, "write", errno);
    done += static_cast<size_t>(count);
  }
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  write(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void AtomicFile::commit() {
  if (temporary_.empty()) {
    if (::close(std::exchange(descriptor_, -1)) != 0) throw_write_error(path_, "close", errno);
    return;
  }
  if (::fsync(descriptor_) != 0) throw_write_error(path_, "fsync", errno);
  if (!is_named_ && !give_name(descriptor_, temporary_)) throw_write_error(path_, "name", errno);
  is_named_ = true;
  const int status = ::close(std::exchange(descriptor_, -1));
  if (status != 0) throw_write_error(path_, "close", errno);
  // The folder is opened first: a reader who sees the file may rename the folder at once.
  const OpenFolder folder(folder_of(path_));
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) throw_write_error(path_, "rename", errno);
  is_named_ = false;
  folder.sync();
}

void write_file_atomic(const fs::path& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

MappedFile::MappedFile(const fs::path& path) : path_(path) {
  struct stat status {};
  descriptor_ = open_for_read(path, status);
  size_bytes_ = status.st_size;
  if (size_bytes_ == 0) return;
  const auto size = static_cast<size_t>(size_bytes_);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor_, 0);
  // Some network file systems cannot map files; the bytes are then read into allocated memory.
  if (data == MAP_FAILED && (errno == ENODEV || errno == EINVAL))
    data = read_into_memory(descriptor_, size);
  if (data == MAP_FAILED) {
    const int code = errno;
    ::close(descriptor_);
    throw IoError(
        fmt::format("could not map the file: {}", errno_text(code)),
        {.file = path.string(), .hint = "copy the file to a local disk and name it there"});
  }
  data_ = static_cast<const std::byte*>(data);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), static_cast<size_t>(size_bytes_));
  if (descriptor_ >= 0) ::close(descriptor_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

}  // namespace convoy
