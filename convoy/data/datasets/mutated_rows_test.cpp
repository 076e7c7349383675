// SPDX-License-Identifier: Apache-2.0
//
// Damaged rows pass through all steps of the commands before the model: each row is used, or is a
// bad row with its place. No other exception is thrown.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/data/datasets/encoding/encoded_rows.h"
#include "convoy/data/datasets/files_test.h"
#include "convoy/data/datasets/schemas/question.h"
#include "files/mutated_texts.h"

namespace convoy::data {
namespace {

using Json = nlohmann::ordered_json;
using testing::Outcome;

const std::vector<std::string>& whole_rows() {
  static const std::vector<std::string> kRows = {
      R"({"messages":[{"role":"system","content":"s"},{"role":"user","content":"q"},{"role":"assistant","content":"a"}],"tools":[{"type":"function","function":{"name":"f"}}],"documents":[{"title":"t","text":"x"}],"chat_template_kwargs":{"enable_thinking":false}})",
      R"({"messages":[{"role":"user","content":[{"type":"text","text":"q"}]},{"role":"assistant","content":[{"type":"text","text":"a"}]}]})",
      R"({"messages":[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[{"type":"function","function":{"name":"f","arguments":{"b":2}}}]},{"role":"tool","content":"3"},{"role":"assistant","content":"3"}]})",
      R"({"conversations":[{"from":"human","value":"q"},{"from":"gpt","value":"a"}],"system":"s"})",
      R"({"instruction":"i","input":"x","output":"o"})",
      R"({"prompt":"p","completion":"c"})",
      R"({"prompt":[{"role":"user","content":"q"}],"completion":[{"role":"assistant","content":"a"}]})",
      R"({"prompt":"p"})",
      R"({"system":"s","user":"u","assistant":"a"})",
      R"({"input":"i","target":"t"})",
      R"({"text":"t"})",
      R"(["q",{"answer":"a"}])"};
  return kRows;
}

std::vector<Json> other_values() {
  return {nullptr,
          7,
          -0.5,
          true,
          "",
          "text",
          "[]",
          "{}",
          "{broken",
          Json::array(),
          Json::array({1, nullptr}),
          Json::object(),
          {{"type", "text"}},
          {{"a", {{"b", {1, 2}}}}}};
}

// Appends copies of `row`; in each, one value at any depth is removed or has another type.
void collect_changed(const Json& row, Json::json_pointer at, std::vector<Json>& out) {
  const Json& value = row.at(at);
  if (!at.empty()) {
    for (const Json& other : other_values()) {
      out.push_back(row);
      out.back().at(at) = other;
    }
    Json parent = row.at(at.parent_pointer());
    if (parent.is_object())
      parent.erase(at.back());
    else
      parent.erase(static_cast<size_t>(std::stoul(at.back())));
    out.push_back(row);
    out.back().at(at.parent_pointer()) = parent;
  }
  if (value.is_object())
    for (const auto& [key, ignored] : value.items()) collect_changed(row, at / key, out);
  if (value.is_array())
    for (size_t index = 0; index < value.size(); ++index) collect_changed(row, at / index, out);
}

class MutatedRows : public ::testing::Test {
 protected:
  // Uses the row as each command does, as the only row of a file. An exception other than DataError
  // fails the test.
  void use(const std::string& row, Outcome& outcome) {
    const auto path = folder_.write("rows.jsonl", row + "\n");
    const auto read = [&](RowUse how, const EncodedRows::Encode& encode) {
      testing::count<DataError>(outcome, [&] {
        EncodedRows rows(path, {.system_prompt = "s"}, BadRows::Error, how, encode);
        while (rows.next()) {
        }
        rows.finish(Log(LogLevel::Quiet));
      });
    };
    for (const Supervise supervise : {Supervise::Auto, Supervise::Last, Supervise::All}) {
      const SampleEncoder encoder(tokenizer_, &template_, {.supervise = supervise});
      read(RowUse::Learn, [&](const Sample& sample) { return encoder.encode(sample); });
    }
    const SampleEncoder encoder(tokenizer_, &template_, Supervision());
    const auto prompt = [&](const Sample& sample) { return encoder.encode_prompt(sample); };
    read(RowUse::Continue, prompt);
    read(RowUse::Learn, [&](const Sample& sample) {
      const Question question = split_answer(sample);
      encoder.render(question.prompt, true);
      return encoder.encode_prompt(question.prompt);
    });
  }

  std::filesystem::path model_ =
      std::filesystem::path(std::getenv("CONVOY_SOURCE_DIR")) / "examples/tally-3m";
  text::Tokenizer tokenizer_ = text::Tokenizer::load(model_);
  text::ChatTemplate template_ =
      *text::ChatTemplate::load(model_, model_ / "../../tests/golden/text/templates/qwen3.jinja");
  ScratchFolder folder_;
};

TEST_F(MutatedRows, EveryValueOfAnotherTypeIsUsedOrRefused) {
  Outcome outcome;
  for (const std::string& whole : whole_rows()) {
    std::vector<Json> changed;
    collect_changed(Json::parse(whole), Json::json_pointer(), changed);
    for (const Json& row : changed) {
      SCOPED_TRACE(row.dump());
      ASSERT_NO_THROW(use(row.dump(), outcome));
    }
  }
  EXPECT_GT(outcome.read, 300);
  EXPECT_GT(outcome.refused, 1000);
}

TEST_F(MutatedRows, SpoiltTextIsUsedOrRefused) {
  testing::MutatedTexts texts(whole_rows());
  Outcome outcome;
  for (int round = 0; round < 600; ++round) {
    const std::string row = texts.next();
    SCOPED_TRACE(row);
    ASSERT_NO_THROW(use(row, outcome));
  }
  EXPECT_GT(outcome.read, 100);
  EXPECT_GT(outcome.refused, 1000);
}

}  // namespace
}  // namespace convoy::data
