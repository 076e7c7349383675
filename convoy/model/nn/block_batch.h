// SPDX-License-Identifier: Apache-2.0
//
// The data of a batch that the parts of a block need beside the hidden states.
#pragma once

#include <ATen/core/Tensor.h>

#include "convoy/model/nn/causal_lm.h"
#include "convoy/model/nn/kv_cache.h"
#include "convoy/model/nn/rope_table.h"

namespace convoy::nn {

// Keys of one layer after their norm and rotation, and its values.
struct KeysAndValues {
  at::Tensor k_TKE;
  at::Tensor v_TKE;
};

// Copied into the graph when blocks are recomputed.
struct BlockBatch {
  at::Tensor cos_PE;  // undefined, as sin_PE, in a layer that does not rotate
  at::Tensor sin_PE;
  FeatureOrder feature_order = {};
  at::Tensor query_scale_T11 = {};  // undefined: 1
  // The weight [E] of head norms that have no weight of their own, so that they only normalise;
  // undefined where all norms of heads have weights of their own.
  at::Tensor plain_norm_E = {};
  at::Tensor layer_input_TP = {};  // undefined: the model has no inputs by layer
  // Without a cache. `read`: the keys and values for a layer that makes none. `made`: receives the
  // keys and values of a layer that other layers read.
  KeysAndValues read = {};
  KeysAndValues* made = nullptr;
  at::Tensor position_ids_T;
  kernels::RowIndex rows;
  DrawKey draw_key = {};
  const KvCache* cache = nullptr;
  kernels::AttentionKernel attention = kernels::AttentionKernel::Flash;
};

}  // namespace convoy::nn
