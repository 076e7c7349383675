// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/model_files/compared_loss.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

#include "convoy/core/base/error.h"
#include "convoy/data/datasets/encoding/encode_sample.h"
#include "convoy/data/datasets/encoding/encoded_rows.h"
#include "convoy/train/loop/evaluation.h"

namespace convoy::recipes {
namespace {

constexpr int64_t kMostRows = 64;
constexpr int64_t kBatchRows = 8;

constexpr std::array<std::string_view, 4> kText = {
    "The lighthouse keeper wrote down the weather every morning. When the wind came from the "
    "north, he lit the lamp an hour early, because ships from the north were usually late.",
    "To boil an egg, put it into cold water, bring the water to a boil, and wait. After four "
    "minutes the white is firm and the yolk is soft; after ten minutes both are firm.",
    "Question: A train leaves at 9:40 and arrives at 11:05. How long does the journey take?\n"
    "Answer: It takes 1 hour and 25 minutes.",
    "def largest(numbers):\n    best = numbers[0]\n    for number in numbers[1:]:\n        if "
    "number > best:\n            best = number\n    return best\n"};

void cut(data::EncodedRow& row, int64_t max_positions) {
  const auto length = std::min(row.ids.size(), static_cast<size_t>(max_positions));
  row.ids.resize(length);
  row.supervised.resize(length);
  if (!row.weights.empty()) row.weights.resize(length);
}

std::vector<data::EncodedRow> rows_of_text(const text::Tokenizer& tokenizer) {
  std::vector<data::EncodedRow> rows;
  for (const std::string_view paragraph : kText) {
    data::EncodedRow row;
    row.ids = tokenizer.encode(paragraph, text::SpecialTokens::Add).ids;
    row.supervised.assign(row.ids.size(), 1);
    row.supervised.at(0) = 0;  // the first token has no context
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<data::EncodedRow> rows_of_file(const LoadedModel& loaded, const std::string& data,
                                           const Log& log) {
  const data::SampleEncoder encoder(loaded.tokenizer, loaded.template_or_null(),
                                    data::Supervision());
  data::EncodedRows encoded(data, {}, data::bad_rows_named("error"), data::RowUse::Learn,
                            [&](const data::Sample& sample) { return encoder.encode(sample); });
  std::vector<data::EncodedRow> rows;
  while (std::ssize(rows) < kMostRows) {
    std::optional<data::EncodedSample> next = encoded.next();
    if (!next) break;
    rows.push_back(std::move(next->row));
  }
  encoded.finish(log);
  if (rows.empty())
    throw DataError("there are no rows to compare losses on",
                    {.file = data, .hint = "name a file with rows"});
  return rows;
}

}  // namespace

data::TokenDataset compared_rows(const LoadedModel& loaded, const std::string& data,
                                 const Log& log) {
  std::vector<data::EncodedRow> rows =
      data.empty() ? rows_of_text(loaded.tokenizer) : rows_of_file(loaded, data, log);
  for (data::EncodedRow& row : rows) cut(row, loaded.model->max_positions());
  return data::TokenDataset::from_rows(rows);
}

double mean_loss(nn::CausalLm& model, const data::TokenDataset& rows) {
  const at::NoGradGuard no_grad;
  double nll = 0;
  double weight = 0;
  for (int64_t first = 0; first < rows.num_rows(); first += kBatchRows) {
    std::vector<int64_t> batch(static_cast<size_t>(std::min(kBatchRows, rows.num_rows() - first)));
    std::iota(batch.begin(), batch.end(), first);
    for (const train::RowLoss& row : train::row_losses(model, rows, batch)) {
      nll += row.nll;
      weight += row.weight;
    }
  }
  return weight > 0 ? nll / weight : 0;
}

}  // namespace convoy::recipes
