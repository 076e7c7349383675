// SPDX-License-Identifier: Apache-2.0
//
// Compares the direct tokenizer (rust/text/src/direct.rs) with the tokenizers library. A normalizer
// that replaces a text that never occurs changes no result, but the direct tokenizer is not used
// with it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "convoy/core/base/files.h"
#include "convoy/data/text/tokenizer.h"
#include "files/source_folder.h"
#include "files/temporary_folder.h"

namespace convoy::text {
namespace {

using nlohmann::ordered_json;
namespace fs = std::filesystem;
using testing::source_folder;

constexpr const char* kQwen2 =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
    "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
constexpr const char* kLlama3 =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

ordered_json bytes(bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

ordered_json split(const char* pattern, const char* behavior, bool invert) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", pattern}}},
          {"behavior", behavior},
          {"invert", invert}};
}

ordered_json sequence(const char* members, std::vector<ordered_json> steps) {
  return {{"type", "Sequence"}, {members, std::move(steps)}};
}

ordered_json replace(const char* pattern, const char* content) {
  return {{"type", "Replace"}, {"pattern", {{"String", pattern}}}, {"content", content}};
}

std::vector<ordered_json> pre_tokenizers() {
  const auto steps = [](std::vector<ordered_json> list) {
    return sequence("pretokenizers", std::move(list));
  };
  const auto digits = [](bool each) {
    return ordered_json{{"type", "Digits"}, {"individual_digits", each}};
  };
  return {bytes(true),
          steps({split(kQwen2, "Isolated", false), bytes(false)}),
          steps({split(kLlama3, "Isolated", false), bytes(false)}),
          steps({split(kLlama3, "Removed", true), bytes(false)}),
          steps({split("\\s+", "Removed", false), bytes(true)}),
          steps({digits(true), bytes(true)}),
          steps({digits(false), split(kLlama3, "Isolated", true), bytes(false)})};
}

std::vector<ordered_json> post_processors(int bos) {
  const ordered_json frame = {
      {"type", "TemplateProcessing"},
      {"single",
       {{{"SpecialToken", {{"id", "<|im_start|>"}, {"type_id", 0}}}},
        {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
      {"pair",
       {{{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
        {{"Sequence", {{"id", "B"}, {"type_id", 1}}}}}},
      {"special_tokens",
       {{"<|im_start|>", {{"id", "<|im_start|>"}, {"ids", {bos}}, {"tokens", {"<|im_start|>"}}}}}}};
  return {nullptr, bytes(false), frame, sequence("processors", {bytes(false), frame})};
}

std::vector<std::string> hostile_texts() {
  const std::vector<std::string> bits = {" ",
                                         "  ",
                                         "\n",
                                         "\r\n",
                                         "\t",
                                         "a",
                                         "Zebra",
                                         "'s",
                                         "'S",
                                         "'ll",
                                         "1",
                                         "2024",
                                         "½",
                                         "é",
                                         "e\u0301",
                                         "\u0301",
                                         "日本",
                                         "😀",
                                         "👩\u200d👩\u200d👧",
                                         "\u200b",
                                         "\u00a0",
                                         "ß",
                                         "İ",
                                         "ǆ",
                                         "한",
                                         "각",
                                         "Å",
                                         "<|im_start|>",
                                         "<|im_end|>",
                                         "<|endoftext|>",
                                         "<|im_",
                                         "!!",
                                         "...",
                                         "_",
                                         "٣",
                                         "²",
                                         "\u2028",
                                         "don't",
                                         "\x01",
                                         "ﬁ",
                                         "🇩🇪",
                                         "plus",
                                         "plusplus",
                                         "▁",
                                         "▁▁",
                                         "   "};
  std::mt19937 draw(7);
  std::vector<std::string> texts = {"", " ",
                                    "A longer piece without any break:", std::string(300, 'x')};
  for (int text = 0; text < 80; ++text) {
    std::string& made = texts.emplace_back();
    for (size_t bit = draw() % 12; bit > 0; --bit) made += bits[draw() % bits.size()];
  }
  return texts;
}

Tokenizer loaded(const ordered_json& file, const fs::path& folder) {
  fs::create_directories(folder);
  write_file_atomic(folder / "tokenizer.json", file.dump());
  return Tokenizer::load(folder);
}

void expect_equal(const Tokenizer& quick, const Tokenizer& library) {
  for (const std::string& text : hostile_texts())
    for (const SpecialTokens special : {SpecialTokens::Omit, SpecialTokens::Add}) {
      const Encoding found = quick.encode(text, special);
      const Encoding wanted = library.encode(text, special);
      ASSERT_EQ(found.ids, wanted.ids) << text;
      ASSERT_EQ(found.begins, wanted.begins) << text;
      ASSERT_EQ(found.ends, wanted.ends) << text;
    }
}

// Compares the direct tokenizer with the library, which is used because of a further normalizer
// that changes nothing.
void expect_equal_to_library(ordered_json file, std::vector<ordered_json> normalizers,
                             const fs::path& folder) {
  file["normalizer"] = normalizers.empty()       ? ordered_json()
                       : normalizers.size() == 1 ? normalizers[0]
                                                 : sequence("normalizers", normalizers);
  const Tokenizer quick = loaded(file, folder / "quick");
  normalizers.push_back(replace("\uE000zz", "\uE000zz"));
  file["normalizer"] = sequence("normalizers", normalizers);
  expect_equal(quick, loaded(file, folder / "library"));
}

TEST(DirectTokenizer, WritesBytesAsTheLibraryDoes) {
  const testing::TemporaryFolder folder;
  ordered_json file =
      ordered_json::parse(read_file(source_folder() / "examples/tally-3m/tokenizer.json"));
  int bos = 0;
  for (ordered_json& token : file["added_tokens"])
    if (token["content"] == "<|im_start|>") bos = token["id"].get<int>();
  // An added token that is matched after normalization, and that is part of longer words.
  ordered_json late = file["added_tokens"].back();
  late["content"] = "plus";
  late["normalized"] = true;
  late["id"] = file["model"]["vocab"].size();
  file["added_tokens"].push_back(late);
  int tokenizers = 0;
  for (const char* normalizer : {"", "NFC", "NFKC"})
    for (const ordered_json& pre_tokenizer : pre_tokenizers())
      for (const ordered_json& post_processor : post_processors(bos)) {
        SCOPED_TRACE(
            fmt::format("{} {} {}", normalizer, pre_tokenizer.dump(), post_processor.dump()));
        std::vector<ordered_json> normalizers;
        if (*normalizer != '\0') normalizers.push_back({{"type", normalizer}});
        file["pre_tokenizer"] = pre_tokenizer;
        file["post_processor"] = post_processor;
        file["model"]["ignore_merges"] = tokenizers % 2 == 1;
        expect_equal_to_library(file, normalizers, folder.path());
        ++tokenizers;
      }
  EXPECT_EQ(tokenizers, 84);
}

// Tests the tokenizers of Gemma and Llama 2, with a normalizer and with every form of Metaspace.
TEST(DirectTokenizer, WritesSpacesAsTheLibraryDoes) {
  const testing::TemporaryFolder folder;
  const auto golden = [](const char* name) {
    return ordered_json::parse(
        read_file(source_folder() / "tests/golden/text" / name / "tokenizer.json"));
  };
  const ordered_json marks = replace(" ", "▁");
  const ordered_json front = {{"type", "Prepend"}, {"prepend", "▁"}};
  for (const char* name : {"gemma", "metaspace"})
    for (const bool fuse_unk : {true, false}) {
      SCOPED_TRACE(name);
      ordered_json file = golden(name);
      file["model"]["fuse_unk"] = fuse_unk;
      file["pre_tokenizer"] = nullptr;
      expect_equal_to_library(file, {marks}, folder.path());
      expect_equal_to_library(file, {front, marks}, folder.path());
      file["pre_tokenizer"] = golden("gemma")["pre_tokenizer"];
      expect_equal_to_library(file, {marks}, folder.path());
      for (const char* scheme : {"first", "always", "never"})
        for (const bool split : {true, false}) {
          SCOPED_TRACE(fmt::format("{} {}", scheme, split));
          file["pre_tokenizer"] = {{"type", "Metaspace"},
                                   {"replacement", "▁"},
                                   {"prepend_scheme", scheme},
                                   {"split", split}};
          expect_equal_to_library(file, {}, folder.path());
        }
    }
}

// Two tokenizers that alternate on one thread do not use each other's cached pieces.
TEST(DirectTokenizer, TokenizersDoNotMix) {
  const testing::TemporaryFolder folder;
  ordered_json file =
      ordered_json::parse(read_file(source_folder() / "examples/tally-3m/tokenizer.json"));
  const Tokenizer merged = loaded(file, folder / "merged");
  file["model"]["merges"] = ordered_json::array();
  const Tokenizer bare = loaded(file, folder / "bare");
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_LT(merged.encode("apples and pears", SpecialTokens::Omit).ids.size(), 16U);
    EXPECT_EQ(bare.encode("apples and pears", SpecialTokens::Omit).ids.size(), 16U);
  }
}

}  // namespace
}  // namespace convoy::text
