// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/chain/row_shape.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/data/datasets/chain/system_prompt.h"

namespace convoy::data {
namespace {

using Json = nlohmann::ordered_json;

Row shaped_row(const char* json) { return {Json::parse(json), "rows.jsonl", 7, 6}; }

Sample sample(const char* json) {
  const Row made = shaped_row(json);
  return convert_row(made, detect_schema(made, {}), {}).sample;
}

std::string as(const char* json, Schema schema) {
  try {
    return row_of(sample(json), schema).dump();
  } catch (const DataError& error) {
    EXPECT_EQ(error.location().line, 7);
    return error.what();
  }
}

constexpr const char* kTriple = R"({"system":"s","user":"u","assistant":"a"})";
constexpr const char* kLong =
    R"({"messages":[{"role":"user","content":"1"},{"role":"assistant","content":"2"},{"role":"user","content":"3"},{"role":"assistant","content":"4"}]})";

TEST(RowShape, OneExchangeInEverySchema) {
  EXPECT_EQ(
      as(kTriple, Schema::Messages),
      R"({"messages":[{"role":"system","content":"s"},{"role":"user","content":"u"},{"role":"assistant","content":"a"}]})");
  EXPECT_EQ(
      as(kTriple, Schema::ShareGpt),
      R"({"conversations":[{"from":"system","value":"s"},{"from":"human","value":"u"},{"from":"gpt","value":"a"}]})");
  EXPECT_EQ(as(kTriple, Schema::Triple), kTriple);
  EXPECT_EQ(as(kTriple, Schema::Alpaca),
            R"({"instruction":"u","input":"","output":"a","system":"s"})");
  EXPECT_EQ(
      as(kTriple, Schema::PromptCompletion),
      R"({"prompt":[{"role":"system","content":"s"},{"role":"user","content":"u"}],"completion":[{"role":"assistant","content":"a"}]})");
  EXPECT_EQ(as(R"({"instruction":"i","input":"n","output":"o"})", Schema::Alpaca),
            R"({"instruction":"i\nn","input":"","output":"o"})");
  EXPECT_EQ(as(R"({"prompt":"p","completion":"c"})", Schema::Rendered),
            R"({"input":"p","target":"c"})");
  EXPECT_EQ(as(R"({"prompt":"p","completion":"c"})", Schema::Text), R"({"text":"pc"})");
}

TEST(RowShape, WhatASchemaHasNoRoomForIsAnError) {
  EXPECT_NE(as(kLong, Schema::Triple).find("found 4 turns"), std::string::npos);
  EXPECT_NE(as(kLong, Schema::Text).find("chat template"), std::string::npos);
  EXPECT_NE(as(R"({"text":"t"})", Schema::Messages).find("no turns"), std::string::npos);
  EXPECT_NE(
      as(R"({"messages":[{"role":"user","content":"1"},{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f"}}]}]})",
         Schema::ShareGpt)
          .find("`tool_calls`"),
      std::string::npos);
  EXPECT_THROW(row_of(sample(kTriple), Schema::Loose), ConfigError);
}

// The converted row is read and gives the same sample again.
TEST(RowShape, ConvertingThereAndBackIsTheSame) {
  for (const Schema schema : {Schema::Messages, Schema::ShareGpt, Schema::PromptCompletion}) {
    Row there{row_of(sample(kLong), schema), "", 0, 0};
    const Sample again = convert_row(there, schema, {}).sample;
    EXPECT_EQ(row_of(again, Schema::Messages).dump(), kLong) << schema_name(schema);
  }
  const char* tools =
      R"({"messages":[{"role":"user","content":"1"},{"role":"assistant","content":"2"}],"tools":[{"type":"function"}],"chat_template_kwargs":{"lang":"de"}})";
  EXPECT_EQ(as(tools, Schema::Messages), tools);
}

std::string with(const char* json, SystemMode mode) {
  const Row made = shaped_row(json);
  return with_system_prompt(made, detect_schema(made, {}), "N", mode).dump();
}

TEST(SystemPrompt, EveryModeInPlace) {
  EXPECT_EQ(with(kTriple, SystemMode::Missing), kTriple);
  EXPECT_EQ(with(kTriple, SystemMode::Replace), R"({"system":"N","user":"u","assistant":"a"})");
  EXPECT_EQ(with(kTriple, SystemMode::Prepend),
            R"({"system":"N\n\ns","user":"u","assistant":"a"})");
  EXPECT_EQ(with(kTriple, SystemMode::Append), R"({"system":"s\n\nN","user":"u","assistant":"a"})");
  EXPECT_EQ(with(kTriple, SystemMode::Remove), R"({"system":"","user":"u","assistant":"a"})");
  EXPECT_EQ(with(R"({"question":"q","answer":"a","id":3})", SystemMode::Missing),
            R"({"system":"N","question":"q","answer":"a","id":3})");
  EXPECT_EQ(
      with(R"({"id":1,"conversations":[{"from":"human","value":"h"},{"from":"gpt","value":"g"}]})",
           SystemMode::Prepend),
      R"({"id":1,"conversations":[{"from":"system","value":"N"},{"from":"human","value":"h"},{"from":"gpt","value":"g"}]})");
  EXPECT_EQ(
      with(R"({"messages":[{"role":"system","content":"s"},{"role":"user","content":"u"}],"x":2})",
           SystemMode::Remove),
      R"({"messages":[{"role":"user","content":"u"}],"x":2})");
  EXPECT_EQ(with(R"({"system_prompt":"s","question":"q","response":"a"})", SystemMode::Append),
            R"({"system_prompt":"s\n\nN","question":"q","response":"a"})");
  EXPECT_EQ(with(R"({"instruction":"i","output":"o"})", SystemMode::Missing),
            R"({"system":"N","instruction":"i","output":"o"})");
  EXPECT_EQ(
      with(R"({"system":"s","messages":[{"role":"user","content":"u"}]})", SystemMode::Replace),
      R"({"system":"N","messages":[{"role":"user","content":"u"}]})");
  EXPECT_THROW(with(R"({"prompt":"p","completion":"c","system":"s"})", SystemMode::Replace),
               DataError);
  EXPECT_THROW(with(R"({"text":"t"})", SystemMode::Replace), DataError);
}

}  // namespace
}  // namespace convoy::data
