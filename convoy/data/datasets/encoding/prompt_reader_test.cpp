// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/encoding/prompt_reader.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/data/datasets/encoding/encode_sample.h"
#include "convoy/data/datasets/files_test.h"
#include "files/source_folder.h"

namespace convoy::data {
namespace {

constexpr const char* kPlain = R"({"prompt":"p"})";
constexpr const char* kChat = R"({"messages":[{"role":"user","content":"u"}]})";
constexpr const char* kOwnSystem =
    R"({"messages":[{"role":"system","content":"own"},{"role":"user","content":"u"}]})";

class PromptReaderTest : public ::testing::Test {
 protected:
  PromptReaderTest() {
    flags_.prompts = "set by read()";
    flags_.system_prompt = "s";
  }

  // Returns the warnings of reading the rows, or the error.
  std::string read(const std::vector<std::string>& rows) {
    std::string text;
    for (const std::string& row : rows) text += row + "\n";
    flags_.prompts = folder_.write("rows.jsonl", text).string();
    return said();
  }

  std::string said() {
    ::testing::internal::CaptureStderr();
    std::string error;
    try {
      const SampleEncoder encoder(tokenizer_, &*template_, Supervision());
      const PromptReader reader(
          flags_, true, [&](const Sample& sample) { return encoder.encode_prompt(sample); },
          Log(LogLevel::Normal));
      reader.read([](const EncodedRow&, int64_t) {});
    } catch (const Error& caught) {
      error = caught.sentence();
    }
    return ::testing::internal::GetCapturedStderr() + error;
  }

  ScratchFolder folder_;
  settings::GenerateFlags flags_;
  std::filesystem::path model_ = testing::source_folder() / "tests/golden/train/tokenizer";
  text::Tokenizer tokenizer_ = text::Tokenizer::load(model_);
  std::optional<text::ChatTemplate> template_ = text::ChatTemplate::load(model_, "");
};

TEST_F(PromptReaderTest, RowsThatTheSystemPromptDoesNotReachAreNamed) {
  EXPECT_EQ(read({kChat, kChat}), "");
  EXPECT_EQ(
      read({kChat, kOwnSystem}),
      "warning: --system-prompt has no effect on 1 row with a system turn of its own, the "
      "first is row 2 on line 2: that turn counts; `convoy data system --mode replace` writes "
      "another one into the rows\n");
  flags_.system_prompt = "own";
  EXPECT_EQ(read({kOwnSystem}), "") << "the same text";
}

TEST_F(PromptReaderTest, FlagsOfChatsAreNamedOrRefusedForPlainRows) {
  const std::string refused = read({kPlain, kPlain});
  EXPECT_NE(refused.find("--system-prompt"), std::string::npos) << refused;
  EXPECT_NE(refused.find("--chat on"), std::string::npos) << refused;
  flags_.chat = "on";
  EXPECT_EQ(read({kPlain, kPlain}), "");
  flags_.chat = "auto";
  flags_.system_prompt = "";
  EXPECT_EQ(read({kPlain, kPlain}), "");
}

TEST_F(PromptReaderTest, ToolsVariablesAndNamesThatAreNotWrittenAreNamed) {
  flags_.system_prompt = "";
  const std::string told =
      read({kChat, R"({"messages":[{"role":"user","content":"u","name":"Ada"}],)"
                   R"("tools":[{"type":"function","function":{"name":"f"}}],)"
                   R"("chat_template_kwargs":{"depth":1}})"});
  EXPECT_NE(
      told.find("the chat template does not write the `tools` of 1 row, the first is row 2 on "
                "line 2"),
      std::string::npos)
      << told;
  EXPECT_NE(told.find("nothing reads 1 key of turns: `name` (in 1 row)"), std::string::npos)
      << told;
  EXPECT_NE(told.find("the chat template has no variable `depth` (in 1 row)"), std::string::npos)
      << told;
}

TEST_F(PromptReaderTest, AVariableThatTheTemplateDoesNotHaveIsNamedForTypedPrompts) {
  flags_.prompts = "";
  flags_.system_prompt = "";
  flags_.prompt.names = {"a", "b"};
  flags_.chat = "on";
  flags_.template_kwargs.json = R"({"depth": 1})";
  EXPECT_NE(said().find("the chat template has no variable `depth` (in 2 rows)"),
            std::string::npos);
}

}  // namespace
}  // namespace convoy::data
