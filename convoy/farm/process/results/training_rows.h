// SPDX-License-Identifier: Apache-2.0
//
// Rows for training that the samples of finished rows make: a right and a wrong solution of one
// problem as a preference, good solutions as rows of prompt and completion. They depend on the rows
// of the output alone, so a finished run makes them again without computing. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/settings/process_settings.h"
#include "convoy/data/datasets/formats/row_writer.h"
#include "convoy/data/datasets/manifest.h"

namespace convoy::process {

struct PipelinePlan;

// The files that the settings ask for: none, one or two.
std::vector<std::filesystem::path> training_files(const settings::ProcessSettings& settings);

// Throws ConfigError for keys that nothing reads, for figures that no stage computes, and for runs
// with one solution a problem.
void check_training_rows(const settings::ProcessSettings& settings);

// The object that has the texts of `sample`. A row of the output holds the texts of its chosen
// sample itself.
const nlohmann::ordered_json& texts_of_sample(const nlohmann::ordered_json& row,
                                              const nlohmann::ordered_json& sample);

// The prompt of the stage `generate` for the problem of a row of the output.
std::string rendered_problem(const PipelinePlan& plan, const nlohmann::ordered_json& row);

// A whole text that was written for a problem.
struct Solution {
  int64_t sample = 0;
  std::string think = {};
  std::string said = {};
  std::string verified = {};  // "yes", "no", "unknown"; empty = there is no reference
  std::optional<double> score = {};
  int64_t characters = 0;  // both texts together
};

// The fate of samples and problems, for the report.
struct TrainingCounts {
  int64_t problems = 0;
  int64_t with_rows = 0;  // problems
  int64_t rows = 0;
  int64_t repeated = 0;                    // samples whose text an earlier one has
  int64_t cut = 0;                         // samples whose text is not whole
  std::map<std::string, int64_t> without;  // problems, by the reason why they have no row

  nlohmann::ordered_json json() const;
};

// The whole solutions of a row of the output, in the order of the samples.
std::vector<Solution> whole_solutions(const nlohmann::ordered_json& row, TrainingCounts& counts);
// Those whose texts differ in more than white space, the first of each.
std::vector<Solution> distinct_solutions(std::vector<Solution> solutions, TrainingCounts& counts);
// Both.
std::vector<Solution> solutions_of(const nlohmann::ordered_json& row, TrainingCounts& counts);

// Thoughts and answer as one text.
std::string text_with_thoughts(const Solution& solution, std::string_view begin = "<think>\n");
// The begin of thoughts behind a plain prompt, which may end in the tag.
std::string_view begin_of_thoughts(const PipelinePlan& plan, const std::string& prompt);

// Chosen and rejected, at most `wanted.per_problem`. Each solution is used once before one is used
// again. Without a pair the reason is counted.
std::vector<std::pair<Solution, Solution>> pairs_of(const std::vector<Solution>& solutions,
                                                    const settings::PairSettings& wanted,
                                                    TrainingCounts& counts);

class TrainingRows {
 public:
  // `plan` outlives this. Opens the files. Throws as data::create_rows().
  explicit TrainingRows(const PipelinePlan& plan);

  // A row of the output; a row that the filter rejects has none. Throws as data::RowWriter.
  void add(const nlohmann::ordered_json& row);
  // Publishes the files.
  std::vector<data::FileRecord> finish();
  // {"pairs": counts, "answers": counts}; null without either.
  nlohmann::ordered_json report() const;

 private:
  void add_pairs(const nlohmann::ordered_json& row, const nlohmann::ordered_json& prompt);
  void add_answers(const nlohmann::ordered_json& row, const nlohmann::ordered_json& prompt);

  const PipelinePlan& plan_;
  std::unique_ptr<data::RowWriter> pairs_;    // null: not asked for
  std::unique_ptr<data::RowWriter> answers_;  // null: not asked for
  TrainingCounts of_pairs_;
  TrainingCounts of_answers_;
};

// "12 of 8 problems; 2 without a right solution; ..." for the report.
std::string training_text(const nlohmann::ordered_json& counts);

}  // namespace convoy::process
