// SPDX-License-Identifier: Apache-2.0
//
// Picks the next token of every row of logits. A row's token does not depend on the other rows. The
// caller gives the random numbers, so an op is a pure function. Shapes: R rows, V logits of a row.
//
// A token's log-probability is its share of the softmax over all V logits, as in
// linear_cross_entropy() and in transformers. Only ids below `num_ids` are picked: the others are
// padded rows of a head, which keep their share. For a row with `allowed`, all other logits are as
// -inf: its softmax is over the allowed ids alone.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "convoy/machine/device/transfer.h"

namespace convoy::kernels {

// In transformers' order: repetition penalty, additions to logits, temperature, top-k, top-p,
// min-p. Equal logits prefer the lower id.
struct SamplingRule {
  double temperature = 1.0;  // 0: the most likely id
  int64_t top_k = 0;         // most likely ids kept; 0 = all
  double top_p = 1.0;        // keeps the smallest set of likeliest ids with at least this share
  double min_p = 0.0;        // keeps ids with at least this share of the greatest probability
  double repetition_penalty = 1.0;  // divides logits of seen ids; multiplies negative ones
  double frequency_penalty = 0;     // taken from the logit of an id for each time the answer has it
  double presence_penalty = 0;      // taken once from the logit of each id of the answer
};

struct LogitBias {
  int32_t id = 0;
  float bias = 0;  // added to its logit
};

// The token of a row whose logits are not finite: a NaN anywhere, or an infinite largest value.
inline constexpr int64_t kNoToken = -1;

struct SamplingRow {
  SamplingRule rule;
  double uniform = 0;                      // in [0, 1): picks from the ids kept, in order of id
  std::span<const int32_t> seen_ids = {};  // ids of prompt and answer
  size_t answer_begin = 0;                 // where the answer begins in seen_ids
  std::span<const LogitBias> biases = {};  // each id once
  // The ids that may be picked: a bit each, 32 ids a word, the lowest bit first; empty: all. Ids
  // beyond the last word are not allowed.
  std::span<const uint32_t> allowed = {};
  // The place in `unread_ids` of one more seen id, which only the device has; below 0: none.
  int64_t unread_id = -1;
  bool wants_logprob = false;
  int64_t num_likeliest = 0;  // with wants_logprob: number of most likely ids to return

  bool changes_logits() const {
    return rule.repetition_penalty != 1 || rule.frequency_penalty != 0 ||
           rule.presence_penalty != 0 || !biases.empty();
  }
};

// An id and its log(softmax) over all logits of the row, before penalty and temperature.
struct TokenLogprob {
  int64_t id = 0;
  float logprob = 0;
};

struct SampledToken {
  int64_t id = kNoToken;
  float logprob = 0;                    // when requested
  std::vector<TokenLogprob> likeliest;  // by falling likelihood, above 0
};

// The numbers of the rows' rules on the device, made before the logits are known.
struct SamplingTables {
  at::Tensor rules;  // in the form of the device's op
  // Penalties of seen ids: their places in the logits, row by row. The last entries are for unread
  // ids: they hold the row's first place, and the op adds the id at unread_places_U of
  // `unread_ids`.
  at::Tensor seen_places_N;    // int64
  at::Tensor penalties_N;      // fp32
  at::Tensor unread_places_U;  // int64
  // Additions: places in the logits, each of which occurs once, and fp32 numbers. The first
  // num_answer_places belong to ids that an answer has.
  at::Tensor added_places_M;  // int64
  at::Tensor addends_M;
  int64_t num_answer_places = 0;
  // Rows whose answer has an unread last id: the place of the id in `unread_ids` and the row's
  // first place in the logits; UnreadAddends::each and UnreadAddends::first.
  at::Tensor unread_added_W2;    // int64
  at::Tensor unread_addends_W2;  // fp32
  // Rows that want likeliest ids: their numbers, their num_likeliest, and the largest
  // num_likeliest.
  at::Tensor asking_rows_A;     // int64
  at::Tensor num_likeliest_A1;  // int64
  int64_t most_likeliest = 0;
  // Rows with `allowed` and their words; undefined on CPUs, whose op reads the rows themselves.
  at::Tensor bound_rows_B;  // int64
  at::Tensor allowed_BW;    // int64, 32 bits used

  bool change_logits() const {
    return seen_places_N.defined() || added_places_M.defined() || unread_added_W2.defined();
  }
};

// Picked tokens, which the host has not read.
struct PickedTokens {
  // int64: the input of the next pass, with 0 in place of kNoToken.
  at::Tensor next_ids_R;
  // int32: the id and the bits of its fp32 logprob, then the same for the row's most likely ids, as
  // many as the largest num_likeliest. kNoToken follows the last id of a row.
  at::Tensor sampled_RS;
};

// Adds the tables to `upload`, which the caller sends. Throws StateError on a rule out of range.
// Does not read the words of `allowed`, which may be found while a device makes the logits:
// add_allowed_ids() does.
SamplingTables make_sampling_tables(std::span<const SamplingRow> rows, int64_t num_ids,
                                    device::Upload& upload);
// Adds the ids that `rows` allow to the tables of the same rows. Call it when a row has `allowed`.
void add_allowed_ids(std::span<const SamplingRow> rows, device::Upload& upload,
                     SamplingTables& tables);
// Picks one token for each row of `logits_RV`: fp32 or bf16, rows contiguous. Only ids below
// `num_ids` are picked. Sums in fp32 or wider; on CPUs a log-probability has the bits that
// linear_token_losses() gives the same fp32 logits. Async. Not differentiable.
PickedTokens pick_tokens(const at::Tensor& logits_RV, int64_t num_ids,
                         std::span<const SamplingRow> rows, const SamplingTables& tables,
                         const at::Tensor& unread_ids = {});
// Reads PickedTokens::sampled_RS after it was copied to the host.
std::vector<SampledToken> read_tokens(const at::Tensor& sampled_RS);

// Makes the tables, picks the tokens and reads them. Blocks until the ids are on the host.
std::vector<SampledToken> sample_tokens(const at::Tensor& logits_RV, int64_t num_ids,
                                        std::span<const SamplingRow> rows);

}  // namespace convoy::kernels
