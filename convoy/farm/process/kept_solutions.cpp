// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/kept_solutions.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "convoy/core/base/json_member.h"
#include "convoy/data/datasets/dataset.h"
#include "convoy/farm/process/training_rows.h"

namespace convoy::process {
namespace {

using Json = nlohmann::ordered_json;

bool is_right(const Json& sample) {
  return member_or(sample, "verified", std::string()) == "yes" &&
         member_or(sample, "finish", std::string()) == "stop";
}

// With one blank for each run of white space.
std::string with_single_blanks(const std::string& text) {
  std::string words;
  bool is_apart = false;
  for (const char letter : text) {
    if (std::isspace(static_cast<unsigned char>(letter)) != 0) {
      is_apart = !words.empty();
      continue;
    }
    if (std::exchange(is_apart, false)) words += ' ';
    words += letter;
  }
  return words;
}

// As the model wrote it, but for white space around its thoughts. A plain prompt that ends in
// <think> has that tag already.
std::string whole_text(const Json& texts, bool prompt_has_tag) {
  const std::string think = member_or(texts, "think", std::string());
  const std::string said = member_or(texts, "reasoning", std::string());
  if (think.empty()) return said;
  return (prompt_has_tag ? "\n" : "<think>\n") + think + "\n</think>\n\n" + said;
}

// The right solutions, each text once.
std::vector<std::string> right_solutions(const Json& row, bool prompt_has_tag) {
  std::vector<std::string> solutions;
  std::set<std::string> seen;
  for (const Json& sample : row.at("samples")) {
    if (!is_right(sample)) continue;
    std::string text = whole_text(texts_of_sample(row, sample), prompt_has_tag);
    if (seen.insert(with_single_blanks(text)).second) solutions.push_back(std::move(text));
  }
  return solutions;
}

Json row_to_learn(const PipelinePlan& plan, const std::string& prompt, std::string solution) {
  Prompt asked = plan.prompt(prompt);
  if (!plan.chats()) return {{"prompt", asked.text}, {"completion", std::move(solution)}};
  asked.messages.push_back({{"role", "assistant"}, {"content", std::move(solution)}});
  return {{"messages", std::move(asked.messages)}};
}

}  // namespace

void count_answers(const Json& row, AnswerCounts& counts) {
  if (row.at("gold").is_null()) return;
  ++counts.problems;
  counts.solved += member_or(row, "verified", std::string()) == "yes";
  for (const Json& sample : row.at("samples")) {
    ++counts.samples;
    counts.right_samples += is_right(sample);
  }
}

KeptCounts keep_solutions(const PipelinePlan& plan, const Json& row, int64_t most,
                          const std::function<void(const Json&)>& keep) {
  if (row.at("gold").is_null() || row.at("problem").is_null()) return {};
  const std::string prompt = rendered_problem(plan, row);
  std::vector<std::string> solutions =
      right_solutions(row, !plan.chats() && plan.opens_think(prompt));
  std::stable_sort(
      solutions.begin(), solutions.end(),
      [](const std::string& left, const std::string& right) { return left.size() < right.size(); });
  const int64_t kept = std::min(most, std::ssize(solutions));
  for (int64_t number = 0; number < kept; ++number)
    keep(row_to_learn(plan, prompt, std::move(solutions[static_cast<size_t>(number)])));
  return {.distinct = std::ssize(solutions), .kept = kept};
}

void for_each_output_row(const std::filesystem::path& file,
                         const std::function<void(const Json&)>& visit) {
  const auto rows = data::open_dataset(data::find_dataset({.name = file.string()}));
  while (const auto row = rows->next()) visit(row->value);
}

}  // namespace convoy::process
