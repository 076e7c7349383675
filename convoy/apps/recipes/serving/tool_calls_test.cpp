// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/tool_calls.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "convoy/core/base/files.h"

namespace convoy::recipes {
namespace {

// Reads the answer in pieces of `bytes` bytes. Returns "text|name(arguments)|...", which does not
// depend on the pieces.
std::string read_in_pieces(ToolFormat format, const std::string& answer, size_t bytes) {
  ToolCallReader reader(format);
  ToolCallReader::Found all;
  const auto add = [&all](ToolCallReader::Found found) {
    all.text += found.text;
    all.calls.insert(all.calls.end(), found.calls.begin(), found.calls.end());
  };
  for (size_t at = 0; at < answer.size(); at += bytes) add(reader.take(answer.substr(at, bytes)));
  add(reader.end());
  std::string line = all.text;
  for (const ToolCall& call : all.calls) line += "|" + call.name + call.arguments;
  return line;
}

void expect_read(ToolFormat format, const std::string& answer, const std::string& wanted) {
  for (const size_t bytes : {size_t{1}, size_t{2}, size_t{7}, answer.size() + 1})
    EXPECT_EQ(read_in_pieces(format, answer, bytes), wanted) << answer << " by " << bytes;
}

TEST(ToolCalls, HermesCallsStandAmongText) {
  const auto expect = [](const std::string& answer, const std::string& wanted) {
    expect_read(ToolFormat::Hermes, answer, wanted);
  };
  expect("plain text ", "plain text ");
  expect(R"(<tool_call>{"name": "f", "arguments": {"b": 1, "a": "x"}}</tool_call>)",
         R"(|f{"b": 1, "a": "x"})");
  expect("I look.\n<tool_call>\n{\"name\":\"f\",\"arguments\":{}}\n</tool_call>\n", "I look.|f{}");
  expect("<tool_call>{\"name\":\"f\"}</tool_call>\n<tool_call>{\"name\":\"g\"}</tool_call> done",
         "done|f{}|g{}");
  expect(R"(<tool_call>{"name":"f","arguments":{"s":"</tool> é \" }"}}</tool_call>)",
         R"(|f{"s":"</tool> é \" }"})");
  expect(R"(<tool_call>{"arguments": { "n" : 20000000000000000001, "x":[1.50, {"arguments":2}]} ,)"
         R"( "name":"f"}</tool_call>)",
         R"(|f{ "n" : 20000000000000000001, "x":[1.50, {"arguments":2}]})");
  // A tag is missing in each answer.
  expect(R"(a <tool_call>{"name":"f","arguments":{}})", "a|f{}");
  expect(R"(<tool_call>{"name":"f"} <tool_call>{"name":"g"}</tool_call>)", "|f{}|g{}");
}

TEST(ToolCalls, TagsWithinStringsListsAndThoughtsDoNotMislead) {
  const auto expect = [](const std::string& answer, const std::string& wanted) {
    expect_read(ToolFormat::Hermes, answer, wanted);
  };
  expect(R"(<tool_call>{"name":"f","arguments":{"s":"ends </tool_call> here"}}</tool_call> a)",
         R"(a|f{"s":"ends </tool_call> here"})");
  expect(R"(<tool_call>{"name":"f","arguments":{"s":"<tool_call>"}}</tool_call>)",
         R"(|f{"s":"<tool_call>"})");
  expect("<tool_call>\n{\"name\":\"f\"}\n{\"name\":\"g\"}\n</tool_call>", "|f{}|g{}");
  expect("<tool_call>[{\"name\":\"f\"}, {\"name\":\"g\"}]</tool_call>", "|f{}|g{}");
  expect(R"(<tool_call>{"name":"f","arguments":"{\"a\": 1}"}</tool_call>)", R"(|f{"a": 1})");
  expect("I may use <tool_call> tags.\n<tool_call>{\"name\":\"f\"}</tool_call>",
         "I may use <tool_call> tags.|f{}");
  expect(
      "<think>x <tool_call>{\"name\":\"no\"}</tool_call> y</think>\n\n"
      "<tool_call>{\"name\":\"f\"}</tool_call>",
      "<think>x <tool_call>{\"name\":\"no\"}</tool_call> y</think>|f{}");
  expect(R"(<tool_call>{"name":"f",</tool_call> <tool_call>{"name":"g"}</tool_call>)",
         R"(<tool_call>{"name":"f",</tool_call>|g{})");
  ToolCallReader reader(ToolFormat::Hermes, true);
  EXPECT_TRUE(reader.take("a <tool_call>{\"name\":\"no\"}</tool_call>").calls.empty());
  EXPECT_EQ(reader.take("</think><tool_call>{\"name\":\"f\"}</tool_call>").calls.size(), 1u);
}

TEST(ToolCalls, WhatIsNoHermesCallIsText) {
  for (const std::string answer :
       {"<tool_call>{\"name\":\"f\",</tool_call>", "a <tool_call>[1]</tool_call> b",
        "<tool_call>{\"name\":5}</tool_call>", "<tool_call>{\"name\":\"f\",\"arguments\":3}",
        "<tool_call>{\"name\":\"\",\"arguments\":{}}</tool_call>",
        "<tool_call>{\"name\":\" \"}</tool_call>", "<tool_call>", "a < b <tool", "</tool_call>",
        "  x \n\n", "{\"name\":\"f\"}"})
    expect_read(ToolFormat::Hermes, answer, answer);
}

