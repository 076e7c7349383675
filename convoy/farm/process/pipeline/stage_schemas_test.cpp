// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/pipeline/stage_schemas.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "files/temporary_folder.h"

namespace convoy::process {
namespace {

class StageSchemasTest : public ::testing::Test {
 protected:
  std::string file(const std::string& text) const {
    write_file_atomic(folder_ / "schema.json", text);
    return (folder_ / "schema.json").string();
  }
  static StageSchemas checked(const settings::ProcessSettings& settings) {
    StageSchemas schemas = read_stage_schemas(settings);
    check_stage_schemas(settings, schemas);
    return schemas;
  }
  static void expect_refused(const settings::ProcessSettings& settings, const std::string& key,
                             const std::string& words) {
    try {
      checked(settings);
      ADD_FAILURE() << words;
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.location().key, key);
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  }

  testing::TemporaryFolder folder_;
};

TEST_F(StageSchemasTest, AreReadFromFilesAndMadeFromWeights) {
  settings::ProcessSettings settings;
  EXPECT_TRUE(checked(settings).empty());
  settings.generate.schema = file("{\n  \"type\": \"object\"\n}\n");
  settings.evaluate.schema = "scores";
  settings.evaluate.weights = {{"correctness", 0.5}, {"clarity", 0.5}};
  const StageSchemas schemas = checked(settings);
  EXPECT_EQ(schemas.size(), 2u);
  EXPECT_EQ(schemas.at("generate"), R"({"type":"object"})");
  EXPECT_EQ(
      schemas.at("evaluate"),
      R"({"type":"object","properties":{"correctness":{"type":"number","minimum":0,"maximum":1},)"
      R"("clarity":{"type":"number","minimum":0,"maximum":1}},)"
      R"("required":["correctness","clarity"],"additionalProperties":false})");
}

TEST_F(StageSchemasTest, WhatCannotBeHonouredIsRefused) {
  settings::ProcessSettings settings;
  settings.generate.schema = "missing.json";
  expect_refused(settings, "generate.schema", "there is no file missing.json");
  settings.generate.schema = file("[1]");
  expect_refused(settings, "generate.schema", "wanted a JSON object");
  settings.generate.schema = file("{");
  expect_refused(settings, "generate.schema", "generate.schema: ");
  settings.generate.schema = file(R"({"not": {}})");
  expect_refused(settings, "generate.schema", "keywords that are not covered: \"not\"");
  // A server may know more keywords.
  settings.remote.engine = {"http://127.0.0.1:1/v1"};
  EXPECT_NO_THROW(checked(settings));
  settings = {};
  settings.improve.schema = file("{}");
  settings.stages = {"generate", "evaluate"};
  expect_refused(settings, "improve.schema", "stages has no improve");
}

TEST_F(StageSchemasTest, AJudgementHasEveryScore) {
  settings::ProcessSettings settings;
  settings.evaluate.weights = {{"correctness", 1}};
  settings.evaluate.schema = file(R"({"properties": {"score": {}}, "required": ["score"]})");
  expect_refused(settings, "evaluate.schema", "`correctness` of evaluate.weights");
  settings.evaluate.schema = file(R"({"properties": {"correctness": {}}})");
  expect_refused(settings, "evaluate.schema", "`correctness` of evaluate.weights");
  settings.evaluate.schema =
      file(R"({"properties": {"why": {}, "correctness": {}}, "required": ["correctness"]})");
  EXPECT_NO_THROW(checked(settings));
}

}  // namespace
}  // namespace convoy::process
