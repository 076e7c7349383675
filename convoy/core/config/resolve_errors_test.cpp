// SPDX-License-Identifier: Apache-2.0
//
// Tests the errors of configurations: texts, places, suggestions, and several errors at once.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "convoy/core/config/resolve_fixture_test.h"

namespace convoy::config {
namespace {

TEST_F(Resolve, UnknownKeysNameFileLineAndSuggestion) {
  EXPECT_EQ(error_of("seed: 1\nrun:\n  batchsize: 2\n"),
            "run.yaml:3: unknown key `run.batchsize`, did you mean `run.batch_size`?");
  EXPECT_EQ(error_of("\nrum:\n  batch_size: 2\n"),
            "run.yaml:2: unknown key `rum`, did you mean `run`?");
  EXPECT_EQ(error_of("learning_rate: 1\n"),
            "run.yaml:1: unknown key `learning_rate`, did you mean `run.learning_rate`?");
  EXPECT_EQ(error_of("run_batch_size: 1\n"),
            "run.yaml:1: unknown key `run_batch_size`, did you mean `run.batch_size`?");
  EXPECT_EQ(error_of("run:\n  inner: {qqqqqq: 1}\n"),
            "run.yaml:2: unknown key `run.inner.qqqqqq` (`convoy config schema` lists the keys)");
  EXPECT_EQ(error_of("run:\n  qqqqqq:\n"),
            "run.yaml:2: unknown key `run.qqqqqq` (`convoy config schema` lists the keys)");
}

TEST_F(Resolve, WrongTypesSayWhatWasWantedAndFound) {
  EXPECT_EQ(error_of("run:\n  batch_size: abc\n"),
            "run.yaml:2: run.batch_size: wanted an integer, found \"abc\"");
  EXPECT_EQ(error_of("run:\n  batch_size: 1.5\n"),
            "run.yaml:2: run.batch_size: wanted an integer, found \"1.5\"");
  EXPECT_EQ(error_of("seed: 010\n"),
            "run.yaml:1: seed: wanted an integer, found \"010\" (a leading 0 is octal to some "
            "readers; write it "
            "without)");
  EXPECT_EQ(error_of("seed: 99999999999999999999\n"),
            "run.yaml:1: seed: wanted an integer, found \"99999999999999999999\" (the greatest is "
            "9223372036854775807, or 9e15 with an exponent)");
  EXPECT_EQ(error_of("seed: 1e20\n"),
            "run.yaml:1: seed: wanted an integer, found \"1e20\" (the greatest is "
            "9223372036854775807, or 9e15 with an exponent)");
  EXPECT_EQ(error_of("run:\n  learning_rate: .nan\n"),
            "run.yaml:2: run.learning_rate: wanted a number, found \".nan\"");
  EXPECT_EQ(error_of("run:\n  learning_rate: nan\n"),
            "run.yaml:2: run.learning_rate: wanted a number, found \"nan\"");
  EXPECT_EQ(error_of("run:\n  packing: yes\n"),
            "run.yaml:2: run.packing: wanted true or false, found \"yes\" (write true)");
  EXPECT_EQ(error_of("run:\n  packing: 1\n"),
            "run.yaml:2: run.packing: wanted true or false, found \"1\" (write true)");
  EXPECT_EQ(error_of("run:\n  packing: Off\n"),
            "run.yaml:2: run.packing: wanted true or false, found \"Off\" (write false)");
  EXPECT_EQ(error_of("run:\n  width: wide\n"),
            "run.yaml:2: run.width: wanted an integer or auto, found \"wide\"");
  EXPECT_EQ(error_of("run:\n  steps:\n    - 1\n    - x\n"),
            "run.yaml:4: run.steps[1]: wanted an integer, found \"x\"");
  EXPECT_EQ(error_of("run:\n  path: [a]\n"), "run.yaml:2: run.path: wanted text, found a list");
  EXPECT_EQ(error_of("run: 5\n"),
            "run.yaml:1: run: wanted a section with keys such as `learning_rate`, found a value "
            "(write its keys below run, indented)");
  EXPECT_EQ(error_of("- a\n"),
            "run.yaml:1: wanted `key: value` lines (such as train: {batch_size: 4})");
  EXPECT_EQ(error_of("run:\n  inner:\n    ranks: {a: x}\n"),
            "run.yaml:3: run.inner.ranks.a: wanted an integer, found \"x\"");
}

TEST_F(Resolve, IncludeErrorsNameTheLine) {
  folder_.write("a.yaml", "seed: 1\ninclude: run.yaml\n");
  const std::string circle = error_of("include: a.yaml\n");
  EXPECT_EQ(circle.find("a.yaml:2: circular include: "), 0u) << circle;
  EXPECT_NE(error_of("include: run.yaml\n").find("circular"), std::string::npos);
  EXPECT_EQ(error_of("seed: 1\ninclude: none.yaml\n"),
            "run.yaml:2: include: there is no file none.yaml (the path is relative to this file, "
            "or to the working directory; " +
                folder_.path().string() + " holds run.yaml, a.yaml)");
  EXPECT_EQ(error_of("include: {a: b}\n"),
            "run.yaml:1: include: wanted a file or a list of files (such as include: [base.yaml, "
            "more.yaml])");
}

TEST_F(Resolve, AllErrorsAreSaidAtOnceInTheOrderOfTheFile) {
  folder_.write("base.yaml", "seed: -1\nrum: 1\n");
  const std::string text =
      "include: [base.yaml, none.yaml]\n"
      "seed: x\n"
      "run:\n"
      "  batchsize: 2\n"
      "  learning_rate: 7\n"
      "  packing: maybe\n"
      "  packing: true\n"
      "  inner: 5\n"
      "  schedule: linear\n"
      "  scheduler: cosine\n"
      "name: fine\n";
  Sources sources;
  sources.environment = {{"RUN_WIDTH", "wide"}};
  sources.overrides = {"run.batch_siz=2", "what"};
  std::string found = error_of(text, sources);
  const size_t other = found.find(" (run.yaml:9)");
  ASSERT_NE(other, std::string::npos) << found;
  EXPECT_EQ(found,
            "run.yaml:1: include: there is no file none.yaml (the path is relative to this file, "
            "or to the working directory; " +
                folder_.path().string() +
                " holds base.yaml, run.yaml)\n"
                "run.yaml:2: seed: wanted an integer, found \"x\"\n"
                "run.yaml:4: unknown key `run.batchsize`, did you mean `run.batch_size`?\n"
                "run.yaml:5: run.learning_rate must be above 0 and at most 1, found 7\n"
                "run.yaml:6: run.packing: wanted true or false, found \"maybe\"\n"
                "run.yaml:7: `packing` is given twice, first on line 6 (keep one of them)\n"
                "run.yaml:8: run.inner: wanted a section with keys such as `r`, found a value "
                "(write its keys below run.inner, indented)\n"
                "run.yaml:10: run.scheduler and run.schedule (run.yaml:9) are two spellings of one "
                "setting, with different values (keep one of them)\n"
                "base.yaml:1: seed must be at least 0, found -1\n"
                "base.yaml:2: unknown key `rum`, did you mean `run`?\n"
                "command line: wanted key=value, found \"what\" (such as train.batch_size=2)\n"
                "command line: unknown key `run.batch_siz`, did you mean `run.batch_size`?\n"
                "environment RUN_WIDTH: run.width: wanted an integer or auto, found \"wide\"\n"
                "13 errors");
}

TEST_F(Resolve, SeveralErrorsAreOneJsonLineWithThePlaceOfTheFirst) {
  Sources sources;
  sources.file = folder_.write("run.yaml", "\nseed: x\nrun: {lr: 5}\n");
  RootSettings settings;
  try {
    resolve(settings, sources);
    FAIL();
  } catch (const ConfigError& error) {
    const nlohmann::json line = nlohmann::json::parse(error.json_line());
    EXPECT_EQ(error.json_line().find('\n'), std::string::npos);
    EXPECT_EQ(line["line"], 2);
    EXPECT_EQ(line["key"], "seed");
    EXPECT_NE(line["message"].get<std::string>().find("run.yaml:3: run.lr must be"),
              std::string::npos);
  }
}

TEST_F(Resolve, VeryManyErrorsAreShownInPartAndCounted) {
  std::string text;
  for (int key = 0; key < 30; ++key) text += "key_" + std::to_string(key) + ": 1\n";
  const std::string found = error_of(text);
  EXPECT_NE(found.find("run.yaml:20: unknown key `key_19`"), std::string::npos) << found;
  EXPECT_EQ(found.find("run.yaml:21:"), std::string::npos);
  EXPECT_NE(found.find("\n30 errors, of which the first 20 are shown"), std::string::npos) << found;
  for (int key = 30; key < 5000; ++key) text += "key_" + std::to_string(key) + ": 1\n";
  EXPECT_NE(error_of(text).find("\n5000 errors, of which the first 20"), std::string::npos);
}

TEST_F(Resolve, RulesOverSeveralValuesTakePartWhereTheirValuesAreReadable) {
  const CrossRules rules = [](const Resolved& resolved, ErrorList& errors) {
    if (resolved.value("seed").readable)
      errors.add(ConfigError("the seed does not fit", resolved.location("seed")));
    EXPECT_TRUE(resolved.whole());
  };
  const auto found = [&](const std::string& text) {
    Sources sources;
    sources.file = folder_.write("run.yaml", text);
    RootSettings settings;
    try {
      resolve(settings, sources, rules);
      return std::string();
    } catch (const ConfigError& error) {
      return without_folder(error.sentence());
    }
  };
  EXPECT_EQ(found("run: {lr: 5}\nseed: 3\n"),
            "run.yaml:1: run.lr must be above 0 and at most 1, found 5\n"
            "run.yaml:2: the seed does not fit\n2 errors");
  EXPECT_EQ(found("seed: x\n"), "run.yaml:1: seed: wanted an integer, found \"x\"");
}

TEST_F(Resolve, AnErrorOfAnItemNamesTheLineOfTheItem) {
  EXPECT_EQ(error_of("run:\n  figures:\n    - loss\n    - bleu\n"),
            "run.yaml:4: run.figures must be one of loss, sari, rougeL, found \"bleu\"");
  EXPECT_NE(error_of("run:\n  inner:\n    ranks:\n      a: 1\n      b: 0\n").find("run.yaml:5: "),
            std::string::npos);
  RootSettings settings;
  const Resolved resolved = read(settings, "run:\n  steps:\n    - 1\n    - 2\n");
  EXPECT_EQ(resolved.location("run.steps").line, 2);
  EXPECT_EQ(resolved.location("run.steps[1]").line, 4);
  EXPECT_EQ(resolved.location("run.steps[7]").line, 2);
  EXPECT_EQ(resolved.location("run.steps[1].weight").line, 4);
}

TEST_F(Resolve, MisspeltEnvironmentNamesAreNamed) {
  RootSettings settings;
  const auto notices = [&](const std::string& name) {
    return read(settings, "name: x\n", {.environment = {{name, "1"}}}).notices();
  };
  EXPECT_EQ(notices("RUN_LERNING_RATE"),
            std::vector<std::string>{
                "environment RUN_LERNING_RATE names no setting; did you mean RUN_LEARNING_RATE?"});
  for (const char* foreign : {"RUN_FOLDER", "RUNNER_LERNING_RATE", "LERNING_RATE", "PATH"})
    EXPECT_TRUE(notices(foreign).empty()) << foreign;
}

}  // namespace
}  // namespace convoy::config
