// SPDX-License-Identifier: Apache-2.0
//
// The arguments that the host passes to the kernels of coded_product_sm80_cuda.cu. Pointers are
// addresses on the GPU; addresses of codes, x and their rows are multiples of 16.
#pragma once

#include <stdint.h>

#include "convoy/model/kernels/cuda/block_shape.h"

namespace convoy::kernels::gpu {

struct CodedProductLaunch {
  const void* x = nullptr;      // bf16 [rows, inputs]
  const void* codes = nullptr;  // [outputs, inputs] of 8 or 4 bits
  // Bytes: fp32 by output. Int4: bf16 [outputs, groups, 2], scales and offsets. Tables: absmax by
  // block, fp32, or uint8 where nested.
  const void* scales = nullptr;
  const float* nested_absmax = nullptr;
  const float* nested_offset = nullptr;
  const float* nested_table = nullptr;
  const void* bias = nullptr;  // bf16 [outputs], or none
  void* y = nullptr;           // bf16 [rows, outputs]
  uint32_t inputs = 0;
  uint32_t outputs = 0;
  uint32_t rows = 0;              // rows * inputs < 2^32
  uint32_t group_bits = 0;        // 4 bits: 2^group_bits inputs share a scale
  uint32_t groups = 0;            // for each output of Int4
  uint32_t output_warp_bits = 0;  // 2^bits warps of a block have outputs of their own
  uint32_t pass_bits = 0;         // 2^bits passes over the codes
  float step = 1;                 // bytes: the value of code 1, in units of the scale
  float table[16] = {};
};

// Rows of x are divided into tiles of 8. A pass over the codes takes one, two or four tiles. (One
// pass of eight tiles took an H200 a sixth longer than two passes of four, for codes of a byte.)
inline constexpr uint32_t kTileRows = 8;
inline constexpr uint32_t kMostRowTiles = 4;
constexpr uint32_t row_tiles_of(uint32_t rows) {
  uint32_t tiles = 1;
  while (tiles < kMostRowTiles && tiles * kTileRows < rows) tiles *= 2;
  return tiles;
}

// The tiles of 16 outputs that a warp computes with the matrix units; warps of a block share the
// sum over the inputs. Two tiles halve the reading of x, one tile gives more blocks work.
constexpr uint32_t output_tiles_of(uint32_t row_tiles) { return row_tiles == 1 ? 1 : 2; }
constexpr uint32_t outputs_of_warp(uint32_t row_tiles) { return 16 * output_tiles_of(row_tiles); }

}  // namespace convoy::kernels::gpu
