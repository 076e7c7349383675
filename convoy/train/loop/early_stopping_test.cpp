// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/loop/early_stopping.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "convoy/core/base/files.h"

namespace convoy::train {
namespace {

TEST(EarlyStopping, DecidesAsTransformersDoes) {
  const auto cases =
      nlohmann::json::parse(read_file(std::filesystem::path(std::getenv("CONVOY_SOURCE_DIR")) /
                                      "tests/golden/train/early_stopping.json"));
  ASSERT_GE(cases.size(), 100u);
  int num_apart = 0;  // runs whose best evaluation did not restart the patience
  for (const auto& one : cases) {
    SCOPED_TRACE(one.dump());
    settings::TrainingSettings settings;
    settings.early_stopping_patience = one["patience"];
    settings.early_stopping_threshold = one["threshold"];
    checkpoint::Progress progress;
    int64_t last_gain = 0;
    for (const double loss : one["losses"]) {
      ++progress.step;
      const bool is_best = record_evaluation(progress, loss, settings);
      EXPECT_EQ(is_best, progress.best_step == progress.step);
      if (progress.evaluations_without_improvement == 0) last_gain = progress.step;
      if (out_of_patience(progress, settings)) break;
    }
    EXPECT_EQ(progress.step, one["stopped_after"].get<int64_t>());
    EXPECT_EQ(progress.best_step, one["best"].get<int64_t>());
    EXPECT_EQ(progress.best_metric, one["losses"][one["best"].get<size_t>() - 1].get<double>());
    num_apart += last_gain != progress.best_step ? 1 : 0;
  }
  EXPECT_GE(num_apart, 10);
}

}  // namespace
}  // namespace convoy::train
