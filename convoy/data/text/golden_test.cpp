// SPDX-License-Identifier: Apache-2.0
//
// Compares ids, offsets, decoded texts and rendered conversations with transformers
// (tests/golden/text/make_text.py).
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/data/text/chat_template.h"
#include "convoy/data/text/tokenizer.h"
#include "files/source_folder.h"
#include "files/temporary_folder.h"

namespace convoy::text {
namespace {

using nlohmann::ordered_json;
namespace fs = std::filesystem;
using testing::source_folder;

ordered_json golden(const std::string& name) {
  return ordered_json::parse(read_file(source_folder() / "tests/golden/text" / name));
}

std::vector<int32_t> ids_of(const ordered_json& value) { return value.get<std::vector<int32_t>>(); }

std::optional<int32_t> optional_id(const ordered_json& value) {
  return value.is_null() ? std::nullopt : std::optional(value.get<int32_t>());
}

TEST(TokenizerGolden, MatchesTransformers) {
  int rows = 0;
  for (const auto& entry : golden("encodings.json")) {
    const auto tokenizer = Tokenizer::load(source_folder() / entry["folder"].get<std::string>());
    SCOPED_TRACE(entry["folder"].get<std::string>());
    EXPECT_EQ(tokenizer.vocab_size(), entry["size"].get<int64_t>());
    EXPECT_EQ(tokenizer.bos_id(), optional_id(entry["bos"]));
    EXPECT_EQ(tokenizer.eos_id(), optional_id(entry["eos"]));
    EXPECT_EQ(tokenizer.pad_id(), optional_id(entry["pad"]));
    for (const auto& row : entry["rows"]) {
      ++rows;
      const std::string text = row["text"].get<std::string>();
      SCOPED_TRACE(text);
      const Encoding plain = tokenizer.encode(text, SpecialTokens::Omit);
      EXPECT_EQ(plain.ids, ids_of(row["ids"]));
      EXPECT_EQ(tokenizer.encode(text, SpecialTokens::Add).ids, ids_of(row["with_special"]));
      EXPECT_EQ(tokenizer.decode(plain.ids, false), row["decoded"].get<std::string>());
      EXPECT_EQ(tokenizer.decode(plain.ids, true), row["decoded_plain"].get<std::string>());
      ASSERT_EQ(plain.ids.size(), row["offsets"].size());
      for (size_t token = 0; token < plain.ids.size(); ++token) {
        EXPECT_EQ(plain.begins[token], row["offsets"][token][0].get<int64_t>()) << token;
        EXPECT_EQ(plain.ends[token], row["offsets"][token][1].get<int64_t>()) << token;
      }
    }
  }
  EXPECT_GE(rows, 300);
}

// The file has added tokens with every combination of options, and tokens that the config declares
// otherwise than tokenizer.json.
TEST(TokenizerGolden, AddedTokensAreFoundAsTransformersFindsThem) {
  const auto tokenizer = Tokenizer::load(source_folder() / "tests/golden/text/added");
  int rows = 0;
  for (const auto& row : golden("added/encodings.json")) {
    ++rows;
    const auto text = row["text"].get<std::string>();
    EXPECT_EQ(tokenizer.encode(text, SpecialTokens::Omit).ids, ids_of(row["ids"])) << text;
  }
  EXPECT_GE(rows, 140);
}

TEST(TokenizerGolden, KnowsWhatIsAddedAround) {
  const auto load = [](const char* name) {
    return Tokenizer::load(source_folder() / "tests/golden/text" / name);
  };
  EXPECT_TRUE(load("llama3").adds_bos());
  EXPECT_FALSE(load("llama3").adds_eos());
  EXPECT_TRUE(load("gemma").adds_bos());
  EXPECT_TRUE(load("metaspace").adds_bos());
  EXPECT_TRUE(load("metaspace").adds_eos());
  EXPECT_TRUE(load("unigram").adds_eos());
  EXPECT_FALSE(load("unigram").adds_bos());
}

TEST(ChatTemplateGolden, MatchesTransformers) {
  int rendered = 0;
  int refused = 0;
  for (const auto& entry : golden("chats.json")) {
    const std::string name = entry["template"].get<std::string>();
    SCOPED_TRACE(name + " " + entry["case"].get<std::string>() +
                 (entry["add_generation_prompt"].get<bool>() ? " +prompt" : ""));
    const auto chat_template =
        ChatTemplate::load(source_folder() / entry["folder"].get<std::string>(),
                           source_folder() / "tests/golden/text/templates" / (name + ".jinja"));
    ASSERT_TRUE(chat_template.has_value());
    EXPECT_EQ(chat_template->has_generation_tags(), name != "constructs");
    const auto render = [&] {
      return chat_template->render(entry["messages"], {{"tools", entry["tools"]}},
                                   entry["add_generation_prompt"].get<bool>());
    };
    if (entry.contains("error")) {
      ++refused;
      EXPECT_THROW(render(), DataError);
      continue;
    }
    ++rendered;
    EXPECT_EQ(render().text, entry["text"].get<std::string>());
  }
  EXPECT_GE(rendered, 60);
  EXPECT_GE(refused, 1);
}

// tests/golden/text/make_trl.py writes the texts and their learnt parts, also with the thinking of
// earlier turns.
TEST(ChatTemplateGolden, TrlsTrainingTemplatesMatchTransformers) {
  constexpr int64_t kNoonOfGolden = 1'714'564'800;  // 2024-05-01 12:00:00 UTC
  const testing::TemporaryFolder folder;
  const ordered_json data = golden("trl.json");
  std::map<std::string, ChatTemplate> templates;
  for (const auto& [name, source] : data["templates"].items()) {
    const fs::path path = folder / (name + ".jinja");
    write_file_atomic(path, source.get<std::string>());
    ChatTemplate loaded = *ChatTemplate::load(source_folder() / "examples/tally-3m", path);
    loaded.clock().stop_at(kNoonOfGolden);
    EXPECT_TRUE(loaded.has_generation_tags()) << name;
    templates.emplace(name, std::move(loaded));
  }
  int rendered = 0, refused = 0;
  for (const auto& row : data["rows"]) {
    const auto name = row["template"].get<std::string>(), kind = row["case"].get<std::string>();
    SCOPED_TRACE(name + ": " + kind);
    const auto render = [&] {
      return templates.at(name).render(data["chats"][kind], row["variables"],
                                       row["add_generation_prompt"].get<bool>());
    };
    if (row.contains("error")) {
      ++refused;
      EXPECT_THROW(render(), DataError);
      continue;
    }
    ++rendered;
    const RenderedChat found = render();
    EXPECT_EQ(found.text, row["text"].get<std::string>());
    std::vector<std::string> learnt;
    for (const auto& [begin, end] : found.generation_spans)
      learnt.push_back(
          found.text.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
    EXPECT_EQ(learnt, row["learnt"].get<std::vector<std::string>>());
  }
  EXPECT_GT(rendered, 400);
  EXPECT_GT(refused, 10);
}

TEST(ChatTemplateGolden, VariablesOfTheUserAreThoseOfApplyChatTemplate) {
  const ordered_json data = golden("template_kwargs.json");
  const fs::path model = source_folder() / data["folder"].get<std::string>();
  std::string pattern = (fs::temp_directory_path() / "convoy_echo_XXXXXX").string();
  const fs::path folder = ::mkdtemp(pattern.data());
  write_file_atomic(folder / "echo.jinja", data["echo"].get<std::string>());
  const auto echo = ChatTemplate::load(model, folder / "echo.jinja");
  const auto qwen3 =
      ChatTemplate::load(model, source_folder() / "tests/golden/text/templates/qwen3.jinja");
  fs::remove_all(folder);
  int empty_thoughts = 0;
  for (const auto& row : data["rows"]) {
    SCOPED_TRACE(row["case"].get<std::string>());
    const auto& chat_template = row["template"] == "echo" ? echo : qwen3;
    const std::string text =
        chat_template
            ->render(row["messages"], row["kwargs"], row["add_generation_prompt"].get<bool>())
            .text;
    EXPECT_EQ(text, row["text"].get<std::string>());
    empty_thoughts += text.ends_with("<think>\n\n</think>\n\n");
  }
  EXPECT_EQ(empty_thoughts, 2);
}

}  // namespace
}  // namespace convoy::text
