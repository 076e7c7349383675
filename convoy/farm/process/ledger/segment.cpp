// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/ledger/segment.h"

#include <endian.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/hash.h"

namespace convoy::process {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kMagic = 0x53475643;  // the bytes "CVGS"
constexpr size_t kHeadBytes = 16;
constexpr int64_t kMostAtRisk = 10;
constexpr std::chrono::seconds kLongestAtRisk{2};
constexpr size_t kMostOpenFiles = 64;

struct Head {
  uint32_t magic = 0;
  uint32_t kind = 0;
  uint32_t length = 0;
  uint32_t crc = 0;
};
static_assert(sizeof(Head) == kHeadBytes);

uint32_t crc_of(uint32_t kind, std::string_view bytes) {
  const std::array<uint32_t, 2> words = {::htole32(kind),
                                         ::htole32(static_cast<uint32_t>(bytes.size()))};
  std::array<char, sizeof(words)> stored{};
  std::memcpy(stored.data(), words.data(), sizeof(words));
  return crc32c(bytes, crc32c({stored.data(), stored.size()}));
}

Head head_of(RecordKind kind, std::string_view bytes) {
  if (bytes.size() >= std::numeric_limits<uint32_t>::max())
    throw DataError(fmt::format("a record of {} bytes; wanted less than 4 GiB", bytes.size()),
                    {.hint = "shorten the row or its text"});
  const auto number = static_cast<uint32_t>(kind);
  return {::htole32(kMagic), ::htole32(number), ::htole32(static_cast<uint32_t>(bytes.size())),
          ::htole32(crc_of(number, bytes))};
}

[[noreturn]] void throw_io(const fs::path& path, const char* what) {
  throw IoError(fmt::format("the segment could not be {}: {}", what, std::strerror(errno)),
                {.file = path.string(), .hint = "check free space and permissions"});
}

// Returns false at the end of the file.
bool read_fully(int descriptor, char* into, size_t length, int64_t offset) {
  for (size_t have = 0; have < length;) {
    const ssize_t received =
        ::pread(descriptor, into + have, length - have, offset + static_cast<int64_t>(have));
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) return false;
    have += static_cast<size_t>(received);
  }
  return true;
}

// Returns false if no intact record begins at `offset`.
bool read_record(int descriptor, int64_t offset, int64_t file_bytes, RecordKind& kind,
                 std::string& bytes) {
  Head head;
  std::array<char, kHeadBytes> stored{};
  if (!read_fully(descriptor, stored.data(), stored.size(), offset)) return false;
  std::memcpy(&head, stored.data(), sizeof(head));
  const uint32_t length = ::le32toh(head.length);
  const int64_t begin = offset + static_cast<int64_t>(kHeadBytes);
  if (::le32toh(head.magic) != kMagic || begin + int64_t{length} > file_bytes) return false;
  bytes.resize(length);
  if (!read_fully(descriptor, bytes.data(), length, begin)) return false;
  kind = static_cast<RecordKind>(::le32toh(head.kind));
  return crc_of(::le32toh(head.kind), bytes) == ::le32toh(head.crc);
}

int64_t size_of(int descriptor) {
  struct stat facts {};
  return ::fstat(descriptor, &facts) == 0 ? static_cast<int64_t>(facts.st_size) : 0;
}

}  // namespace

std::string record_bytes(RecordKind kind, std::string_view bytes) {
  const Head head = head_of(kind, bytes);
  std::string record(reinterpret_cast<const char*>(&head), sizeof(head));
  return record.append(bytes);
}

SegmentWriter::SegmentWriter(const fs::path& folder, std::string file, SyncRule rule)
    : path_(folder / file), file_(std::move(file)), rule_(rule) {
  std::error_code error;
  fs::create_directories(folder, error);
  const bool exists = fs::exists(path_, error);
  if (exists) size_bytes_ = for_each_record(path_, [](int64_t, RecordKind, std::string&) {});
  descriptor_ = Descriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!descriptor_.open()) throw_io(path_, "made");
  if (::ftruncate(descriptor_.get(), size_bytes_) != 0) throw_io(path_, "cut");
  if (!exists) sync_folder(folder);
}

