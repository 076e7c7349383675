// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/config/document.h"

#include <gtest/gtest.h>

#include "convoy/core/config/example_settings_test.h"

namespace convoy::config {
namespace {

// Returns "file:line: message" of the error that `text` causes, or "" if it is accepted.
std::string document_error_of(const std::string& text) {
  try {
    parse_yaml(text, "run.yaml");
    return "";
  } catch (const ConfigError& error) {
    return error.sentence();
  }
}

TEST(Document, KeepsTextQuotesAndLines) {
  const Node tree =
      parse_yaml("a: 1e-4\n\nb:\n  c: \"null\"\n  d: null\n  e: [x, 'y']\n", "f.yaml");
  ASSERT_EQ(tree.kind, NodeKind::Map);
  EXPECT_EQ(tree.find("a")->text, "1e-4");
  EXPECT_EQ(tree.find("a")->line, 1);
  const Node* b = tree.find("b");
  EXPECT_EQ(b->line, 3);
  EXPECT_EQ(b->find("c")->kind, NodeKind::Scalar);
  EXPECT_EQ(b->find("c")->text, "null");
  EXPECT_EQ(b->find("c")->line, 4);
  EXPECT_EQ(b->find("d")->kind, NodeKind::Null);
  ASSERT_EQ(b->find("e")->items.size(), 2u);
  EXPECT_EQ(b->find("e")->items[1].text, "y");
  EXPECT_EQ(b->find("e")->where(), "f.yaml:6");
}

TEST(Document, EmptyTextIsNothing) {
  EXPECT_EQ(parse_yaml("", "f.yaml").kind, NodeKind::Null);
  EXPECT_EQ(parse_yaml("# only words\n", "f.yaml").kind, NodeKind::Null);
}

TEST(Document, RefusesDuplicateKeys) {
  EXPECT_EQ(document_error_of("a:\n  x: 1\n  y: 2\n  x: 3\n"),
            "run.yaml:4: `x` is given twice, first on line 2 (keep one of them)");
  EXPECT_EQ(document_error_of("a: {x: 1, x: 1}\n"),
            "run.yaml:1: `x` is given twice, first on line 1 (keep one of them)");
  EXPECT_EQ(document_error_of("a: {x: 1}\nb: {x: 1}\n"), "");
}

TEST(Document, RefusesMergeKeysTagsAndSecondDocuments) {
  EXPECT_EQ(document_error_of("base: &b {x: 1}\nrun:\n  <<: *b\n"),
            "run.yaml:3: merge keys (<<) are not supported (write the keys out, or use include:)");
  EXPECT_EQ(document_error_of("a: !!python/object x\n").substr(0, 22), "run.yaml:1: the YAML t");
  EXPECT_EQ(document_error_of("a: 1\n---\nb: 2\n"),
            "run.yaml:3: a second document after --- (write all settings into one document; files "
            "are merged by include:)");
}

TEST(Document, RefusesTabsBytesAndBrokenYaml) {
  EXPECT_EQ(document_error_of("a:\n\tb: 1\n"),
            "run.yaml:2: a tab indents this line (YAML needs spaces)");
  EXPECT_NE(document_error_of("a:\n  \tb: 1\n"), "");
  EXPECT_EQ(
      document_error_of("a: \xff\n"),
      "run.yaml: this file is not UTF-8 text (save it as UTF-8: iconv -f latin1 -t utf-8 FILE)");
  EXPECT_EQ(
      document_error_of(std::string("a: 1\n\0", 6)),
      "run.yaml:2: a zero byte: this is not a text file (name the YAML file of the settings)");
  EXPECT_EQ(document_error_of("a: [1, 2\nb: 3\n").substr(0, 9), "run.yaml:");
  EXPECT_NE(document_error_of("a: 1\n  b: 2\n").find("not valid YAML"), std::string::npos);
  EXPECT_EQ(
      document_error_of("? [a, b]\n: 1\n"),
      "run.yaml:1: a key must be a word (write KEY: VALUE, without a list or a map as the key)");
}

TEST(Document, ResolvesAnchors) {
  const Node tree = parse_yaml("a: &x [1, 2]\nb: *x\n", "f.yaml");
  EXPECT_EQ(tree.find("b")->items.size(), 2u);
  EXPECT_EQ(tree.find("b")->line, 2);
}

TEST(Document, BoundsAnchorsAndDepth) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int level = 1; level < 12; ++level) {
    const std::string below = "*a" + std::to_string(level - 1);
    bomb += "a" + std::to_string(level) + ": &a" + std::to_string(level) + " [" + below;
    for (int copy = 1; copy < 10; ++copy) bomb += ", " + below;
    bomb += "]\n";
  }
  EXPECT_NE(document_error_of(bomb).find("more than 100000 values"), std::string::npos);
  EXPECT_NE(document_error_of("a: " + std::string(40, '[') + std::string(40, ']') + "\n")
                .find("nested deeper"),
            std::string::npos);
  EXPECT_NE(document_error_of("a: " + std::string(200'000, '[') + "\n"), "");
  EXPECT_NE(document_error_of("a: &x [*x]\n"), "");
}

TEST(Document, FileErrorsNameTheFile) {
  const TemporaryFolder folder;
  folder.write("nine.yaml", "a: 1\n");
  folder.write("rows.jsonl", "{}\n");
  try {
    load_yaml(folder.path() / "none.yaml");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.code(), ExitCode::Usage);
    EXPECT_NE(error.sentence().find("none.yaml"), std::string::npos);
    EXPECT_EQ(error.location().hint, folder.path().string() + " holds nine.yaml");
  }
  const auto large = folder.write("large.yaml", "a: " + std::string(5 << 20, 'x') + "\n");
  EXPECT_THROW(load_yaml(large), ConfigError);
}

TEST(Document, InlineTextIsPlainUnlessItReadsAsAList) {
  EXPECT_EQ(parse_inline("[a, b]", "command line").items.size(), 2u);
  EXPECT_EQ(parse_inline("{a: 1}", "command line").kind, NodeKind::Map);
  EXPECT_EQ(parse_inline("a: b # c", "command line").text, "a: b # c");
  EXPECT_EQ(parse_inline("[a", "command line").kind, NodeKind::Scalar);
  EXPECT_EQ(parse_inline("null", "command line").text, "null");
  EXPECT_EQ(parse_inline("[a]", "command line").items[0].where(), "command line");
}

}  // namespace
}  // namespace convoy::config
