// SPDX-License-Identifier: Apache-2.0
//
// The interface of a language model for training and generation. Implementations live in models/
// (over nn/decoder); nothing here depends on ranks, kinds of adapters, or files. Shapes: T tokens
// of all rows, D hidden, V vocabulary (padded rows included).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "convoy/model/architecture/recompute.h"
#include "convoy/model/kernels/attention/attention.h"
#include "convoy/model/kernels/row_index/row_index.h"
#include "convoy/model/nn/linear.h"
#include "convoy/model/nn/unit.h"

namespace convoy::nn {

// Rows one after another, no padding. All facts about the tokens that a pass needs on the host are
// computed here, once, so that no pass waits for the device.
class TokenBatch {
 public:
  // `ids` and `positions` of all rows; `row_starts`: first token of each row, then T. Without a
  // cache a row's first position is 0; with a cache it is CausalLm::first_position(). The tensors
  // lie on `device`. Async.
  TokenBatch(std::span<const int64_t> ids, std::span<const int64_t> positions,
             std::vector<int64_t> row_starts, at::Device device = at::kCPU);
  // The same; the tensors are added to `upload`, which the caller sends.
  TokenBatch(std::span<const int64_t> ids, std::span<const int64_t> positions,
             std::vector<int64_t> row_starts, device::Upload& upload);

  // Replaces the ids by int64 [T], which only the device has: all are in the model's vocabulary.
  void replace_ids(at::Tensor token_ids_T) { token_ids_T_ = std::move(token_ids_T); }

  const at::Tensor& token_ids_T() const { return token_ids_T_; }        // int64
  const at::Tensor& position_ids_T() const { return position_ids_T_; }  // int64
  const kernels::RowIndex& rows() const { return rows_; }
  int64_t num_tokens() const { return rows_.num_tokens(); }
  // 0 without tokens; the same for highest_id() and last_position()
  int64_t lowest_id() const { return lowest_id_; }
  int64_t highest_id() const { return highest_id_; }
  int64_t last_position() const { return last_position_; }

 private:
  TokenBatch() = default;

  at::Tensor token_ids_T_;
  at::Tensor position_ids_T_;
  kernels::RowIndex rows_;
  int64_t lowest_id_ = 0;
  int64_t highest_id_ = 0;
  int64_t last_position_ = 0;
};

using architecture::Recompute;
using architecture::recompute_of;

class KvCache;  // model/nn/kv_cache.h
struct KvGeometry;

// The memory that holds inputs of recomputed blocks until backward.
enum class KeptInputs { OnDevice, OnHost };

struct ForwardOptions {
  // Generation: the batch has the new tokens of the cache's rows. The pass stores their keys and
  // values in the cache and attends to all that it holds.
  const KvCache* cache = nullptr;
  Recompute recompute = Recompute::Nothing;
  KeptInputs kept_inputs = KeptInputs::OnDevice;
  DrawKey draw_key = {};  // training: dropout and noise are drawn from it
  // NEFTune: noise on the embeddings of a pass with a draw key; 0 = none.
  double noise_alpha = 0;
};

class CausalLm {
 public:
  virtual ~CausalLm() = default;

  // Hidden states after the final norm, [T, D], in the model's dtype. Differentiable.
  virtual at::Tensor hidden_states(const TokenBatch& batch, const ForwardOptions& options) = 0;
  // Output head [V, D]: the embedding itself when tied.
  virtual Linear& head() = 0;
  virtual bool head_is_tied() const = 0;
  // Soft caps, as in DecoderSpec; 0: none. head_loss.h applies the cap of logits.
  virtual double logit_cap() const { return 0; }
  virtual double score_cap() const { return 0; }
  // Do queries and keys pass norms, with weights or without?
  virtual bool normalises_heads() const { return false; }

  // Every parameter once, in checkpoint order; a tied head is not listed.
  virtual std::vector<NamedTensor> parameters() = 0;
  // The same parameters and the leaves of adapters, divided into units, as trained or frozen at the
  // time of the call; units in the order of their first use.
  virtual std::vector<Unit> units() = 0;
  // From now on the model notifies `residency` of each use of units(). `residency` outlives the
  // model's passes, backward included; null = no notices.
  virtual void set_residency(Residency* residency) = 0;
  virtual Residency* residency() const = 0;
  // A use of the unit that holds the head's weight: for code that applies the head.
  virtual UnitUse use_head() const = 0;
  // Linears inside the blocks in forward order, after the map that makes inputs of blocks, if there
  // is one; the head is not among them.
  virtual std::vector<Linear*> block_linears() = 0;
  // For inference: makes one product of the linears that read one input, on devices that gain by
  // it. Call it with codes or before quantize_blocks(), before or after adapters. Names and values
  // of parameters stay the same. Not while the model has a residency.
  virtual void join_projections() {}
  // Selects the kernel of attention without a cache, on GPUs. FlashAttention computes layers whose
  // heads the kernel does not take.
  virtual void use_attention(kernels::AttentionKernel /*kernel*/) {}
  // Makes the tables of `num_positions` positions now, so that no pass within them makes any.
  virtual void prepare_positions(int64_t /*num_positions*/) {}
  // Quantises all block_linears(): Linear::quantize().
  virtual void quantize_blocks(const kernels::IntegerFormat& format) = 0;
  // Freezes or thaws every parameter; packed copies are dropped.
  virtual void set_requires_grad(bool requires_grad) = 0;

  // The device of the parameters, and so of every batch.
  virtual at::Device device() const = 0;
  virtual int64_t hidden_size() const = 0;
  virtual int64_t vocab_size() const = 0;
  virtual int64_t num_layers() const = 0;
  virtual int64_t max_positions() const = 0;
  // The position of the first token, in batches with a cache, of a row that has at most
  // `row_tokens` tokens in the end. Other than 0 only where long rows rotate by a rule of their own
  // (longrope). Rows with different first positions share no keys.
  virtual int64_t first_position(int64_t /*row_tokens*/) const { return 0; }
  virtual const std::string& family() const = 0;  // "qwen2", "llama", ...
  // The same as DecoderSpec::text_module.
  virtual std::string text_module() const { return {}; }
  // Matmul weights per token and attention width (heads * head_dim), for FLOP counts
  // (docs/reference/job-figures.md).
  virtual int64_t matmul_parameters() const = 0;
  virtual int64_t attention_width() const = 0;

  // The shape of the model's KvCache.
  virtual KvGeometry kv_geometry() const = 0;
};

// Elements of all parameters; for a weight in codes the elements of the original weight.
int64_t count_parameters(CausalLm& model);

}  // namespace convoy::nn
