// SPDX-License-Identifier: Apache-2.0
//
// Texts that the form of calls admits, over the bundled model's vocabulary. The reader of calls
// reads them back.
#include "convoy/apps/recipes/serving/tool_call_form.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "files/source_folder.h"

namespace convoy::recipes {
namespace {

// add(a): strict. say(text): not.
CallRules rules_of(std::optional<bool> add, std::optional<bool> say) {
  const auto schema = [](const char* name, const char* type) -> Json {
    return {{"type", "object"},
            {"properties", {{name, {{"type", type}}}}},
            {"required", {name}},
            {"additionalProperties", false}};
  };
  return {.functions = {{"add", schema("a", "integer"), add, "tools[0].function"},
                        {"say", schema("text", "string"), say, "tools[1].function"}}};
}

std::string call(ToolFormat format, const std::string& name, const std::string& arguments) {
  if (format == ToolFormat::Llama3Json)
    return R"({"name": ")" + name + R"(", "parameters": )" + arguments + "}";
  return "<tool_call>\n{\"name\": \"" + name + "\", \"arguments\": " + arguments +
         "}\n</tool_call>";
}

class ToolCallForm : public ::testing::Test {
 protected:
  // True when the text may be drawn token by token and end there.
  bool admits(const CallRules& rules, ToolFormat format, const std::string& text) const {
    const auto grammar = compiler_.compile(form_of_calls(rules, format, {}).source);
    text::GrammarPlace place = grammar->begin();
    std::vector<uint32_t> words(static_cast<size_t>(grammar->num_ids() + 31) / 32);
    for (const int32_t id : tokenizer_.encode(text, text::SpecialTokens::Omit).ids) {
      place.mask(false, words);
      if ((words[static_cast<size_t>(id) / 32] >> (id % 32) & 1U) == 0) return false;
      place.take(id);
    }
    return place.mask(false, words);
  }
  void expect(const CallRules& rules, ToolFormat format, const std::string& text, bool is_admitted,
              size_t calls = 0) const {
    EXPECT_EQ(admits(rules, format, text), is_admitted) << text;
    if (!is_admitted) return;
    ToolCallReader reader(format);
    EXPECT_EQ(reader.take(text).calls.size() + reader.end().calls.size(), calls) << text;
  }

