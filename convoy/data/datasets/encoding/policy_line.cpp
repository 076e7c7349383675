// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/encoding/policy_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "convoy/core/base/error.h"

namespace convoy::data {
namespace {

using Kind = Sample::Kind;

std::string shown(const text::Tokenizer& tokenizer, int32_t id) {
  return fmt::format("`{}`", tokenizer.piece(id));
}

std::string bos_words(const Sample& sample, const EncodedRow& row,
                      const text::Tokenizer& tokenizer) {
  const auto bos = tokenizer.bos_id();
  if (!bos || row.ids.empty() || row.ids[0] != *bos) return "no BOS";
  return fmt::format("BOS {} once, from the {}", shown(tokenizer, *bos),
                     is_chat(sample) ? "chat template" : "tokenizer");
}

bool learns_token(const EncodedRow& row, int32_t id) {
  for (size_t token = 0; token < row.ids.size(); ++token)
    if (row.ids[token] == id && row.supervised[token] != 0) return true;
  return false;
}

std::string eos_words(const EncodedRow& row, const text::Tokenizer& tokenizer) {
  const auto eos = tokenizer.eos_id();
  if (!eos) return "the tokenizer names no EOS";
  return fmt::format("EOS {} {}", shown(tokenizer, *eos),
                     learns_token(row, *eos) ? "is learnt" : "is not learnt");
}

bool is_whole_completion(const Sample& sample) { return sample.is_pair || sample.is_judged; }

// The words about the last learnt token, if it is not EOS; empty for other samples.
std::string turn_end_words(const Sample& sample, const EncodedRow& row,
                           const text::Tokenizer& tokenizer) {
  if (!is_chat(sample) || is_whole_completion(sample)) return "";
  size_t last = row.ids.size();
  while (last > 0 && row.supervised[last - 1] == 0) --last;
  if (last == 0 || row.ids[last - 1] == tokenizer.eos_id()) return "";
  return fmt::format(" (turns end with {})", shown(tokenizer, row.ids[last - 1]));
}

std::string mask_words(const Sample& sample, const text::ChatTemplate* chat_template,
                       const Supervision& supervision) {
  if (is_whole_completion(sample))
    return fmt::format("of {} every token behind the prompt counts",
                       sample.is_pair ? "both completions" : "the completion");
  if (supervision.supervise == Supervise::All || sample.kind == Kind::Text)
    return "every token is supervised";
  if (sample.kind == Kind::PromptCompletion) return "the completion is supervised";
  return fmt::format(
      "{} supervised, located by {}",
      supervision.supervise == Supervise::Last
          ? fmt::format("the last {} turn is", fmt::join(supervision.roles, " or "))
          : fmt::format("{} turns are", fmt::join(supervision.roles, " and ")),
      chat_template->has_generation_tags() ? "generation tags" : "prefix difference");
}

// Throws DataError when data.train_on_eos selects end tokens and the row has none. Otherwise the
// setting would be ignored silently.
void require_ends(const Sample& sample, const text::Tokenizer& tokenizer,
                  const text::ChatTemplate* chat_template, const Supervision& supervision) {
  if (supervision.ends == LearntEnds::Turn) return;
  const auto mask_with = [&](LearntEnds ends) {
    Supervision other = supervision;
    other.ends = ends;
    return SampleEncoder(tokenizer, chat_template, other).encode(sample).supervised;
  };
  const std::vector<uint8_t> with_ends = mask_with(LearntEnds::Turn);
  const bool learns = std::find(with_ends.begin(), with_ends.end(), 1) != with_ends.end();
  if (learns && with_ends == mask_with(LearntEnds::None))
    throw DataError(
        "data.train_on_eos selects tokens that close turns, but no learnt turn of this row ends "
        "with a special token",
        {.file = sample.file,
         .line = sample.line,
         .hint = "leave data.train_on_eos out; `convoy data tokens --data` shows what is learnt"});
}

}  // namespace

std::string policy_line(const Sample& sample, const text::Tokenizer& tokenizer,
                        const text::ChatTemplate* chat_template, const Supervision& supervision) {
  if (is_chat(sample)) require_ends(sample, tokenizer, chat_template, supervision);
  const EncodedRow row = SampleEncoder(tokenizer, chat_template, supervision).encode(sample);
  std::string line = fmt::format("{}; {}{}; {}", bos_words(sample, row, tokenizer),
                                 eos_words(row, tokenizer), turn_end_words(sample, row, tokenizer),
                                 mask_words(sample, chat_template, supervision));
  if (row.own_weights) line += "; weights of turns come before this";
  if (const std::string clock = is_chat(sample) ? chat_template->clock().words() : "";
      !clock.empty())
    line += fmt::format("; in every row {}", clock);
  return line;
}

}  // namespace convoy::data
