// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/api_form.h"

#include <gtest/gtest.h>

#include <string>

#include "convoy/apps/recipes/serving/api_request.h"

namespace convoy::recipes {
namespace {

using text::GrammarKind;

std::optional<AskedForm> form_of(const std::string& fields, ApiKind kind = ApiKind::Chat) {
  const std::string asked =
      kind == ApiKind::Chat ? R"("messages":[{"role":"user","content":"a"}])" : R"("prompt":"a")";
  return parse_api_request(kind, R"({"model":"m",)" + asked + "," + fields + "}").form;
}

void expect_form(const std::string& fields, GrammarKind kind, const std::string& text) {
  for (const ApiKind api : {ApiKind::Chat, ApiKind::Completion}) {
    const std::optional<AskedForm> form = form_of(fields, api);
    ASSERT_TRUE(form.has_value()) << fields;
    EXPECT_EQ(form->source.kind, kind) << fields;
    EXPECT_EQ(form->source.text, text) << fields;
  }
}

void expect_refused(const std::string& fields, const std::string& parameter,
                    const std::string& words = {}) {
  try {
    form_of(fields);
    ADD_FAILURE() << fields;
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status(), 400);
    EXPECT_EQ(error.body()["error"]["param"], parameter) << fields;
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

TEST(ApiForm, IsReadInBothWaysOfWritingIt) {
  expect_form(R"("response_format":{"type":"json_object"})", GrammarKind::JsonSchema,
              R"({"type":"object"})");
  expect_form(R"("response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,)"
              R"("description":"d","schema":{"properties":{"b":{},"a":{}}}}})",
              GrammarKind::JsonSchema, R"({"properties":{"b":{},"a":{}}})");
  expect_form(R"("structured_outputs":{"json":{"type":"object"}})", GrammarKind::JsonSchema,
              R"({"type":"object"})");
  expect_form(R"("structured_outputs":{"json":"{\"type\": \"null\"}"})", GrammarKind::JsonSchema,
              R"({"type":"null"})");
  expect_form(R"("structured_outputs":{"regex":"[0-9]+"})", GrammarKind::Regex, "[0-9]+");
  expect_form(R"("structured_outputs":{"choice":["a","b"]})", GrammarKind::Choice, R"(["a","b"])");
  expect_form(R"("structured_outputs":{"grammar":"start: \"a\"","regex":null})", GrammarKind::Lark,
              R"(start: "a")");
  EXPECT_FALSE(form_of(R"("response_format":{"type":"text"},"structured_outputs":null)"));
}

TEST(ApiForm, WhatCannotBeHonouredIsRefusedByName) {
  expect_refused(R"("response_format":{"type":"xml"})", "response_format.type");
  expect_refused(R"("response_format":{"type":"json_schema"})", "response_format.json_schema");
  expect_refused(R"("response_format":{"type":"json_schema","json_schema":{"name":"n"}})",
                 "response_format.json_schema.schema");
  expect_refused(R"("response_format":{"type":"json_object","schema":{}})",
                 "response_format.schema");
  expect_refused(R"("structured_outputs":{})", "structured_outputs");
  expect_refused(R"("structured_outputs":{"json":"{"})", "structured_outputs.json");
  expect_refused(R"("structured_outputs":{"choice":[]})", "structured_outputs.choice");
  expect_refused(R"("structured_outputs":{"choice":["a",5]})", "structured_outputs.choice");
  expect_refused(R"("structured_outputs":{"regex":"a","choice":["a"]})",
                 "structured_outputs.choice", "exclude each other");
  expect_refused(R"("structured_outputs":{"regex":"a","structural_tag":{}})",
                 "structured_outputs.structural_tag");
  expect_refused(R"("response_format":{"type":"json_object"},"structured_outputs":{"regex":"a"})",
                 "structured_outputs", "exclude each other");
  expect_refused(R"("response_format":{"type":"json_object"},"tools":[{"function":{"name":"f"}}])",
                 "response_format", "tools");
  for (const std::string name : {"json", "regex", "choice", "grammar"})
    expect_refused("\"guided_" + name + "\":\"a\"", "guided_" + name, "structured_outputs");
}

TEST(ApiForm, TooManyChoicesAreRefusedByTheirCount) {
  const std::string choices = Json(std::vector<std::string>(10'001, "a")).dump();
  expect_refused(R"("structured_outputs":{"choice":)" + choices + "}", "structured_outputs.choice",
                 "has 10001 texts; at most 10000 are served");
}

TEST(ApiForm, StandsBesideToolsThatAreNotCalled) {
  EXPECT_TRUE(form_of(R"("response_format":{"type":"json_object"},"tool_choice":"none",)"
                      R"("tools":[{"function":{"name":"f"}}])"));
}

}  // namespace
}  // namespace convoy::recipes