  text::Tokenizer tokenizer_ =
      text::Tokenizer::load(testing::source_folder() / "examples/tally-3m");
  text::GrammarCompiler compiler_{tokenizer_, tokenizer_.vocab_size()};
};

constexpr ToolFormat kFormats[] = {ToolFormat::Hermes, ToolFormat::Llama3Json};

std::string between(ToolFormat format) { return format == ToolFormat::Hermes ? "\n" : "; "; }

TEST_F(ToolCallForm, RequiredCallsAreTheWholeAnswer) {
  CallRules rules = rules_of({}, {});
  rules.are_required = true;
  for (const ToolFormat format : kFormats) {
    const std::string add = call(format, "add", R"({"a": 31})");
    const std::string say = call(format, "say", R"({"text": "a \"b\""})");
    expect(rules, format, add, true, 1);
    expect(rules, format, "\n\n" + say, true, 1);
    expect(rules, format, add + between(format) + say, true, 2);
    expect(rules, format, "", false);
    expect(rules, format, "It is 38.", false);
    expect(rules, format, add + " So it is.", false);
    expect(rules, format, call(format, "add", R"({"a": "31"})"), false);
    expect(rules, format, call(format, "sub", R"({"a": 31})"), false);
  }
  rules.is_single = true;
  rules.functions.erase(rules.functions.begin() + 1);
  for (const ToolFormat format : kFormats) {
    const std::string add = call(format, "add", R"({"a": 31})");
    expect(rules, format, add, true, 1);
    expect(rules, format, add + between(format) + add, false);
    expect(rules, format, call(format, "say", R"({"text": "a"})"), false);
  }
}

TEST_F(ToolCallForm, StrictCallsStandWhereTheFormatHasThem) {
  const CallRules rules = rules_of(true, {});
  for (const ToolFormat format : kFormats) {
    const std::string add = call(format, "add", R"({"a": 31})");
    const std::string say = call(format, "say", R"({"words": [1, 2]})");
    expect(rules, format, "", true);
    expect(rules, format, "It is 38.", true);
    expect(rules, format, " <tool ", true);
    expect(rules, format, add, true, 1);
    expect(rules, format, say, true, 1);
    expect(rules, format, add + between(format) + say, true, 2);
    expect(rules, format, call(format, "add", R"({"b": 31})"), false);
    expect(rules, format, call(format, "say", R"([1])"), false);
  }
  const std::string add = call(ToolFormat::Hermes, "add", R"({"a": 31})");
  expect(rules, ToolFormat::Hermes, "I add.\n" + add + "\nSo it is.", true, 1);
  expect(rules, ToolFormat::Hermes, "<tool_call> is a tag", false);
  expect(rules, ToolFormat::Llama3Json, " {\"a\": 1}", false);
  expect(rules, ToolFormat::Llama3Json, "<|python_tag|>f.call()", false);
}

TEST_F(ToolCallForm, OneCallAtMost) {
  CallRules rules = rules_of({}, {});
  rules.is_single = true;
  for (const ToolFormat format : kFormats) {
    const std::string add = call(format, "add", R"({"any": {}})");
    expect(rules, format, "It is 38.", true);
    expect(rules, format, add, true, 1);
    expect(rules, format, add + between(format) + add, false);
  }
  expect(rules, ToolFormat::Hermes, "Yes. " + call(ToolFormat::Hermes, "say", "{}") + " Yes.", true,
         1);
}

TEST_F(ToolCallForm, AFunctionWithoutParametersTakesNone) {
  CallRules rules{.functions = {{"now", {}, {}, "tools[0].function"}}, .are_required = true};
  expect(rules, ToolFormat::Hermes, call(ToolFormat::Hermes, "now", "{}"), true, 1);
  expect(rules, ToolFormat::Hermes, call(ToolFormat::Hermes, "now", R"({"a": 1})"), false);
  rules.functions[0].strict = false;
  expect(rules, ToolFormat::Hermes, call(ToolFormat::Hermes, "now", R"({"a": 1})"), true, 1);
}

TEST_F(ToolCallForm, WhatCannotBeHeldIsRefusedByName) {
  const auto refused = [](const CallRules& rules, ToolFormat format) -> std::string {
    try {
      form_of_calls(rules, format, {});
    } catch (const ApiError& error) {
      return error.body()["error"]["param"];
    }
    return "accepted";
  };
  EXPECT_EQ(refused(rules_of({}, true), ToolFormat::None), "tools[1].function.strict");
  CallRules rules = rules_of({}, {});
  rules.is_single = true;
  EXPECT_EQ(refused(rules, ToolFormat::None), "parallel_tool_calls");
  rules.are_required = true;
  EXPECT_EQ(refused(rules, ToolFormat::None), "tool_choice");
  rules.functions[1].parameters = {{"type", "array"}};
  EXPECT_EQ(refused(rules, ToolFormat::Hermes), "tools[1].function.parameters.type");
}

// A special token is written by itself alone, never by its letters.
TEST_F(ToolCallForm, SpecialTagsAreTokens) {
  CallRules rules = rules_of(true, {});
  const CallTags tags{.open_is_special = true, .close_is_special = true};
  const auto lark_of = [&] {
    return Json::parse(form_of_calls(rules, ToolFormat::Hermes, tags).source.text)["lark"]
        .get<std::string>();
  };
  EXPECT_NE(lark_of().find("begin: TEXT? <tool_call>\n"), std::string::npos) << lark_of();
  EXPECT_NE(lark_of().find("\"}\\n\" </tool_call>\n"), std::string::npos) << lark_of();
  rules.are_required = true;
  EXPECT_NE(lark_of().find("<tool_call> call"), std::string::npos) << lark_of();
}

}  // namespace
}  // namespace convoy::recipes
