// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/chats/readable_chat.h"

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

// The expected contents come from transformers (tests/golden/text/make_contents.py).
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
  // A template that asks for the type of the arguments writes a text as it is.
  const auto asking =
      chat_template_of(std::string(kHead) +
                       "{% if c.function.arguments is string %}{{ c.function.arguments }}{% else %}"
                       "{{ c.function.arguments | tojson }}{% endif %}{% endfor %}{% endfor %}");
  EXPECT_EQ(written_chat(asking, calling("{\"x\":1}")), "call it{\"x\":1}");
  for (const char* wrong : {"{\"x\": ", "[1, 2]", "5", "x = 1"}) {
    EXPECT_NE(chat_refusal(asking, calling(wrong)).find("message 1 (assistant) are no JSON object"),
              std::string::npos)
        << wrong;
    EXPECT_EQ(written_chat(asking, calling(wrong), Losses::AllowInHistory),
              std::string("call it") + wrong);
  }
}

std::string calls_of(const std::string& of_call) {
  return kHead + of_call + "{% endfor %}{% endfor %}";
}

TEST(ReadableChat, ArgumentsAsTextAreDecodedWhereATemplateHasAWayOfItsOwnForObjects) {
  const std::string pairs = "{% for k, v in c.function.arguments | dictsort %}{{ k }}:<{{ v }}>";
  const auto own =
      chat_template_of(calls_of("{% if c.function.arguments is mapping %}" + pairs +
                                "{% endfor %}{% else %}{{ c.function.arguments }}{% endif %}"));
  for (const ordered_json& arguments : {ordered_json{{"x", 1}}, ordered_json("{\"x\": 1}")})
    EXPECT_EQ(written_chat(own, calling(arguments)), "call itx:<1>");
  EXPECT_EQ(written_chat(own, calling(" null ")), "call it");
  // A text in the template's own form stays as its author wrote it.
  EXPECT_EQ(written_chat(own, calling("x:<1>")), "call itx:<1>");
  for (const ordered_json& wrong :
       {ordered_json("{\"x\": "), ordered_json("[1]"), ordered_json("\"{}\""), ordered_json({1})})
    EXPECT_NE(chat_refusal(own, calling(wrong)).find("message 1 (assistant) are no JSON object"),
              std::string::npos)
        << wrong;
  // An empty text is no JSON: beside a template that writes texts as they are, it is an object.
  const auto asking =
      chat_template_of(calls_of("{{ c.function.arguments if c.function.arguments is string else "
                                "c.function.arguments | tojson }}"));
  EXPECT_EQ(written_chat(asking, calling("")), "call it{}");
  // A template that takes only objects, and reads one name of them.
  const auto narrow = chat_template_of(
      calls_of("{% if c.function.arguments is string %}{{ raise_exception('no text') }}{% endif %}"
               "{{ c.function.arguments.city }}"));
  EXPECT_EQ(written_chat(narrow, calling("{\"city\": \"Rome\"}")), "call itRome");
}

TEST(ReadableChat, ArgumentsAsObjectsBecomeTextsWhereATemplateTakesTexts) {
  const ordered_json arguments = {{"x", {1, "\xC3\xA9"}}, {"y", 0.5}, {"z", nullptr}};
  const std::string wanted = "call it<{\"x\": [1, \"\xC3\xA9\"], \"y\": 0.5, \"z\": null}>";
  for (const char* of_call :
       {"{{ '<' + c.function.arguments + '>' }}", "<{{ c.function.arguments }}>",
        "{% set a = c.function.arguments %}<{{ a | string }}>",
        "{% if c.function.arguments is string %}<{{ c.function.arguments }}>{% endif %}"}) {
    const auto chat_template = chat_template_of(calls_of(of_call));
    EXPECT_EQ(written_chat(chat_template, calling(arguments)), wanted) << of_call;
    EXPECT_EQ(written_chat(chat_template, calling("{\"x\":1}")), "call it<{\"x\":1}>") << of_call;
    EXPECT_EQ(written_chat(chat_template, calling(ordered_json::object())), "call it<{}>")
        << of_call;
    ordered_json two = calling(arguments);
    two.push_back(calling("{\"x\":1}")[1]);
    EXPECT_EQ(written_chat(chat_template, two), wanted + "<{\"x\":1}>") << of_call;
  }
}

TEST(ReadableChat, AContentOfAnotherFormIsNamed) {
  const auto of_parts = chat_template_of(
      "{% for m in messages %}{{ m.content[0].type }}{% for p in m.content %}{{ p.text }}"
      "{% endfor %}{% endfor %}");
  ordered_json bare = calling({{"x", 1}});
  bare[1].erase("content");
  EXPECT_NE(
      chat_refusal(of_parts, bare).find("cannot read message 1 (assistant), whose content is null"),
      std::string::npos)
      << chat_refusal(of_parts, bare);
}

TEST(ReadableChat, ACallWithoutATypeIsAFunctionWhereATemplateAsksForIt) {
  ordered_json untyped = calling({{"x", 1}});
  untyped[1]["tool_calls"][0].erase("type");
  const std::string written = "{{ c.function.name }}{{ c.function.arguments | tojson }}";
  // DeepSeek's templates join the type to other texts, which fails for none.
  EXPECT_EQ(written_chat(chat_template_of(calls_of("{{ '<' + c.type + '>' }}" + written)), untyped),
            "call it<function>f{\"x\": 1}");
  EXPECT_EQ(written_chat(chat_template_of(calls_of("{{ c | tojson }}")), untyped),
            "call it{\"function\": {\"name\": \"f\", \"arguments\": {\"x\": 1}}}");
  EXPECT_NE(chat_refusal(chat_template_of(calls_of("{{ c.kind + c.type }}")), untyped).find("kind"),
            std::string::npos);
}