SegmentOffset SegmentWriter::append(RecordKind kind, std::string_view bytes) {
  Head head = head_of(kind, bytes);
  std::array<iovec, 2> pieces = {
      {{&head, sizeof(head)}, {const_cast<char*>(bytes.data()), bytes.size()}}};
  const size_t wanted = sizeof(head) + bytes.size();
  for (size_t written = 0; written < wanted;) {
    const ssize_t sent =
        ::pwritev(descriptor_.get(), pieces.data(), static_cast<int>(pieces.size()),
                  size_bytes_ + static_cast<int64_t>(written));
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) {
      const int number = sent < 0 ? errno : ENOSPC;
      // If the tail could not be cut, later records overwrite it.
      [[maybe_unused]] const int cut = ::ftruncate(descriptor_.get(), size_bytes_);
      errno = number;
      throw_io(path_, "written");
    }
    written += static_cast<size_t>(sent);
    size_t skip = static_cast<size_t>(sent);
    for (iovec& piece : pieces) {
      const size_t from_here = std::min(skip, piece.iov_len);
      piece.iov_base = static_cast<char*>(piece.iov_base) + from_here;
      piece.iov_len -= from_here;
      skip -= from_here;
    }
  }
  const SegmentOffset place{file_, size_bytes_, static_cast<int64_t>(bytes.size())};
  size_bytes_ += static_cast<int64_t>(wanted);
  if (records_at_risk_++ == 0) oldest_at_risk_ = std::chrono::steady_clock::now();
  return place;
}

void SegmentWriter::sync() {
  if (records_at_risk_ == 0) return;
  if (::fdatasync(descriptor_.get()) != 0) throw_io(path_, "made safe");
  records_at_risk_ = 0;
}

void SegmentWriter::sync_if_due() {
  if (rule_ == SyncRule::Always || records_at_risk_ >= kMostAtRisk ||
      (records_at_risk_ > 0 &&
       std::chrono::steady_clock::now() - oldest_at_risk_ >= kLongestAtRisk))
    sync();
}

int SegmentReader::descriptor_of(const std::string& file) {
  const auto known = files_.find(file);
  if (known != files_.end()) {
    last_used_.splice(last_used_.begin(), last_used_, known->second.use);
    return known->second.descriptor.get();
  }
  const fs::path path = folder_ / file;
  if (fs::path(file).filename() != file)
    throw DataError(fmt::format("'{}' is not the name of a segment", file),
                    {.hint = "the store of this run is damaged: start anew with another --run-dir, "
                             "or restore a copy"});
  Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor.open())
    throw DataError(fmt::format("the segment could not be opened: {}", std::strerror(errno)),
                    {.file = path.string(),
                     .hint = "the run folder lacks the file or may not be read: restore it, or "
                             "start anew with another --run-dir"});
  if (files_.size() >= kMostOpenFiles) {
    files_.erase(last_used_.back());
    last_used_.pop_back();
  }
  last_used_.push_front(file);
  const int number = descriptor.get();
  files_.emplace(file, OpenFile{std::move(descriptor), last_used_.begin()});
  return number;
}

void SegmentReader::forget(const std::string& file) {
  const auto known = files_.find(file);
  if (known == files_.end()) return;
  last_used_.erase(known->second.use);
  files_.erase(known);
}

bool SegmentReader::read_sound(const SegmentOffset& place, RecordKind kind, std::string& bytes) {
  const int descriptor = descriptor_of(place.file);
  RecordKind found{};
  const int64_t file_bytes = size_of(descriptor);
  return place.offset >= 0 && place.offset < file_bytes &&
         read_record(descriptor, place.offset, file_bytes, found, bytes) && found == kind &&
         static_cast<int64_t>(bytes.size()) == place.length;
}

std::string SegmentReader::read(const SegmentOffset& place, RecordKind kind) {
  std::string bytes;
  if (read_sound(place, kind, bytes)) return bytes;
  forget(place.file);
  if (read_sound(place, kind, bytes)) return bytes;
  throw DataError(
      fmt::format("found no valid record of {} bytes at byte {}", place.length, place.offset),
      {.file = (folder_ / place.file).string(),
       .hint = "the store of this run is damaged: start anew with another --run-dir, or restore a "
               "copy"});
}

int64_t for_each_record(
    const fs::path& path,
    const std::function<void(int64_t offset, RecordKind kind, std::string& bytes)>& visit) {
  const Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor.open())
    throw DataError(fmt::format("the segment could not be opened: {}", std::strerror(errno)),
                    {.file = path.string(),
                     .hint = "the run folder lacks the file or may not be read: restore it, or "
                             "start anew with another --run-dir"});
  const int64_t file_bytes = size_of(descriptor.get());
  int64_t offset = 0;
  RecordKind kind{};
  std::string bytes;
  while (offset < file_bytes && read_record(descriptor.get(), offset, file_bytes, kind, bytes)) {
    const auto length = static_cast<int64_t>(kHeadBytes + bytes.size());
    visit(offset, kind, bytes);
    offset += length;
  }
  return offset;
}

}  // namespace convoy::process
