// SPDX-License-Identifier: Apache-2.0
//
// Damaged configuration files give a tree with known lines, or a ConfigError.
#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/core/config/document.h"
#include "files/mutated_texts.h"

namespace convoy::config {
namespace {

int64_t num_nodes(const Node& node) {
  int64_t sum = 1;
  EXPECT_GE(node.line, 0);
  for (const Node& item : node.items) sum += num_nodes(item);
  for (const auto& [key, value] : node.entries) sum += num_nodes(value);
  return sum;
}

TEST(MutatedDocuments, AreReadOrRefused) {
  testing::MutatedTexts texts(
      {"model: &m\n  name: \"tiny\"  # a comment\n  layers: [1, 2, {a: b}]\ntrain:\n  lr: 1e-4\n  "
       "text: |\n    two\n    lines\ncopy: *m\n",
       "- a\n- 'b c'\n- [x, y]\n- {k: v, \"q\": 'r'}\n- ? long\n  : value\n",
       "a: >-\n  folded\n  text\nb: ~\n"});
  int read = 0, refused = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::string text = texts.next();
    for (const bool file : {true, false}) {
      try {
        EXPECT_GT(num_nodes(file ? parse_yaml(text, "a.yaml") : parse_inline(text, "--set")), 0);
        ++read;
      } catch (const ConfigError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(read, 300);
  EXPECT_GT(refused, 300);
}

}  // namespace
}  // namespace convoy::config
