// SPDX-License-Identifier: Apache-2.0
//
// Picks the next token of every row, each by its own rule. Random numbers come from counters, not
// from a generator's state, so a row's text does not depend on which rows it is generated with. One
// thread per model.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "convoy/machine/device/transfer.h"
#include "convoy/model/kernels/sampler/sampler.h"
#include "convoy/model/nn/causal_lm.h"

namespace convoy::generate {

using Sampling = kernels::SamplingRule;

// Throws ConfigError naming the key of a number that is out of range.
void check_sampling(const Sampling& sampling);

// Identifies the random numbers of one text; each token's position is added.
struct DrawSource {
  uint64_t seed = 0;
  int64_t row = 0;
  uint64_t sample = 0;
};

struct DrawPoint {
  Sampling sampling = {};
  DrawSource source = {};
  int64_t position = 0;                    // index of the new token
  std::span<const int32_t> seen_ids = {};  // ids of prompt and answer, for penalties
  size_t answer_begin = 0;                 // where the answer begins in seen_ids
  std::span<const kernels::LogitBias> biases = {};
  std::span<const uint32_t> allowed = {};  // as in kernels::SamplingRow
  int64_t unread_id = -1;                  // as in kernels::SamplingRow: place of one more seen id
  bool wants_logprob = false;
  // The log-probability is one of the distribution at the rule's temperature, as training computes
  // it (nn/head_loss.h), over all ids: top-k, top-p and min-p choose among them later. Not with
  // rules that change logits.
  bool logprob_at_temperature = false;
  int64_t num_likeliest = 0;
};

// Draws one token per row of logits_RV (fp32 or bf16) from the ids below `num_ids`, which excludes
// the padded rows of a vocabulary. Gives kernels::kNoToken where the logits of a row are not
// finite.
std::vector<kernels::SampledToken> sample_tokens(const at::Tensor& logits_RV, int64_t num_ids,
                                                 const std::vector<DrawPoint>& points);

// Draws tokens from hidden states, which the model's head turns into logits, in two steps: the
// constructor prepares the tables that the draw needs on the device, pick() draws. When only the
// likeliest token is requested, CPUs never store logits.
class TokenDraw {
 public:
  // Adds its tables to `upload`, which the caller sends. What `points` refers to must stay valid
  // until pick().
  TokenDraw(nn::CausalLm& model, int64_t num_ids, const std::vector<DrawPoint>& points,
            device::Upload& upload);

  // Reads the ids that the points allow, which the constructor does not, and starts their copy to
  // the device. Call it before pick() when a point has `allowed`.
  void send_allowed();
  // Async. hidden_RD has one row per point.
  void pick(const at::Tensor& hidden_RD, const at::Tensor& unread_ids);
  const kernels::PickedTokens& picked() const { return picked_; }  // after pick()
  // Are logits multiplied by a table of factors?
  bool scales_logits() const { return factors_N_.defined(); }

 private:
  nn::CausalLm& model_;
  int64_t num_ids_;
  std::vector<kernels::SamplingRow> rows_;  // the rows in `drawn_`
  kernels::SamplingTables tables_;
  at::Tensor factors_N_;  // fp32 factors of the logits of `drawn_`; undefined: all are 1
  std::vector<int64_t> likeliest_, drawn_;  // indices of rows without and with logits
  at::Tensor likeliest_L_, drawn_N_;        // the same on the device, if both kinds exist
  kernels::PickedTokens picked_;
};

// Picked tokens that are being copied to the host.
class UnreadTokens {
 public:
  // Async. Starts the copy to the host.
  explicit UnreadTokens(const kernels::PickedTokens& picked)
      : ids_R_(picked.next_ids_R), sampled_(picked.sampled_RS) {}

  // int64 on the device, the input of the next pass; 0 in place of kNoToken.
  const at::Tensor& ids_R() const { return ids_R_; }
  // Blocks until the tokens have been picked and copied.
  std::vector<kernels::SampledToken> read() { return kernels::read_tokens(sampled_.wait()); }

 private:
  at::Tensor ids_R_;
  device::Download sampled_;
};

}  // namespace convoy::generate
