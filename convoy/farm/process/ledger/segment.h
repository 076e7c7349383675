// SPDX-License-Identifier: Apache-2.0
//
// Records in append-only files: the texts of a run, beside the store that holds the position of
// each. A file belongs to one process, which alone appends to it; every process may read its
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
// synced, so there every sync_if_due() with something to sync is due.
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

// A record as it lies in a file.
std::string record_bytes(RecordKind kind, std::string_view bytes);

enum class SyncRule { AsTheStore, Always };

class SegmentWriter {
 public:
  // Makes `folder`/`file`, or cuts its torn tail off and goes on after it. Throws IoError.
  SegmentWriter(const std::filesystem::path& folder, std::string file,
                SyncRule rule = SyncRule::AsTheStore);

  // Throws IoError (disk full ...): then nothing of the record is in the file, and the call may be
  // tried again.
  SegmentOffset append(RecordKind kind, std::string_view bytes);
  void sync();
  void sync_if_due();  // ten records are not safe, or the oldest of them is not since 2 s
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

  // Throws DataError naming the file when there is no sound record of this kind and length at this
  // place. A network file system may show an open file as it was: if a record is not sound, the
  // file is opened again and read once more.
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

// The sound records of a file from its begin to the first that is not, in bounded memory but for
// the longest record. Returns how many bytes those are. Throws DataError for a file that cannot be
// read.
int64_t for_each_record(
    const std::filesystem::path& path,
    const std::function<void(int64_t offset, RecordKind kind, std::string& bytes)>& visit);

}  // namespace convoy::process
