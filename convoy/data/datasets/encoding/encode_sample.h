// SPDX-License-Identifier: Apache-2.0
//
// One row of data, in the few shapes that all schemas reduce to, and its encoding: ids and the
// supervision mask.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convoy/data/datasets/masks/supervision.h"
#include "convoy/data/datasets/tokens/token_dataset.h"
#include "convoy/data/text/chat_template.h"
#include "convoy/data/text/tokenizer.h"

namespace convoy::data {

struct ReadableChat;

struct Sample {
  enum class Kind {
    Chat,                  // messages (and tools): through the chat template
    ChatPromptCompletion,  // prompt and completion, both lists of messages
    PromptCompletion,      // prompt and completion strings: no template
    Text,                  // plain text
  };
  Kind kind = Kind::Text;
  nlohmann::ordered_json messages{};             // Chat; the prompt of ChatPromptCompletion
  nlohmann::ordered_json completion_messages{};  // ChatPromptCompletion
  // Variables of both chat kinds, in the form of ChatTemplate::render.
  nlohmann::ordered_json variables{};
  std::string prompt{};
  std::string completion{};
  std::string text{};
  // A preference, of a kind with a prompt: the completion is the chosen one, and this the rejected
  // one.
  bool is_pair = false;
  nlohmann::ordered_json rejected_messages{};
  std::string rejected{};
  // Its answers are judged each by itself: the one of is_desirable, or both of a pair.
  bool is_judged = false;
  bool is_desirable = true;
  // Keys of turns that read like a weight and are none (turn_weights.h), and others that a
  // conversation does not have by its format.
  std::vector<std::string> weight_like{};
  std::vector<std::string> further_keys{};
  // Beside a prompt to continue: a column that would be one, too, and is not read.
  std::string beside_prompt{};
  std::string file{};  // source file, for errors
  int64_t line = 0;    // 1-based; 0 when the format has no lines
  int64_t index = 0;   // 0-based row number; negative: there is no row
};

// A conversation, through the chat template.
bool is_chat(const Sample& sample);

// Encodes samples with one tokenizer and template. Thread-safe.
class SampleEncoder {
 public:
  // `chat_template` may be null: chat samples then throw a DataError that says how to supply one.
  SampleEncoder(const text::Tokenizer& tokenizer, const text::ChatTemplate* chat_template,
                Supervision supervision);

  // Never doubles BOS. Text and string completions get EOS appended, chat does not (its template
  // ends turns). Supervised turns include their end-of-turn token, by {% generation %} spans or by
  // prefix difference; Supervision decides on answers, completions and texts without a letter.
  // What a turn says of its own weight (turn_weights.h) comes before Supervision.
  // Contents and arguments are converted to the form that the template reads (readable_chat.h).
  // Does not truncate. Throws DataError naming file and line, also for a text that the template
  // does not write.
  EncodedRow encode(const Sample& sample) const;
  // Ids of a prompt to continue: chat up to its last assistant turn with the generation prompt, or
  // the plain prompt or text without EOS. Throws DataError.
  EncodedRow encode_prompt(const Sample& sample) const;
  // The text that encode() tokenises.
  std::string render(const Sample& sample, bool add_generation_prompt) const;
  // One line on BOS, EOS and the mask, from an example. Throws DataError, also when the supervision
  // requires ends of turns and the template closes turns without a special token.
  std::string policy(const Sample& sample) const;

 private:
  EncodedRow encode_chat(const Sample& sample) const;
  bool learns(const nlohmann::ordered_json& given, const ReadableChat& chat, size_t message) const;
  EncodedRow encode_readable_chat(const Sample& sample, const nlohmann::ordered_json& given,
                                  const ReadableChat& chat) const;
  EncodedRow encode_weighted_chat(const Sample& sample, const nlohmann::ordered_json& given,
                                  const ReadableChat& chat) const;
  ReadableChat readable(const Sample& sample, const nlohmann::ordered_json& messages,
                        bool add_generation_prompt) const;
  void skip_empty_answer(EncodedRow& row, const char* answer) const;
  EncodedRow encode_prompt_completion(const Sample& sample) const;
  EncodedRow encode_pair(const Sample& sample) const;
  EncodedRow encode_judged(const Sample& sample) const;
  EncodedRow encode_whole_completion(const Sample& sample) const;
  EncodedRow encode_text(const Sample& sample) const;
  EncodedRow plain_row(const std::string& text) const;
  text::Encoding chat_encoding(const std::string& text) const;
  bool begins_with_bos(const std::vector<int32_t>& ids) const;
  void append_eos(std::vector<int32_t>& ids) const;

  const text::Tokenizer& tokenizer_;
  const text::ChatTemplate* chat_template_;
  bool learns_every_token() const { return supervision_.supervise == Supervise::All; }
  void require_ends(const Sample& sample) const;

  Supervision supervision_;
};

// Messages of a chat sample that a model continues: without a last turn of the assistant, but where
// the row says what is the prompt.
nlohmann::ordered_json prompt_messages(const Sample& sample);

// Policy for rows that are too long. KeepEnd keeps a leading BOS; Split cuts them into rows
// (row_windows.h).
enum class Truncation { Split, KeepStart, KeepEnd, Drop, Error };

// Number of tokens of the row that are targets of the loss.
int64_t count_supervised(const EncodedRow& row);

// "3 rows begin with a BOS of their own; the one that the tokenizer adds was left out".
std::string own_bos_notice(int64_t rows);

}  // namespace convoy::data
