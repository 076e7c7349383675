// SPDX-License-Identifier: Apache-2.0
//
// The memory of a grid's threads: the GPU's allocations, and the shared memory of one block at a
// time. Wrong uses are errors in any order of threads: an access outside of all allocations, an
// access that is not aligned, a read of shared memory before it is written, and the use of a word
// of shared memory by two threads without a barrier between them, if one of them writes. Copies
// into shared memory arrive only when their thread waits for them.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace convoy::testing {

// Thrown for text that is no PTX, for PTX that this program does not support, and for wrong uses of
// memory or barriers.
class PtxError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The allocated blocks: their sizes in bytes, by the address of the first byte.
using PtxAllocations = std::map<uint64_t, uint64_t>;

// Shared memory has addresses from kSharedBegin on, which no allocation has.
inline constexpr uint64_t kSharedBegin = 1 << 12;

// Bytes of global memory that warps read and write. Between two of its shuffles or barriers, a warp
// counts an address once, however many of its threads use it.
struct PtxTraffic {
  uint64_t read_bytes = 0, written_bytes = 0;
};

class PtxMemory {
 public:
  // `places` is the number of instructions that may access memory. Each has a number below
  // `places`.
  PtxMemory(const PtxAllocations& allocations, size_t places, uint64_t shared_bytes);

  uint8_t* global(uint32_t place, uint64_t address, uint64_t bytes) {
    const Range& known = ranges_[place];
    if (address < known.begin || address + bytes > known.end || address % bytes != 0)
      find(place, address, bytes);
    return reinterpret_cast<uint8_t*>(address);
  }
  uint8_t* shared(uint64_t address, uint64_t bytes, bool writes);
  void measure() { measures_ = true; }
  // Checks global memory as well for two threads of a block that use a word without a barrier
  // between them.
  void watch() { watches_ = true; }
  void use_global(uint64_t address, uint64_t bytes, bool writes) {
    if (watches_)
      for (uint64_t at = address / 4; at * 4 < address + bytes; ++at)
        writes ? write(global_words_[at], address) : read(global_words_[at], address);
  }
  void begin_stretch() { moved_.clear(); }  // called at each warp's shuffle or barrier
  void count(uint64_t address, uint64_t bytes, bool writes) {
    if (measures_ && moved_.insert(2 * address + (writes ? 1 : 0)).second)
      (writes ? traffic_.written_bytes : traffic_.read_bytes) += bytes;
  }
  const PtxTraffic& traffic() const { return traffic_; }

  // Copies from global to shared memory, in groups. wait_for_copies() completes all but the newest
  // `groups`.
  void start_copy(uint32_t place, uint64_t to, uint64_t from, uint64_t bytes);
  void end_copies() { copies().emplace_back(); }
  void wait_for_copies(uint64_t groups);

  void begin_block();
  // Sets the thread of the block that makes the next accesses.
  void begin_thread(uint32_t thread) { thread_ = thread; }
  void pass_barrier() { ++epoch_; }

 private:
  struct Range {
    uint64_t begin = 0, end = 0;
  };
  // The accesses to four bytes of memory since the block began.
  struct Word {
    int64_t written = -1, read = -1;  // epochs of the last write and read
    uint32_t writer = 0, reader = 0;
    bool many_readers = false;  // several threads read it in the epoch `read`
  };

  struct Copy {
    uint32_t place;
    uint64_t to, from, bytes;
  };
  using Copies = std::deque<std::vector<Copy>>;  // groups; the last one is open

  Copies& copies() {
    Copies& own = copies_[thread_];
    if (own.empty()) own.emplace_back();
    return own;
  }
  void find(uint32_t place, uint64_t address, uint64_t bytes);
  void read(Word& word, uint64_t address) const;
  void write(Word& word, uint64_t address) const;

  const PtxAllocations& allocations_;
  std::vector<Range> ranges_;  // by place: the range of its last access
  std::vector<uint8_t> shared_;
  std::vector<Word> words_;
  uint32_t thread_ = 0;
  int64_t epoch_ = 0;
  bool measures_ = false, watches_ = false;
  std::unordered_map<uint64_t, Word> global_words_;  // by address / 4
  std::unordered_set<uint64_t> moved_;
  std::map<uint32_t, Copies> copies_;  // by thread
  PtxTraffic traffic_;
};

}  // namespace convoy::testing
