// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/workers/rows_in_flight.h"

#include <gtest/gtest.h>

namespace convoy::process {
namespace {

using scheduler::Hardware;

TEST(RowsInFlight, FillAGpuUnlessTheUserSettledThem) {
  settings::ProcessSettings settings;
  settings.generate.n = 4;
  EXPECT_EQ(rows_in_flight(settings.workers, Hardware::Cpu), 64);
  EXPECT_EQ(texts_together(settings, 64, Hardware::Cpu), 256);
  EXPECT_EQ(rows_in_flight(settings.workers, Hardware::Gpu), 256);
  EXPECT_EQ(texts_together(settings, 256, Hardware::Gpu), 256);
  settings.workers.batch_size = 100;
  EXPECT_EQ(rows_in_flight(settings.workers, Hardware::Gpu), 100);
  EXPECT_EQ(texts_together(settings, 100, Hardware::Gpu), 400);
  settings.engine.max_requests = 8;
  EXPECT_EQ(texts_together(settings, 100, Hardware::Gpu), 8);
}

}  // namespace
}  // namespace convoy::process
