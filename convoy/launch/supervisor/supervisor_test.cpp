// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/supervisor/supervisor.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdlib>

#include "convoy/core/base/files.h"

namespace convoy::launch {
namespace {

namespace fs = std::filesystem;

class Restarts : public ::testing::Test {
 protected:
  Restarts() {
    std::string name = (fs::temp_directory_path() / "convoy-test-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    setenv("HERE", folder_.c_str(), 1);
  }
  ~Restarts() override { fs::remove_all(folder_); }

  LaunchReport run(const std::string& script, int max_restarts,
                   std::vector<int> final_codes = {}) const {
    JobSpec spec;
    spec.attempt.program = {"/bin/sh", "-c", script};
    spec.attempt.job.num_local_ranks = 2;
    spec.attempt.job.world_size = 2;
    spec.attempt.job.max_restarts = max_restarts;
    spec.attempt.logs.console = Console::Silent;
    spec.restarts.max_restarts = max_restarts;
    spec.restarts.final_codes = std::move(final_codes);
    spec.log = Log(LogLevel::Quiet);
    return run_job(spec);
  }

  std::string file(const std::string& name) const { return read_file(folder_ / name); }

  fs::path folder_;
};

TEST_F(Restarts, FailedJobStartsAgainAndMaySucceed) {
  const LaunchReport report =
      run("[ $RANK = 1 ] && [ $TORCHELASTIC_RESTART_COUNT != 2 ] && sleep 60; "
          "echo $TORCHELASTIC_RESTART_COUNT/$TORCHELASTIC_MAX_RESTARTS >> $HERE/attempts.$RANK; "
          "[ $TORCHELASTIC_RESTART_COUNT = 2 ] || exit 7",
          3);
  EXPECT_EQ(report.exit_code, 0);
  EXPECT_EQ(file("attempts.0"), "0/3\n1/3\n2/3\n");
}

TEST_F(Restarts, EndWithTheFailureWhenNoneIsLeft) {
  const LaunchReport report = run("[ $RANK = 1 ] && sleep 60; echo x >> $HERE/attempts; exit 9", 2);
  EXPECT_EQ(report.exit_code, 9);
  EXPECT_EQ(file("attempts"), "x\nx\nx\n");
  EXPECT_FALSE(failure_text(report).empty());
}

TEST_F(Restarts, NoneForCodesThatARestartCanNotCure) {
  EXPECT_EQ(run("[ $RANK = 1 ] && sleep 60; echo x >> $HERE/attempts; exit 2", 5,
                rendezvous::final_codes_of_worker())
                .exit_code,
            2);
  EXPECT_EQ(file("attempts"), "x\n");
}

TEST_F(Restarts, EndWith16WhenOwnWorkersFailBeforeTheirFirstStep) {
  JobSpec spec;
  spec.attempt.program = {"/bin/sh", "-c", "echo x >> $HERE/attempts; exit 70"};
  spec.attempt.logs.console = Console::Silent;
  spec.restarts.max_restarts = 9;
  spec.own_program = true;
  spec.log = Log(LogLevel::Quiet);
  EXPECT_EQ(run_job(spec).exit_code, 16);
  EXPECT_EQ(file("attempts"), "x\nx\nx\n");
}

TEST_F(Restarts, EveryAttemptHasAStoreOfItsOwn) {
  run("[ $RANK = 0 ] && echo $CONVOY_STORE_FILE >> $HERE/stores; [ -e $CONVOY_STORE_FILE ] && echo "
      "stale >> $HERE/stale; "
      "echo used > $CONVOY_STORE_FILE; sleep 0.1; exit 3",
      1);
  const std::string stores = file("stores");
  const size_t half = stores.find('\n');
  EXPECT_NE(stores.substr(0, half), stores.substr(half + 1, half));
}

}  // namespace
}  // namespace convoy::launch
