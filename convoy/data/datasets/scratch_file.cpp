// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/scratch_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "convoy/core/base/error.h"

namespace convoy::data {
namespace {

constexpr size_t kPendingScratchBytes = size_t{1} << 20;

[[noreturn]] void fail(const std::string& what, const std::string& place) {
  throw IoError(fmt::format("could not {} in {}: {}", what, place, std::strerror(errno)),
                {.file = place, .hint = "check free space and permissions"});
}

Descriptor file_without_name(const std::filesystem::path& folder) {
  std::string name = (folder / ".convoy-rows-XXXXXX").string();
  Descriptor file(::mkostemp(name.data(), O_CLOEXEC));
  if (!file.open()) fail("create a file", folder.string());
  ::unlink(name.c_str());
  return file;
}

}  // namespace

ScratchFile::ScratchFile(const std::filesystem::path& folder)
    : ScratchFile(file_without_name(folder), folder.string()) {}

ScratchFile ScratchFile::in_memory() {
  Descriptor file(::memfd_create("convoy-rows", MFD_CLOEXEC));
  if (!file.open()) fail("put rows aside", "memory");
  return {std::move(file), "memory"};
}

void ScratchFile::append(std::string_view bytes) {
  pending_ += bytes;
  size_bytes_ += static_cast<int64_t>(bytes.size());
  if (pending_.size() >= kPendingScratchBytes) flush();
}

void ScratchFile::flush() {
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const ssize_t count = ::write(file_.get(), rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail("put rows aside", place_);
    rest.remove_prefix(static_cast<size_t>(count));
  }
  pending_.clear();
}

void ScratchFile::read_at(int64_t offset_bytes, std::span<char> into) const {
  while (!into.empty()) {
    const ssize_t count = ::pread(file_.get(), into.data(), into.size(), offset_bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail("read back rows put aside", place_);
    into = into.subspan(static_cast<size_t>(count));
    offset_bytes += count;
  }
}

ScratchReader::ScratchReader(const ScratchFile& file, int64_t begin_bytes, int64_t end_bytes,
                             size_t buffer_bytes)
    : file_(file), next_(begin_bytes), end_(end_bytes), buffer_(buffer_bytes, '\0') {}

void ScratchReader::read(std::span<char> into) {
  while (!into.empty()) {
    if (at_ == filled_) {
      const auto room = static_cast<int64_t>(buffer_.size());
      filled_ = static_cast<size_t>(std::min(room, end_ - next_));
      CONVOY_INVARIANT(filled_ > 0, "{} bytes are wanted behind the end", into.size());
      file_.read_at(next_, {buffer_.data(), filled_});
      next_ += static_cast<int64_t>(filled_);
      at_ = 0;
    }
    const size_t count = std::min(into.size(), filled_ - at_);
    std::memcpy(into.data(), buffer_.data() + at_, count);
    at_ += count;
    into = into.subspan(count);
  }
}

}  // namespace convoy::data
