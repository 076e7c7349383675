// SPDX-License-Identifier: Apache-2.0
//
// Runs Convoy's kernels on a CPU as a GPU would. It reads PTX, NVIDIA's virtual instruction set, as
// the driver gets it, and supports the instructions that the kernels use. Threads run one after
// another, each until it must meet others at a shuffle or a barrier.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fake_cuda/ptx_memory.h"

namespace convoy::testing {

// Which floating-point operations are supported.
enum class PtxResults {
  // Only operations whose result IEEE 754 fixes: .rn, no .ftz, no .approx, and no separate mul and
  // add that a driver may join. A kernel whose results could differ between GPUs does not load.
  Exact,
  // Approximate operations too, with errors as large as NVIDIA's manual allows.
  WithinBounds,
};

// A thread's registers have 64 bits each; narrower values are in the lower bits. The special
// registers come first.
enum PtxRegister : uint32_t { kThreadX, kBlockX, kBlockThreadsX, kBlocksX, kParameters, kLocals };
inline constexpr uint32_t kFirstFreeRegister = 6;

struct PtxInstruction {
  using Run = void (*)(const PtxInstruction& instruction, uint64_t* numbers, PtxMemory& memory);
  enum class Kind { Operation, Jump, Exit, Shuffle, ShuffleFromLane, MatrixProduct, Barrier };

  Kind kind = Kind::Operation;
  Run run = nullptr;   // the operation
  uint32_t place = 0;  // index of this instruction
  int64_t guard = -1;  // register of the guard; -1 without a guard
  bool guard_value = true;
  uint32_t to[4] = {};
  uint32_t from[10] = {};
  uint32_t count = 1;   // elements of a vector
  int64_t offset = 0;   // added to an address
  int64_t target = -1;  // index of a jump's target
};

// True for instructions that all threads of a warp execute together.
constexpr bool is_of_warp(PtxInstruction::Kind kind) {
  return kind == PtxInstruction::Kind::Shuffle || kind == PtxInstruction::Kind::ShuffleFromLane ||
         kind == PtxInstruction::Kind::MatrixProduct;
}

class PtxEntry {
 public:
  // `module_text` is the text before the first entry, and `body` the text between the braces.
  // Throws PtxError.
  PtxEntry(const std::string& module_text, const std::string& body, PtxResults results);
  // Runs all blocks of a grid, one after another. `parameters` is the content of the kernel's one
  // struct. Throws PtxError.
  void run(uint32_t num_blocks, uint32_t block_threads, const void* parameters,
           const PtxAllocations& allocations) const;
  // Like run(). Also throws PtxError if two threads of a block use a word of global memory, one of
  // them writes it, and no barrier is between them.
  void run_watched(uint32_t num_blocks, uint32_t block_threads, const void* parameters,
                   const PtxAllocations& allocations) const;
  // Like run(). Returns the bytes of global memory that warps read and write.
  PtxTraffic measure(uint32_t num_blocks, uint32_t block_threads, const void* parameters,
                     const PtxAllocations& allocations) const;
  // Runs one block of the grid alone.
  void run_block(uint32_t block, uint32_t num_blocks, uint32_t block_threads,
                 const void* parameters, const PtxAllocations& allocations) const;
  // True if the kernel waits for the kernels that were launched before it.
  bool waits() const { return waits_; }

 private:
  friend class PtxReader;
  friend class PtxBlock;
  void run_all(uint32_t num_blocks, uint32_t block_threads, const void* parameters,
               PtxMemory& memory) const;

  std::vector<PtxInstruction> instructions_;
  std::vector<uint64_t> initial_;  // values of the registers at the start, with the constants
  uint32_t local_bytes_ = 0;
  uint64_t shared_bytes_ = 0;
  bool waits_ = false;
};

// Reads the entries of a module. Returns them by name. Throws PtxError.
std::map<std::string, PtxEntry> read_ptx(const std::string& text, PtxResults results);

}  // namespace convoy::testing
