// SPDX-License-Identifier: Apache-2.0
#include "resume/preference_runs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "convoy/core/base/files.h"
#include "files/run_script.h"

namespace convoy::testing {

Settings compared_settings(const TrainFixture& fixture, const std::string& task,
                           const std::string& rows, const Settings& more) {
  const std::filesystem::path folder = fixture.rows().parent_path();
  const std::string file = (folder / "compared.jsonl").string();
  write_file_atomic(file, rows);
  return Settings{"task=" + task,
                  "data.train_path=" + file,
                  "data.val_path=" + file,
                  "data.cache_dir=" + (folder / "cache").string(),
                  "train.eval_strategy=steps",
                  "train.eval_steps=4"} +
         more;
}

void expect_resumed_equals_unbroken(const TrainFixture& fixture, const Settings& settings,
                                    BrokenRun& ends) {
  ends.unbroken = fixture.run("unbroken", settings);
  ASSERT_EQ(ends.unbroken.status, 0) << ends.unbroken.errors;
  TrainProcess process = fixture.start("killed", settings);
  ASSERT_TRUE(process.wait_until([&] { return fixture.has_event("killed", "step", 6); }))
      << process.wait().errors;
  ASSERT_TRUE(process.running()) << "the kill must hit a run at work";
  process.kill_everything();
  ends.resumed = fixture.run("killed", settings);
  ASSERT_EQ(ends.resumed.status, 0) << ends.resumed.errors;
  EXPECT_NE(ends.resumed.errors.find("resuming at step"), std::string::npos) << ends.resumed.errors;
  expect_same_result(fixture, "unbroken", "killed");
  EXPECT_EQ(fixture.evaluation_losses("unbroken"), fixture.evaluation_losses("killed"));
}

nlohmann::json evaluated(const TrainFixture& fixture, const std::string& run) {
  const std::filesystem::path folder = fixture.run_folder(run);
  const char* const made = std::filesystem::exists(folder / "model") ? "model" : "adapter";
  const std::filesystem::path beside = fixture.rows().parent_path();
  const ScriptEnd end = run_script(
      beside,
      fmt::format("'{}/convoy' eval '{}' --{} '{}' --split val --dtype fp32 --output-dir results",
                  std::getenv("CONVOY_BIN_DIR"), (folder / "config.yaml").string(), made,
                  (folder / made).string()));
  EXPECT_EQ(end.code, 0) << end.out;
  if (end.code != 0) return {};
  return nlohmann::json::parse(read_file(beside / "results/metrics.json"));
}

}  // namespace convoy::testing
