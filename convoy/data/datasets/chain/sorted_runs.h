// SPDX-License-Identifier: Apache-2.0
//
// Sorts more records than fit into memory: sorted runs on disk, merged while they are read.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <queue>
#include <type_traits>
#include <utility>
#include <vector>

#include "convoy/data/datasets/scratch_file.h"

namespace convoy::data {

// Sorts plain records by their operator<=>. One thread. Throws IoError.
template <class Record>
class SortedRuns {
 public:
  static_assert(std::is_trivially_copyable_v<Record>);

  // At most `memory_bytes` of records are in memory; the rest is in files in `folder`.
  explicit SortedRuns(std::filesystem::path folder, int64_t memory_bytes = int64_t{64} << 20)
      : folder_(std::move(folder)),
        most_(std::max<size_t>(2, static_cast<size_t>(memory_bytes) / sizeof(Record))) {}

  void add(const Record& record) {
    if (held_.size() == most_) spill();
    held_.push_back(record);
  }

  // Calls `take` with every record in order, equal ones too. No record may be added after the first
  // call; further calls are allowed.
  void for_each(const std::function<void(const Record&)>& take) {
    std::sort(held_.begin(), held_.end());
    if (runs_.empty()) {
      for (const Record& record : held_) take(record);
      return;
    }
    spill();
    merge(take);
  }

 private:
  struct Head {
    Record record;
    size_t run;
    bool operator>(const Head& other) const { return other.record < record; }
  };

  void spill() {
    if (held_.empty()) return;
    std::sort(held_.begin(), held_.end());
    if (!file_) file_ = std::make_unique<ScratchFile>(folder_);
    const int64_t begin = file_->size_bytes();
    for (const Record& record : held_) file_->append_plain(record);
    runs_.emplace_back(begin, file_->size_bytes());
    held_.clear();
  }

  void merge(const std::function<void(const Record&)>& take) {
    file_->flush();
    const size_t buffer_bytes =
        std::max<size_t>(size_t{1} << 12, most_ * sizeof(Record) / runs_.size());
    std::vector<ScratchReader> readers;
    for (const auto& [begin, end] : runs_) readers.emplace_back(*file_, begin, end, buffer_bytes);
    std::priority_queue<Head, std::vector<Head>, std::greater<>> heads;
    for (size_t run = 0; run < readers.size(); ++run)
      heads.push({readers[run].template read_plain<Record>(), run});
    while (!heads.empty()) {
      const Head head = heads.top();
      heads.pop();
      take(head.record);
      if (!readers[head.run].at_end())
        heads.push({readers[head.run].template read_plain<Record>(), head.run});
    }
  }

  std::filesystem::path folder_;
  size_t most_;  // maximum number of records in memory
  std::vector<Record> held_;
  std::unique_ptr<ScratchFile> file_;
  std::vector<std::pair<int64_t, int64_t>> runs_;  // byte ranges of the runs in the file
};

}  // namespace convoy::data
