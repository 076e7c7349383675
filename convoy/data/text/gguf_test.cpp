// SPDX-License-Identifier: Apache-2.0
//
// Compares tokenizers of GGUF files with llama.cpp (tests/golden/gguf/cuts.json), and tokenizers
// that Convoy writes with their originals.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/io/gguf/tokenizer_metadata.h"
#include "convoy/data/text/chat_template.h"
#include "convoy/data/text/tokenizer.h"
#include "files/source_folder.h"
#include "files/temporary_folder.h"

namespace convoy::text {
namespace {

using nlohmann::ordered_json;
namespace fs = std::filesystem;
using testing::source_folder;
using testing::TemporaryFolder;

ordered_json json_of(const fs::path& path) { return ordered_json::parse(read_file(path)); }

gguf::TokenizerFiles files_of(const fs::path& folder) {
  gguf::TokenizerFiles files{.tokenizer = json_of(folder / "tokenizer.json"),
                             .tokenizer_config = json_of(folder / "tokenizer_config.json"),
                             .place = folder.string()};
  if (fs::exists(folder / "chat_template.jinja"))
    files.chat_template = read_file(folder / "chat_template.jinja");
  return files;
}

std::vector<std::string> write_gguf(const fs::path& path, const gguf::TokenizerFiles& files,
                                    int64_t vocab_size) {
  gguf::Metadata metadata;
  metadata.text("general.architecture", "llama");
  std::vector<std::string> notices = gguf::add_tokenizer(files, vocab_size, metadata);
  gguf::write_file(path, metadata, {});
  return notices;
}

TEST(GgufTokenizer, CutsTextsAsLlamaCppDoes) {
  const ordered_json golden = json_of(source_folder() / "tests/golden/gguf/cuts.json");
  const auto texts = golden["texts"].get<std::vector<std::string>>();
  const ordered_json source = json_of(source_folder() / "examples/tally-3m/tokenizer.json");
  std::vector<std::string> tokens(2048), merges;
  std::vector<int64_t> types(2048, 1);
  for (const auto& [token, id] : source["model"]["vocab"].items()) tokens[id.get<size_t>()] = token;
  for (const auto& added : source["added_tokens"]) {
    tokens[added["id"].get<size_t>()] = added["content"];
    types[added["id"].get<size_t>()] = 3;
  }
  for (const auto& merge : source["model"]["merges"])
    merges.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  const TemporaryFolder folder;
  int compared = 0;
  for (const auto& [name, ids] : golden["ids"].items()) {
    gguf::Metadata metadata;
    metadata.text("general.architecture", "llama");
    metadata.text("tokenizer.ggml.model", "gpt2");
    metadata.text("tokenizer.ggml.pre", name);
    metadata.texts("tokenizer.ggml.tokens", tokens);
    metadata.numbers("tokenizer.ggml.token_type", types);
    metadata.texts("tokenizer.ggml.merges", merges);
    metadata.number("tokenizer.ggml.bos_token_id", 0);
    metadata.number("tokenizer.ggml.eos_token_id", 2);
    gguf::write_file(folder / "x.gguf", metadata, {});
    const Tokenizer tokenizer = Tokenizer::load(folder / "x.gguf");
    EXPECT_EQ(tokenizer.eos_id(), 2);
    EXPECT_EQ(tokenizer.adds_bos(), name == "llama-bpe" || name == "tekken") << name;
    for (size_t row = 0; row < texts.size(); ++row) {
      if (ids[row].is_null()) continue;
      ++compared;
      EXPECT_EQ(tokenizer.encode(texts[row], SpecialTokens::Omit).ids,
                ids[row].get<std::vector<int32_t>>())
          << name << ": " << texts[row];
    }
  }
  EXPECT_GT(compared, 600);
}

// Expects the same ids for every golden text from the folder's tokenizer and from the GGUF file
// made of it.
void expect_same_ids(const fs::path& folder, const std::vector<std::string>& allowed_differences) {
  const TemporaryFolder scratch;
  const Tokenizer wanted = Tokenizer::load(folder);
  write_gguf(scratch / "x.gguf", files_of(folder), wanted.vocab_size() + 3);
  const Tokenizer found = Tokenizer::load(scratch / "x.gguf");
  EXPECT_EQ(found.vocab_size(), wanted.vocab_size());
  EXPECT_EQ(found.bos_id(), wanted.bos_id());
  EXPECT_EQ(found.eos_id(), wanted.eos_id());
  EXPECT_EQ(found.adds_bos(), wanted.adds_bos());
  EXPECT_EQ(found.adds_eos(), wanted.adds_eos());
  const ordered_json rows =
      json_of(source_folder() / "tests/golden/text/encodings.json")[0]["rows"];
  for (const auto& row : rows) {
    const std::string text = row["text"];
    if (std::find(allowed_differences.begin(), allowed_differences.end(), text) !=
        allowed_differences.end())
      continue;
    const auto ids = wanted.encode(text, SpecialTokens::Add).ids;
    EXPECT_EQ(found.encode(text, SpecialTokens::Add).ids, ids) << folder << ": " << text;
    EXPECT_EQ(found.decode(ids, false), wanted.decode(ids, false)) << folder << ": " << text;
  }
}

TEST(GgufTokenizer, IsTheOneItWasWrittenFrom) {
  expect_same_ids(source_folder() / "examples/tally-3m", {});
  expect_same_ids(source_folder() / "tests/golden/text/llama3", {});
  expect_same_ids(source_folder() / "tests/golden/text/gemma", {});
}

TEST(GgufTokenizer, WhatLlamaCppHasNotIsRefusedWithTheReason) {
  const TemporaryFolder scratch;
  const auto refusal = [&](const gguf::TokenizerFiles& files) {
    try {
      write_gguf(scratch / "x.gguf", files, 4096);
    } catch (const DataError& error) {
      return error.sentence();
    }
    return std::string();
  };
  EXPECT_NE(refusal(files_of(source_folder() / "tests/golden/text/unigram")).find("model.type"),
            std::string::npos);
  gguf::TokenizerFiles tally = files_of(source_folder() / "examples/tally-3m");
  gguf::TokenizerFiles other = tally;
  other.tokenizer["normalizer"] = {{"type", "Lowercase"}};
  EXPECT_NE(refusal(other).find("normalizer"), std::string::npos);
  other = tally;
  other.tokenizer["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "a+";
  EXPECT_NE(refusal(other).find("no name for the way"), std::string::npos);
  other = tally;
  other.tokenizer["model"]["vocab"]["zzz"] = 5000;
  EXPECT_NE(refusal(other).find("below the model's 4096 rows"), std::string::npos);
}

TEST(GgufTokenizer, BringsTheChatTemplate) {
  const TemporaryFolder scratch;
  const fs::path tally = source_folder() / "examples/tally-3m";
  const auto notices = write_gguf(scratch / "x.gguf", files_of(tally), 2048);
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_NE(notices[0].find("NFC"), std::string::npos);
  const auto found = ChatTemplate::load(scratch / "x.gguf");
  ASSERT_TRUE(found);
  const ordered_json chat = {{{"role", "user"}, {"content", "hi"}}};
  EXPECT_EQ(found->render(chat, {}, true).text,
            ChatTemplate::load(tally)->render(chat, {}, true).text);
}

TEST(GgufTokenizer, UnknownCutsAreRefusedByName) {
  const TemporaryFolder scratch;
  gguf::Metadata metadata;
  metadata.text("general.architecture", "llama");
  metadata.text("tokenizer.ggml.model", "gpt2");
  metadata.text("tokenizer.ggml.pre", "unheard-of");
  metadata.texts("tokenizer.ggml.tokens", {"a", "b"});
  metadata.texts("tokenizer.ggml.merges", {});
  gguf::write_file(scratch / "x.gguf", metadata, {});
  try {
    Tokenizer::load(scratch / "x.gguf");
    ADD_FAILURE() << "read";
  } catch (const DataError& error) {
    EXPECT_NE(error.sentence().find("`unheard-of` is not known"), std::string::npos);
    EXPECT_EQ(error.location().key, "tokenizer.ggml.pre");
  }
}

}  // namespace
}  // namespace convoy::text
