// SPDX-License-Identifier: Apache-2.0
#include "fake_cuda/ptx_block.h"

#include <fmt/format.h>

#include <algorithm>

namespace convoy::testing {
namespace {

using Kind = PtxInstruction::Kind;

constexpr uint32_t kWarpThreads = 32;
constexpr uint32_t kAllLanes = 0xffffffffu;

}  // namespace

PtxBlock::PtxBlock(const PtxEntry& entry, uint32_t num_blocks, uint32_t block_threads,
                   const void* parameters, PtxMemory& memory)
    : entry_(entry), memory_(memory), threads_(block_threads) {
  for (uint32_t number = 0; number < block_threads; ++number) {
    Thread& thread = threads_[number];
    thread.numbers = entry.initial_;
    thread.locals.resize(entry.local_bytes_ / 8 + 1);
    thread.numbers[kThreadX] = number;
    thread.numbers[kBlocksX] = num_blocks;
    thread.numbers[kBlockThreadsX] = block_threads;
    thread.numbers[kParameters] = reinterpret_cast<uint64_t>(parameters);
    thread.numbers[kLocals] = reinterpret_cast<uint64_t>(thread.locals.data());
  }
}

void PtxBlock::run(uint32_t block) {
  const auto count = static_cast<uint32_t>(threads_.size());
  memory_.begin_block();
  for (Thread& thread : threads_) {
    thread.at = 0;
    thread.numbers[kBlockX] = block;
  }
  for (;;) {
    for (uint32_t first = 0; first < count; first += kWarpThreads)
      run_warp(first, std::min(first + kWarpThreads, count));
    require_all(0, count, stop_of(0));
    if (stop_of(0) == Kind::Exit) return;
    memory_.pass_barrier();
    for (Thread& thread : threads_) ++thread.at;
  }
}

void PtxBlock::run_warp(uint32_t first, uint32_t end) {
  for (;;) {
    bool shuffles = false;
    memory_.begin_stretch();
    for (uint32_t number = first; number < end; ++number) {
      run_thread(number);
      shuffles |= is_shuffle(stop_of(number));
    }
    if (!shuffles) return;
    shuffle(first, end);
  }
}

void PtxBlock::run_thread(uint32_t number) {
  Thread& thread = threads_[number];
  uint64_t* const numbers = thread.numbers.data();
  const PtxInstruction* const instructions = entry_.instructions_.data();
  memory_.begin_thread(number);
  for (int64_t at = thread.at;;) {
    const PtxInstruction& instruction = instructions[at];
    if (instruction.guard >= 0 && (numbers[instruction.guard] != 0) != instruction.guard_value) {
      ++at;
    } else if (instruction.kind == Kind::Operation) {
      instruction.run(instruction, numbers, memory_);
      ++at;
    } else if (instruction.kind == Kind::Jump) {
      at = instruction.target;
    } else {
      thread.at = at;
      return;
    }
  }
}

// shfl.sync.bfly: each lane gets the number of the lane whose number differs in the bits of the
// operand. shfl.sync.idx: that of the lane that the operand names.
void PtxBlock::shuffle(uint32_t first, uint32_t end) {
  const Kind kind = stop_of(first);
  require_all(first, end, is_shuffle(kind) ? kind : Kind::Shuffle);
  const int64_t at = threads_[first].at;
  const PtxInstruction& instruction = entry_.instructions_[static_cast<size_t>(at)];
  std::vector<uint64_t> given;
  for (uint32_t number = first; number < end; ++number) {
    const std::vector<uint64_t>& numbers = threads_[number].numbers;
    if (threads_[number].at != at || end - first != kWarpThreads ||
        static_cast<uint32_t>(numbers[instruction.from[3]]) != kAllLanes)
      throw PtxError("a shuffle needs all threads of a warp");
    given.push_back(numbers[instruction.from[0]]);
  }
  for (uint32_t lane = 0; lane < kWarpThreads; ++lane) {
    Thread& thread = threads_[first + lane];
    const uint64_t operand = thread.numbers[instruction.from[1]];
    const uint64_t from = kind == Kind::Shuffle ? lane ^ operand : operand;
    thread.numbers[instruction.to[0]] = given[from % kWarpThreads];
    ++thread.at;
  }
}

PtxInstruction::Kind PtxBlock::stop_of(uint32_t number) const {
  return entry_.instructions_[static_cast<size_t>(threads_[number].at)].kind;
}

void PtxBlock::require_all(uint32_t first, uint32_t end, Kind kind) const {
  for (uint32_t number = first; number < end; ++number)
    if (stop_of(number) != kind)
      throw PtxError(
          fmt::format("threads {} and {} do not meet at a barrier or shuffle", first, number));
}

}  // namespace convoy::testing
