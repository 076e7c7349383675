// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/request_parser.h"

#include <gtest/gtest.h>

#include "files/source_folder.h"

namespace convoy::recipes {
namespace {

class RequestParserTest : public ::testing::Test {
 protected:
  ParsedRequest parse(const std::string& fields) const {
    return parser_.parse(
        "/v1/chat/completions",
        R"({"model":"tally","messages":[{"role":"user","content":"a"}],)" + fields + "}");
  }

  LoadedModel loaded_ = load_model(
      {.name = (testing::source_folder() / "examples/tally-3m").string()}, Log(LogLevel::Quiet));
  data::SampleEncoder encoder_{loaded_.tokenizer, loaded_.template_or_null(), data::Supervision()};
  RequestParser parser_{encoder_, loaded_, {.names = {{"tally", 0}}, .most_rows = 8}};
};

// A large schema takes long to compile: the thread that parses must not do it.
TEST_F(RequestParserTest, FormsAreCompiledApartFromParsing) {
  EXPECT_FALSE(std::get<AskedAnswers>(parse(R"("n":2)")).needs_forms());
  auto asked = std::get<AskedAnswers>(parse(R"("structured_outputs":{"choice":["yes"]})"));
  EXPECT_TRUE(asked.needs_forms());
  asked = std::get<AskedAnswers>(parser_.with_forms(std::move(asked)));
  EXPECT_FALSE(asked.needs_forms());
  EXPECT_NE(asked.forms.at(0).grammar, nullptr);
  auto refused = std::get<AskedAnswers>(parse(R"("structured_outputs":{"json":{"not":{}}})"));
  EXPECT_EQ(std::get<ApiError>(parser_.with_forms(std::move(refused))).body()["error"]["param"],
            "structured_outputs.json");
}

TEST_F(RequestParserTest, AnEmptyFormSaysSo) {
  for (const std::string kind : {"regex", "grammar"}) {
    auto asked = std::get<AskedAnswers>(parse(R"("structured_outputs":{")" + kind + R"(":""})"));
    const auto error = std::get<ApiError>(parser_.with_forms(std::move(asked)));
    EXPECT_EQ(error.body()["error"]["param"], "structured_outputs." + kind);
    EXPECT_NE(std::string(error.what()).find("it is empty"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace convoy::recipes
