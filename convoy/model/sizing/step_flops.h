// SPDX-License-Identifier: Apache-2.0
//
// Floating point operations of a training step by formula: a multiplication and an addition for
// each term of the products that a step needs once. Repeated computation (recomputed blocks,
// weights of few bits that are unfolded, the softmax of an attention's backward) and operations
// other than products (norms, rotations, optimizer) are not counted, so two ways to train the same
// model have the same count: model FLOPs, as PaLM (arXiv 2204.02311, appendix B) has them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "convoy/model/architecture/decoder_spec.h"

namespace convoy::sizing {

// Elements of matrices that activations are multiplied with.
struct ProductWeights {
  int64_t blocks = 0;          // all blocks together
  int64_t trained_blocks = 0;  // elements that train: their gradient is one product more
  int64_t adapters = 0;        // elements of LoRA's matrices, beside the blocks; all train
  int64_t head = 0;
  bool trains_head = false;
  // Elements of the frozen maps that read the input of the first block (queries, keys and values).
  // This input needs no gradient where the embedding is frozen.
  int64_t without_input_gradient = 0;
};

struct AttentionShape {
  int64_t width = 0;  // heads x head size
  // by layer with attention: keys that a query sees; 0 = all before it
  std::vector<int64_t> windows = {};
  // by the same layers, where their widths differ; empty: all have `width`
  std::vector<int64_t> widths = {};
  // Elements of the states and convolutions of recurrent layers that each token is multiplied with,
  // all layers together, once for each product.
  int64_t recurrent = 0;
};

// The elements of AttentionShape::recurrent in one layer of Gated DeltaNet: the short convolution,
// and three products of the state, which read and change it token by token.
int64_t recurrent_elements(const architecture::DeltaNetSpec& sizes);

// `row_tokens`: the tokens of each row of the global batch. `supervised_tokens`: the supervised
// tokens of all rows; the head is computed for these alone.
double step_flops(const ProductWeights& weights, const AttentionShape& attention,
                  std::span<const int64_t> row_tokens, int64_t supervised_tokens);

}  // namespace convoy::sizing
