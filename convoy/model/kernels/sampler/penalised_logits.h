// SPDX-License-Identifier: Apache-2.0
//
// Repetition penalties, and numbers that are added to logits: biases, frequency and presence
// penalties.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "convoy/model/kernels/sampler/sampler.h"

namespace convoy::kernels {

struct AddedLogit {
  int64_t id = 0;
  float addend = 0;
  bool is_of_answer = false;
};
// The numbers to add to a row's logits, by rising id, without the id that the host has not read
// yet.
std::vector<AddedLogit> added_logits(const SamplingRow& row, int64_t num_ids);

// Penalties of an id of the answer that the host has not read yet. `each` is always added to its
// logit; `first` is added too when no earlier token of the answer has this id.
struct UnreadAddends {
  float each = 0;
  float first = 0;
};
inline UnreadAddends unread_addends_of(const SamplingRow& row) {
  return {static_cast<float>(-row.rule.frequency_penalty),
          static_cast<float>(-row.rule.presence_penalty)};
}

// The tables of penalties and added logits, without the rules.
SamplingTables penalty_tables(std::span<const SamplingRow> rows, int64_t num_ids,
                              device::Upload& upload);

// `logits_RV` (fp32, contiguous) with the changes of `tables`. Returns `logits_RV` itself where no
// row changes. On any device. Async.
at::Tensor penalised_logits(const at::Tensor& logits_RV, const SamplingTables& tables,
                            const at::Tensor& unread_ids);

}  // namespace convoy::kernels
