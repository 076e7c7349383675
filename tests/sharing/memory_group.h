// SPDX-License-Identifier: Apache-2.0
//
// A real control group with a memory limit, for the commands of a test.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace convoy::testing {

class MemoryGroup {
 public:
  explicit MemoryGroup(int64_t limit_bytes);
  ~MemoryGroup();
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;

  // Returns false if this machine does not allow memory groups.
  bool works() const { return !folder_.empty(); }
  // Returns a shell line that runs `command`, and all that it starts, in the group.
  std::string around(const std::string& command) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace convoy::testing
