// SPDX-License-Identifier: Apache-2.0
//
// Compares guess-and-check of `mf` on a GPU with the CPU, bit for bit.
#include "convoy/farm/experiments/cuda/cuda_factors.h"
#include "convoy/farm/experiments/mf/mf_parameters.h"
#include "sweep_cuda/gpu_test.h"

namespace convoy::experiments::cuda {
namespace {

MfProblem factorisation_of(const std::string& members, int64_t seed = 0) {
  return draw_mf_problem(MfParameters::parse("{" + members + "}"), seed);
}

class FactorsOnGpu : public SweepGpuTest {
 protected:
  void expect_same(const std::string& members, uint64_t count,
                   Precision precision = Precision::Exact, MfCheck check = MfCheck::TrainLoss,
                   int64_t least_accepted = 1) {
    const MfProblem problem = factorisation_of(members, 3);
    const sweep::Tally wanted =
        experiments::mf_guess_experiment(problem, check, precision, best_cpu_level())
            ->run(77, count);
    const sweep::Tally found =
        mf_guess_experiment(problem, check, precision, device_)->run(77, count);
    EXPECT_EQ(found.json(), wanted.json()) << members;
    EXPECT_GE(found.accepted, least_accepted) << members;
  }
};

INSTANTIATE_TEST_SUITE_P(Fake, FactorsOnGpu, ::testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Real, FactorsOnGpu, ::testing::Values(true));

// Each size of the papers has kernels of its own, one for each precision and prior.
TEST_P(FactorsOnGpu, AreThoseOfTheCpuForEveryKernel) {
  for (const Precision precision : {Precision::Exact, Precision::Fast})
    for (const char* prior : {"gauss", "unif"})
      for (const char* shape :
           {R"("width": 5)", R"("width": 8)", R"("width": 40)", R"("width": 5, "depth": 4)",
            R"("width": 10)", R"("width": 7, "depth": 3)"})
        expect_same(fmt::format(R"({}, "gnc_init": "{}", "gnc_eps_train": 0.06)", shape, prior),
                    300, precision);
}

TEST_P(FactorsOnGpu, AreThoseOfTheCpuForEveryActivation) {
  for (const char* activation : {"Tanh", "LeakyReLU"})
    for (const char* shape : {R"("width": 8)", R"("width": 5, "depth": 3)", R"("width": 6)"})
      for (const char* normalize : {"false", "true"})
        expect_same(fmt::format(R"({}, "activation": "{}", "gnc_normalize": {},
                                   "gnc_eps_train": 0.06)",
                                shape, activation, normalize),
                    300);
}

TEST_P(FactorsOnGpu, AreThoseOfTheCpuForEveryShape) {
  for (const char* shape :
       {R"("n_rows": 3, "n_cols": 4, "width": 6, "num_measurements": 5)",
        R"("n_rows": 7, "n_cols": 5, "width": 3, "depth": 3)",
        R"("n_rows": 12, "n_cols": 2, "width": 4)", R"("n_rows": 1, "n_cols": 5, "width": 9,
           "num_measurements": 2)",
        R"("depth": 1)", R"("n_rows": 5, "n_cols": 4, "width": 8)", R"("width": 33, "depth": 3)"})
    expect_same(fmt::format(R"({}, "gnc_eps_train": 0.3)", shape), 300);
  expect_same(R"("width": 8, "completion": true, "gnc_eps_train": 0.2)", 300);
  expect_same(R"("width": 10, "gt_rank": 3, "num_measurements": 24, "gnc_eps_train": 0.1)", 300);
}

TEST_P(FactorsOnGpu, AcceptAllNoneAndHugeLosses) {
  for (const char* width : {"5", "8", "9"}) {
    const std::string members = fmt::format(R"("width": {})", width);
    expect_same(members, 700, Precision::Exact, MfCheck::Nothing, 700);
    expect_same(members + R"(, "gnc_eps_train": 1e-30)", 300, Precision::Exact, MfCheck::TrainLoss,
                0);
    // Some squares exceed the largest term of the sums, and some losses the largest sum.
    for (const char* norm : {"1e6", "1e9"})
      expect_same(fmt::format(R"({}, "gt_norm": {}, "gnc_eps_train": 1e30)", members, norm), 300,
                  Precision::Exact, MfCheck::TrainLoss, 300);
  }
}

TEST_P(FactorsOnGpu, AreTheSameForEverySplit) {
  const uint64_t first = (uint64_t{1} << 32) - 300;  // the upper half of the index changes
  for (const char* width : {"5", "8", "9"}) {
    const MfProblem problem =
        factorisation_of(fmt::format(R"("width": {}, "gnc_eps_train": 0.06)", width));
    const auto experiment =
        mf_guess_experiment(problem, MfCheck::TrainLoss, Precision::Exact, device_);
    const sweep::Tally whole = experiment->run(first, 700);
    EXPECT_EQ(whole, experiments::mf_guess_experiment(problem, MfCheck::TrainLoss, Precision::Exact,
                                                      best_cpu_level())
                         ->run(first, 700));
    for (const uint64_t part : {1u, 129u, 299u}) {
      if (part == 1 && std::string(width) != "5") continue;
      sweep::Tally sum;
      for (uint64_t done = 0; done < 700; done += part)
        sum.merge(experiment->run(first + done, std::min<uint64_t>(part, 700 - done)));
      EXPECT_EQ(sum, whole) << part;
    }
  }
}

// Every thread computes several guesses, and there is more than one launch.
TEST_P(FactorsOnGpu, FillMoreThanOneLaunch) {
  if (!GetParam()) GTEST_SKIP() << "sized for a GPU";
  for (const char* shape : {R"("width": 160)", R"("depth": 4)", R"("width": 10)"})
    expect_same(fmt::format(R"({}, "gnc_eps_train": 0.01)", shape), 40'000'000);
}

}  // namespace
}  // namespace convoy::experiments::cuda
