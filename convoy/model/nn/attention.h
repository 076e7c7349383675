// SPDX-License-Identifier: Apache-2.0
//
// Attention of a block with its linear maps and its norms of queries and keys. A layer may read
// keys and values that an earlier layer made. Shapes: T tokens, D hidden, H query heads, K kv
// heads, E head features.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "convoy/model/architecture/decoder_spec.h"
#include "convoy/model/nn/token_mixer.h"

namespace convoy::nn {

class Attention final : public TokenMixer {
 public:
  Attention(const architecture::DecoderSpec& spec, int64_t index, const BlockSource& source);

  at::Tensor forward(const at::Tensor& x_TD, const BlockBatch& batch) const override;
  void join_projections() override { query_key_value_.join(); }
  void quantize(const kernels::IntegerFormat& format) override;
  bool trains() const override;
  void visit(const LinearVisitor& linear, const ParameterVisitor& parameter) override;

 private:
  struct Heads {
    at::Tensor q_THE;
    KeysAndValues made = {};   // undefined where another layer makes them
    at::Tensor gate_THE = {};  // undefined without an output gate
  };
  Heads heads_of(const at::Tensor& x_TD, const BlockBatch& batch) const;
  at::Tensor values_of(const std::vector<at::Tensor>& projected, const BlockBatch& batch) const;
  kernels::HeadTransform transform_of(const BlockBatch& batch) const;
  kernels::AttentionConfig config_of(const BlockBatch& batch) const;
  at::Tensor normalise(const at::Tensor& x, const at::Tensor& weight) const;
  at::Tensor norm_weight(const BlockParameter& norm, const BlockBatch& batch) const;
  at::Tensor in_heads(const at::Tensor& projected) const;
  at::Tensor heads(const at::Tensor& x_THE, const BlockParameter& norm,
                   const BlockBatch& batch) const;
  bool norms_apart(const BlockBatch& batch) const;
  at::Tensor attend(const Heads& heads, const BlockBatch& batch) const;
  at::Tensor attend_to_others(const at::Tensor& q_THE, const BlockBatch& batch) const;

  int64_t index_;
  architecture::LayerSpec layer_;
  int64_t head_dim_;
  double norm_epsilon_;
  double attention_scale_;
  double score_cap_;
  kernels::NormOrder norm_order_;
  bool norm_over_heads_;
  bool weightless_norms_;
  bool has_gate_;
  bool has_gate_map_;
  bool norms_values_;

  Projections query_key_value_;
  Linear output_;
  BlockParameter query_norm_;
  BlockParameter key_norm_;
};

}  // namespace convoy::nn
