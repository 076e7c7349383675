// SPDX-License-Identifier: Apache-2.0
//
// One transformer block: attention and a gated feed-forward, each behind a norm and added to the
// residual. Shapes: T tokens, D hidden, H query heads, K kv heads, E head features, F feed-forward.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "convoy/model/architecture/decoder_spec.h"
#include "convoy/model/nn/causal_lm.h"
#include "convoy/model/nn/joined_linears.h"
#include "convoy/model/nn/kv_cache.h"
#include "convoy/model/nn/rope_table.h"
#include "convoy/model/nn/spec_kernels.h"

namespace convoy::nn {

using ParameterSource = std::function<at::Tensor(const architecture::ParameterDeclaration&)>;

// The data of a batch that a block needs beside the hidden states. Copied into the graph when
// blocks are recomputed.
struct BlockBatch {
  at::Tensor cos_PE;  // undefined, as sin_PE, in a layer that does not rotate
  at::Tensor sin_PE;
  FeatureOrder feature_order = {};
  at::Tensor query_scale_T11 = {};  // undefined: 1
  at::Tensor position_ids_T;
  kernels::RowIndex rows;
  DrawKey draw_key = {};
  const KvCache* cache = nullptr;
  kernels::AttentionKernel attention = kernels::AttentionKernel::Flash;
};

// The factors of config.json; 1 costs nothing.
inline at::Tensor scaled(const at::Tensor& x, double factor) {
  return factor == 1.0 ? x : x * factor;
}

// Hidden states between blocks: a block's last sum is left to the norm that follows it.
struct Residual {
  at::Tensor x_TD;
  at::Tensor added_TD = {};  // undefined: nothing

  bool requires_grad() const {
    return x_TD.requires_grad() || (added_TD.defined() && added_TD.requires_grad());
  }
  at::Tensor sum() const { return added_TD.defined() ? x_TD + added_TD : x_TD; }
};

class DecoderBlock {
 public:
  DecoderBlock(const architecture::DecoderSpec& spec, int64_t index, const ParameterSource& source);

  Residual forward(const Residual& input, const BlockBatch& batch) const;

  // Makes one product of the maps of queries, keys and values, and one of gate and up.
  void join_projections();

  // Quantises every linear map; maps that are joined are quantised as one.
  void quantize(const kernels::IntegerFormat& format);

  bool trains() const;                          // a parameter or an adapter in it requires grad
  int64_t rope() const { return layer_.rope; }  // or architecture::kNoRope
  // Norms and linears in checkpoint order.
  void visit(const std::function<void(Linear&)>& linear,
             const std::function<void(const std::string& name, at::Tensor& weight)>& norm);

 private:
  struct Norm {
    std::string name;  // empty: this family has no such norm
    at::Tensor weight;
  };
  // An empty norm where the suffix is empty.
  Norm make_norm(const std::string& suffix, int64_t size, const ParameterSource& source) const;
  Linear make_linear(const std::string& suffix, int64_t in, int64_t out, bool bias,
                     const ParameterSource& source) const;
  std::vector<Linear> make_maps(const std::vector<architecture::StoredMap>& maps, int64_t in,
                                bool bias, const ParameterSource& source) const;
  at::Tensor normalise(const at::Tensor& x, const Norm& norm) const;  // x itself without a norm
  kernels::AddedNorm added(const Residual& residual, const Norm& norm) const;
  at::Tensor heads(const at::Tensor& projected, const Norm& norm, const BlockBatch& batch) const;
  bool norms_apart(const BlockBatch& batch) const;
  at::Tensor attend(const at::Tensor& x_TD, const BlockBatch& batch) const;
  at::Tensor feed_forward(const at::Tensor& x_TD, DrawKey draw_key) const;

  std::string prefix_;  // "model.layers.3."
  int64_t index_;
  architecture::LayerSpec layer_;
  int64_t head_dim_;
  double norm_epsilon_;
  double attention_scale_;
  double score_cap_;
  double residual_scale_;
  kernels::NormOrder norm_order_;
  bool norm_over_heads_;
  kernels::Activation activation_;

  std::vector<int64_t> query_key_value_widths_;
  std::vector<int64_t> gate_up_widths_;

  std::vector<Linear> query_key_value_maps_;  // three, or the one that holds their rows
  Linear attention_output_;
  Norm query_norm_;
  Norm key_norm_;
  std::vector<Linear> gate_up_maps_;  // two, or one
  Linear down_;
  JoinedLinears query_key_value_;
  JoinedLinears gate_up_;
  Norm before_attention_;
  Norm after_attention_;
  Norm before_ffn_;
  Norm after_ffn_;
};

}  // namespace convoy::nn
