// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/readable_chat.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/data/datasets/files_test.h"
#include "files/source_folder.h"

namespace convoy::data {
namespace {

using nlohmann::ordered_json;
using testing::source_folder;

constexpr int64_t kNoonOfGolden = 1'714'564'800;  // 2024-05-01 12:00:00 UTC

text::ChatTemplate chat_template_of(const std::string& source) {
  const ScratchFolder folder;
  folder.write("chat_template.jinja", source);
  return std::move(*text::ChatTemplate::load(folder.path()));
}

ordered_json turn_of(const std::string& role, const ordered_json& content) {
  return {{"role", role}, {"content", content}};
}

ordered_json text_parts(const std::vector<std::string>& texts) {
  ordered_json parts = ordered_json::array();
  for (const std::string& text : texts) parts.push_back({{"type", "text"}, {"text", text}});
  return parts;
}

std::string written_chat(const text::ChatTemplate& chat_template, const ordered_json& messages,
                         Losses losses = Losses::Refuse) {
  return readable_chat(chat_template, messages, nullptr, false, losses).rendered.text;
}

// The error of a conversation that the template does not write whole; empty without one.
std::string chat_refusal(const text::ChatTemplate& chat_template, const ordered_json& messages) {
  try {
    written_chat(chat_template, messages);
    return "";
  } catch (const DataError& error) {
    return error.what();
  }
}

// Against transformers (tests/golden/text/make_contents.py).
TEST(ReadableChat, EveryTemplateGetsTheFormThatItReads) {
  const auto golden = source_folder() / "tests/golden/text";
  int compared = 0;
  for (const auto& row : ordered_json::parse(read_file(golden / "contents.json"))) {
    SCOPED_TRACE(row["template"].get<std::string>() + ": " + row["case"].get<std::string>());
    auto chat_template = std::move(*text::ChatTemplate::load(
        source_folder() / "examples/tally-3m",
        golden / "templates" / (row["template"].get<std::string>() + ".jinja")));
    chat_template.clock().stop_at(kNoonOfGolden);
    // A template without tools leaves out calls, which is said (unwritten.h).
    if (row["form"] == "none" && !row["tools"].is_null()) continue;
    const auto read = [&] {
      return readable_chat(chat_template, row["messages"], {{"tools", row["tools"]}}, false)
          .rendered.text;
    };
    ++compared;
    if (row["form"] == "none")
      EXPECT_THROW(read(), DataError);
    else
      EXPECT_EQ(read(), row["text"].get<std::string>());
  }
  EXPECT_GE(compared, 60);
}

TEST(ReadableChat, OnlyRolesThatATemplateReadsAsTextsAreJoined) {
  const auto chat_template = chat_template_of(
      "{% for m in messages %}{% if m.role == 'user' %}{% for p in m.content %}[{{ p.text }}]"
      "{% endfor %}{% else %}{{ '<' + m.content + '>' }}{% endif %}{% endfor %}");
  EXPECT_EQ(written_chat(chat_template, {turn_of("user", text_parts({"one", "two"})),
                                         turn_of("assistant", text_parts({"three", "four"}))}),
            "[one][two]<three\nfour>");
  EXPECT_EQ(written_chat(chat_template, {turn_of("user", "one"), turn_of("assistant", "two")}),
            "[one]<two>");
}

TEST(ReadableChat, ATextThatIsNotWrittenIsRefused) {
  const auto without_system = chat_template_of(
      "{% for m in messages if m.role != 'system' %}{{ m.role }}: {{ m.content }}\n{% endfor %}");
  const ordered_json pair = {turn_of("user", "the system"), turn_of("assistant", "two")};
  EXPECT_EQ(chat_refusal(without_system, pair), "");
  ordered_json whole = pair;
  // The same words stand in another message.
  whole.insert(whole.begin(), turn_of("system", "system"));
  EXPECT_NE(chat_refusal(without_system, whole).find("a text of message 0 (system)"),
            std::string::npos);
  whole[0]["content"] = " \n";
  EXPECT_EQ(chat_refusal(without_system, whole), "") << "a blank text is none";
  const auto first_part = chat_template_of(
      "{% for m in messages %}{{ m.content if m.content is string else m.content[0].text }}"
      "{% endfor %}");
  const auto asking = [](const std::vector<std::string>& texts) {
    return ordered_json::array({turn_of("user", text_parts(texts))});
  };
  EXPECT_EQ(written_chat(first_part, asking({"one"})), "one");
  EXPECT_EQ(written_chat(first_part, asking({"one", "two"})), "one\ntwo");
}

TEST(ReadableChat, WhatATemplateDoesToATextIsNoLoss) {
  const auto changing = chat_template_of(
      "{% for m in messages %}{% set c = m.content %}"
      "{% if c.startswith('<think>') %}{% set c = c.split('</think>')[-1] %}{% endif %}"
      "{{ c | trim | replace('a', 'b') }}{{ c | length }}{{ c | tojson }}\n{% endfor %}");
  EXPECT_EQ(chat_refusal(changing,
                         {turn_of("user", " a \"question\" "),
                          turn_of("assistant", "<think>\nlong thoughts\n</think>\n\nan answer")}),
            "");
  const auto choosy = chat_template_of(
      "{% for m in messages %}{% if m.content not in ['yes', 'no'] %}{{ raise_exception('no') }}"
      "{% endif %}{{ m.content | upper }}{% endfor %}");
  EXPECT_EQ(written_chat(choosy, {turn_of("user", "yes"), turn_of("assistant", "no")}), "YESNO");
}

TEST(ReadableChat, WhatATemplateRefusesIsNotGivenInAnotherForm) {
  const auto chat_template = chat_template_of(
      "{% for m in messages %}{% if 'bad' in m.content %}{{ raise_exception('a bad word') }}"
      "{% endif %}{% if m.content is string %}{{ m.content }}{% else %}{{ m.content[0].text }}"
      "{% endif %}{% endfor %}");
  EXPECT_NE(chat_refusal(chat_template, ordered_json::array({turn_of("user", "a bad text")}))
                .find("a bad word"),
            std::string::npos);
}

ordered_json calling(const ordered_json& arguments) {
  ordered_json message = turn_of("assistant", "");
  message["tool_calls"] = ordered_json::array(
      {{{"type", "function"}, {"function", {{"name", "f"}, {"arguments", arguments}}}}});
  return {turn_of("user", "call it"), message};
}

constexpr const char* kHead =
    "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}";

TEST(ReadableChat, ArgumentsAsTextAreDecodedWhereATemplateEncodesThem) {
  const auto encoding = chat_template_of(
      std::string(kHead) + "{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}");
  const std::string wanted = "call it{\"x\": [1, \"\xC3\xA9\"]}";
  EXPECT_EQ(written_chat(encoding, calling({{"x", {1, "\xC3\xA9"}}})), wanted);
  EXPECT_EQ(written_chat(encoding, calling("{\"x\": [1, \"\xC3\xA9\"]}")), wanted);
  EXPECT_EQ(written_chat(encoding, calling("")), "call it{}");
  EXPECT_NE(chat_refusal(encoding, calling("{\"x\": ")).find("in message 1 (assistant)"),
            std::string::npos);
  EXPECT_EQ(written_chat(encoding, calling("{\"x\": "), Losses::AllowInHistory),
            "call it\"{\\\"x\\\": \"");
  const auto taking =
      chat_template_of(std::string(kHead) +
                       "{% for k, v in c.function.arguments.items() %}{{ k }}={{ v }}{% endfor %}"
                       "{% endfor %}{% endfor %}");
  EXPECT_EQ(written_chat(taking, calling("{\"x\": 1}")), "call itx=1");
  // A template that asks writes the text as it is.
  const auto asking =
      chat_template_of(std::string(kHead) +
                       "{% if c.function.arguments is string %}{{ c.function.arguments }}{% else %}"
                       "{{ c.function.arguments | tojson }}{% endif %}{% endfor %}{% endfor %}");
  EXPECT_EQ(written_chat(asking, calling("{\"x\":1}")), "call it{\"x\":1}");
  EXPECT_EQ(written_chat(asking, calling("{\"x\": ")), "call it{\"x\": ");
}

TEST(ReadableChat, TheHistoryOfAChatMayLoseTheTextBesideCalls) {
  const auto chat_template = chat_template_of(
      "{% for m in messages %}{% if m.tool_calls %}CALL{% else %}{{ m.content }}{% endif %}"
      "{% endfor %}");
  ordered_json messages = calling(ordered_json::object());
  messages[1]["content"] = "let me see";
  EXPECT_NE(chat_refusal(chat_template, messages), "");
  EXPECT_EQ(written_chat(chat_template, messages, Losses::AllowInHistory), "call itCALL");
}

}  // namespace
}  // namespace convoy::data
