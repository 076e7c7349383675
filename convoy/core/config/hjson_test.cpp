// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/config/hjson.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"

namespace convoy::config {
namespace {

// Returns the JSON value of a node. A quoted scalar is a text, and another scalar is a JSON
// literal.
nlohmann::ordered_json json_of(const Node& node) {
  switch (node.kind) {
    case NodeKind::Null:
      return nullptr;
    case NodeKind::Scalar:
      return node.quoted ? nlohmann::ordered_json(node.text)
                         : nlohmann::ordered_json::parse(node.text);
    case NodeKind::List: {
      nlohmann::ordered_json list = nlohmann::ordered_json::array();
      for (const Node& item : node.items) list.push_back(json_of(item));
      return list;
    }
    case NodeKind::Map: {
      nlohmann::ordered_json map = nlohmann::ordered_json::object();
      for (const auto& [key, value] : node.entries) map[key] = json_of(value);
      return map;
    }
  }
  return {};
}

std::string hjson_error_of(const std::string& text) {
  try {
    parse_hjson(text, "ds.json");
  } catch (const ConfigError& error) {
    return error.sentence();
  }
  return "";
}

TEST(Hjson, ReadsWhatDeepSpeedsParserReads) {
  const char* source = std::getenv("CONVOY_SOURCE_DIR");
  const auto cases = nlohmann::ordered_json::parse(
      read_file(std::string(source == nullptr ? "." : source) + "/tests/golden/config/hjson.json"));
  ASSERT_GT(cases.size(), 30U);
  for (const auto& entry : cases) {
    const auto text = entry["text"].get<std::string>();
    if (entry["read"].is_null()) {
      EXPECT_NE(hjson_error_of(text), "") << text;
    } else {
      EXPECT_EQ(hjson_error_of(text), "") << text;
      EXPECT_EQ(json_of(parse_hjson(text, "ds.json")), entry["read"]["value"]) << text;
    }
  }
}

TEST(Hjson, EveryNodeKnowsItsLine) {
  const Node root = parse_hjson("{ // c\n\"a\":\n1,\n/* x\ny */ \"b\": {\n\"c\": 2}}", "ds.json");
  EXPECT_EQ(root.find("a")->where(), "ds.json:2");
  EXPECT_EQ(root.find("b")->where(), "ds.json:5");
  EXPECT_EQ(root.find("b")->find("c")->where(), "ds.json:6");
}

TEST(Hjson, ErrorsNameTheLine) {
  EXPECT_EQ(hjson_error_of("{\n\"a\": 1,\n\"a\": 2}"),
            "ds.json:3: `a` is given twice, first on line 2 (keep one of them)");
  const std::string way_out =
      " (a member is KEY: VALUE on a line of its own, each { and [ is closed by } and ], and a "
      "text "
      "with , : or # stands in quotes)";
  EXPECT_EQ(hjson_error_of("{\n\"a\": 1\n"), "ds.json:3: the { of line 1 is not closed" + way_out);
  EXPECT_EQ(hjson_error_of("{\n/* open"),
            "ds.json:2: the comment that begins here has no end" + way_out);
  EXPECT_EQ(
      hjson_error_of(std::string("{\"a\": \"\xff\"}")),
      "ds.json: this file is not UTF-8 text (save it as UTF-8: iconv -f latin1 -t utf-8 FILE)");
  EXPECT_NE(hjson_error_of(std::string(100, '[')).find("nested deeper than 32"), std::string::npos);
}

TEST(Hjson, KeysGivenTwiceAreAddedToTheOtherErrors) {
  ErrorList errors;
  const Node root = parse_hjson("{a: 1\na: 2\nb: 3\nb: 4}", "ds.json", &errors);
  EXPECT_EQ(root.entries.size(), 2U);
  EXPECT_THROW(errors.throw_if_any(), ConfigError);
}

TEST(Hjson, NoTextBringsTheReaderDown) {
  const std::string whole =
      "{ // c\n\"a\": [1, 'x', '''y\nz'''], b: {\"c\\u00e9\": -1e3}, d: rest of line\n}";
  for (size_t cut = 0; cut < whole.size(); ++cut) {
    hjson_error_of(whole.substr(0, cut));
    hjson_error_of(whole.substr(cut));
    for (const char letter : std::string("{}[]\"':,/*#\\\n\0u", 15)) {
      std::string changed = whole;
      changed[cut] = letter;
      hjson_error_of(changed);
    }
  }
}

}  // namespace
}  // namespace convoy::config