TEST(ToolCalls, LlamaCallsBeginAnAnswer) {
  const auto expect = [](const std::string& answer, const std::string& wanted) {
    expect_read(ToolFormat::Llama3Json, answer, wanted);
  };
  expect(R"({"name": "f", "parameters": {"a": {"b": "}"}}})", R"(|f{"a": {"b": "}"}})");
  expect(R"(<|python_tag|>{"name": "f", "parameters": {}})", "|f{}");
  expect(R"( {"name":"f","arguments":{}}; {"name":"g","parameters":{}};)", "|f{}|g{}");
  expect("{\"name\":\"f\",\"parameters\":{}}\n", "|f{}");
}

TEST(ToolCalls, WhatIsNoLlamaCallIsText) {
  for (const std::string answer :
       {R"({"name": "Ann", "age": 3})", R"({"name":"","parameters":{}})",
        R"({"name":"f","parameters":[1]})", "{", "{}", "[1]", R"(Use {"name":"f","parameters":{}})",
        "<|python", "<|python_tag|>f.call()", " \n", "é"})
    expect_read(ToolFormat::Llama3Json, answer, answer);
}

TEST(ToolCalls, WithoutAFormatAllIsText) {
  const std::string answer = "<tool_call>{\"name\":\"f\"}</tool_call>";
  expect_read(ToolFormat::None, answer, answer);
}

TEST(ToolCalls, CallsGoOutAsSoonAsTheyAreComplete) {
  ToolCallReader hermes(ToolFormat::Hermes);
  EXPECT_EQ(hermes.take("one two ").text, "one two");
  EXPECT_EQ(hermes.take("<3 <").text, " <3");
  EXPECT_TRUE(hermes.take("tool_call>{\"name\":\"f\"}").calls.empty());
  EXPECT_EQ(hermes.take("</tool_call>").calls.size(), 1u);
  ToolCallReader llama(ToolFormat::Llama3Json);
  EXPECT_EQ(llama.take("T").text, "T");
  EXPECT_EQ(llama.take(" {").text, " {");
}

TEST(ToolCalls, TagsMayBeSpecialTokens) {
  const char* const source = std::getenv("CONVOY_SOURCE_DIR");
  const std::filesystem::path model =
      std::filesystem::path(source == nullptr ? "." : source) / "examples/tally-3m";
  EXPECT_FALSE(call_tags(ToolFormat::Hermes, text::Tokenizer::load(model)).are_special());
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / "special_tags_test";
  for (const bool special : {false, true}) {
    auto json = nlohmann::json::parse(read_file(model / "tokenizer.json"));
    json["added_tokens"].push_back({{"id", 2048},
                                    {"content", "<tool_call>"},
                                    {"single_word", false},
                                    {"lstrip", false},
                                    {"rstrip", false},
                                    {"normalized", false},
                                    {"special", special}});
    std::filesystem::create_directories(folder);
    write_file_atomic(folder / "tokenizer.json", json.dump());
    write_file_atomic(folder / "tokenizer_config.json", "{}");
    const text::Tokenizer tokenizer = text::Tokenizer::load(folder);
    EXPECT_EQ(call_tags(ToolFormat::Hermes, tokenizer).open_is_special, special);
    EXPECT_FALSE(call_tags(ToolFormat::Hermes, tokenizer).close_is_special);
    EXPECT_FALSE(call_tags(ToolFormat::Llama3Json, tokenizer).are_special());
  }
  std::filesystem::remove_all(folder);
}

TEST(ToolCalls, TheTemplateTellsTheFormat) {
  const auto format = [](const std::string& lines, const std::string& parser = "auto") {
    const std::filesystem::path folder =
        std::filesystem::path(::testing::TempDir()) / "tool_calls_test";
    std::filesystem::create_directories(folder);
    write_file_atomic(folder / "tokenizer_config.json", "{}");
    write_file_atomic(folder / "chat_template.jinja", lines);
    const auto chat_template = text::ChatTemplate::load(folder);
    std::filesystem::remove_all(folder);
    return tool_format(parser, &*chat_template);
  };
  EXPECT_EQ(format("{{ messages }}"), ToolFormat::None);
  EXPECT_EQ(format("{{ messages }}", "hermes"), ToolFormat::Hermes);
  EXPECT_EQ(format("within <tool_call></tool_call> tags"), ToolFormat::Hermes);
  EXPECT_EQ(format("within <tool_call></tool_call> tags", "none"), ToolFormat::None);
  EXPECT_EQ(format("<tool_call>\n<function=name>"), ToolFormat::None);
  EXPECT_EQ(format(R"({{ 'Respond in the format {"name": function name, "parameters": x}' }})"),
            ToolFormat::Llama3Json);
  EXPECT_EQ(tool_format("auto", nullptr), ToolFormat::None);
}

}  // namespace
}  // namespace convoy::recipes
