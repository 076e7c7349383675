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

struct LearntTurns;
struct ReadableChat;

struct Sample {
  enum class Kind {
    Chat,                  // messages (and tools), rendered by the chat template
    ChatPromptCompletion,  // prompt and completion, both lists of messages
    PromptCompletion,      // prompt and completion as strings, without a template
    Text,                  // plain text
  };
  Kind kind = Kind::Text;
  nlohmann::ordered_json messages{};             // Chat; the prompt of ChatPromptCompletion
  nlohmann::ordered_json completion_messages{};  // the completion of ChatPromptCompletion
  // Template variables of both chat kinds, in the form that ChatTemplate::render() takes.
  nlohmann::ordered_json variables{};
  std::string prompt{};
  std::string completion{};
  std::string text{};
  // True for a preference. The completion is then the chosen answer, and `rejected_messages` or
  // `rejected` the rejected one. `kind` then has a prompt.
  bool is_pair = false;
  nlohmann::ordered_json rejected_messages{};
  std::string rejected{};
  // True when each answer is judged by itself: the one answer by is_desirable, or both answers of a
  // pair.
  bool is_judged = false;
  bool is_desirable = true;
  // Keys of turns that resemble a weight key but are none (turn_weights.h), and other keys that are
  // not part of the conversation's format.
  std::vector<std::string> weight_like{};
  std::vector<std::string> further_keys{};
  // Name of a column beside the prompt to continue that could also be a prompt, and is not read.
  std::string beside_prompt{};
  std::string file{};  // path of the source file, for errors
  int64_t line = 0;    // 1-based; 0 when the format has no lines
  int64_t index = 0;   // 0-based row number; negative: the sample is not from a row
};

// True for samples that are rendered by the chat template.
bool is_chat(const Sample& sample);

// Encodes samples with one tokenizer and template. Thread-safe.
class SampleEncoder {
 public:
  // `chat_template` may be nullptr: chat samples then throw a DataError that says how to supply a
  // template.
  SampleEncoder(const text::Tokenizer& tokenizer, const text::ChatTemplate* chat_template,
                Supervision supervision);

  // The token ids, and which of them are supervised. Never doubles BOS. Appends EOS to texts and to
  // string completions, but not to a chat (its template ends turns). Supervised turns include their
  // end-of-turn token. They are located by {% generation %} spans or by comparing rendered
  // prefixes. Supervision decides about answers, completions and texts that have no letter; a
  // weight that a turn itself has (turn_weights.h) takes precedence. Contents and arguments are
  // converted to the form that the template reads (readable_chat.h). Does not truncate. Throws
  // DataError naming file and line, also for a text that the template does not write.
  EncodedRow encode(const Sample& sample) const;
  // Ids of a prompt to continue: a chat up to its last assistant turn and the generation prompt, or
  // a plain prompt or text without EOS. Notes what the template does not write of a row's tools,
  // documents, calls, texts, keys and variables. Throws DataError.
  EncodedRow encode_prompt(const Sample& sample) const;
  // The text that encode() tokenises.
  std::string render(const Sample& sample, bool add_generation_prompt) const;
  // One line about BOS, EOS and the mask, with `sample` as the example. Throws DataError, also when
  // the supervision requires ends of turns and the template closes turns without a special token.
  std::string policy(const Sample& sample) const;

 private:
  EncodedRow encode_chat(const Sample& sample) const;
  EncodedRow row_of_turns(const Sample& sample, const LearntTurns& turns,
                          const text::Encoding& encoding) const;
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
  bool learns_every_token() const { return supervision_.supervise == Supervise::All; }

  const text::Tokenizer& tokenizer_;
  const text::ChatTemplate* chat_template_;
  Supervision supervision_;
};

// The messages of a chat sample that a model continues: without the last turn if it is the
// assistant's. A sample whose row marks the prompt keeps all messages of the prompt.
nlohmann::ordered_json prompt_messages(const Sample& sample);

// Policy for rows that are too long. KeepEnd keeps a leading BOS; Split cuts them into rows
// (row_windows.h).
enum class Truncation { Split, KeepStart, KeepEnd, Drop, Error };

// Number of tokens of the row that are targets of the loss.
int64_t count_supervised(const EncodedRow& row);

// A sentence such as "3 rows begin with a BOS of their own; the one that the tokenizer adds was
// left out".
std::string own_bos_notice(int64_t rows);

}  // namespace convoy::data
