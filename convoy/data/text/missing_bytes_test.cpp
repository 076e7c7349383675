// SPDX-License-Identifier: Apache-2.0
//
// Tests byte-level vocabularies that lack some bytes, as SmolLM2's does.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/data/text/tokenizer.h"
#include "files/source_folder.h"
#include "files/temporary_folder.h"

namespace convoy::text {
namespace {

using nlohmann::json;
using testing::TemporaryFolder;

const std::string kBell = "\x07";
const std::string kUnassigned = "\xF1\x80\x80\x80";  // U+40000, an unassigned character

std::filesystem::path whole_folder() {
  return testing::source_folder() / "tests/golden/text/llama3";
}

// Gives the letter's id to a token that occurs in no text.
void remove_letter(json& tokenizer, const std::string& letter) {
  json& vocabulary = tokenizer["model"]["vocab"];
  const json id = vocabulary.at(letter);
  vocabulary.erase(letter);
  vocabulary["<unused " + id.dump() + ">"] = id;
}

const std::string kLetterOfByteFF = "\xC3\xBF";

// Returns the whole tokenizer without the tokens for the bytes 0x07, 0xF1 and 0xFF.
json lacking_tokenizer() {
  json tokenizer = json::parse(read_file(whole_folder() / "tokenizer.json"));
  for (const std::string letter : {"\xC4\x87", "\xC3\xB1"}) remove_letter(tokenizer, letter);
  remove_letter(tokenizer, kLetterOfByteFF);
  return tokenizer;
}

Tokenizer load(const TemporaryFolder& folder, const json& tokenizer) {
  write_file_atomic(folder.path() / "tokenizer.json", tokenizer.dump());
  write_file_atomic(folder.path() / "tokenizer_config.json",
                    read_file(whole_folder() / "tokenizer_config.json"));
  return Tokenizer::load(folder.path());
}

std::string refusal(const Tokenizer& tokenizer, const std::string& text) {
  try {
    tokenizer.encode(text, SpecialTokens::Omit);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

TEST(MissingBytes, EveryOtherTextIsReadAsBefore) {
  const TemporaryFolder folder;
  const Tokenizer lacking = load(folder, lacking_tokenizer());
  const json golden =
      json::parse(read_file(testing::source_folder() / "tests/golden/text/encodings.json"));
  int read = 0;
  for (const json& entry : golden) {
    if (!entry["folder"].get<std::string>().ends_with("/llama3")) continue;
    for (const json& row : entry["rows"]) {
      const std::string text = row["text"].get<std::string>();
      if (text.find(kBell) != std::string::npos || text.find('\xF1') != std::string::npos) continue;
      EXPECT_EQ(lacking.encode(text, SpecialTokens::Omit).ids,
                row["ids"].get<std::vector<int32_t>>());
      ++read;
    }
  }
  EXPECT_GE(read, 20);
}

TEST(MissingBytes, ATextThatNeedsOneIsRefusedByItsLetter) {
  const TemporaryFolder folder;
  json tokenizer = lacking_tokenizer();
  for (const json& normalizer : {json(nullptr), json{{"type", "NFC"}}, json{{"type", "NFKD"}}}) {
    SCOPED_TRACE(normalizer.dump());
    tokenizer["normalizer"] = normalizer;
    const Tokenizer lacking = load(folder, tokenizer);
    EXPECT_NE(refusal(lacking, "ring the bell" + kBell).find("U+0007"), std::string::npos);
    EXPECT_NE(refusal(lacking, kUnassigned + " is no letter").find("U+40000"), std::string::npos);
    EXPECT_EQ(refusal(lacking, "\xC3\xA9t\xC3\xA9 \xF0\x9F\x98\x80"), "");
  }
}

TEST(MissingBytes, AnAddedTokenMayHoldThem) {
  const TemporaryFolder folder;
  json tokenizer = lacking_tokenizer();
  json added = tokenizer["added_tokens"].back();
  added["content"] = "<" + kBell + ">";
  added["id"] = added["id"].get<int>() + 1;
  tokenizer["added_tokens"].push_back(added);
  const Tokenizer lacking = load(folder, tokenizer);
  EXPECT_EQ(lacking.encode("<" + kBell + ">", SpecialTokens::Omit).ids,
            std::vector<int32_t>{added["id"].get<int32_t>()});
  EXPECT_NE(refusal(lacking, "<" + kBell + "> " + kBell), "");
}

TEST(MissingBytes, AreToldInOneSentence) {
  const TemporaryFolder folder;
  EXPECT_EQ(load(folder, lacking_tokenizer()).missing_letters(),
            "the tokenizer cannot spell a few rare letters (U+0007, those with the byte 0xF1; 3 of "
            "256 bytes have no token): a text that holds one is refused, all others are read");
  EXPECT_EQ(Tokenizer::load(whole_folder()).missing_letters(), "");
  json only_impossible = json::parse(read_file(whole_folder() / "tokenizer.json"));
  remove_letter(only_impossible, kLetterOfByteFF);
  EXPECT_EQ(load(folder, only_impossible).missing_letters(), "");
}

}  // namespace
}  // namespace convoy::text
