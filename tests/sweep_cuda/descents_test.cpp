// SPDX-License-Identifier: Apache-2.0
//
// Compares gradient descent on a GPU with gradient descent on the CPU, bit for bit.
#include "convoy/farm/experiments/mf/mf_workload.h"
#include "convoy/farm/experiments/ssm/ssm_workload.h"
#include "sweep_cuda/gpu_test.h"

namespace convoy::experiments::cuda {
namespace {

using Cells = std::vector<sweep::Cell>;

class DescentsOnGpu : public SweepGpuTest {
 protected:
  void expect_same(const sweep::Workload& by_cpu, const sweep::Workload& by_gpu,
                   const Cells& cells) {
    const std::vector<sweep::CellOutcome> wanted = by_cpu.compute(cells);
    const std::vector<sweep::CellOutcome> found = by_gpu.compute(cells);
    ASSERT_EQ(found.size(), cells.size());
    for (size_t at = 0; at < cells.size(); ++at) {
      EXPECT_EQ(found[at].value, wanted[at].value) << cells[at].parameters.str();
      EXPECT_EQ(found[at].train_loss, wanted[at].train_loss) << cells[at].parameters.str();
      EXPECT_EQ(found[at].steps, wanted[at].steps);
      EXPECT_EQ(found[at].gpu, device_->name());
      EXPECT_EQ(wanted[at].gpu, "");
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Fake, DescentsOnGpu, ::testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Real, DescentsOnGpu, ::testing::Values(true));

TEST_P(DescentsOnGpu, OfFactorisationsAreThoseOfTheCpu) {
  Cells cells;
  for (const char* parameters :
       {R"("width": 6)", R"("width": 6, "gd_lr": 0.1, "negative_slope": 0.3)",
        R"("width": 40, "completion": true)", R"("depth": 1)",
        R"("depth": 3, "activation": "LeakyReLU", "gd_momentum": 0.9)",
        R"("depth": 4, "width": 3, "activation": "Tanh", "gd_init_scale": 2)",
        R"("n_rows": 9, "n_cols": 3, "num_measurements": 7, "activation": "Tanh")"})
    for (int64_t seed = 0; seed < 3; ++seed)
      cells.push_back(
          {"gd", seed, fmt::format(R"({{{}, "gd_epochs": 21, "gd_log_period": 10}})", parameters)});
  // There are more cells than a vector of the CPU has lanes.
  for (int64_t seed = 0; seed < 10; ++seed)
    cells.push_back({"gd", seed, R"({"gd_epochs": 11, "gd_log_period": 10})"});
  expect_same(MfWorkload(), MfWorkload(Precision::Exact, best_cpu_level(), device_), cells);
}

TEST_P(DescentsOnGpu, OfStateSpaceModelsAreThoseOfTheCpu) {
  Cells cells;
  for (const char* parameters :
       {R"("student_dim": 1)", R"("student_dim": 7, "gd_optimizer": "gd")",
        R"("student_dim": 16, "gd_scheduler": "step", "step_size": 7)",
        R"("student_dim": 33, "gd_scheduler": "exponential", "sequence_length": 17)",
        R"("student_dim": 20, "gd_scheduler": "cosine", "num_sequences": 3)",
        R"("student_dim": 21, "gd_scheduler": "adaptive", "gd_optimizer": "gd")",
        R"("student_dim": 150, "gd_scheduler": "adaptive", "sequence_length": 2)",
        R"("student_dim": 9, "calc_loss_only_on_last_output": false, "gd_init_type": "near_one")"})
    for (int64_t seed = 0; seed < 2; ++seed)
      cells.push_back(
          {"gd", seed, fmt::format(R"({{{}, "gd_epochs": {}}})", parameters, seed == 0 ? 32 : 41)});
  cells.push_back({"gd", 0, R"({"student_dim": 8, "gd_epochs": 5})"});  // none of its epochs counts
  expect_same(SsmWorkload(), SsmWorkload(Precision::Exact, best_cpu_level(), device_), cells);
}

// These descents have more steps than one launch computes.
TEST_P(DescentsOnGpu, GoOnOverLaunches) {
  expect_same(MfWorkload(), MfWorkload(Precision::Exact, best_cpu_level(), device_),
              {{"gd", 0, R"({"n_rows": 2, "n_cols": 2, "width": 2, "num_measurements": 2,
                 "gd_momentum": 0.5, "gd_lr": 1e-3, "gd_epochs": 2101})"}});
  expect_same(SsmWorkload(), SsmWorkload(Precision::Exact, best_cpu_level(), device_),
              {{"gd", 0, R"({"student_dim": 5, "gd_scheduler": "adaptive", "gd_epochs": 2101})"},
               {"gd", 1, R"({"student_dim": 5, "gd_epochs": 1011})"}});
}

}  // namespace
}  // namespace convoy::experiments::cuda
