// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "convoy/core/base/error.h"
#include "convoy/core/io/json_reader.h"
#include "convoy/core/io/json_text.h"
#include "load/slowdown.h"

namespace convoy::io {
namespace {

std::string message_of(const auto& action) {
  try {
    action();
  } catch (const DataError& error) {
    EXPECT_EQ(error.code(), ExitCode::BadInput);
    return error.sentence();
  }
  return "";
}

TEST(ParseJson, KeepsValuesAndOrder) {
  const Json json = parse_json(R"( {"b": [1, -2, 3.5, "x", null, true], "a": {"c": {}}} )", "f");
  EXPECT_EQ(json.dump(), R"({"b":[1,-2,3.5,"x",null,true],"a":{"c":{}}})");
  EXPECT_EQ(parse_json("7", "f"), Json(7));
}

TEST(ParseJson, RefusesWhatTheGrammarOrTheLimitsForbid) {
  for (const std::string& text :
       {std::string(""), std::string("{"), std::string("{\"a\":1}x"), std::string("[1,]"),
        std::string("NaN"), std::string("{\"a\":1,\"a\":2}"), std::string("\"\xff\""),
        std::string("1\0", 2), std::string("\"\\ud800\"")})
    EXPECT_NE(message_of([&] { parse_json(text, "here.json"); }).find("here.json"),
              std::string::npos)
        << text;
  EXPECT_NE(message_of([] { parse_json("[1,2,3]", "f", {.max_values = 3}); }), "");
  EXPECT_NE(message_of([] { parse_json("[1,2,3]", "f", {.max_bytes = 6}); }), "");
}

TEST(ParseJson, DepthIsLimitedBeforeAnythingRecurses) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(parse_json(nested(256), "f").dump(), nested(256));
  EXPECT_NE(message_of([&] { parse_json(nested(257), "f"); }).find("deeper"), std::string::npos);
  EXPECT_NE(message_of([&] { parse_json(std::string(10'000'000, '['), "f"); }), "");
  std::string objects;
  for (int depth = 0; depth < 100'000; ++depth) objects += "{\"a\":";
  EXPECT_NE(message_of([&] { parse_json(objects, "f"); }).find("deeper"), std::string::npos);
}

TEST(ParseJson, ObjectsOfManyKeysTakeLinearTime) {
  std::string text = "{";
  for (int key = 0; key < 100'000; ++key)
    text += fmt::format("{}\"key.{}\":1", key ? "," : "", key);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(parse_json(text + "}", "f").size(), 100'000u);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, testing::within(5));
}

TEST(ParseJson, MessagesStayShortWhateverTheFileHolds) {
  EXPECT_LT(
      message_of([] { parse_json("{\"" + std::string(1'000'000, 'x') + "\xff\":1}", "f"); }).size(),
      600u);
}

TEST(JsonReader, NamesFileKeyAndValue) {
  const JsonReader reader(
      parse_json(
          R"({"size":8,"half":0.5,"negative":-1,"huge":99999999999999999999,"unsigned":18446744073709551615,
                     "whole":8.0,"word":"x","none":null,"inside":{"factor":"y"},"list":[1,2],"words":["a","b"],"on":true})",
          "f"),
      "config.json");
  EXPECT_EQ(reader.require_int("size", 1, 100), 8);
  EXPECT_EQ(reader.int_or("none", 5, 1, 100), 5);
  EXPECT_EQ(reader.double_or("size", 0, 0, 10), 8.0);
  EXPECT_EQ(reader.ints_or_empty("list", 0, 9), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(reader.ints_or_empty("size", 0, 9), (std::vector<int64_t>{8}));
  EXPECT_EQ(reader.strings_or_empty("words"), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(reader.bool_or("on", false));
  EXPECT_FALSE(reader.has("none"));
  for (const char* key :
       {"half", "negative", "huge", "unsigned", "whole", "word", "list", "on", "missing"}) {
    const std::string message = message_of([&] { reader.require_int(key, 1, 100); });
    EXPECT_NE(message.find("config.json"), std::string::npos) << key;
    EXPECT_NE(message.find(key), std::string::npos) << message;
  }
  EXPECT_NE(message_of([&] { reader.require_double("word", 0, 1); }), "");
  EXPECT_NE(message_of([&] { reader.require_double("huge", 0, 1); }), "");
  EXPECT_NE(message_of([&] { reader.require_string("size"); }), "");
  EXPECT_NE(message_of([&] { reader.strings_or_empty("list"); }), "");
  EXPECT_NE(message_of([&] { reader.ints_or_empty("words", 0, 9); }), "");
  EXPECT_NE(message_of([&] { reader.optional_bool("size"); }), "");
  EXPECT_NE(message_of([&] { reader.optional_object("size"); }), "");
  EXPECT_NE(message_of([&] {
              reader.require_object("inside").require_double("factor", 0, 1);
            }).find("inside.factor"),
            std::string::npos);
  EXPECT_NE(message_of([] { JsonReader(Json::array(), "f"); }), "");
}

TEST(JsonReader, WhatIsNotSupportedAsksForNoOtherFile) {
  const JsonReader reader(parse_json(R"({"inside":{"form":"y"}})", "f"), "config.json");
  try {
    reader.require_object("inside").fail_unsupported("form", "`y` is not supported", "take x");
  } catch (const DataError& error) {
    EXPECT_EQ(error.sentence(),
              "config.json: inside.form: `y` is not supported (take x; leave this file as it is: "
              "it says what the weights are)");
    EXPECT_EQ(error.location().key, "inside.form");
    return;
  }
  FAIL() << "nothing was thrown";
}

TEST(SortedJsonText, IsWhatPythonWrites) {
  // json.dumps({"b": [1, 2.5], "a": {}, "é": None}, indent=2, sort_keys=True, ensure_ascii=False)
  EXPECT_EQ(
      sorted_json_text({{"b", {1, 2.5}}, {"a", nlohmann::json::object()}, {"é", nullptr}}, false),
      "{\n  \"a\": {},\n  \"b\": [\n    1,\n    2.5\n  ],\n  \"é\": null\n}");
}

}  // namespace
}  // namespace convoy::io
