// SPDX-License-Identifier: Apache-2.0
//
// Compares guess-and-check on a GPU with the CPU, bit for bit: with the fake driver, which runs the
// real PTX, and with the first real GPU, if there is one.
#include "convoy/farm/experiments/cuda/cuda_guesses.h"
#include "convoy/farm/experiments/cuda/guess_memory.h"
#include "convoy/farm/experiments/ssm/ssm_guesses.h"
#include "convoy/farm/experiments/ssm/ssm_parameters.h"
#include "sweep_cuda/gpu_test.h"

namespace convoy::experiments::cuda {
namespace {

SsmProblem problem_of(const std::string& members, int64_t seed = 0) {
  return draw_problem(SsmParameters::parse("{" + members + "}"), seed);
}

class GuessesOnGpu : public SweepGpuTest {
 protected:
  void expect_same(const SsmProblem& problem, uint64_t first, uint64_t count,
                   Precision precision = Precision::Exact, int64_t least_accepted = 1) {
    const sweep::Tally wanted =
        experiments::guess_experiment(problem, precision, best_cpu_level())->run(first, count);
    const sweep::Tally found = guess_experiment(problem, precision, device_)->run(first, count);
    EXPECT_EQ(found.json(), wanted.json())
        << problem.parameters.json() << " from " << first << " count " << count;
    EXPECT_GE(found.accepted, least_accepted) << problem.parameters.json();
  }
};

INSTANTIATE_TEST_SUITE_P(Fake, GuessesOnGpu, ::testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Real, GuessesOnGpu, ::testing::Values(true));

// The fake driver refuses operations whose result a driver may choose.
TEST_P(GuessesOnGpu, HaveKernelsThatLoad) {
  const DeviceUse use(*device_);
  for (const std::string_view text : kernel_texts()) {
    void* module = nullptr;
    const std::string all(text);
    EXPECT_EQ(use.driver().call().ModuleLoadDataEx(&module, all.c_str(), 0, nullptr, nullptr), 0);
    use.driver().call().ModuleUnload(module);
  }
}

TEST_P(GuessesOnGpu, AreThoseOfTheCpuAtEveryDimension) {
  for (const Precision precision : {Precision::Exact, Precision::Fast})
    for (const int dim : {1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 150})
      expect_same(problem_of(fmt::format(R"("student_dim": {}, "eps_train": 0.3)", dim), dim), 5,
                  dim == 150 ? 300 : 1500, precision);
}

// Each set of powers has its own kernel.
TEST_P(GuessesOnGpu, AreThoseOfTheCpuForEverySetOfPowers) {
  for (const Precision precision : {Precision::Exact, Precision::Fast})
    for (int set = 1; set < 16; ++set)
      expect_same(problem_of(fmt::format(
                      R"("student_dim": 11, "eps_train": 0.2, "alpha": 0.4, "w": [{}, {}, {}, {}])",
                      set & 1, set >> 1 & 1, -(set >> 2 & 1), 2 * (set >> 3 & 1))),
                  1000, 300, precision);
}

TEST_P(GuessesOnGpu, AreThoseOfTheCpuAtEveryLength) {
  for (const int length : {2, 3, 4, 6, 7, 8, 9, 12, 17})
    expect_same(problem_of(fmt::format(
                    R"("student_dim": 10, "sequence_length": {}, "eps_train": 2)", length)),
                77, 400);
}

TEST_P(GuessesOnGpu, AreThoseOfTheCpuForSeveralSequencesAndOutputs) {
  expect_same(problem_of(R"("student_dim": 9, "num_sequences": 2, "eps_train": 0.5)"), 3, 2000);
  expect_same(problem_of(R"("student_dim": 9, "num_sequences": 5, "eps_train": 2,
                            "sequence_length": 9)"),
              3, 1000);
  expect_same(problem_of(R"("student_dim": 6, "calc_loss_only_on_last_output": false,
                            "num_sequences": 2, "eps_train": 0.5)"),
              3, 2000);
  expect_same(problem_of(R"("student_dim": 3, "teacher_rank": 2, "eps_train": 2)"), 0, 2000);
}

TEST_P(GuessesOnGpu, AcceptAllNoneAndHugeLosses) {
  expect_same(problem_of(R"("student_dim": 5, "w": [0, 0, 0, 0])"), 0, 3001, Precision::Exact,
              3001);
  expect_same(problem_of(R"("student_dim": 5, "eps_train": 1e-30)"), 0, 500, Precision::Exact, 0);
  // Some squares exceed the largest term and some losses the largest sum; both have odd units.
  for (const char* sd : {"0.01", "3", "60", "3000"})
    expect_same(
        problem_of(fmt::format(R"("student_dim": 5, "eps_train": 1e300, "prior_sd": {})", sd)), 0,
        500, Precision::Exact, 500);
}

TEST_P(GuessesOnGpu, AreTheSameForEverySplit) {
  const SsmProblem problem = problem_of(R"("student_dim": 6, "eps_train": 0.2)");
  const auto experiment = guess_experiment(problem, Precision::Exact, device_);
  const uint64_t first = (uint64_t{1} << 32) - 700;  // the upper half of the index changes
  const sweep::Tally whole = experiment->run(first, 1500);
  EXPECT_EQ(
      whole,
      experiments::guess_experiment(problem, Precision::Exact, best_cpu_level())->run(first, 1500));
  for (const uint64_t part : {1u, 127u, 129u, 699u}) {
    sweep::Tally sum;
    for (uint64_t done = 0; done < 1500; done += part)
      sum.merge(experiment->run(first + done, std::min<uint64_t>(part, 1500 - done)));
    EXPECT_EQ(sum, whole) << part;
  }
}

// The guesses need more than one launch, and every thread computes several guesses.
TEST_P(GuessesOnGpu, FillMoreThanOneLaunch) {
  if (!GetParam()) GTEST_SKIP() << "sized for a GPU; under the fake driver with little memory";
  expect_same(problem_of(R"("student_dim": 20, "eps_train": 1e-3)"), 123,
              2 * uint64_t{kMostGuesses} + 12'345);
  expect_same(problem_of(R"("student_dim": 300, "eps_train": 1e-5)"), 0, 3'000'000);
}

}  // namespace
}  // namespace convoy::experiments::cuda
