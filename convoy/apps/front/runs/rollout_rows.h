// SPDX-License-Identifier: Apache-2.0
//
// Makes rows for training from the texts that a run of task grpo has learnt from: good texts as
// prompt and completion, the best and the worst text of a problem as preferences. One thread.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "convoy/data/datasets/formats/row_writer.h"

namespace convoy::apps {

enum class RolloutForm {
  Sft,    // texts whose reward is at least `min_reward`
  Pairs,  // the texts of the highest and the lowest reward of a problem in a step, if they differ
};

struct RolloutRowCounts {
  int64_t texts = 0;
  int64_t rows = 0;
  int64_t cut = 0;       // texts that a limit has cut, or that are blank: they make no row
  int64_t repeated = 0;  // texts that made a row at an earlier step
  double best_reward = 0;
};

class RolloutRows {
 public:
  // `writer` must outlive this object.
  RolloutRows(data::RowWriter& writer, RolloutForm form, double min_reward)
      : writer_(writer), form_(form), min_reward_(min_reward) {}

  // `texts`: all rows of one step's file. Throws DataError for rows without a reward or without the
  // prompt that the model read.
  void add_step(const std::vector<nlohmann::ordered_json>& texts);
  const RolloutRowCounts& counts() const { return counts_; }

 private:
  void add_good(const nlohmann::ordered_json& text);
  void add_pair(const std::vector<const nlohmann::ordered_json*>& of_problem);
  // False if the same row was written before.
  bool is_new(const nlohmann::ordered_json& row);

  data::RowWriter& writer_;
  RolloutForm form_;
  double min_reward_;
  RolloutRowCounts counts_;
  std::set<std::string> hashes_;  // a hash for each row that was written
};

}  // namespace convoy::apps
