// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/schemas/schema.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "convoy/core/base/suggest.h"
#include "convoy/core/settings/template_kwargs.h"
#include "convoy/data/datasets/schemas/chat_fields.h"
#include "convoy/data/datasets/schemas/choices.h"
#include "convoy/data/datasets/schemas/decoded_turns.h"
#include "convoy/data/datasets/schemas/other_columns.h"
#include "convoy/data/datasets/schemas/plain_turns.h"
#include "convoy/data/datasets/schemas/preference_sample.h"
#include "convoy/data/datasets/schemas/unpaired_sample.h"

namespace convoy::data {
namespace {

using Json = nlohmann::ordered_json;

constexpr auto kNames = std::to_array<std::pair<Schema, std::string_view>>({
    {Schema::Messages, "messages"},
    {Schema::ShareGpt, "sharegpt"},
    {Schema::Alpaca, "alpaca"},
    {Schema::PromptCompletion, "prompt_completion"},
    {Schema::Triple, "triple"},
    {Schema::Rendered, "rendered"},
    {Schema::Text, "text"},
    {Schema::Preference, "preference"},
    {Schema::Ranked, "ranked"},
    {Schema::UnpairedPreference, "unpaired_preference"},
    {Schema::Loose, "loose"},
});

bool has(const Json& value, std::string_view key) {
  const auto found = value.find(key);
  return found != value.end() && !found->is_null();
}

bool judges(const SchemaConfig& config) {
  return settings::task_named(config.task).data == settings::TaskData::Judged;
}

bool reads_preferences(const SchemaConfig& config) {
  return settings::learns_preferences(settings::task_named(config.task));
}

bool is_preference(Schema schema) {
  return schema == Schema::Preference || schema == Schema::Ranked ||
         schema == Schema::UnpairedPreference;
}

bool matches(const Json& value, Schema schema, const SchemaConfig& config) {
  if (is_preference(schema) != reads_preferences(config)) return false;
  if (schema == Schema::Loose) return has_question_and_answer(value);
  if (!value.is_object()) return false;
  const bool instructed = has(value, "instruction") && has(value, "output");
  switch (schema) {
    case Schema::Messages:
      return has(value, "messages");
    case Schema::ShareGpt:
      return has(value, "conversations");
    case Schema::Alpaca:
      return instructed && config.task != "pretrain";
    case Schema::PromptCompletion:
      return has(value, "prompt") && has(value, "completion");
    case Schema::Triple:
      return has(value, "system") && has(value, "user") && has(value, "assistant");
    case Schema::Rendered:
      return has(value, "input") && has(value, "target");
    case Schema::Text:
      return has(value, config.text_field) || (instructed && config.task == "pretrain");
    case Schema::Preference:
      return has(value, "chosen") && has(value, "rejected");
    case Schema::Ranked:
      return !judges(config) && is_ranked_row(value);
    case Schema::UnpairedPreference:
      return judges(config) && judgement_column(value) != nullptr;
    case Schema::Loose:
      break;
  }
  return false;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string keys_of(const Json& value) {
  if (!value.is_object()) return fmt::format("a JSON {}", value.type_name());
  std::vector<std::string> keys;
  for (const auto& [key, field] : value.items())
    keys.push_back(field.is_null() ? key + " (null)" : key);
  return keys.empty() ? "no keys" : fmt::format("the keys {}", joined(keys));
}

Json turn(std::string_view role, std::string content) {
  return {{"role", role}, {"content", std::move(content)}};
}

Sample chat(Json messages) {
  Sample sample;
  sample.kind = Sample::Kind::Chat;
  sample.messages = std::move(messages);
  return sample;
}

Sample plain_completion(std::string prompt, std::string completion) {
  Sample sample;
  sample.kind = Sample::Kind::PromptCompletion;
  sample.prompt = std::move(prompt);
  sample.completion = std::move(completion);
  return sample;
}

// The conversation from the list under `key`, with the system prompt of the row's column if it has
// one.
Sample listed_chat(RowFields& fields, std::string_view key) {
  Json messages = key == "conversations" ? fields.conversations() : fields.messages(key);
  fields.add_system_column(messages);
  return chat(std::move(messages));
}

bool is_text(const Json& value) { return value.is_string() || value.is_number_integer(); }

Sample prompt_completion_sample(RowFields& fields) {
  const Json& prompt = fields.text_or_turns("prompt");
  const Json& completion = fields.text_or_turns("completion");
  if (is_text(prompt) && is_text(completion))
    return plain_completion(fields.text("prompt"), fields.text("completion"));
  if (!prompt.is_structured() || !completion.is_structured())
    fields.fail("wanted prompt and completion as two strings, or as two lists of messages",
                "write both in one form");
  Sample sample = listed_chat(fields, "prompt");
  sample.kind = Sample::Kind::ChatPromptCompletion;
  sample.completion_messages = fields.messages("completion");
  return sample;
}

Sample text_sample(RowFields& fields, const SchemaConfig& config) {
  Sample sample;
  sample.kind = Sample::Kind::Text;
  if (config.task != "pretrain" || has(fields.value(), config.text_field)) {
    sample.text = fields.text(config.text_field);
  } else {
    sample.text = instruction_text(fields) + "\n" + fields.text("output");
  }
  return sample;
}

Sample judged_sample(RowFields& fields, const SchemaConfig& config);
DataError no_preference(const Row& row, settings::TaskData data);

Sample to_sample(RowFields& fields, Schema schema, const SchemaConfig& config) {
  if (schema != Schema::Loose && !fields.value().is_object())
    fields.fail(fmt::format("wanted an object, found a JSON {}", fields.value().type_name()));
  switch (schema) {
    case Schema::Messages:
      return listed_chat(fields, "messages");
    case Schema::ShareGpt:
      return listed_chat(fields, "conversations");
    case Schema::Alpaca:
      return chat(plain_turns(fields, "instruction", "output"));
    case Schema::PromptCompletion:
      return prompt_completion_sample(fields);
    case Schema::Triple:
      return chat(plain_turns(fields, "user", "assistant"));
    case Schema::Rendered:
      return plain_completion(fields.text("input"), fields.text("target"));
    case Schema::Text:
      return text_sample(fields, config);
    case Schema::Preference: {
      if (!has(fields.value(), "chosen") || !has(fields.value(), "rejected"))
        throw no_preference(fields.row(), settings::TaskData::Pairs);
      Sample sample = preference_sample(fields);
      sample.is_judged = judges(config);
      return sample;
    }
    case Schema::UnpairedPreference:
      return judged_sample(fields, config);
    case Schema::Ranked:
      if (is_ranked_row(fields.value()))
        fields.fail("a ranked list makes pairs, which only a task of pairs reads",
                    "`convoy data validate`, `tokens` and `stats` show its pairs");
      return preference_sample(fields);
    case Schema::Loose:
      return chat(loose_turns(fields));
  }
  CONVOY_INVARIANT(false, "schema {}", static_cast<int>(schema));
}

// The error for a row that tasks with this kind of preference data cannot read.
DataError no_preference(const Row& row, settings::TaskData data) {
  const bool judged = data == settings::TaskData::Judged;
  std::string hint = side_hint(row.value);
  if (is_ranked_row(row.value))
    hint = judged
               ? fmt::format("this is a ranked list, from whose pairs the tasks {} learn",
                             settings::tasks_that_read(settings::TaskData::Pairs))
               : "this is a ranked list: --schema ranked (data.schema: ranked) makes pairs of it";
  if (hint.empty())
    hint = fmt::format(
        "a row of task {} has {}`chosen` and `rejected`, with or without `prompt`: texts, or lists "
        "of messages{}",
        settings::tasks_that_read(data),
        judged ? "`prompt`, `completion` and `label` (true or false), or " : "",
        judged ? "" : "; or it is a ranked list, such as `prompt`, `responses` and `scores`");
  return DataError(fmt::format("row {}: wanted {}, found {}", row.index + 1,
                               judged ? "an answer and its `label`" : "`chosen` and `rejected`",
                               keys_of(row.value)),
                   {.file = row.file, .line = row.line, .hint = std::move(hint)});
}

// The hint for a row that no task with answers reads.
std::string hint_of_answers(const Json& row) {
  if (is_ranked_row(row))
    return fmt::format(
        "this is a ranked list: `convoy data` reads it with --schema ranked, and the tasks {} "
        "learn from its pairs",
        settings::tasks_that_read(settings::TaskData::Pairs));
  if (row.is_object() && has(row, "chosen") && has(row, "rejected"))
    return fmt::format(
        "these are preferences: `convoy data` reads them with --schema preference, and the tasks "
        "{} learn from them; to learn answers, rename the prompt and `chosen` to `prompt` and "
        "`completion`, or a `chosen` of messages to `messages`, and leave out `rejected`",
        settings::tasks_of_preferences());
  if (has_both_sides(row))
    return fmt::format(
        "{}: `convoy data` then reads preferences with --schema preference, and the tasks {} learn "
        "from them",
        side_hint(row), settings::tasks_of_preferences());
  return "rename the keys to messages, prompt and completion, question and answer, or text; or set "
         "data.schema=text and data.text_field=KEY";
}

// The settings for converting the answer of a judged row; the label is read separately.
SchemaConfig without_label(const SchemaConfig& config) {
  SchemaConfig answers = config;
  answers.schema = "auto";
  answers.task = "sft";
  return answers;
}

// The error for a row without a column that judges the answer.
DataError unjudged(const Row& row, const SchemaConfig& config) {
  if (matching_schemas(row, without_label(config)).empty())
    return no_preference(row, settings::TaskData::Judged);
  const std::string renamed = label_hint(row.value);
  return DataError(
      fmt::format("row {}: an answer without `label`, found {}", row.index + 1, keys_of(row.value)),
      {.file = row.file,
       .line = row.line,
       .hint = fmt::format("{} (true or false): true for a good answer",
                           renamed.empty() ? "add a column `label`" : renamed)});
}

// A judged sample: an answer in any schema with answers, and a column that judges it.
Sample judged_sample(RowFields& fields, const SchemaConfig& config) {
  if (judgement_column(fields.value()) == nullptr) throw unjudged(fields.row(), config);
  const bool is_good = judgement(fields);
  const SchemaConfig answers = without_label(config);
  const Schema schema = detect_schema(fields.row(), answers);
  Sample sample = unpaired_sample(fields, to_sample(fields, schema, answers));
  sample.is_desirable = is_good;
  return sample;
}

bool has_chat_turns(const Sample& sample) {
  return sample.kind == Sample::Kind::Chat || sample.kind == Sample::Kind::ChatPromptCompletion;
}

void add_system_turn(Sample& sample, const std::string& system_prompt) {
  if (system_prompt.empty()) return;
  for (const Json& message : sample.messages)
    if (message["role"] == "system" || message["role"] == "developer") return;
  sample.messages.insert(sample.messages.begin(), turn("system", system_prompt));
}

RowFields::Texts texts_of(Schema schema) {
  const bool in_turns = schema == Schema::Messages || schema == Schema::ShareGpt ||
                        schema == Schema::PromptCompletion || is_preference(schema);
  return in_turns ? RowFields::Texts::InTurns : RowFields::Texts::InColumns;
}

// True for a value that is no boolean in a row with choices: it names one of them.
bool may_name_choice(const Json& row, const Json& value) {
  return !value.is_boolean() && choices_of(row).has_value();
}

// Columns of images, sounds and films. The model would not get them, and the text may ask about
// them.
constexpr auto kMediaColumns =
    std::to_array<std::string_view>({"image", "images", "video", "videos", "audio", "audios"});

void refuse_media(const RowFields& fields, Schema schema) {
  if (schema == Schema::Text) return;
  for (const std::string& column : fields.unread())
    if (std::find(kMediaColumns.begin(), kMediaColumns.end(), column) != kMediaColumns.end())
      fields.fail(fmt::format("the column `{}` is not text, and only text is learnt", column),
                  "leave the row out, or leave the column out of rows whose texts do not need it");
}

ConvertedRow finished(Sample sample, const Row& row, const RowFields& fields, Schema schema,
                      const SchemaConfig& config) {
  refuse_media(fields, schema);
  if (has_chat_turns(sample)) {
    add_system_turn(sample, config.system_prompt);
    sample.variables = fields.template_variables(config.template_kwargs, texts_of(schema));
  }
  sample.weight_like = fields.weight_like();
  sample.further_keys = fields.further_keys();
  sample.file = row.file;
  sample.line = row.line;
  sample.index = row.index;
  return {.sample = std::move(sample),
          .schema = schema,
          .fields_cut = fields.fields_cut(),
          .unread = fields.unread()};
}

}  // namespace

std::string_view schema_name(Schema schema) {
  for (const auto& [known, name] : kNames)
    if (known == schema) return name;
  CONVOY_INVARIANT(false, "schema {}", static_cast<int>(schema));
}

Schema schema_named(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& [schema, known] : kNames) {
    if (known == name) return schema;
    names.emplace_back(known);
  }
  throw ConfigError(fmt::format("`{}` is no row schema{}; known: auto, {}", name,
                                did_you_mean(name, names), joined(names)),
                    {.key = "data.schema"});
}

SchemaConfig SchemaConfig::from(const settings::DataSettings& data, std::string task) {
  return {
      .schema = data.schema,
      .task = std::move(task),
      .text_field = data.text_field,
      .text_rows = data.text_rows,
      .system_prompt = data.system_prompt,
      .template_kwargs = settings::template_kwargs(data.template_kwargs, "data.template_kwargs"),
      .max_field_chars = data.max_field_chars,
      .unread_columns = data.unread_columns == "error" ? UnreadPolicy::Refuse : UnreadPolicy::Name,
      .ranked_pairs = ranked_pairs_named(data.ranked_pairs)};
}

std::unique_ptr<RowSource> rows_by_schema(std::unique_ptr<RowSource> rows,
                                          const SchemaConfig& config, BadRows bad_rows,
                                          std::shared_ptr<RankedCounts> counts) {
  const bool may_be_ranked =
      config.schema == schema_name(Schema::Ranked) ||
      (config.schema == "auto" && reads_preferences(config) && !judges(config));
  return may_be_ranked
             ? with_ranked_pairs(std::move(rows), config.ranked_pairs, bad_rows, std::move(counts))
             : std::move(rows);
}

std::vector<Schema> matching_schemas(const Row& row, const SchemaConfig& config) {
  std::vector<Schema> found;
  for (const auto& [schema, name] : kNames)
    if ((schema != Schema::Loose || found.empty()) && matches(row.value, schema, config))
      found.push_back(schema);
  return found;
}

Schema detect_schema(const Row& row, const SchemaConfig& config) {
  if (config.schema != "auto") return schema_named(config.schema);
  const ErrorLocation location{.file = row.file, .line = row.line};
  const std::vector<Schema> found = matching_schemas(row, config);
  if (found.size() == 1) return found[0];
  // tatsu-lab/alpaca has a column `text`, the rendered row, beside its other columns.
  if (found == std::vector{Schema::Alpaca, Schema::Text}) return Schema::Alpaca;
  std::vector<std::string> names;
  for (const Schema schema : found) names.emplace_back(schema_name(schema));
  if (found.empty() && judges(config)) throw unjudged(row, config);
  if (found.empty() && reads_preferences(config))
    throw no_preference(row, settings::TaskData::Pairs);
  ErrorLocation hinted = location;
  if (found.empty()) {
    hinted.hint = hint_of_answers(row.value);
    throw DataError(fmt::format("row {}: no row schema fits {}", row.index + 1, keys_of(row.value)),
                    hinted);
  }
  hinted.hint = fmt::format("set data.schema to one of {}", joined(names));
  throw DataError(fmt::format("row {}: ambiguous, {} fits {}", row.index + 1, keys_of(row.value),
                              joined(names)),
                  hinted);
}

ConvertedRow convert_row(const Row& row, Schema schema, const SchemaConfig& config) {
  const std::optional<Json> decoded = with_decoded_turns(row.value);
  RowFields fields(row, decoded ? *decoded : row.value, config.max_field_chars);
  Sample sample = to_sample(fields, schema, config);
  return finished(std::move(sample), row, fields, schema, config);
}

ConvertedRow convert_to_learn(const Row& row, const SchemaConfig& config) {
  ConvertedRow converted = convert_row(row, detect_schema(row, config), config);
  const bool has_one_answer = converted.schema != Schema::Text &&
                              !is_preference(converted.schema) && !converted.sample.is_pair;
  if (!has_one_answer || !row.value.is_object()) return converted;
  for (const char* const key : kJudgementColumns) {
    const auto found = row.value.find(key);
    if (found == row.value.end() || may_name_choice(row.value, *found)) continue;
    const auto is_good = judgement_or_number_of(*found);
    if (!is_good) continue;
    std::erase(converted.unread, key);
    if (!*is_good)
      throw DataError(
          fmt::format("row {}: `{}` is {}: the answer is a bad one, and would be learnt as a "
                      "good one",
                      row.index + 1, key,
                      found->is_string() ? found->get<std::string>() : found->dump()),
          {.file = row.file,
           .line = row.line,
           .hint = "keep only the rows with true or 1, learn from both with task: kto, or rename "
                   "the column if it says something else"});
  }
  return converted;
}

void refuse_unread(const Sample& sample, const std::vector<std::string>& unread,
                   const SchemaConfig& config) {
  if (config.unread_columns != UnreadPolicy::Refuse || unread.empty()) return;
  throw DataError(fmt::format("row {}: nothing reads the column{} {}", sample.index + 1,
                              unread.size() == 1 ? "" : "s", joined(unread)),
                  {.file = sample.file,
                   .line = sample.line,
                   .hint = "leave them out of the file, or set data.unread_columns: name"});
}

ConvertedRow convert_prompt(const Row& row, const SchemaConfig& config) {
  const std::optional<Json> decoded = with_decoded_turns(row.value);
  const Json& value = decoded ? *decoded : row.value;
  const bool bare_prompt = value.is_object() && has(value, "prompt") && !has(value, "completion") &&
                           answer_keys(value).empty() && config.schema == "auto";
  if (!bare_prompt) return convert_row(row, detect_schema(row, config), config);
  RowFields fields(row, value, config.max_field_chars);
  Sample sample;
  if (value["prompt"].is_structured()) {
    sample = listed_chat(fields, "prompt");
  } else {
    // A prompt with a system prompt is a conversation.
    Json turns = Json::array({turn("user", fields.text("prompt"))});
    fields.add_system_column(turns);
    sample = turns.size() > 1 ? chat(std::move(turns))
                              : plain_completion(turns[0]["content"].get<std::string>(), "");
  }
  for (const char* other : {"text", "conversations", "messages"})
    if (has(value, other)) {
      sample.beside_prompt = other;  // a warning names this column and the reason
      fields.mark_read(other);
    }
  return finished(std::move(sample), row, fields, Schema::PromptCompletion, config);
}

}  // namespace convoy::data
