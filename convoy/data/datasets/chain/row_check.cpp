// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/chain/row_check.h"

#include <algorithm>
#include <optional>

#include "convoy/core/base/trimmed.h"
#include "convoy/core/base/utf8.h"
#include "convoy/data/datasets/chain/row_shape.h"
#include "convoy/data/datasets/chats/unwritten.h"
#include "convoy/data/datasets/formats/row_formats.h"

namespace convoy::data {
namespace {

using Json = nlohmann::ordered_json;

struct Checked {
  std::optional<RowFault> fault = {};
  int64_t index = 0;
  ErrorLocation location = {};
  Schema schema = Schema::Messages;
  bool is_long = false;
  bool is_dropped = false;
  RowLosses losses = {};
  std::vector<std::string> unread = {};
  int64_t characters_replaced = 0;
};

RowFault fault_of(int64_t index, const DataError& error, int64_t column = 0) {
  const ErrorLocation& location = error.location();
  return {.index = index,
          .file = location.file,
          .line = location.line,
          .column = column,
          .reason = error.what(),
          .hint = location.hint};
}

void check_tokens(const RowCheck& check, const Sample& sample, Checked& checked) {
  const TruncationPolicy& policy = check.truncation;
  EncodedRow row = check.encoder->encode(sample);
  const int64_t tokens = longest_tokens(row);
  checked.is_long = policy.max_tokens > 0 && tokens > policy.max_tokens;
  checked.is_dropped = row.empty_answer && fewest_supervised(row) == 0;
  if (checked.is_dropped) return checked.losses.add(sample, row);
  if (fewest_supervised(row) == 0)
    throw DataError(
        fmt::format("row {}: none of its {} tokens is supervised", sample.index + 1, tokens),
        {.file = sample.file,
         .line = sample.line,
         .hint = "see the mask with `convoy data tokens --data`, and choose another "
                 "--supervise or a longer --max-seq-len"});
  if (checked.is_long && policy.truncation == Truncation::Error)
    throw DataError(fmt::format("row {} has {} tokens, more than {}", sample.index + 1, tokens,
                                policy.max_tokens),
                    {.file = sample.file,
                     .line = sample.line,
                     .hint = "raise --max-seq-len, or let data.truncation cut it"});
  checked.losses.add(sample, row);
  const bool keeps_a_side =
      policy.truncation == Truncation::KeepStart || policy.truncation == Truncation::KeepEnd;
  if (checked.is_long && keeps_a_side) {
    if (truncate_row(row, policy) && sample.kind == Sample::Kind::Text)
      checked.losses.texts_cut.add(sample);
    if (has_equal_sides(row))
      checked.losses.sides_equal.add(sample);
    else if (fewest_supervised(row) == 0)
      checked.losses.answers_cut.add(sample);
  }
}

bool is_empty_answer(const Json& message) {
  return message.value("role", Json()) == "assistant" && has_blank_content(message) &&
         !message.contains("tool_calls");
}

bool is_blank_completion(const std::string& text) { return trimmed(text, " \t\r\n").empty(); }

// Number of answers of a row, and number of empty ones.
struct EmptyParts {
  int64_t answers = 0;
  int64_t empty = 0;

