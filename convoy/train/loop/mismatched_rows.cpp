// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/loop/mismatched_rows.h"

#include <algorithm>
#include <utility>

namespace convoy::train {
namespace {

// Tokens before the answer. The answer is everything behind the prompt.
size_t prompt_tokens(const data::TokenDataset& dataset, int64_t row) {
  const auto mask = dataset.supervised(row);
  return static_cast<size_t>(
      std::find_if(mask.begin(), mask.end(), [](uint8_t flag) { return flag != 0; }) -
      mask.begin());
}

data::EncodedRow mismatched_row(const data::TokenDataset& dataset, const Mismatch& mismatch,
                                int64_t most_tokens) {
  const auto prompt = dataset.ids(mismatch.prompt).first(prompt_tokens(dataset, mismatch.prompt));
  const auto answer = dataset.ids(mismatch.answer).subspan(prompt_tokens(dataset, mismatch.answer));
  data::EncodedRow row;
  row.ids.assign(prompt.begin(), prompt.end());
  row.ids.insert(row.ids.end(), answer.begin(), answer.end());
  row.ids.resize(std::min(row.ids.size(), static_cast<size_t>(most_tokens)));
  row.supervised.assign(row.ids.size(), 1);
  std::fill_n(row.supervised.begin(), prompt.size(), uint8_t{0});
  row.source_index = dataset.source_index(mismatch.prompt);
  return row;
}

}  // namespace

std::vector<Mismatch> mismatches_of(const std::vector<int64_t>& rows) {
  std::vector<Mismatch> mismatches;
  if (rows.size() < 2) return mismatches;
  int64_t before = rows.back();
  for (const int64_t row : rows) mismatches.push_back({row, std::exchange(before, row)});
  return mismatches;
}

std::vector<Mismatch> mismatches_of_steps(const data::BatchPlan& plan, int64_t epoch, int64_t first,
                                          int64_t end) {
  std::vector<Mismatch> mismatches;
  for (int64_t step = first; step < end; ++step) {
    const std::vector<Mismatch> own = mismatches_of(plan.rows({epoch, step}));
    mismatches.insert(mismatches.end(), own.begin(), own.end());
  }
  return mismatches;
}

data::TokenDataset mismatched_rows(const data::TokenDataset& dataset,
                                   const std::vector<Mismatch>& mismatches, int64_t most_tokens) {
  std::vector<data::EncodedRow> rows;
  for (const Mismatch& mismatch : mismatches)
    rows.push_back(mismatched_row(dataset, mismatch, most_tokens));
  return data::TokenDataset::from_rows(rows);
}

}  // namespace convoy::train
