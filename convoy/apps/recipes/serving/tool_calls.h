// SPDX-License-Identifier: Apache-2.0
//
// Tool calls in the text of an answer, in the forms that models write. One thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "convoy/data/text/chat_template.h"
#include "convoy/data/text/tokenizer.h"

namespace convoy::recipes {

// Hermes, also for Qwen: <tool_call>{"name": ..., "arguments": {...}}</tool_call> within text. One
// pair of tags may contain several calls: several objects, or a list of objects. Thoughts contain
// no calls. Llama3Json: {"name": ..., "parameters": {...}}, alone or several with `;` between them.
enum class ToolFormat { None, Hermes, Llama3Json };

// `parser`: the word of --tool-call-parser. With auto the format that the template teaches; None if
// there is no template, or it teaches another format.
ToolFormat tool_format(const std::string& parser, const text::ChatTemplate* chat_template);

// The tags around a call.
inline constexpr std::string_view kOpenCall = "<tool_call>";
inline constexpr std::string_view kCloseCall = "</tool_call>";

// Which tags of the format's calls are special tokens, which decoded texts leave out.
struct CallTags {
  bool open_is_special = false;
  bool close_is_special = false;

  bool are_special() const { return open_is_special || close_is_special; }
};
CallTags call_tags(ToolFormat format, const text::Tokenizer& tokenizer);

// True when the prompt ends with the tag that opens thoughts.
bool opens_thoughts(const std::vector<int32_t>& prompt, const text::Tokenizer& tokenizer);

struct ToolCall {
  std::string name;
  std::string arguments;  // a JSON object, as the model wrote it
};

// Takes a text as it grows. A part that may become a call is held back until it is clear whether it
// is a call or plain text.
class ToolCallReader {
 public:
  struct Found {
    std::string text;  // between calls; white space beside them is left out
    std::vector<ToolCall> calls;
  };

  explicit ToolCallReader(ToolFormat format, bool begins_in_thoughts = false)
      : format_(format),
        is_thinking_(begins_in_thoughts),
        may_begin_(format == ToolFormat::Llama3Json) {}

  Found take(std::string_view more);
  Found end();  // the text is complete: returns the part that was held back

 private:
  void read_hermes(Found& found, bool is_whole);
  bool read_thoughts(Found& found);
  void read_llama(Found& found);
  void give_text(Found& found, size_t bytes);

  ToolFormat format_;
  std::string held_;
  bool is_thinking_;           // Hermes: within <think>
  bool may_begin_;             // Llama3Json: a call may begin here
  bool follows_call_ = false;  // only white space has followed a call
};

}  // namespace convoy::recipes
