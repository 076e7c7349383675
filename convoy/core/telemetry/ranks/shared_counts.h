// SPDX-License-Identifier: Apache-2.0
//
// Progress counters of each rank of one host, in a file that all of them map, so that one bar shows
// the work of all.
#pragma once

#include <cstdint>
#include <filesystem>

namespace convoy::telemetry {

class SharedCounts {
 public:
  // Maps `size` counters in the file, which the first process creates. Throws IoError.
  SharedCounts(const std::filesystem::path& path, int size);
  ~SharedCounts();
  SharedCounts(const SharedCounts&) = delete;
  SharedCounts& operator=(const SharedCounts&) = delete;

  void set(int index, int64_t count);
  int64_t sum() const;

 private:
  int64_t* counts_ = nullptr;
  int size_;
};

}  // namespace convoy::telemetry
