// SPDX-License-Identifier: Apache-2.0
//
// Functions for the texts of several stages: the numbers of a text's random draws, and the parts of
// a text.
#include "convoy/data/answers/extraction.h"
#include "convoy/farm/process/parsing/think_text.h"
#include "convoy/farm/process/stages/stage.h"

namespace convoy::process {
namespace {

bool marks_an_answer(const std::string& text) {
  for (const char* mark : {"\\boxed", "\\fbox", "####"})
    if (text.find(mark) != std::string::npos) return true;
  return false;
}

// Thoughts contain many numbers but no answer, so only the text after them is read. A text that was
// cut has an answer only if it marks one: its last number, or the text after "answer:", may be
// anything.
std::optional<std::string> answer_of(const Version& version) {
  const std::string said = without_calls(version.text.said);
  if (version.finish != TextFinish::Stop && !marks_an_answer(said)) return std::nullopt;
  std::string answer = answers::extract_answer(said);
  if (answer.empty()) return std::nullopt;
  return answer;
}

std::optional<std::string> member_answer(const Version& version) {
  const auto text = nlohmann::ordered_json::parse(version.text.said, nullptr, false);
  if (!text.is_object() || !text.contains("answer")) return std::nullopt;
  const nlohmann::ordered_json& answer = text["answer"];
  return answer.is_string() ? answer.get<std::string>() : answer.dump();
}

}  // namespace

DrawSource draw_source(const PipelinePlan& plan, const RowState& row, TextKind kind,
                       int64_t candidate, int64_t version) {
  // The row's place in the whole data set, so that a run over a part of the data set draws the same
  // numbers.
  return {.seed = static_cast<uint64_t>(plan.settings.seed),
          .row = row.input->source_index,
          .sample = static_cast<uint64_t>(kind) << 48 | static_cast<uint64_t>(version) << 32 |
                    static_cast<uint64_t>(candidate)};
}

Version read_version(const KeptStep& step, bool prompt_opens_think, const std::string& schema) {
  const TextResult& result = step.result;
  Version version;
  version.tries = step.tries;
  version.finish = result.finish;
  version.other_finish = result.other_finish;
  version.error = result.error;
  version.new_tokens = result.new_tokens;
  if (result.finish == TextFinish::Error) return version;
  version.text = split_think(result.text, prompt_opens_think);
  if (!schema.empty()) version.answer = member_answer(version);
  if (!version.answer) version.answer = answer_of(version);
  return version;
}

}  // namespace convoy::process
