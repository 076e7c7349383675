// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/schemas/preference_sample.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "convoy/core/base/trimmed.h"
#include "convoy/core/base/utf8.h"
#include "convoy/data/datasets/schemas/plain_turns.h"

namespace convoy::data {
namespace {

using Json = nlohmann::ordered_json;

bool is_plain_text(const Json& value) { return value.is_string() || value.is_number_integer(); }

// The messages of a side. A side may also be one message, or have ShareGPT's turns, as
// LLaMA-Factory writes them.
Json side_messages(RowFields& fields, const char* key) {
  const Json& side = fields.member(key);
  const Json turns = side.is_object() ? Json::array({side}) : fields.list(key);
  const bool of_sharegpt = !turns.empty() && turns[0].is_object() && turns[0].contains("from");
  Json listed = Json::object();
  listed[key] = turns;
  RowFields nested = fields.nested(listed);
  Json messages = of_sharegpt ? nested.conversations(key) : nested.messages(key);
  fields.absorb(nested);
  return messages;
}

// The names of both sides for messages: "chosen and rejected", or their places in a ranked list.
std::string both_sides(const RowFields& fields) {
  return fmt::format("{} and {}", fields.name_of("chosen"), fields.name_of("rejected"));
}

Sample chat_pair(Json prompt, Json chosen, Json rejected) {
  Sample sample;
  sample.kind = Sample::Kind::ChatPromptCompletion;
  sample.messages = std::move(prompt);
  sample.completion_messages = std::move(chosen);
  sample.rejected_messages = std::move(rejected);
  return sample;
}

// Splits conversations without a prompt: the turns that both sides begin with are the prompt. Each
// side keeps at least one turn.
Sample split_chats(RowFields& fields) {
  const Json chosen = side_messages(fields, "chosen");
  const Json rejected = side_messages(fields, "rejected");
  const size_t most = std::min(chosen.size(), rejected.size());
  size_t common = 0;
  while (common + 1 < most && chosen[common] == rejected[common]) ++common;
  const bool are_answers = !chosen.empty() && !is_of_prompt(chosen.front());
  if (common == 0 && are_answers && fields.peek("prompt") != nullptr)
    fields.fail(fmt::format("the prompt is a text, and {} are lists of messages without it",
                            both_sides(fields)),
                "write `prompt` as a list of messages: [{role: user, content: ..}]");
  if (common == 0)
    fields.fail(fmt::format("{} begin with different turns, so they have no common prompt",
                            both_sides(fields)),
                "add a column `prompt` with the messages before them");
  const auto from = static_cast<std::ptrdiff_t>(common);
  return chat_pair(Json(chosen.begin(), chosen.begin() + from),
                   Json(chosen.begin() + from, chosen.end()),
                   Json(rejected.begin() + from, rejected.end()));
}

Sample text_pair(std::string prompt, std::string chosen, std::string rejected) {
  Sample sample;
  sample.kind = Sample::Kind::PromptCompletion;
  sample.prompt = std::move(prompt);
  sample.completion = std::move(chosen);
  sample.rejected = std::move(rejected);
  return sample;
}

// Refuses a row whose prompt has a name that is not read. Otherwise the beginning that both sides
// share would be taken for the prompt.
void refuse_prompt_of_other_name(const RowFields& fields, const std::string& chosen) {
  for (const char* key : {"input", "user", "conversation"}) {
    const Json* const value = fields.peek(key);
    if (value == nullptr || !value->is_string()) continue;
    const auto& text = value->get_ref<const std::string&>();
    if (!text.empty() && chosen.find(text) == std::string::npos)
      fields.fail(
          fmt::format("`{}` is not read beside {}, which do not hold it", key, both_sides(fields)),
          fmt::format("rename `{}` to `prompt`, or leave it out", key));
  }
}

Sample split_texts(RowFields& fields) {
  const std::string chosen = fields.text("chosen");
  const std::string rejected = fields.text("rejected");
  refuse_prompt_of_other_name(fields, chosen);
  const size_t common = common_prompt(chosen, rejected);
  if (common == 0)
    fields.fail(fmt::format("{} begin with different texts, so they have no common prompt",
                            both_sides(fields)),
                "add a column `prompt`");
  return text_pair(chosen.substr(0, common), chosen.substr(common), rejected.substr(common));
}

// The column with the list of messages before both sides; nullptr when there is none.
const char* column_of_messages(const RowFields& fields) {
  for (const char* key : {"prompt", "messages", "conversations"}) {
    const Json* const value = fields.peek(key);
    if (value != nullptr && value->is_structured()) return key;
  }
  return nullptr;
}

const char* question_column(const RowFields& fields) {
  for (const char* key : kQuestionColumns)
    if (fields.peek(key) != nullptr) return key;
  return nullptr;
}

// A pair with a question column. The question is the user's turn; a history stands before it.
Sample instructed_pair(RowFields& fields, std::string_view question) {
  Json turns = fields.history();
  turns.push_back(
      {{"role", "user"},
       {"content", question == "instruction" ? instruction_text(fields) : fields.text(question)}});
  const auto answer = [&](const char* key) {
    return Json::array({{{"role", "assistant"}, {"content", fields.text(key)}}});
  };
  return chat_pair(std::move(turns), answer("chosen"), answer("rejected"));
}

bool is_text_of_a_turn(const Json& prompt, const Json& turns) {
  if (!prompt.is_string()) return false;
  constexpr std::string_view kBlanks = " \t\r\n";
  const auto text = trimmed(prompt.get_ref<const std::string&>(), kBlanks);
  return std::any_of(turns.begin(), turns.end(), [&](const Json& turn) {
    const auto content = turn.find("content");
    return content != turn.end() && content->is_string() &&
           trimmed(content->get_ref<const std::string&>(), kBlanks) == text;
  });
}

// Rows in UltraFeedback's form: both sides are whole conversations. The columns `prompt` and
// `messages` repeat the prompt's text and the chosen conversation; they count as read only if they
// do.
Sample repeated_chats(RowFields& fields) {
  Sample sample = split_chats(fields);
  const Json* const prompt = fields.peek("prompt");
  if (prompt != nullptr && is_text_of_a_turn(*prompt, sample.messages)) fields.mark_read("prompt");
  const Json* const messages = fields.peek("messages");
  if (messages != nullptr && *messages == fields.member("chosen")) fields.mark_read("messages");
  return sample;
}

// True for a content without a text: only white space, as a string or in all its parts.
bool is_blank(const Json& content) {
  if (content.is_string()) return trimmed(content.get_ref<const std::string&>(), " \t\r\n").empty();
  return std::all_of(content.begin(), content.end(),
                     [](const Json& part) { return is_blank(part.at("text")); });
}

std::string role_of_turn(const Json& turn) { return turn["role"].get<std::string>(); }

// True for a column with a property of one side, such as its score or its model: `score_chosen`,
// `chosen-rating`, `length_rejected`.
bool is_fact_of_a_side(std::string_view name, const Json& value) {
  const auto is_mark = [](char letter) { return letter == '_' || letter == '-'; };
  for (const std::string_view side : {"chosen", "rejected"}) {
    if (name.size() <= side.size() + 1) continue;
    const bool is_first = name.starts_with(side) && is_mark(name[side.size()]);
    const bool is_last = name.ends_with(side) && is_mark(name[name.size() - side.size() - 1]);
    if (is_first || is_last) return value.is_number() || name.find("model") != name.npos;
  }
  return false;
}

// Marks columns that are known and no part of a preference as read, so that nobody is warned about
// them.
void mark_facts_of_sides(const RowFields& fields) {
  for (const auto& [name, value] : fields.value().items())
    if (name == "prompt_id" || name == "problem_id" || is_fact_of_a_side(name, value))
      fields.mark_read(name);
}

Sample pair_of_row(RowFields& fields) {
  const Json& chosen = fields.text_or_turns("chosen");
  const Json& rejected = fields.text_or_turns("rejected");
  const Json* const prompt = fields.peek("prompt");
  if (is_plain_text(chosen) && is_plain_text(rejected)) {
    const char* const question = prompt == nullptr ? question_column(fields) : nullptr;
    if (question != nullptr) return instructed_pair(fields, question);
    if (prompt == nullptr) return split_texts(fields);
    if (!is_plain_text(fields.text_or_turns("prompt")))
      fields.fail(
          fmt::format("the prompt is a list of messages, and {} are texts", both_sides(fields)),
          "write them as lists of messages: [{role: assistant, content: ..}]");
    std::string text = fields.text("prompt");
    if (text.empty())
      fields.fail("`prompt` is empty, so the first token of an answer would not be compared",
                  "write the question, or leave the row out");
    return text_pair(std::move(text), fields.text("chosen"), fields.text("rejected"));
  }
  if (!chosen.is_structured() || !rejected.is_structured())
    fields.fail(
        fmt::format("wanted {} as two texts, or as two lists of messages", both_sides(fields)),
        "write both in one form");
  const char* const column = column_of_messages(fields);
  const bool sides_are_whole = column == nullptr || (*column == 'm' && prompt != nullptr);
  if (sides_are_whole) return repeated_chats(fields);
  Json turns = *column == 'c' ? fields.conversations() : fields.messages(column);
  return chat_pair(std::move(turns), side_messages(fields, "chosen"),
                   side_messages(fields, "rejected"));
}

}  // namespace

bool is_of_prompt(const Json& turn) {
  return role_of_turn(turn) == "user" || role_of_turn(turn) == "system" ||
         role_of_turn(turn) == "developer";
}

void require_turns_of_assistant(const RowFields& fields, const char* key, const Json& turns) {
  const auto other = std::find_if(turns.begin(), turns.end(), is_of_prompt);
  if (other != turns.end())
    fields.fail(fmt::format("behind the prompt, `{}` has a turn of the {}, which would be learnt "
                            "as an answer",
                            fields.name_of(key), role_of_turn(*other)),
                "leave the assistant's turns in it, and put what comes before them into `prompt`");
  if (turns.empty() || role_of_turn(turns.front()) != "assistant" ||
      role_of_turn(turns.back()) != "assistant")
    fields.fail(fmt::format("`{}` has to begin and end with a turn of the assistant behind the "
                            "prompt",
                            fields.name_of(key)),
                "put the turns before the answer into `prompt`");
}

void require_questions(const RowFields& fields, const Json& turns) {
  for (size_t turn = 0; turn < turns.size(); ++turn)
    if (role_of_turn(turns[turn]) == "user" && is_blank(turns[turn].value("content", Json())))
      fields.fail(fmt::format("turn {} of the prompt, the user's, is empty, so the answer belongs "
                              "to no question",
                              turn + 1),
                  "write the question, or leave the row out");
}

// Compares characters, like TRL's extract_prompt(). A space before the first difference belongs to
// the completions, because tokens begin with it.
size_t common_prompt(std::string_view chosen, std::string_view rejected) {
  const size_t most = std::min(chosen.size(), rejected.size());
  size_t common = 0;
  while (common < most && chosen[common] == rejected[common]) ++common;
  const auto is_inside_character = [&](std::string_view text) {
    return common < text.size() && continues_character(text[common]);
  };
  while (common > 0 && (is_inside_character(chosen) || is_inside_character(rejected))) --common;
  if (common > 0 && chosen[common - 1] == ' ') --common;
  return common;
}

std::vector<Sample> sides_of_pair(const Sample& pair) {
  Sample chosen = pair;
  chosen.is_pair = false;
  Sample rejected = chosen;
  rejected.completion = pair.rejected;
  rejected.completion_messages = pair.rejected_messages;
  return {chosen, rejected};
}

Sample preference_sample(RowFields& fields) {
  Sample sample = pair_of_row(fields);
  mark_facts_of_sides(fields);
  if (sample.kind == Sample::Kind::ChatPromptCompletion) {
    require_turns_of_assistant(fields, "chosen", sample.completion_messages);
    require_turns_of_assistant(fields, "rejected", sample.rejected_messages);
    require_questions(fields, sample.messages);
    fields.add_system_column(sample.messages);
  }
  if (sample.completion == sample.rejected &&
      sample.completion_messages == sample.rejected_messages)
    fields.fail(fmt::format("{} are equal, so nothing is preferred", both_sides(fields)),
                "leave the row out");
  sample.is_pair = true;
  return sample;
}

}  // namespace convoy::data
