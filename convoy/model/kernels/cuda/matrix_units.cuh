// SPDX-License-Identifier: Apache-2.0
//
// Products on the matrix units in bf16, sums in fp32 (sm_80 and newer). Lane l of a warp holds: of
// A (16 x 16) the rows l / 4 and l / 4 + 8; of B (16 x 8) the column l / 4; of C (16 x 8) the rows
// l / 4 and l / 4 + 8 of the columns l % 4 * 2 and l % 4 * 2 + 1. The caller chooses which k a
// register stands for, as long as A and B agree.
#pragma once

#include "convoy/model/kernels/cuda/elements.cuh"
#include "convoy/model/kernels/cuda/teams.cuh"

namespace convoy::kernels::gpu {

// Two values as bf16 in one word, rounded to nearest, ties to even.
CONVOY_DEVICE uint32_t bf16_pair(float lower, float upper) {
  uint32_t both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(upper), "f"(lower));
  return both;
}

// C += A B. Registers of A: row l / 4, row l / 4 + 8, then both rows for another 8 of k. Registers
// of B: the first 8 of k, the other 8 of k.
CONVOY_DEVICE void multiply_add_tile(float (&c)[4], const uint32_t (&a)[4], uint32_t b_low,
                                     uint32_t b_high) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_low), "r"(b_high));
}

// Transposes 8 x 8 values in bf16. A lane holds row l / 4, columns l % 4 * 2 and l % 4 * 2 + 1.
CONVOY_DEVICE uint32_t transposed(uint32_t pair) {
  const uint32_t lane = thread_of_block() % kWarpThreads, row = lane / 4, first = lane % 4 * 2;
  const auto of_row = [&](uint32_t from) {
    return as_bits(from_lane(as_float(pair), from * 4 + row / 2)) >> row % 2 * 16 & 0xffffu;
  };
  const uint32_t lower = of_row(first), upper = of_row(first + 1);
  return lower | upper << 16;
}

}  // namespace convoy::kernels::gpu
