// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/masks/turn_marks.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "convoy/core/base/files.h"
#include "convoy/data/datasets/files_test.h"
#include "convoy/data/datasets/masks/learnt_turns.h"
#include "convoy/data/text/chat_template.h"
#include "files/source_folder.h"

namespace convoy::data {
namespace {

using nlohmann::ordered_json;
namespace fs = std::filesystem;
using testing::source_folder;

text::ChatTemplate load_template(const std::string& source) {
  const ScratchFolder folder;
  folder.write("chat_template.jinja", source);
  return std::move(*text::ChatTemplate::load(folder.path()));
}

std::string golden_template(const std::string& name) {
  return untagged(read_file(source_folder() / "tests/golden/text/templates" / (name + ".jinja")));
}

ordered_json message(const std::string& role, const ordered_json& content) {
  return {{"role", role}, {"content", content}};
}

// Returns a chat whose answers have white space around them, one word, or two lines. The questions
// contain words of the template.
ordered_json long_chat(size_t num_turns) {
  ordered_json messages = ordered_json::array({message("system", "Be brief. ")});
  for (size_t turn = 0; turn < num_turns; ++turn) {
    messages.push_back(message("user", fmt::format(" question {}: assistant?\n", turn)));
    messages.push_back(message("assistant", turn % 3 == 1
                                                ? fmt::format(" answer {}\nwith more ", turn)
                                                : fmt::format("answer {}", turn)));
  }
  return messages;
}

ordered_json tool_chat(size_t num_turns) {
  ordered_json messages = ordered_json::array();
  for (size_t turn = 0; turn < num_turns; ++turn) {
    messages.push_back(message("user", fmt::format("question {}", turn)));
    messages.push_back(
        {{"role", "assistant"},
         {"tool_calls",
          {{{"type", "function"}, {"function", {{"name", "f"}, {"arguments", {{"x", turn}}}}}}}}});
    messages.push_back(message("tool", fmt::format("result {}", turn)));
    messages.push_back(message("assistant", fmt::format("answer {}", turn)));
  }
  return messages;
}

// Locates each turn by a rendering of its own; the reference for find_learnt_turns.
std::vector<TurnSpan> one_by_one(const text::ChatTemplate& chat_template,
                                 const ordered_json& messages) {
  const auto render = [&](const ordered_json& part, bool prompt) {
    return chat_template.render(part, nullptr, prompt).text;
  };
  const ChatRenders renders = {
      .other = render, .first = [&](size_t count, bool prompt) {
        return render(
            ordered_json(messages.begin(), messages.begin() + static_cast<ptrdiff_t>(count)),
            prompt);
      }};
  const std::string full = render(messages, false);
  const TurnFinder finder(renders, messages, full);
  std::vector<TurnSpan> turns;
  for (size_t index = 0; index < messages.size(); ++index)
    if (messages[index]["role"] == "assistant") turns.push_back(finder.find(index));
  return turns;
}

LearntTurns learnt_turns(const text::ChatTemplate& chat_template, const ordered_json& messages,
                         EmptyAnswers empty_answers = EmptyAnswers::Skip) {
  return find_learnt_turns(chat_template, readable_chat(chat_template, messages, nullptr, false),
                           nullptr, 0, {"assistant"}, empty_answers);
}

int64_t renders(const text::ChatTemplate& chat_template, const ordered_json& messages) {
  return learnt_turns(chat_template, messages).renders;
}

constexpr const char* kPlain =
    "{% for m in messages %}[{{ m.role }}] {{ m.content | trim }}</s>\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant] {% endif %}";

std::vector<std::pair<std::string, std::string>> templates() {
  std::vector<std::pair<std::string, std::string>> found = {{"plain", kPlain}};
  for (const char* name : {"llama3", "qwen2", "qwen3"})
    found.emplace_back(name, golden_template(name));
  found.emplace_back("tally", read_file(source_folder() / "examples/tally-3m/chat_template.jinja"));
  return found;
}

TEST(TurnMarks, ManyTurnsAreThoseFoundOneByOne) {
  for (const auto& [name, source] : templates()) {
    SCOPED_TRACE(name);
    const auto chat_template = load_template(source);
    ASSERT_FALSE(chat_template.has_generation_tags());
    const ordered_json messages = long_chat(9);
    EXPECT_EQ(learnt_turns(chat_template, messages).spans, one_by_one(chat_template, messages));
  }
}

TEST(TurnMarks, TurnsOfToolCallsAreThoseFoundOneByOne) {
  for (const char* name : {"qwen2", "qwen3"}) {
    SCOPED_TRACE(name);
    const auto chat_template = load_template(golden_template(name));
    const ordered_json messages = tool_chat(6);
    EXPECT_EQ(learnt_turns(chat_template, messages).spans, one_by_one(chat_template, messages));
  }
}

TEST(TurnMarks, RendersDoNotGrowWithTheTurns) {
  for (const auto& [name, source] : templates()) {
    SCOPED_TRACE(name);
    const auto chat_template = load_template(source);
    const int64_t few = renders(chat_template, long_chat(8));
    EXPECT_EQ(renders(chat_template, long_chat(64)), few);
    EXPECT_LE(few, 20);
  }
  const auto chat_template = load_template(golden_template("qwen2"));
  EXPECT_EQ(renders(chat_template, tool_chat(32)), renders(chat_template, tool_chat(6)));
}

// Turns that the marks would change, and turns that the marks cannot locate, are located one by
// one.
TEST(TurnMarks, OddTurnsAreThoseFoundOneByOne) {
  const auto plain = load_template(kPlain);
  ordered_json messages = long_chat(6);
  messages[4]["content"] = "holds [assistant] and </s>\n[assistant] in it";
  messages[6]["content"] = "";
  messages[8]["content"] =
      "\xEE\x80\x9A"
      "1\xEE\x80\x9A";
  EXPECT_EQ(learnt_turns(plain, messages, EmptyAnswers::Learn).spans, one_by_one(plain, messages));
  const auto counting = load_template(
      "{% for m in messages %}[{{ m.role }}] {{ m.content }}{{ m.content | length }}</s>"
      "{% endfor %}{% if add_generation_prompt %}[assistant] {% endif %}");
  EXPECT_EQ(learnt_turns(counting, long_chat(5)).spans, one_by_one(counting, long_chat(5)));
  // Turns before `first_message` are left out.
  EXPECT_EQ(find_learnt_turns(plain, readable_chat(plain, long_chat(3), nullptr, false), nullptr, 3,
                              {"assistant"})
                .spans.size(),
            2u);
}

}  // namespace
}  // namespace convoy::data
