// SPDX-License-Identifier: Apache-2.0
//
// The stages of a training's start, on two ranks that are threads: what they find, agree on, and
// hear of each other's failure.
#include "convoy/apps/recipes/training/training_start.h"

#include <gtest/gtest.h>

#include <new>
#include <thread>

#include "files/temporary_folder.h"

namespace convoy::recipes {
namespace {

namespace fs = std::filesystem;

class TwoRanks : public ::testing::Test {
 protected:
  TwoRanks() {
    for (const fs::path& run : {run_folder(0), run_folder(1)})
      telemetry::RunFolder::create(run, "run");
  }

  // Each node has a folder of its own.
  fs::path run_folder(int rank) const { return folder_ / ("run-" + std::to_string(rank)); }

  void save_checkpoint(int64_t step, const checkpoint::Stamp& stamp) {
    checkpoint::CheckpointStore store(run_folder(0) / "checkpoints", 2);
    store.prepare();
    store.save({.progress = {.step = step, .best_metric = 0.5, .best_step = step}, .stamp = stamp},
               {}, false, {{"trainer_state.json", ""}});
  }

  // Runs `body` on both ranks. Returns what each threw, by rank; empty: nothing.
  std::vector<std::string> on_ranks(const std::function<void(TrainingRun&)>& body) {
    telemetry::FlightWriter flight;
    const auto store_barriers = comm::StoreBarrier::of_threads({}, 2, flight);
    std::vector<std::string> errors(2);
    std::vector<std::thread> ranks;
    for (const auto& store_barrier : store_barriers)
      ranks.emplace_back([&, store_barrier] {
        const FineTuneRequest request{.run_folder = run_folder(store_barrier->rank())};
        try {
          TrainingRun run(request, settings_, store_barrier, stop_, Log(LogLevel::Quiet));
          body(run);
        } catch (const Error& error) {
          store_barrier->tell_failure(error.sentence());  // as fine_tune() does
          errors[static_cast<size_t>(store_barrier->rank())] = error.sentence();
        }
      });
    for (std::thread& rank : ranks) rank.join();
    return errors;
  }

  settings::TrainSettings settings_;
  const std::atomic<bool> stop_ = false;
  convoy::testing::TemporaryFolder folder_;
};

std::vector<SharedInput> no_inputs() { return {}; }

using FoundCheckpoints = TwoRanks;

TEST_F(FoundCheckpoints, EveryRankHearsOfRankZerosCheckpoint) {
  checkpoint::Stamp stamp;
  stamp.set_informational("batch_size", "3");
  stamp.set_informational("metric_for_best_model", settings_.train.metric_for_best_model);
  save_checkpoint(7, stamp);
  std::vector<FoundCheckpoint> found(2);
  EXPECT_EQ(on_ranks([&](TrainingRun& run) {
              found[static_cast<size_t>(run.environment.rank)] = find_checkpoint(run);
            }),
            (std::vector<std::string>{"", ""}));
  for (const FoundCheckpoint& of_rank : found) {
    EXPECT_EQ(of_rank.progress.step, 7);
    EXPECT_EQ(of_rank.progress.best_metric, 0.5);
    EXPECT_EQ(of_rank.saved_number("batch_size"), 3);
    EXPECT_EQ(of_rank.saved_number("metric_for_best_model"), std::nullopt);
    EXPECT_EQ(of_rank.folder.parent_path(), run_folder(0) / "checkpoints");
  }
  EXPECT_TRUE(found[0].loaded.has_value());
  EXPECT_FALSE(found[1].loaded.has_value());
}

TEST_F(FoundCheckpoints, ABestOfAnotherFigureIsForgotten) {
  checkpoint::Stamp stamp;
  stamp.set_informational("metric_for_best_model", "eval_rougeL");
  save_checkpoint(7, stamp);
  on_ranks([&](TrainingRun& run) {
    const FoundCheckpoint found = find_checkpoint(run);
    EXPECT_EQ(found.progress.step, 7);
    EXPECT_EQ(found.progress.best_metric, std::nullopt);
    EXPECT_TRUE(found.forgets_best);
  });
}

TEST_F(FoundCheckpoints, ARunThatBeginsAnewHasNone) {
  settings_.train.resume_from_checkpoint = "never";
  save_checkpoint(7, {});
  fs::create_directories(run_folder(0) / "rollouts");
  on_ranks([&](TrainingRun& run) {
    const FoundCheckpoint found = find_checkpoint(run);
    EXPECT_EQ(found.progress.step, 0);
    EXPECT_FALSE(found.stamp || found.loaded);
    EXPECT_EQ(found.saved_number("batch_size"), std::nullopt);
    EXPECT_EQ(found.trainer_state(), "");
    EXPECT_FALSE(fs::exists(run_folder(0) / "rollouts")) << "texts of an earlier life";
    settings::TrainSettings settings = run.settings;
    settings.train.batch_size = 3;
    EXPECT_EQ(global_batch(run, found, settings) % 2, 0);  // rows of both ranks
  });
}

using AgreedStarts = TwoRanks;

TEST_F(AgreedStarts, RanksThatStartAlikeJoin) {
  EXPECT_EQ(on_ranks([](TrainingRun& run) {
              const FoundCheckpoint found = find_checkpoint(run);
              const Agreed agreed = agree(run, found, {}, no_inputs);
              EXPECT_EQ(agreed.hosts.size(), 1U);
              EXPECT_EQ(join(run, agreed)->size(), 2);
            }),
            (std::vector<std::string>{"", ""}));
}

TEST_F(AgreedStarts, RanksWithUnlikeStampsAreRefusedAlike) {
  const auto errors = on_ranks([](TrainingRun& run) {
    checkpoint::Stamp stamp;
    stamp.set("seed", run.environment.rank == 0 ? "42" : "43");
    agree(run, find_checkpoint(run), stamp, no_inputs);
  });
  EXPECT_NE(errors[0].find("the ranks start differently: seed is `42` for rank 0"),
            std::string::npos)
      << errors[0];
  EXPECT_EQ(errors[0], errors[1]);
}

TEST_F(AgreedStarts, AnotherStampThanTheCheckpointsIsRefusedBeforeInputsAreRead) {
  checkpoint::Stamp saved, current;
  saved.set("seed", "42");
  current.set("seed", "43");
  save_checkpoint(7, saved);
  bool rank_zero_read = false;
  const auto errors = on_ranks([&](TrainingRun& run) {
    const FoundCheckpoint found = find_checkpoint(run);
    agree(run, found, current, [&] {
      if (run.environment.rank == 0) rank_zero_read = true;
      return no_inputs();
    });
  });
  EXPECT_NE(errors[0].find("seed"), std::string::npos) << errors[0];
  EXPECT_NE(errors[1], "");
  EXPECT_FALSE(rank_zero_read);
}

using GivingUp = TwoRanks;

TEST_F(GivingUp, AForeignFaultBecomesAnErrorAndFreesTheOtherRank) {
  const auto errors = on_ranks([](TrainingRun& run) {
    const auto group = join(run, agree(run, find_checkpoint(run), {}, no_inputs));
    or_give_up(run, {.settings = run.settings, .group = group.get()}, [&] {
      if (run.environment.rank == 0) throw std::bad_alloc();
      group->barrier();
    });
  });
  EXPECT_NE(errors[0].find("out of memory"), std::string::npos) << errors[0];
  EXPECT_NE(errors[1], "");
}

}  // namespace
}  // namespace convoy::recipes