TEST(ReadableChat, DamagedArgumentsNameTheWayOut) {
  const auto encoding = chat_template_of(calls_of("{{ c.function.arguments | tojson }}"));
  const auto hint = [&](const char* arguments) {
    try {
      written_chat(encoding, calling(arguments));
    } catch (const DataError& error) {
      return error.location().hint;
    }
    return std::string();
  };
  EXPECT_NE(hint(R"({"x": "\ud83d"})").find("bad_rows: replace"), std::string::npos);
  EXPECT_NE(hint(R"({"x": )").find("write them as a JSON object"), std::string::npos);
}

TEST(ReadableChat, Gemma4WritesBothFormsOfArgumentsAlike) {
  const auto chat_template = std::move(
      *text::ChatTemplate::load(source_folder() / "examples/tally-3m",
                                source_folder() / "tests/golden/text/templates/gemma4.jinja"));
  const std::string written = written_chat(chat_template, calling({{"city", "Rome"}, {"days", 2}}));
  EXPECT_NE(written.find("city:<|\"|>Rome<|\"|>,days:2"), std::string::npos) << written;
  EXPECT_EQ(written_chat(chat_template, calling("{\"city\": \"Rome\", \"days\": 2}")), written);
}

TEST(ReadableChat, CallsWithoutContentAreReadAsTheTemplateAsksForThem) {
  const std::string call = "{% for c in m.tool_calls or [] %}!{% endfor %}{% endfor %}";
  const std::string each = "{% for m in messages %}";
  struct Wanted {
    std::string source;
    std::string bare;   // the text for a content of null and for none
    std::string empty;  // the text for a content of ""
  };
  for (const Wanted& wanted : std::vector<Wanted>{
           // DeepSeek's template handles a content of null, but no missing content.
           {each + "{{ '-' if m['content'] is none else '<' + m['content'] + '>' }}" + call,
            "<call it>-!", "<call it><>!"},
           {each + "{{ m.content }}" + call, "call it!", "call it!"},
           {each + "{{ m.content | trim }}" + call, "call it!", "call it!"},
           {each + "{{ '<' + m.content + '>' }}" + call, "<call it><>!", "<call it><>!"},
           {each +
                "{% if m.content is defined and m.content is none %}NONE{% endif %}"
                "{{ m.content or '' }}" +
                call,
            "call itNONE!", "call it!"},
           {each + "{{ m.content if m.content is string else m.content | tojson }}" + call,
            "call it!", "call it!"}}) {
    const auto chat_template = chat_template_of(wanted.source);
    ordered_json messages = calling(ordered_json::object());
    EXPECT_EQ(written_chat(chat_template, messages), wanted.empty) << wanted.source;
    messages[1]["content"] = nullptr;
    EXPECT_EQ(written_chat(chat_template, messages), wanted.bare) << wanted.source;
    messages[1].erase("content");
    EXPECT_EQ(written_chat(chat_template, messages), wanted.bare) << wanted.source;
  }
}

TEST(ReadableChat, APartThatAFilterPrintsIsNoText) {
  for (const char* filter : {"upper", "lower", "title", "capitalize", "trim", "string", "tojson",
                             "wordwrap(20)", "indent", "replace('_', '')", "e"}) {
    const auto chat_template = chat_template_of(
        fmt::format("{{% for m in messages %}}{{{{ m.content | {} }}}}{{% endfor %}}", filter));
    const std::string of_text =
        written_chat(chat_template, ordered_json::array({turn_of("user", "one word")}));
    const ordered_json by_parts = ordered_json::array({turn_of("user", text_parts({"one word"}))});
    EXPECT_EQ(written_chat(chat_template, by_parts), of_text) << filter;
    const auto by_part = chat_template_of(fmt::format(
        "{{% for m in messages %}}{{% for p in m.content %}}[{{{{ p | {} }}}}]{{% endfor %}}"
        "{{% endfor %}}",
        filter));
    const std::string refused = chat_refusal(by_part, by_parts);
    EXPECT_NE(refused.find("of message 0 (user)"), std::string::npos) << filter << ": " << refused;
  }
}

TEST(ReadableChat, ARoleForWhichATemplateRefusesTheConversationIsNamed) {
  const auto chat_template = std::move(
      *text::ChatTemplate::load(source_folder() / "examples/tally-3m",
                                source_folder() / "tests/golden/text/templates/llava_next.jinja"));
  try {
    written_chat(chat_template, {turn_of("user", "one"), turn_of("assistant", "two"),
                                 turn_of("tool", "three"), turn_of("assistant", "four")});
    ADD_FAILURE() << "wanted an error";
  } catch (const DataError& error) {
    EXPECT_TRUE(std::string_view(error.what()).starts_with("the chat template has no role `tool`"))
        << error.what();
    EXPECT_NE(error.location().hint.find("data.template_path"), std::string::npos);
  }
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
