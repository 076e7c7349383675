// SPDX-License-Identifier: Apache-2.0
//
// Records in append-only files. They hold the texts of a run; the store holds the position of each
// record. A file belongs to one process, which alone appends to it; every process may read its
// records at any time.
//
// A record is 16 bytes of head (magic, kind, length, CRC32C over kind, length and bytes;
// little-endian) and its bytes. Records follow each other without gaps, so a file ends in at most
// one torn record. A reader verifies the record at a given position; no position points into the
// torn tail.
//
// Durability. A record survives the kill of every process once append() has returned, and a power
// cut once sync() has returned. sync_if_due() keeps the promise of core/jobs/job_store.h: call it
// before the records' positions enter the store, so that records are safe no later than their
// positions. When a power cut lost the record but not its position, read() throws and the record is
// made again. On a network file system (SyncRule::Always) other hosts see a record once it is
// synced, so with SyncRule::Always every sync_if_due() syncs all records that are not yet synced.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <string_view>

#include "convoy/core/base/descriptor.h"

namespace convoy::process {

// The offset of a record's head, and the number of bytes that follow its head.
struct SegmentOffset {
  std::string file;  // name within the folder of segments
  int64_t offset = 0;
  int64_t length = 0;
  bool operator==(const SegmentOffset&) const = default;
};

enum class RecordKind : uint32_t { Input = 1, Text = 2, Row = 3 };

// The bytes of a record in a file: its head and its content.
std::string record_bytes(RecordKind kind, std::string_view bytes);

enum class SyncRule { AsTheStore, Always };

class SegmentWriter {
 public:
  // Creates `folder`/`file`, or removes the torn tail of that file and continues after it. Throws
  // IoError.
  SegmentWriter(const std::filesystem::path& folder, std::string file,
                SyncRule rule = SyncRule::AsTheStore);

  // Throws IoError (such as a full disk). Then nothing of the record is in the file, and the call
  // may be repeated.
  SegmentOffset append(RecordKind kind, std::string_view bytes);
  void sync();
  void sync_if_due();  // syncs if ten records are unsynced, or one for 2 s
  int64_t size_bytes() const { return size_bytes_; }

 private:
  std::filesystem::path path_;
  std::string file_;
  Descriptor descriptor_;
  SyncRule rule_;
  int64_t size_bytes_ = 0;
  int64_t records_at_risk_ = 0;
  std::chrono::steady_clock::time_point oldest_at_risk_;
};

// Reads single records in any order. Keeps a few files open. One thread.
class SegmentReader {
 public:
  explicit SegmentReader(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Throws DataError, which names the file, if there is no intact record of this kind and length at
  // this place. A network file system may show an outdated state of an open file, so a file with a
  // damaged record is opened again and read once more.
  std::string read(const SegmentOffset& place, RecordKind kind);

 private:
  bool read_sound(const SegmentOffset& place, RecordKind kind, std::string& bytes);
  void forget(const std::string& file);
  int descriptor_of(const std::string& file);

  struct OpenFile {
    Descriptor descriptor;
    std::list<std::string>::iterator use;
  };
  std::filesystem::path folder_;
  std::map<std::string, OpenFile> files_;
  std::list<std::string> last_used_;  // the most recent first
};

// Visits the intact records of a file, from its beginning up to the first damaged record. Memory is
// bounded by the longest record. Returns the number of bytes of these records. Throws DataError for
// a file that cannot be read.
int64_t for_each_record(
    const std::filesystem::path& path,
    const std::function<void(int64_t offset, RecordKind kind, std::string& bytes)>& visit);

}  // namespace convoy::process
