// SPDX-License-Identifier: Apache-2.0
//
// The blocks of memory that are handed out, and which work used which bytes of them last. Not
// thread-safe.
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

// Bytes that a piece of work reads or writes; addresses are the host's view.
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
  c10::Device device = c10::kCPU;  // the CPU: pinned memory
  size_t stream = 0;               // stream that it was allocated on
  OpName allocated_by;
  std::vector<size_t> recorded_streams;  // streams that keep it from being reused while they use it
  std::vector<Access> accesses;
  // For pinned blocks: copies that may still run, as far as the host can tell. The host may not
  // write to them, nor read their results.
  std::vector<Access> pending;
  bool released = false;  // by its owner, while copies are pending
};

class Blocks {
 public:
  Block& add(Block block);
  void remove(const char* address) { blocks_.erase(address); }
  // The block that holds the address, or null.
  Block* find(const void* address);

  // Enters an access. Returns "", or what it collides with: an access without order between the
  // two.
  std::string enter(const Access& access, const Streams& streams);
  // "", or why the block may not be handed out again yet though its owner gave it back.
  std::string unfinished_use(const Block& block, const Streams& streams) const;

  std::map<const char*, Block>& all() { return blocks_; }

 private:
  std::map<const char*, Block> blocks_;
};

// "a block of 4096 bytes of sim:0, allocated by aten::mm on stream 0"
std::string describe(const Block& block, const Streams& streams);

}  // namespace convoy::simulated
