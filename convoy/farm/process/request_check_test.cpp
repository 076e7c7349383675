// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/request_check.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"

namespace convoy::process {
namespace {

settings::ProcessSettings writing(int64_t max_tokens, int64_t kv_blocks) {
  settings::ProcessSettings settings;
  settings.stages = {"generate"};
  settings.generate.max_tokens = max_tokens;
  settings.engine.kv_blocks = kv_blocks;
  return settings;
}

TEST(RequestCheck, RefusesBlocksThatHoldNoTextOfAStage) {
  ModelFacts model;
  EXPECT_NO_THROW(require_possible_requests(writing(32, 1), model));
  EXPECT_THROW(require_possible_requests(writing(33, 1), model), ConfigError);
  EXPECT_NO_THROW(require_possible_requests(writing(33, 2), model));
  // A text ends at the model's last position whatever it was allowed; a window bounds what is kept.
  model.positions = 33;
  EXPECT_NO_THROW(require_possible_requests(writing(4096, 1), model));
  model = {};
  model.window_tokens = 20;
  EXPECT_NO_THROW(require_possible_requests(writing(4096, 1), model));
  settings::ProcessSettings judging = writing(10, 1);
  judging.stages = {"generate", "evaluate"};
  EXPECT_THROW(require_possible_requests(judging, {}), ConfigError);
}

TEST(RequestCheck, RefusesAnEmptyStop) {
  settings::ProcessSettings settings;
  settings.generate.stop.names = {"###", ""};
  EXPECT_THROW(require_possible_requests(settings, {}), ConfigError);
}

TEST(RequestCheck, DoubtsTextsLongerThanTheModel) {
  ModelFacts model;
  EXPECT_EQ(request_warnings(writing(100'000, 1), model), "");
  model.positions = 1024;
  EXPECT_EQ(request_warnings(writing(1000, 1), model), "");
  EXPECT_NE(request_warnings(writing(100'000, 1), model).find("1024"), std::string::npos);
}

}  // namespace
}  // namespace convoy::process