  void add(bool is_empty) {
    ++answers;
    empty += is_empty;
  }
  void add_turns(const Json& messages) {
    for (const Json& message : messages)
      if (message.value("role", Json()) == "assistant") add(is_empty_answer(message));
  }
};

EmptyParts empty_parts(const Sample& sample) {
  EmptyParts parts;
  if (sample.kind == Sample::Kind::Text) {
    parts.add(sample.text.empty());
  } else if (sample.kind == Sample::Kind::PromptCompletion) {
    parts.add(is_blank_completion(sample.completion));
    if (sample.is_pair) parts.add(is_blank_completion(sample.rejected));
  } else {
    if (!sample.is_pair) parts.add_turns(sample.messages);
    parts.add_turns(sample.completion_messages);
    parts.add_turns(sample.rejected_messages);
  }
  return parts;
}

// Checks for empty answers. Without a template no other check is possible.
void check_answers_without_tokens(EmptyAnswers policy, const Sample& sample, Checked& checked) {
  const EmptyParts parts = empty_parts(sample);
  if (parts.empty == 0 || policy == EmptyAnswers::Learn) return;
  if (policy == EmptyAnswers::Error)
    throw DataError(
        fmt::format("row {}: the {} is empty", sample.index + 1,
                    sample.kind == Sample::Kind::Text               ? "text"
                    : sample.kind == Sample::Kind::PromptCompletion ? "completion"
                                                                    : "answer"),
        {.file = sample.file, .line = sample.line, .hint = "write it, or leave the row out"});
  (sample.is_pair ? checked.losses.empty_sides : checked.losses.empty_answers).add(sample);
  checked.is_dropped = sample.is_pair || parts.empty == parts.answers;
}

Checked checked_row(const RowCheck& check, ReadRow read) {
  Checked checked{.index = read.index};
  try {
    if (read.error) throw DataError(*read.error);
    const Row row = parse_row(std::move(read.raw), check.bad_rows);
    checked.location = {.file = row.file, .line = row.line};
    checked.characters_replaced = row.characters_replaced;
    ConvertedRow converted = convert_to_learn(row, check.schema);
    checked.schema = converted.schema;
    refuse_unread(converted.sample, converted.unread, check.schema);
    checked.unread = std::move(converted.unread);
    if (check.encoder != nullptr) {
      check_tokens(check, converted.sample, checked);
    } else {
      check_answers_without_tokens(check.empty_answers, converted.sample, checked);
      checked.losses.add_repeated_prompt(converted.sample);
    }
  } catch (const JsonRowError& error) {
    checked.fault = fault_of(read.index, error, static_cast<int64_t>(error.byte()));
  } catch (const DataError& error) {
    checked.fault = fault_of(read.index, error);
  }
  return checked;
}

struct Measured {
  Schema schema = Schema::Messages;
  int64_t turns = 0;
  int64_t characters = 0;
  int64_t tokens = 0;
  int64_t supervised = 0;
  int64_t longest = 0;
  bool own_bos = false;
  bool is_pair = false;
  int64_t chosen = 0;
  int64_t rejected = 0;
  int64_t shared = 0;
};

// Returns the number of characters of all messages.
int64_t measure_messages(const Json& messages, Measured& measured) {
  if (!messages.is_array()) return 0;
  int64_t characters = 0;
  for (const Json& message : messages) {
    ++measured.turns;
    characters += count_characters(content_text(message));
  }
  measured.characters += characters;
  return characters;
}

void measure_sides(const EncodedRow& row, Measured& measured) {
  const std::vector<EncodedRow> sides = rows_of_pair(row);
  measured.chosen = count_supervised(sides[0]);
  measured.rejected = count_supervised(sides[1]);
  measured.shared = shared_tokens(sides[0], sides[1]);
}

Measured measured_row(const Row& row, const SchemaConfig& config, const SampleEncoder* encoder) {
  Measured measured{.schema = detect_schema(row, config)};
  const Sample sample = convert_row(row, measured.schema, config).sample;
  measured.is_pair = sample.is_pair;
  measure_messages(sample.messages, measured);
  measured.chosen =
      measure_messages(sample.completion_messages, measured) + count_characters(sample.completion);
  measured.rejected =
      measure_messages(sample.rejected_messages, measured) + count_characters(sample.rejected);
  measured.characters += count_characters(sample.prompt) + count_characters(sample.completion) +
                         count_characters(sample.rejected) + count_characters(sample.text);
  if (encoder == nullptr) return measured;
  const EncodedRow encoded = encoder->encode(sample);
  measured.tokens = std::ssize(encoded.ids);
  measured.supervised = count_supervised(encoded);
  measured.longest = longest_tokens(encoded);
  measured.own_bos = encoded.own_bos;
  if (sample.is_pair) measure_sides(encoded, measured);
  return measured;
}

}  // namespace

RowCheckReport check_rows(const Dataset& dataset, const RowCheck& check,
                          const std::function<void(const RowFault&)>& take) {
  RowCheckReport report;
  std::optional<Schema> schema;
  const auto ranked = std::make_shared<RankedCounts>();
  const auto rows = rows_by_schema(open_dataset(dataset), check.schema, check.bad_rows, ranked);
  for_each_read_row<Checked>(
      *rows, [&](ReadRow read) { return checked_row(check, std::move(read)); },
      [&](Checked checked) {
        ++report.rows;
        if (!checked.fault && schema && *schema != checked.schema)
          checked.fault = {
              .index = checked.index,
              .file = checked.location.file,
              .line = checked.location.line,
              .reason =
                  fmt::format("row {} has the schema {}, the rows before it have {}",
                              checked.index + 1, schema_name(checked.schema), schema_name(*schema)),
              .hint = "split the file by schema, or force one with --schema"};
        if (checked.fault) {
          ++report.faults;
          take(*checked.fault);
          return;
        }
        if (!schema) schema = checked.schema;
        report.rows_cut += checked.is_long;
        report.rows_dropped += checked.is_dropped;
        report.losses.add(checked.losses);
        report.unread.add(checked.unread);
        report.bad.add_replaced(checked.characters_replaced);
      });
  if (schema) report.schema = schema_name(*schema);
  report.ranked = ranked->sentence(check.schema.ranked_pairs);
  return report;
}

RowFigures measure_rows(const RowPass& pass, const SchemaConfig& schema,
                        const SampleEncoder* encoder) {
  RowFigures figures;
  const auto ranked = std::make_shared<RankedCounts>();
  const auto rows = rows_by_schema(open_dataset(pass.dataset), schema, pass.bad_rows, ranked);
  figures.pass = for_each_row<Measured>(
      *rows, pass.bad_rows, [&](const Row& row) { return measured_row(row, schema, encoder); },
      [&](const Measured& row) {
        ++figures.rows_by_schema[std::string(schema_name(row.schema))];
        figures.turns.add(row.turns);
        figures.characters.add(row.characters);
        if (row.is_pair) {
          figures.chosen.add(row.chosen);
          figures.rejected.add(row.rejected);
        }
        if (encoder == nullptr) return;
        if (row.is_pair) figures.shared.add(row.shared);
        figures.longest.add(row.longest);
        figures.tokens.add(row.tokens);
        figures.supervised.add(row.supervised);
        figures.own_bos += row.own_bos;
      });
  figures.ranked = ranked->sentence(schema.ranked_pairs);
  return figures;
}

}  // namespace convoy::data
