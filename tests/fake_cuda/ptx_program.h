// SPDX-License-Identifier: Apache-2.0
//
// Enough of PTX, NVIDIA's virtual instruction set, to run Convoy's kernels on a CPU as a GPU would:
// the text is what a driver would compile. Of the floating operations only those are known whose
// result IEEE 754 decides (.rn, no .ftz, no .approx, no mul and add that a driver may join), so a
// kernel that could give other bits on some GPU does not load.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace convoy::testing {

// Text that is no PTX, or PTX that is not known here; an access outside of what was allocated.
class PtxError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Numbers of a thread: 64 bits each, narrower ones in the lower bits. Special ones come first.
enum PtxRegister : uint32_t { kThreadX, kBlockX, kBlockThreadsX, kBlocksX, kParameters, kLocals };
inline constexpr uint32_t kFirstFreeRegister = 6;

// What lies in memory, by its first byte.
using PtxAllocations = std::map<uint64_t, uint64_t>;

struct PtxInstruction {
  using Run = void (*)(const PtxInstruction& instruction, uint64_t* numbers,
                       const PtxAllocations& allocations);

  Run run = nullptr;
  int64_t guard = -1;  // register; -1 = always
  bool guard_value = true;
  uint32_t to[4] = {};
  uint32_t from[4] = {};
  uint32_t count = 1;   // of a vector
  int64_t offset = 0;   // of an address
  int64_t target = -1;  // of a jump: an index, or one past the end
};

class PtxEntry {
 public:
  explicit PtxEntry(const std::string& body);  // between the braces
  // All threads of a grid, one after another. `parameters` are what its one struct holds. Throws PtxError.
  void run(uint32_t num_blocks, uint32_t block_threads, const void* parameters,
           const PtxAllocations& allocations) const;

 private:
  friend class PtxReader;
  std::vector<PtxInstruction> instructions_;
  std::vector<uint64_t> initial_;  // numbers; immediates are there already
  uint32_t local_bytes_ = 0;
};

// Entries of a module by name. Throws PtxError.
std::map<std::string, PtxEntry> read_ptx(const std::string& text);

}  // namespace convoy::testing
