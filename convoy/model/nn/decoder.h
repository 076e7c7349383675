// SPDX-License-Identifier: Apache-2.0
//
// The one decoder-only transformer, driven by a DecoderSpec: every family of models/ is this class
// with other data. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convoy/model/architecture/decoder_spec.h"
#include "convoy/model/nn/causal_lm.h"
#include "convoy/model/nn/decoder_block.h"
#include "convoy/model/nn/rope_table.h"

namespace convoy::nn {

class InputsOnHost;

class Decoder final : public CausalLm {
 public:
  // `source` is asked once for every declared parameter, in order, and returns it contiguous, of
  // the declared shape, all in one dtype (fp32 or bf16).
  Decoder(architecture::DecoderSpec spec, const ParameterSource& source);

  // Throws DataError when a token id is outside the vocabulary. With a cache nothing is
  // differentiable.
  at::Tensor hidden_states(const TokenBatch& batch, const ForwardOptions& options) override;
  Linear& head() override { return head_; }
  bool head_is_tied() const override { return spec_.tied_head; }
  double logit_cap() const override { return spec_.logit_cap; }
  double score_cap() const override { return spec_.score_cap; }
  bool normalises_heads() const override { return spec_.query_key_norm; }

  std::vector<NamedTensor> parameters() override;
  std::vector<Unit> units() override;
  void set_residency(Residency* residency) override { residency_ = residency; }
  Residency* residency() const override { return residency_; }
  UnitUse use_head() const override { return {residency_, head_unit()}; }
  std::vector<Linear*> block_linears() override;
  void join_projections() override;
  void use_attention(kernels::AttentionKernel kernel) override { attention_ = kernel; }
  void prepare_positions(int64_t num_positions) override;
  void quantize_blocks(const kernels::IntegerFormat& format) override;
  void set_requires_grad(bool requires_grad) override;

  at::Device device() const override { return embedding_VD_.device(); }
  int64_t hidden_size() const override { return spec_.hidden_size; }
  int64_t vocab_size() const override { return spec_.vocab_size; }
  int64_t num_layers() const override { return static_cast<int64_t>(spec_.layers.size()); }
  int64_t max_positions() const override { return spec_.max_positions; }
  int64_t first_position(int64_t row_tokens) const override;
  const std::string& family() const override { return spec_.family; }
  std::string text_module() const override { return spec_.text_module; }
  int64_t matmul_parameters() const override;
  int64_t attention_width() const override { return spec_.num_heads * spec_.head_dim; }
  KvGeometry kv_geometry() const override;

 private:
  at::Tensor plain_norm(int64_t size) const;
  at::Tensor embed(const at::Tensor& token_ids_T) const;
  std::vector<at::Tensor> layer_inputs(const TokenBatch& batch, const at::Tensor& x_TD,
                                       const ForwardOptions& options) const;
  at::Tensor query_scale(const at::Tensor& positions_T) const;
  at::Tensor table_positions(const TokenBatch& batch) const;
  at::Tensor with_noise(const at::Tensor& x_TD, const TokenBatch& batch,
                        const ForwardOptions& options) const;
  Residual run_block(size_t index, const Residual& input, BlockBatch batch,
                     const ForwardOptions& options,
                     const std::shared_ptr<InputsOnHost>& on_host) const;
  // In units(): the embedding, the inputs by layer if there are any, the blocks, the final norm,
  // the head unless it is the embedding.
  static constexpr size_t kEmbeddingUnit = 0;
  static constexpr size_t kLayerInputsUnit = 1;
  size_t block_unit(size_t index) const { return (layer_inputs_ ? 2 : 1) + index; }
  size_t norm_unit() const { return block_unit(blocks_.size()); }
  size_t head_unit() const { return spec_.tied_head ? kEmbeddingUnit : norm_unit() + 1; }

  architecture::DecoderSpec spec_;
  at::Tensor embedding_VD_;
  std::optional<LayerInputs> layer_inputs_;
  std::vector<DecoderBlock> blocks_;
  std::vector<bool> is_read_;  // by block: later blocks read its keys and values
  at::Tensor final_norm_D_;
  Linear head_;
  std::vector<RopeTable> rope_tables_;  // by spec_.ropes
  Residency* residency_ = nullptr;
  kernels::AttentionKernel attention_ = kernels::AttentionKernel::Flash;
};

}  // namespace convoy::nn
