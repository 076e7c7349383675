// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/encoding/row_warnings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/trimmed.h"

namespace convoy::data {
namespace {

// A list such as "`ts` (in 3 rows), `id` (in 1 row)".
std::string list_of_keys(const std::map<std::string, RowTally>& keys) {
  constexpr size_t kMostKeys = 20;
  std::vector<std::string> listed;
  for (const auto& [key, tally] : keys)
    if (listed.size() < kMostKeys)
      listed.push_back(fmt::format("`{}` (in {})", key, counted(tally.rows, "row")));
  if (keys.size() > kMostKeys)
    listed.push_back(fmt::format("and {} more", keys.size() - kMostKeys));
  return fmt::format("{}", fmt::join(listed, ", "));
}

}  // namespace

bool repeats_prompt(const Sample& sample) {
  if (sample.kind != Sample::Kind::PromptCompletion || (!sample.is_pair && !sample.is_judged))
    return false;
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::string_view prompt = trimmed(sample.prompt, kBlanks);
  const auto begins_with_it = [&](std::string_view answer) {
    return trimmed(answer, kBlanks).starts_with(prompt);
  };
  return !prompt.empty() && begins_with_it(sample.completion) &&
         (!sample.is_pair || begins_with_it(sample.rejected));
}

std::string first_row_of(const RowTally& tally) {
  const std::string line =
      tally.first_line > 0 ? fmt::format(" on line {}", tally.first_line) : std::string();
  return fmt::format("the first is row {}{}", tally.first_index + 1, line);
}

void RowTally::add(const Sample& sample) {
  if (rows++ > 0) return;
  first_index = sample.index;
  first_line = sample.line;
}

void RowTally::add(const RowTally& later) {
  if (rows == 0) {
    *this = later;
  } else {
    rows += later.rows;
  }
}

void RowLosses::add(const Sample& sample, const EncodedRow& row) {
  ++rows_encoded;
  if (row.empty_answer) (sample.is_pair ? empty_sides : empty_answers).add(sample);
  if (row.tools_unread) tools_unread.add(sample);
  if (row.documents_unread) documents_unread.add(sample);
  if (row.calls_unread) calls_unread.add(sample);
  if (row.reasoning_unread) reasoning_unread.add(sample);
  if (row.text_unread) text_unread.add(sample);
  if (!row.open_end.empty()) {
    if (open_ends.rows == 0) first_open_end = row.open_end;
    open_ends.add(sample);
  }
  if (!sample.beside_prompt.empty()) beside_prompt[sample.beside_prompt].add(sample);
  for (const std::string& key : sample.weight_like) weight_like[key].add(sample);
  for (const std::string& key : row.keys_unread) keys_unread[key].add(sample);
  for (const std::string& name : row.variables_unread) variables_unread[name].add(sample);
  if (row.crosses_seam) seams.add(sample);
  add_repeated_prompt(sample);
}

void RowLosses::add_repeated_prompt(const Sample& sample) {
  if (!repeats_prompt(sample)) return;
  (sample.is_pair ? pairs_with_prompt : answers_with_prompt).add(sample);
}

void RowLosses::add(const RowLosses& later) {
  rows_encoded += later.rows_encoded;
  empty_answers.add(later.empty_answers);
  empty_sides.add(later.empty_sides);
  tools_unread.add(later.tools_unread);
  documents_unread.add(later.documents_unread);
  calls_unread.add(later.calls_unread);
  reasoning_unread.add(later.reasoning_unread);
  text_unread.add(later.text_unread);
  if (open_ends.rows == 0) first_open_end = later.first_open_end;
  open_ends.add(later.open_ends);
  for (const auto& [key, tally] : later.beside_prompt) beside_prompt[key].add(tally);
  for (const auto& [key, tally] : later.weight_like) weight_like[key].add(tally);
  for (const auto& [key, tally] : later.keys_unread) keys_unread[key].add(tally);
  for (const auto& [name, tally] : later.variables_unread) variables_unread[name].add(tally);
  seams.add(later.seams);
  pairs_with_prompt.add(later.pairs_with_prompt);
  answers_with_prompt.add(later.answers_with_prompt);
  answers_cut.add(later.answers_cut);
  sides_equal.add(later.sides_equal);
  texts_cut.add(later.texts_cut);
}

std::vector<std::string> row_warnings(const RowLosses& losses, int64_t max_tokens,
                                      Truncation truncation) {
  std::vector<std::string> warnings;
  const auto unwritten = [&](const RowTally& tally, const char* part, const char* result) {
    if (tally.rows == 0) return;
    warnings.push_back(
        fmt::format("the chat template does not write the {} of {}, {}: {}; set data.template_path "
                    "to a template that writes them",
                    part, counted(tally.rows, "row"), first_row_of(tally), result));
  };
  unwritten(losses.tools_unread, "`tools`", "the model does not see them");
  unwritten(losses.documents_unread, "`documents`", "the model does not see them");
  unwritten(losses.calls_unread, "`tool_calls`", "the model does not see them");
  unwritten(losses.reasoning_unread, "thoughts (reasoning_content, thinking)",
            "they are not learnt");
  if (const RowTally& tally = losses.text_unread; tally.rows > 0)
    warnings.push_back(fmt::format(
        "the chat template does not write the text of {} as it is in the row, {}: it leaves out or "
        "replaces a part; where that is not wanted, set data.template_path to another template",
        counted(tally.rows, "row"), first_row_of(tally)));
  if (const RowTally& tally = losses.open_ends; tally.rows > 0)
    warnings.push_back(fmt::format(
        "the chat template ends no turn with a token of its own: in {} the last learnt token is "
        "text (`{}`), {}, so the model does not learn to stop; set data.template_path to a "
        "template that writes an end token behind each answer, and data.eos_token to that token",
        counted(tally.rows, "row"), losses.first_open_end, first_row_of(tally)));
  for (const auto& [key, tally] : losses.beside_prompt)
    warnings.push_back(
        fmt::format("{} `{}` beside `prompt`, {}: `prompt` is read; leave one of them out",
                    counted(tally.rows, "row has", "rows have"), key, first_row_of(tally)));
  for (const auto& [key, tally] : losses.weight_like)
    warnings.push_back(
        fmt::format("{} turns with `{}`, {}: no weight is read from it; the keys that are read are "
                    "weight, loss_weight, train, training, trainable, loss, loss_scale, loss_mask "
                    "and masked",
                    counted(tally.rows, "row has", "rows have"), key, first_row_of(tally)));
  if (!losses.keys_unread.empty())
    warnings.push_back(fmt::format(
        "nothing reads {} of turns: {}; leave {} out, or set data.template_path to a template that "
        "writes {}",
        counted(std::ssize(losses.keys_unread), "key", "keys"), list_of_keys(losses.keys_unread),
        losses.keys_unread.size() == 1 ? "it" : "them",
        losses.keys_unread.size() == 1 ? "it" : "them"));
  if (!losses.variables_unread.empty())
    warnings.push_back(fmt::format(
        "the chat template has no {} {}, which {} no effect; correct or leave out {} in "
        "data.template_kwargs (--template-kwargs) or chat_template_kwargs",
        losses.variables_unread.size() == 1 ? "variable" : "variables",
        list_of_keys(losses.variables_unread), losses.variables_unread.size() == 1 ? "has" : "have",
        losses.variables_unread.size() == 1 ? "the name" : "the names"));
  if (const RowTally& tally = losses.empty_answers; tally.rows > 0)
    warnings.push_back(fmt::format(
        "{} an empty answer, {}: it is not learnt; data.empty_answers: learn learns its end",
        counted(tally.rows, "row has", "rows have"), first_row_of(tally)));
  if (const RowTally& tally = losses.empty_sides; tally.rows > 0)
    warnings.push_back(
        fmt::format("{} an empty chosen or rejected answer, {}: no empty answer is learnt, so {} "
                    "dropped",
                    counted(tally.rows, "pair has", "pairs have"), first_row_of(tally),
                    tally.rows == 1 ? "it is" : "they are"));
  if (const RowTally& tally = losses.sides_equal; tally.rows > 0)
    warnings.push_back(fmt::format(
        "{} only behind model.max_seq_len {}, {}: both sides are equal when cut, so {} dropped; "
        "raise it",
        counted(tally.rows, "pair differs", "pairs differ"), max_tokens, first_row_of(tally),
        tally.rows == 1 ? "it is" : "they are"));
  if (const RowTally& tally = losses.seams; tally.rows > 0)
    warnings.push_back(fmt::format(
        "in {} one token holds the end of the prompt and the start of the completion, {}: it is "
        "learnt; end prompts without a blank, and begin completions with it",
        counted(tally.rows, "row"), first_row_of(tally)));
  if (const RowTally& tally = losses.pairs_with_prompt; tally.rows > 0)
    warnings.push_back(fmt::format(
        "in {} chosen and rejected both begin with the whole prompt, {}: the model would learn to "
        "repeat it; leave the column `prompt` out, and what both begin with is the prompt",
        counted(tally.rows, "pair"), first_row_of(tally)));
  if (const RowTally& tally = losses.answers_with_prompt; tally.rows > 0)
    warnings.push_back(fmt::format(
        "{} with the whole prompt, {}: the model would learn to repeat it; cut it off the answers",
        counted(tally.rows, "answer begins", "answers begin"), first_row_of(tally)));
  if (const RowTally& tally = losses.answers_cut; tally.rows > 0)
    warnings.push_back(fmt::format(
        "{:.1f} % of the rows ({} of {}) lose their answer to model.max_seq_len {} and are "
        "dropped, "
        "{}: raise it{}",
        100.0 * static_cast<double>(tally.rows) / static_cast<double>(losses.rows_encoded),
        tally.rows, losses.rows_encoded, max_tokens, first_row_of(tally),
        truncation == Truncation::KeepStart
            ? ", or keep the end of long rows with data.truncation_side: left"
            : ""));
  if (const RowTally& tally = losses.texts_cut; tally.rows > 0)
    warnings.push_back(fmt::format(
        "{} longer than model.max_seq_len {}, {}: the rest is not learnt; data.truncation: split "
        "learns all of it, data.text_rows: line makes a row of each line of a .txt file",
        counted(tally.rows, "text is", "texts are"), max_tokens, first_row_of(tally)));
  return warnings;
}

}  // namespace convoy::data
