// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/wanted_columns.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"

namespace convoy::process {
namespace {

using Json = nlohmann::ordered_json;

TEST(WantedColumns, AreThoseOfTheSettingsAndOfThePromptsInUse) {
  settings::ProcessSettings settings;
  settings.stages = {"generate", "verify"};
  settings.data.answer_field = "gold";
  const PipelinePlan plan(settings, {{"generate", "{{ problem }} {{ row.level }}"},
                                     {"evaluate", "{{ row.nowhere }}"},
                                     {"improve", "{{ problem }}"}});
  const std::vector<WantedColumn> wanted = wanted_columns(plan);
  ASSERT_EQ(wanted.size(), 2u);
  EXPECT_EQ(wanted[0].name, "gold");
  EXPECT_EQ(wanted[0].wanted_by, "--answer-field");
  EXPECT_EQ(wanted[1].name, "level");
  EXPECT_EQ(wanted[1].wanted_by, "the shipped prompt generate");
}

TEST(ColumnSearch, AnyRowMayHaveThem) {
  ColumnSearch search({{"gold", "--answer-field"}, {"level", "q.txt"}});
  search.look_at(Json::parse(R"(["a list"])"));
  search.look_at(Json::parse(R"({"problem": "p", "gold": null})"));
  EXPECT_FALSE(search.found_all());
  search.look_at(Json::parse(R"({"level": 3})"));
  EXPECT_TRUE(search.found_all());
  EXPECT_NO_THROW(search.require_all());
}

TEST(ColumnSearch, NamesWhatNoRowHasAndWhatTheyHave) {
  ColumnSearch search({{"reslt", "--answer-field"}, {"problem", "q.txt"}, {"nix", "q.txt"}});
  search.look_at(Json::parse(R"({"problem": "p"})"));
  search.look_at(Json::parse(R"({"result": 1})"));
  try {
    search.require_all();
    FAIL() << "wanted an error";
  } catch (const DataError& error) {
    EXPECT_NE(error.sentence().find(
                  "no row has `reslt` (needed by --answer-field, did you mean `result`?), `nix` "
                  "(needed by q.txt); the rows have problem, result"),
              std::string::npos)
        << error.sentence();
  }
}

}  // namespace
}  // namespace convoy::process
