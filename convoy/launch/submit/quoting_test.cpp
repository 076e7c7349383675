// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/submit/quoting.h"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "files/run_script.h"
#include "files/temporary_folder.h"

namespace convoy::launch {
namespace {

const std::vector<std::string> kHostile = {
    "",
    "plain-word_1.2/3:4,5+6@7%8=9",
    "two words",
    "it's",
    "\"double\" and 'single' and \\back\\slash\\",
    "line one\nline two\n",
    "\ttab\rreturn",
    "$HOME ${x} $(touch hacked) `touch hacked`",
    "~root",
    "[0]=index",
    "{a,b}",
    "*?[a-z]",
    "!history",
    "# no comment",
    "a;b|c&d<e>f",
    "-",
    "--flag=value with space",
    "\xc3\xbcml\xc3\xa4ut \xe6\xbc\xa2 \xf0\x9f\x98\x80",
    "\x01\x02\x1b[31m",
    "yes",
    "null",
    "0x1f",
    "1e3",
    "2026-01-01",
    "1:30",
    "- item",
    "key: value",
    "%YAML",
    "@at",
    "&anchor *alias",
    "|",
    " leading and trailing ",
};

TEST(Quoting, AShellReadsBackEveryWord) {
  const testing::TemporaryFolder folder;
  std::vector<std::string> words = kHostile;
  words.push_back("\xff\xfe no UTF-8");
  const testing::ScriptEnd end = testing::run_script(
      folder.path(), "words=(" + shell_words(words) + ")\nprintf '%s\\0' \"${words[@]}\"\n");
  ASSERT_EQ(end.code, 0);
  std::string wanted;
  for (const std::string& word : words) wanted += word + '\0';
  EXPECT_EQ(end.out, wanted);
  EXPECT_FALSE(std::filesystem::exists(folder / "hacked"));
}

TEST(Quoting, PlainWordsStayReadable) {
  EXPECT_EQ(shell_words({"convoy", "train", "run.yaml", "train.batch_size=2"}),
            "convoy train run.yaml train.batch_size=2");
}

TEST(Quoting, YamlReadsBackEveryString) {
  std::vector<std::string> words = kHostile;
  words.push_back("next\xc2\x85line \xe2\x80\xa8 separator \xc2\x9f \x7f \xef\xbb\xbf mark");
  const nlohmann::ordered_json document = {{"words", words}, {"nested", {{"a b: c", words}}}};
  const YAML::Node read = YAML::Load(yaml_text(document));
  ASSERT_EQ(read["words"].size(), words.size());
  for (size_t at = 0; at < words.size(); ++at) {
    EXPECT_EQ(read["words"][at].as<std::string>(), words[at]);
    EXPECT_EQ(read["nested"]["a b: c"][at].as<std::string>(), words[at]);
  }
}

TEST(Quoting, NoStringIsTakenForAnotherType) {
  for (const char* word :
       {"yes", "No", "TRUE", "null", "~", "0x1f", "1e3", "12", "2026-01-01", "1:30", ".inf", ""})
    EXPECT_EQ(YAML::Load(yaml_text({{"word", word}}))["word"].Tag(), "!") << word;  // quoted
}

TEST(Quoting, YamlKeepsTheShape) {
  const nlohmann::ordered_json document = {
      {"list", nlohmann::ordered_json::array({{{"a", 1}, {"b", {{"c", true}}}}, "x", {1, 2}})},
      {"empty", nlohmann::ordered_json::object()},
      {"none", nlohmann::ordered_json::array()}};
  const YAML::Node read = YAML::Load(yaml_text(document));
  EXPECT_EQ(read["list"][0]["a"].as<int>(), 1);
  EXPECT_TRUE(read["list"][0]["b"]["c"].as<bool>());
  EXPECT_EQ(read["list"][1].as<std::string>(), "x");
  EXPECT_EQ(read["list"][2][1].as<int>(), 2);
  EXPECT_TRUE(read["empty"].IsMap());
  EXPECT_TRUE(read["none"].IsSequence());
}

TEST(Quoting, YamlRefusesBytesThatAreNoText) {
  EXPECT_THROW(yaml_text({{"word", "\xff"}}), ConfigError);
}

}  // namespace
}  // namespace convoy::launch
