// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/loop/weight_check.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/train/loop/toy_run_test.h"
#include "ranks/ranks.h"

namespace convoy::train {
namespace {

using testing::expect_all_well;
using testing::start_ranks;

struct Replica {
  explicit Replica(const std::string& strategy_name = "ddp") {
    settings::ParallelSettings settings;
    settings.strategy = strategy_name;
    strategy = parallel::make_strategy(settings, *group);
    nn::Unit unit{.name = "unit"};
    for (const char* name : {"first", "second", "third"})
      unit.trained.push_back({name, at::ones({40, 5}).set_requires_grad(true)});
    strategy->prepare({unit});
    values = unit.trained;
  }
  // The smallest change that there is.
  void flip_lowest_bit(size_t parameter, int64_t element) {
    values[parameter].value.detach().view({-1}).view(at::kInt)[element].bitwise_xor_(1);
  }
  std::string verdict() {
    try {
      check_weights_when_due(*strategy, 5, 10);
      return "";
    } catch (const NumericError& error) {
      EXPECT_EQ(error.code(), ExitCode::Numeric);
      EXPECT_EQ(error.location().step, 10);
      return fmt::format("{}: {}", error.location().rank, error.what());
    }
  }

  std::unique_ptr<comm::Group> group =
      comm::join_group(comm::read_rank_environment(), std::chrono::seconds(300));
  std::unique_ptr<parallel::Strategy> strategy;
  std::vector<nn::NamedTensor> values;
};

RANK_BODY(OneOfThree) {
  Replica replica;
  EXPECT_EQ(replica.verdict(), "");
  // Rank 0 is outvoted.
  if (replica.group->rank() == 0) replica.flip_lowest_bit(1, 199);
  EXPECT_EQ(replica.verdict(),
            "0: the weights of rank 0 are not those of rank 1 after step 10: the first parameter "
            "that differs is second");
  check_weights_when_due(*replica.strategy, 5, 9);  // not due
  check_weights_when_due(*replica.strategy, 0, 10);
}
TEST(WeightCheck, TheRankThatDiffersFromMostIsNamed) {
  expect_all_well(start_ranks(3, "OneOfThree"));
}

RANK_BODY(OneOfTwo) {
  Replica replica;
  if (replica.group->rank() == 1) {
    replica.flip_lowest_bit(2, 0);
    replica.flip_lowest_bit(0, 7);
  }
  EXPECT_EQ(replica.verdict(),
            "1: the weights of rank 1 are not those of rank 0 after step 10: the first parameter "
            "that differs is first");
}
TEST(WeightCheck, OfTwoTheFirstIsTakenToBeRight) { expect_all_well(start_ranks(2, "OneOfTwo")); }

RANK_BODY(TwoOfFour) {
  Replica replica;
  if (replica.group->rank() >= 2) replica.flip_lowest_bit(0, replica.group->rank());
  EXPECT_EQ(replica.verdict(),
            "2: the weights of ranks 2, 3 are not those of rank 0 after step 10: the first "
            "parameter that differs is first");
}
TEST(WeightCheck, AllThatDifferAreNamed) { expect_all_well(start_ranks(4, "TwoOfFour")); }

// Under zero1 each rank holds other pieces, so nothing can be compared.
RANK_BODY(Sharded) {
  Replica replica("zero1");
  if (replica.group->rank() == 1) replica.flip_lowest_bit(0, 7);
  EXPECT_EQ(replica.verdict(), "");
}
TEST(WeightCheck, PiecesThatOneRankAloneHoldsAreNotCompared) {
  expect_all_well(start_ranks(2, "Sharded"));
}

// The training loop runs the check: the step after which the drift is found is not saved.
RANK_BODY(ARunThatDrifts) {
  settings::TrainSettings settings = make_settings();
  settings.train.save_strategy = "steps";
  settings.train.save_steps = 1;
  settings.parallel.check_weights_every = 4;
  const testing::TemporaryFolder folder;
  ToyRun run(settings, folder.path());
  const bool is_spoilt = comm::read_rank_environment().rank == 1;
  int64_t forwards = 0;
  run.model.before_forward = [&] {
    // Changes a bit in the third step, in which no check is due.
    if (++forwards == 3 && is_spoilt)
      run.parameters[0].value.detach().view({-1}).view(at::kInt)[8].bitwise_xor_(1 << 10);
  };
  try {
    run.go();
    ADD_FAILURE() << "the run went on";
  } catch (const NumericError& error) {
    EXPECT_EQ(error.location().rank, 1);
    EXPECT_EQ(error.location().step, 4);
    EXPECT_NE(std::string(error.what()).find("embedding.weight"), std::string::npos)
        << error.what();
  }
  EXPECT_TRUE(is_spoilt || run.checkpoints.load_newest()->state.progress.step == 3);
}
TEST(WeightCheck, ARunWithARankThatDriftsEndsUnsaved) {
  expect_all_well(start_ranks(2, "ARunThatDrifts"));
}

}  // namespace
}  // namespace convoy::train
