// SPDX-License-Identifier: Apache-2.0
//
// The allocated blocks of memory, and the latest accesses to their bytes. Not thread-safe.
#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "simulated_device/op_names.h"
#include "simulated_device/streams.h"

namespace convoy::simulated {

// The bytes that a piece of work reads or writes, by addresses in the host's view.
struct Use {
  const char* begin = nullptr;
  const char* end = nullptr;
  bool writes = false;
};

struct Access {
  Moment moment;
  OpName op;
  Use use;
};

struct Block {
  char* address = nullptr;
  size_t bytes = 0;
  c10::Device device = c10::kCPU;  // the CPU for pinned memory
  size_t stream = 0;               // the stream of the allocation
  OpName allocated_by;
  std::vector<size_t> recorded_streams;  // may use it, so they delay its reuse
  std::vector<Access> accesses;
  // For a pinned block: copies that may still run, as far as the host knows. The host must neither
  // write to their sources nor read their results.
  std::vector<Access> pending;
  bool released = false;  // its owner released it while copies are pending
};

class Blocks {
 public:
  Block& add(Block block);
  void remove(const char* address) { blocks_.erase(address); }
  // Returns the block that contains the address, or null.
  Block* find(const void* address);

  // Records an access. Returns "", or the earlier access with which it conflicts, because there is
  // no order between the two.
  std::string enter(const Access& access, const Streams& streams);
  // Returns "", or why a block that its owner released may not be allocated again yet.
  std::string unfinished_use(const Block& block, const Streams& streams) const;

  std::map<const char*, Block>& all() { return blocks_; }

 private:
  std::map<const char*, Block> blocks_;
};

// Returns for example "a block of 4096 bytes of sim:0, allocated by aten::mm on stream 0".
std::string describe(const Block& block, const Streams& streams);

}  // namespace convoy::simulated
