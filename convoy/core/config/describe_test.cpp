// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/config/describe.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "convoy/core/config/example_settings_test.h"
#include "convoy/core/config/resolve.h"

namespace convoy::config {
namespace {

TEST(Describe, YamlIsByteStable) {
  RootSettings settings;
  EXPECT_EQ(dump_yaml(list_fields(settings)),
            "seed: 42\n"
            "name: \"\"\n"
            "run:\n"
            "  learning_rate: 0.0002\n"
            "  batch_size: 4\n"
            "  packing: false\n"
            "  width: auto\n"
            "  scale: auto\n"
            "  steps: []\n"
            "  weights: []\n"
            "  files: []\n"
            "  figures: [loss]\n"
            "  path: \"\"\n"
            "  schedule: cosine\n"
            "  inner:\n"
            "    r: 8\n"
            "    alpha: 16\n"
            "    targets: [auto]\n"
            "    ranks: {}\n"
            "    alphas: {}\n");
}

TEST(Describe, AssignedValuesAreReadAsTheyWere) {
  RootSettings settings;
  settings.name = "no";
  settings.run.path = "a folder/rows of: yes.jsonl";
  settings.run.flat.schedule = "no";
  settings.run.figures = {"loss", "sari"};
  settings.run.inner.targets = NameList{{"\n\n", "a b"}};
  settings.run.scale = 0.5;
  Sources sources;
  for (const auto& [path, value] : assigned_values(list_fields(settings)))
    sources.overrides.push_back(path + "=" + value);
  // An empty value on the command line counts as given, so it overrides the environment.
  sources.environment = {{"CONVOY_NAME", "other"}, {"RUN_INNER_R", "3"}};
  RootSettings again;
  const Resolved resolved = resolve(again, sources);
  EXPECT_EQ(dump_yaml(list_fields(again)), dump_yaml(list_fields(settings)));
}

TEST(Describe, NumbersAndWordsKeepTheirMeaningForOtherReaders) {
  RootSettings settings;
  settings.run.learning_rate = 1e-7;
  settings.run.path = "no";
  settings.name = "12";
  const std::string yaml = dump_yaml(list_fields(settings));
  EXPECT_NE(yaml.find("learning_rate: 1.0e-07\n"), std::string::npos);
  EXPECT_NE(yaml.find("path: \"no\"\n"), std::string::npos);
  EXPECT_NE(yaml.find("name: \"12\"\n"), std::string::npos);
}

TEST(Describe, SchemaHoldsTypesBoundsChoicesAndAliases) {
  RootSettings settings;
  const nlohmann::json schema = json_schema(list_fields(settings), "Test");
  EXPECT_EQ(schema["additionalProperties"], false);
  EXPECT_TRUE(schema["properties"].contains("include"));
  const nlohmann::json& run = schema["properties"]["run"];
  EXPECT_EQ(run, schema["properties"]["r"]);
  EXPECT_EQ(run["additionalProperties"], false);
  EXPECT_EQ(run["properties"]["learning_rate"]["exclusiveMinimum"], 0.0);
  EXPECT_EQ(run["properties"]["learning_rate"]["maximum"], 1.0);
  EXPECT_EQ(run["properties"]["lr"]["type"], "number");
  EXPECT_EQ(run["properties"]["schedule"]["enum"], (nlohmann::json{"linear", "cosine", "no"}));
  EXPECT_EQ(run["properties"]["name"]["type"], "string");
  EXPECT_EQ(run["properties"]["width"]["anyOf"][0]["const"], "auto");
  EXPECT_TRUE(run["properties"].contains("local_path"));
}

TEST(Describe, ReferenceNamesEveryKeyAndItsEnvironment) {
  RootSettings settings;
  const std::string text = reference_markdown(list_fields(settings));
  EXPECT_NE(text.find("| `seed` | integer, at least 0 | `42` | randomness |  | `CONVOY_SEED` |"),
            std::string::npos);
  EXPECT_NE(
      text.find(
          "| `run.inner.r` | integer, at least 1 | `8` | rank | run.inner.rank | `RUN_INNER_R` |"),
      std::string::npos);
  EXPECT_NE(text.find("fill \\| blocks"), std::string::npos);
}

}  // namespace
}  // namespace convoy::config
