// SPDX-License-Identifier: Apache-2.0
//
// Makes rows for training from finished rows: a right and a wrong solution of one problem as a
// preference, good solutions as rows of prompt and completion, and problems with their answers and
// difficulty. They depend only on the rows of the output, so a finished run can make them again
// without generating texts. One thread.
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

// The files that the settings request: none to three.
std::vector<std::filesystem::path> training_files(const settings::ProcessSettings& settings);

// Throws ConfigError for settings that nothing reads, for figures that no stage computes, and for
// runs with only one solution per problem.
void check_training_rows(const settings::ProcessSettings& settings);

// The object that holds the texts of `sample`. For the chosen sample that is the row itself.
const nlohmann::ordered_json& texts_of_sample(const nlohmann::ordered_json& row,
                                              const nlohmann::ordered_json& sample);

// The prompt of the stage `generate` for the problem of a row of the output.
std::string rendered_problem(const PipelinePlan& plan, const nlohmann::ordered_json& row);

// A solution whose text was not cut.
struct Solution {
  int64_t sample = 0;
  std::string think = {};
  std::string said = {};
  std::string verified = {};  // "yes", "no", "unknown"; empty = no reference
  std::optional<double> score = {};
  int64_t characters = 0;  // length of both texts together
};

// Counts of used and unused samples and problems, for the report.
struct TrainingCounts {
  int64_t problems = 0;
  int64_t with_rows = 0;  // problems with rows
  int64_t rows = 0;
  int64_t repeated = 0;  // samples whose text equals the text of an earlier sample
  int64_t cut = 0;       // samples whose text was cut
  std::map<std::string, int64_t> without;  // number of problems by the reason why they have no row

  nlohmann::ordered_json json() const;
};

// The solutions in a row of the output whose texts were not cut, in the order of the samples.
std::vector<Solution> whole_solutions(const nlohmann::ordered_json& row, TrainingCounts& counts);
// The solutions whose texts differ in more than white space; of equal texts the first.
std::vector<Solution> distinct_solutions(std::vector<Solution> solutions, TrainingCounts& counts);
// The distinct solutions of a row: distinct_solutions() of whole_solutions().
std::vector<Solution> solutions_of(const nlohmann::ordered_json& row, TrainingCounts& counts);

// Thoughts and answer as one text.
std::string text_with_thoughts(const Solution& solution, std::string_view begin = "<think>\n");
// The beginning of the thoughts after a plain prompt; the prompt may already end in the tag.
std::string_view begin_of_thoughts(const PipelinePlan& plan, const std::string& prompt);

// Pairs of a chosen and a rejected solution, at most `wanted.per_problem`. No solution is used
// again before every solution was used once. Counts the reason if there is no pair.
std::vector<std::pair<Solution, Solution>> pairs_of(const std::vector<Solution>& solutions,
                                                    const settings::PairSettings& wanted,
                                                    TrainingCounts& counts);

class TrainingRows {
 public:
  // `plan` must outlive this object. Opens the files. Throws the errors of data::create_rows().
  explicit TrainingRows(const PipelinePlan& plan);

  // Adds a row of the output. Rows that the filter rejected make no training rows. Throws the
  // errors of data::RowWriter.
  void add(const nlohmann::ordered_json& row);
  // Publishes the files under their names.
  std::vector<data::FileRecord> finish();
  // {"pairs": counts, "answers": counts, "problems": counts}, of the requested files; null if none
  // was requested.
  nlohmann::ordered_json report() const;

 private:
  void add_pairs(const nlohmann::ordered_json& row, const nlohmann::ordered_json& prompt);
  void add_answers(const nlohmann::ordered_json& row, const nlohmann::ordered_json& prompt);
  void add_problem(const nlohmann::ordered_json& row);

  const PipelinePlan& plan_;
  std::unique_ptr<data::RowWriter> pairs_;     // null: not requested
  std::unique_ptr<data::RowWriter> answers_;   // null: not requested
  std::unique_ptr<data::RowWriter> problems_;  // null: not requested
  TrainingCounts of_pairs_;
  TrainingCounts of_answers_;
  TrainingCounts of_problems_;
};

// A text for the report, such as "12 of 8 problems; 2 without a right solution; ...".
std::string training_text(const nlohmann::ordered_json& counts);

}  // namespace convoy::process
