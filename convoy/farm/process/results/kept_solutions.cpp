// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/results/kept_solutions.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "convoy/core/base/json_member.h"
#include "convoy/data/datasets/sources/dataset.h"
#include "convoy/farm/process/results/training_rows.h"

namespace convoy::process {
namespace {

using Json = nlohmann::ordered_json;

std::vector<Solution> right_solutions(const Json& row) {
  TrainingCounts unread;
  std::vector<Solution> solutions = whole_solutions(row, unread);
  std::erase_if(solutions, [](const Solution& solution) { return solution.verified != "yes"; });
  return solutions;
}

// The right and distinct solutions, the shortest first.
std::vector<Solution> solutions_to_learn(const Json& row) {
  TrainingCounts unread;
  std::vector<Solution> solutions = distinct_solutions(right_solutions(row), unread);
  std::stable_sort(solutions.begin(), solutions.end(), [](const auto& left, const auto& right) {
    return left.characters < right.characters;
  });
  return solutions;
}

// A chat's answer has its thoughts as the model wrote them. The model learns them with the template
// that generated them, even if that template drops thoughts beside an answer.
Json row_to_learn(const PipelinePlan& plan, const std::string& prompt, const Solution& solution) {
  Prompt asked = plan.prompt(prompt);
  if (!plan.chats())
    return {{"prompt", asked.text},
            {"completion", text_with_thoughts(solution, begin_of_thoughts(plan, asked.text))}};
  asked.messages.push_back({{"role", "assistant"}, {"content", text_with_thoughts(solution)}});
  return {{"messages", std::move(asked.messages)}};
}

}  // namespace

void count_answers(const Json& row, AnswerCounts& counts) {
  if (row.at("gold").is_null()) return;
  ++counts.problems;
  counts.solved += member_or(row, "verified", std::string()) == "yes";
  counts.samples += std::ssize(row.at("samples"));
  counts.right_samples += std::ssize(right_solutions(row));
}

KeptCounts keep_solutions(const PipelinePlan& plan, const Json& row, int64_t most,
                          const std::function<void(const Json&)>& keep) {
  if (row.at("gold").is_null() || row.at("problem").is_null()) return {};
  const std::string prompt = rendered_problem(plan, row);
  const std::vector<Solution> solutions = solutions_to_learn(row);
  const int64_t kept = std::min(most, std::ssize(solutions));
  for (int64_t number = 0; number < kept; ++number)
    keep(row_to_learn(plan, prompt, solutions[static_cast<size_t>(number)]));
  return {.distinct = std::ssize(solutions), .kept = kept};
}

void for_each_output_row(const std::filesystem::path& file,
                         const std::function<void(const Json&)>& visit) {
  const auto rows = data::open_dataset(data::find_dataset({.name = file.string()}));
  while (const auto row = rows->next()) visit(row->value);
}

}  // namespace convoy::process
