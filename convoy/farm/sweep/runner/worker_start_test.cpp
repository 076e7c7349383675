// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/runner/worker_start.h"

#include <gtest/gtest.h>

namespace convoy::sweep {
namespace {

TEST(WorkerCommands, SeveralProgramsShareAGpu) {
  RunOptions options;
  options.starts_programs = true;
  options.workers_per_device = 3;
  const std::vector<std::string> devices = {"0", "GPU-1a"};
  EXPECT_EQ(worker_count(options, devices), 6);
  const auto environments = worker_environments(options, devices, 6);
  for (size_t worker = 0; worker < environments.size(); ++worker) {
    EXPECT_EQ(environments[worker].at("CUDA_VISIBLE_DEVICES"), devices[worker % 2]);
    EXPECT_FALSE(environments[worker].contains("CONVOY_SWEEP_DEVICE"));
  }
  EXPECT_EQ(workers_text(environments), "6 workers: 3 on GPU 0, 3 on GPU GPU-1a");
}

}  // namespace
}  // namespace convoy::sweep
