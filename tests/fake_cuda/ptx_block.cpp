// SPDX-License-Identifier: Apache-2.0
#include "fake_cuda/ptx_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

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
    bool meets = false;
    memory_.begin_stretch();
    for (uint32_t number = first; number < end; ++number) {
      run_thread(number);
      meets |= is_of_warp(stop_of(number));
    }
    if (!meets) return;
    meet(first, end);
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

void PtxBlock::meet(uint32_t first, uint32_t end) {
  const Kind kind = stop_of(first);
  require_all(first, end, is_of_warp(kind) ? kind : Kind::Shuffle);
  const int64_t at = threads_[first].at;
  const PtxInstruction& instruction = entry_.instructions_[static_cast<size_t>(at)];
  const bool has_mask = kind != Kind::MatrixProduct;
  for (uint32_t number = first; number < end; ++number)
    if (threads_[number].at != at || end - first != kWarpThreads ||
        (has_mask &&
         static_cast<uint32_t>(threads_[number].numbers[instruction.from[3]]) != kAllLanes))
      throw PtxError("a shuffle needs all threads of a warp");
  if (kind == Kind::MatrixProduct)
    multiply(first, instruction);
  else
    shuffle(first, instruction);
  for (uint32_t number = first; number < end; ++number) ++threads_[number].at;
}

// shfl.sync.bfly gives each lane the value of the lane whose number differs in the bits of the
// operand. shfl.sync.idx gives it the value of the lane that the operand names.
void PtxBlock::shuffle(uint32_t first, const PtxInstruction& instruction) {
  std::array<uint64_t, kWarpThreads> given;
  for (uint32_t lane = 0; lane < kWarpThreads; ++lane)
    given[lane] = threads_[first + lane].numbers[instruction.from[0]];
  for (uint32_t lane = 0; lane < kWarpThreads; ++lane) {
    std::vector<uint64_t>& numbers = threads_[first + lane].numbers;
    const uint64_t operand = numbers[instruction.from[1]];
    const uint64_t from = instruction.kind == Kind::Shuffle ? lane ^ operand : operand;
    numbers[instruction.to[0]] = given[from % kWarpThreads];
  }
}

// mma.sync.m16n8k16 multiplies bf16 and adds in fp32. A register of A holds two neighbours of k in
// row lane / 4 or lane / 4 + 8, a register of B two neighbours of k in column lane / 4, and C has
// two neighbouring columns. A GPU adds in an order of its own.
void PtxBlock::multiply(uint32_t first, const PtxInstruction& instruction) {
  float a[16][16], b[16][8], c[16][8];
  const auto each_sum = [](uint32_t lane, auto body) {
    for (uint32_t at = 0; at < 4; ++at) body(at, lane / 4 + at / 2 * 8, lane % 4 * 2 + at % 2);
  };
  for (uint32_t lane = 0; lane < kWarpThreads; ++lane) {
    const std::vector<uint64_t>& numbers = threads_[first + lane].numbers;
    const auto number = [&](uint32_t operand, uint32_t half) {
      return std::bit_cast<float>(
          static_cast<uint32_t>(numbers[instruction.from[operand]] >> 16 * half << 16));
    };
    for (uint32_t half = 0; half < 2; ++half) {
      const uint32_t k = lane % 4 * 2 + half;
      for (uint32_t at = 0; at < 4; ++at)
        a[lane / 4 + at % 2 * 8][k + at / 2 * 8] = number(at, half);
      for (uint32_t at = 0; at < 2; ++at) b[k + at * 8][lane / 4] = number(4 + at, half);
    }
    each_sum(lane, [&](uint32_t at, uint32_t row, uint32_t column) {
      c[row][column] =
          std::bit_cast<float>(static_cast<uint32_t>(numbers[instruction.from[6 + at]]));
    });
  }
  for (uint32_t lane = 0; lane < kWarpThreads; ++lane)
    each_sum(lane, [&](uint32_t at, uint32_t row, uint32_t column) {
      double sum = c[row][column];
      for (uint32_t k = 0; k < 16; ++k) sum += double{a[row][k]} * b[k][column];
      threads_[first + lane].numbers[instruction.to[at]] =
          std::bit_cast<uint32_t>(static_cast<float>(sum));
    });
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
