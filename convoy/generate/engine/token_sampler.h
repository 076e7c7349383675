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
#include "convoy/model/nn/linear.h"

namespace convoy::generate {

using Sampling = kernels::SamplingRule;

// Throws ConfigError naming the key of a number that is out of range.
void check_sampling(const Sampling& sampling);

// The random numbers that a text is drawn from, together with the position of each token.
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
  int64_t unread_id = -1;  // place of one more: kernels::SamplingRow::unread_id
  bool wants_logprob = false;
  int64_t num_likeliest = 0;
};

// One token per row of logits_RV (fp32 or bf16), of the ids below `num_ids`: leave out the padded
// rows of a vocabulary. kernels::kNoToken where the logits of a row are not finite.
std::vector<kernels::SampledToken> sample_tokens(const at::Tensor& logits_RV, int64_t num_ids,
                                                 const std::vector<DrawPoint>& points);

// The same from hidden states that `head` turns into logits, in two steps: what the draw needs on
// the device, and the draw. When only the likeliest token is requested,
// CPUs never store logits.
class TokenDraw {
 public:
  // With its part of `upload`, which the caller sends. The ids that `points` name live until
  // pick().
  TokenDraw(const nn::Linear& head, int64_t num_ids, const std::vector<DrawPoint>& points,
            device::Upload& upload);

  // Async. hidden_RD has a row per point.
  void pick(const at::Tensor& hidden_RD, const at::Tensor& unread_ids);
  const kernels::PickedTokens& picked() const { return picked_; }  // after pick()

 private:
  const nn::Linear& head_;
  int64_t num_ids_;
  std::vector<kernels::SamplingRow> rows_;  // rows that are drawn from logits
  kernels::SamplingTables tables_;
  std::vector<int64_t> likeliest_, drawn_;  // their places, where there are both
  at::Tensor likeliest_L_, drawn_N_;        // the same on the device
  kernels::PickedTokens picked_;
};

// Picked tokens on their way to the host.
class UnreadTokens {
 public:
  // Async.
  explicit UnreadTokens(const kernels::PickedTokens& picked)
      : ids_R_(picked.next_ids_R), sampled_(picked.sampled_RS) {}

  // int64 on the device: input of the next pass, 0 in the place of kNoToken.
  const at::Tensor& ids_R() const { return ids_R_; }
  // Blocks until they are picked.
  std::vector<kernels::SampledToken> read() { return kernels::read_tokens(sampled_.wait()); }

 private:
  at::Tensor ids_R_;
  device::Download sampled_;
};

}  // namespace convoy::generate
