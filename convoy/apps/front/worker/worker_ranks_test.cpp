// SPDX-License-Identifier: Apache-2.0
//
// Runs `eval`, `score` and `generate` on ranks, with a script in place of the worker. Tests the
// ranks' arguments and environment; tests/shared_rows tests the computed results.
#include "convoy/apps/front/worker/worker_ranks.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "files/run_script.h"
#include "files/temporary_folder.h"

namespace convoy::apps {
namespace {

class WorkerRanks : public ::testing::Test {
 protected:
  testing::ScriptEnd convoy(const std::string& arguments, const std::string& worker,
                            const std::string& variables = "") const {
    testing::write_executable(folder_ / "worker", "#!/bin/sh\n" + worker + "\n");
    return testing::run_script(
        folder_.path(),
        fmt::format("{} CONVOY_WORKER={}/worker {}/convoy {}", variables, folder_.path().string(),
                    std::getenv("CONVOY_BIN_DIR"), arguments));
  }

  testing::TemporaryFolder folder_;
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(WorkerRanks, SeveralRanksShareAFolderAndGetTheWordsOfTheirCommand) {
  const auto end = convoy(
      "score --model 'a model' --nproc 2 --data rows.jsonl -q --failure-grace 2 --output o.jsonl",
      "echo rank $RANK of $WORLD_SIZE > $3/$RANK\n"
      "until [ -s $3/0 ] && [ -s $3/1 ]; do sleep 0.05; done\n"
      "[ $RANK = 0 ] || exit 0\n"
      "cat $3/0 $3/1; shift 5; echo \"words: $*\"; echo \"third: $3\"");
  EXPECT_EQ(end.code, 0) << end.out;
  EXPECT_TRUE(contains(end.out, "rank 0 of 2\nrank 1 of 2\n")) << end.out;
  EXPECT_TRUE(contains(end.out,
                       "words: --model a model --data rows.jsonl -q --output o.jsonl --devices "
                       "cpu\nthird: --data\n"))
      << end.out;
}

TEST_F(WorkerRanks, OneRankIsThisProcessWhateverTheEnvironmentSays) {
  for (const char* arguments : {"score --model m --data d", "score --model m --nproc 1 --data d",
                                "score --nproc auto --model m --data d"}) {
    const auto end = convoy(arguments, "echo \"$*\"", "RANK=3 WORLD_SIZE=4");
    EXPECT_EQ(end.code, 0) << end.out;
    EXPECT_EQ(end.out, "score --model m --data d --devices cpu\n");
  }
  const auto end = convoy("eval --nproc 2 --samples s.jsonl", "echo \"$*\"");
  EXPECT_TRUE(contains(end.out, "s.jsonl")) << "saved samples need no worker: " << end.out;
  EXPECT_FALSE(contains(end.out, "eval --samples")) << end.out;
}

TEST_F(WorkerRanks, WhatTheJobAroundSaysDoesNotCount) {
  const auto end = convoy("generate --model m --prompt p --nproc 2",
                          "[ $RANK = 0 ] || exit 0; echo of $WORLD_SIZE",
                          "RANK=3 WORLD_SIZE=4 LOCAL_RANK=3 MASTER_ADDR=elsewhere MASTER_PORT=1 "
                          "SLURM_PROCID=3 SLURM_NTASKS=4 SLURM_STEP_ID=0");
  EXPECT_EQ(end.code, 0) << end.out;
  EXPECT_TRUE(contains(end.out, "of 2\n")) << end.out;
}

TEST_F(WorkerRanks, AFailingRankEndsTheOthersWithItsCode) {
  const auto end = convoy("eval --model m --data d --nproc 2",
                          "[ $RANK = 0 ] && sleep 60\n"
                          "echo '{\"message\": {\"message\": \"row 5 is bad\"}, \"convoy\": "
                          "{\"code\": 10}}' > $TORCHELASTIC_ERROR_FILE\nexit 10");
  EXPECT_EQ(end.code, 10) << end.out;
  EXPECT_TRUE(contains(end.out, "rank 1: row 5 is bad\n")) << end.out;
  EXPECT_TRUE(contains(end.out, "{\"code\":10,")) << end.out;
}

TEST_F(WorkerRanks, EachRankGetsTheThreadsAskedForWhateverTheEnvironmentSays) {
  const std::string tell = "echo \"$OMP_NUM_THREADS threads of $*\"";
  for (const char* command :
       {"generate --model m --prompt p", "eval --model m --data d", "score --model m --data d",
        "models merge --model m --adapter a --output o", "models quantize --model m --output o",
        "models export m", "models convert m.gguf o", "bench peak", "bench train --no-peer"}) {
    for (const char* variable : {"", "OMP_NUM_THREADS=2"}) {
      const auto end = convoy(fmt::format("{} --threads 3", command), tell, variable);
      EXPECT_EQ(end.code, 0) << command << end.out;
      EXPECT_TRUE(contains(end.out, "3 threads of ")) << command << end.out;
      EXPECT_FALSE(contains(end.out, "--threads")) << command << end.out;
    }
    const auto left_alone = convoy(command, tell, "OMP_NUM_THREADS=2");
    EXPECT_TRUE(contains(left_alone.out, "2 threads of ")) << command << left_alone.out;
  }
  const auto two = convoy("score --model m --data d --ranks 2 --threads 5", tell);
  EXPECT_EQ(two.code, 0) << two.out;
  EXPECT_TRUE(contains(two.out, "5 threads of ")) << two.out << "each, not together";
}

TEST_F(WorkerRanks, ABenchmarkTakesItsOwnFlagsAlone) {
  const std::string tell = "echo words: $*";
  const auto generate = convoy("bench generate --weights int8 --no-peer", tell);
  EXPECT_TRUE(contains(generate.out, "words: bench-generate --weights int8 --no-peer"))
      << generate.out;
  for (const char* line : {"bench train --weights int8", "bench generate --strategy zero3",
                           "bench peak --batches 1"}) {
    const auto refused = convoy(line, tell);
    EXPECT_EQ(refused.code, 2) << line << refused.out;
    EXPECT_TRUE(contains(refused.out, "has no effect in")) << line << refused.out;
    EXPECT_FALSE(contains(refused.out, "words:")) << line << refused.out;
  }
}

TEST_F(WorkerRanks, AWrongNumberOfThreadsIsRefusedByName) {
  for (const char* number : {"-1", "two", "4097", "1.5", "2,1", "''"}) {
    const auto end =
        convoy(fmt::format("generate --model m --prompt p --threads {}", number), "echo started");
    EXPECT_EQ(end.code, 2) << number << end.out;
    EXPECT_TRUE(contains(end.out, "threads")) << number << end.out;
    EXPECT_FALSE(contains(end.out, "started")) << number << end.out;
  }
  const auto end = convoy("generate --model m --prompt p --engine http://127.0.0.1:1 --threads 2",
                          "echo started");
  EXPECT_TRUE(contains(end.out, "--threads has no effect with --engine")) << end.out;
}

TEST_F(WorkerRanks, WrongUseIsRefusedBeforeAnythingStarts) {
  const auto talk = convoy("generate --model m --interactive --nproc 2", "echo started");
  EXPECT_EQ(talk.code, 2);
  EXPECT_TRUE(contains(talk.out, "a conversation runs on one rank, found 2")) << talk.out;
  for (const char* arguments : {"score --nproc two --data d", "score --nprok 2", "eval --nproc 0",
                                "generate --nproc-per-node gpu --prompt p"}) {
    const auto end = convoy(arguments, "echo started");
    EXPECT_EQ(end.code, contains(arguments, "gpu") ? 14 : 2) << arguments << end.out;
    EXPECT_FALSE(contains(end.out, "started")) << end.out;
  }
}

}  // namespace
}  // namespace convoy::apps
