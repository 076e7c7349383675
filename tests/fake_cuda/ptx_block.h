// SPDX-License-Identifier: Apache-2.0
//
// Runs the threads of one block. A warp's threads run until each has reached a barrier or has
// ended, and exchange numbers at shuffles; then the next warp runs. If threads do not meet, the
// block throws.
#pragma once

#include "fake_cuda/ptx_program.h"

namespace convoy::testing {

class PtxBlock {
 public:
  PtxBlock(const PtxEntry& entry, uint32_t num_blocks, uint32_t block_threads,
           const void* parameters, PtxMemory& memory);
  void run(uint32_t block);

 private:
  struct Thread {
    std::vector<uint64_t> numbers;
    std::vector<uint64_t> locals;
    int64_t at = 0;  // index of the exit, shuffle or barrier where the thread stops
  };

  void run_warp(uint32_t first, uint32_t end);
  void run_thread(uint32_t number);
  void meet(uint32_t first, uint32_t end);
  void shuffle(uint32_t first, const PtxInstruction& instruction);
  void multiply(uint32_t first, const PtxInstruction& instruction);
  PtxInstruction::Kind stop_of(uint32_t number) const;
  void require_all(uint32_t first, uint32_t end, PtxInstruction::Kind kind) const;

  const PtxEntry& entry_;
  PtxMemory& memory_;
  std::vector<Thread> threads_;
};

}  // namespace convoy::testing
