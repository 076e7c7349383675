// SPDX-License-Identifier: Apache-2.0
//
// Runs `convoy train` with a script in place of the worker. Tests what the ranks are given, and
// what the command makes of their ends.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "convoy/core/base/descriptor.h"
#include "convoy/core/base/files.h"
#include "files/run_script.h"
#include "files/temporary_folder.h"
#include "ports/free_port.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class TrainCommand : public ::testing::Test {
 protected:
  TrainCommand() {
    write_file_atomic(folder_ / "sums.yaml",
                      "model: {name: some-model}\ndata: {train_path: rows.jsonl}\n");
    write_file_atomic(folder_ / "some-model" / "config.json", "{}");
    write_file_atomic(folder_ / "rows.jsonl", "{}\n");
  }

  // Runs `convoy train ARGUMENTS` in the test's folder, with `script` as the worker. Returns the
  // exit code.
  int train(const std::string& arguments, const std::string& script) {
    return run("train " + arguments, script);
  }
  int run(const std::string& words, const std::string& script) {
    const fs::path worker = folder_ / "worker";
    write_file_atomic(worker, "#!/bin/sh\n" + script + "\n");
    fs::permissions(worker, fs::perms::owner_all);
    const std::string command =
        fmt::format("cd {} && CONVOY_WORKER={} {}/convoy {} 2>&1", folder_.path().string(),
                    worker.string(), std::getenv("CONVOY_BIN_DIR"), words);
    const testing::ScriptEnd end = testing::run_command(command);
    output_ = end.out;
    return end.code;
  }

  json last_line() const {
    const size_t begin = output_.rfind('\n', output_.size() - 2);
    return json::parse(output_.substr(begin + 1), nullptr, false);
  }

  testing::TemporaryFolder folder_;
  std::string output_;  // stdout and stderr
};

TEST_F(TrainCommand, RunFolderHoldsConfigOriginsAndLogsAndRanksAreToldOfIt) {
  EXPECT_EQ(train("sums.yaml --nproc 2 train.batch_size=7 --output-dir out",
                  "echo $RANK of $WORLD_SIZE: $*"),
            0);
  for (const int rank : {0, 1}) {
    const std::string log = read_file(folder_ / fmt::format("out/logs/rank-0{}.log", rank));
    EXPECT_NE(
        log.find(fmt::format("{} of 2: train --run-folder {}", rank, (folder_ / "out").string())),
        std::string::npos)
        << log;
  }
  const json record = json::parse(read_file(folder_ / "out/run.json"));
  EXPECT_EQ(record["config"]["train"]["batch_size"], 7);
  EXPECT_EQ(record["config"]["run_name"], "sums");
  EXPECT_EQ(record["origins"]["train.batch_size"], "command line");
  EXPECT_TRUE(record["origins"]["model.name"].get<std::string>().starts_with("sums.yaml:1"));
}

TEST_F(TrainCommand, WrittenConfigRepeatsTheRun) {
  EXPECT_EQ(train("sums.yaml --output-dir a --resume never", "exit 0"), 0);
  EXPECT_EQ(train("a/config.yaml --output-dir b", "exit 0"), 0);
  json first = json::parse(read_file(folder_ / "a/run.json"))["config"];
  json second = json::parse(read_file(folder_ / "b/run.json"))["config"];
  EXPECT_EQ(first["train"]["resume_from_checkpoint"], "never");
  for (json* config : {&first, &second}) (*config)["train"].erase("output_dir");
  EXPECT_EQ(first, second);
}

TEST_F(TrainCommand, CheckpointOfARunIsContinuedInThatRun) {
  EXPECT_EQ(train("sums.yaml --output-dir a", "mkdir -p a/checkpoints/step-00000002"), 0);
  EXPECT_EQ(train("sums.yaml --resume a/checkpoints/step-00000002", "echo $*"), 0);
  EXPECT_NE(output_.find("--run-folder " + (folder_ / "a").string()), std::string::npos) << output_;
}

TEST_F(TrainCommand, ARunFolderIsContinuedAtItsNewestCheckpoint) {
  EXPECT_EQ(train("sums.yaml --output-dir a", "mkdir -p a/checkpoints/step-00000002"), 0);
  EXPECT_EQ(train("sums.yaml --resume a", "cat $5"), 0);
  EXPECT_NE(output_.find("resume_from_checkpoint: auto"), std::string::npos) << output_;
  EXPECT_EQ(train("sums.yaml --resume a --output-dir b", "cat $5"), 0);
  EXPECT_NE(output_.find("resume_from_checkpoint: a/checkpoints/last"), std::string::npos)
      << output_;
}

TEST_F(TrainCommand, ARefusedStartLeavesTheConfigOfTheRun) {
  EXPECT_EQ(train("sums.yaml --output-dir a", "exit 0"), 0);
  const std::string config = read_file(folder_ / "a/config.yaml");
  EXPECT_EQ(train("sums.yaml --output-dir a train.steps=7", "cat $5; exit 2"), 2);
  EXPECT_NE(output_.find("steps: 7"), std::string::npos) << output_;
  EXPECT_EQ(read_file(folder_ / "a/config.yaml"), config);
  EXPECT_NE(json::parse(read_file(folder_ / "a/run.json"))["config"]["train"]["steps"], 7);
}

TEST_F(TrainCommand, ARunThatIsRefusedBeforeItStartsLeavesNoFolder) {
  const std::string refuse =
      "echo '{\"message\": {\"message\": \"no row can be used\"}, \"convoy\": {\"code\": 10}}'"
      " > $TORCHELASTIC_ERROR_FILE\n";
  EXPECT_EQ(train("sums.yaml --nproc 2 --output-dir out", refuse + "exit 10"), 10);
  EXPECT_NE(output_.find("no row can be used"), std::string::npos) << output_;
  EXPECT_EQ(output_.find("log: "), std::string::npos) << output_;
  EXPECT_FALSE(fs::exists(folder_ / "out"));
  EXPECT_EQ(train("sums.yaml", refuse + "exit 10"), 10);
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
  // A run that has begun is kept, and so are files that another program wrote into the folder.
  EXPECT_EQ(train("sums.yaml --output-dir begun",
                  refuse + "echo '{\"starts\": [{}]}' > $3/run.json\nexit 10"),
            10);
  EXPECT_TRUE(fs::exists(folder_ / "begun/logs/rank-00.log"));
  fs::create_directories(folder_ / "mine");
  EXPECT_EQ(train("sums.yaml --output-dir mine", refuse + "exit 10"), 10);
  EXPECT_TRUE(fs::exists(folder_ / "mine"));
}

TEST_F(TrainCommand, AFolderOfCheckpointsInTheWorkingDirectoryIsNoStart) {
  fs::create_directories(folder_ / "checkpoints/last");
  for (const char* flags : {"", " --output-dir out", " train.resume_from_checkpoint=never"}) {
    EXPECT_EQ(train(std::string("sums.yaml") + flags, "cat $5"), 0) << output_;
    EXPECT_EQ(output_.find("checkpoints/last"), std::string::npos) << output_;
  }
}

TEST_F(TrainCommand, APlanOfSeveralNodesIsOfAllTheirRanks) {
  EXPECT_EQ(
      train("sums.yaml --nproc 2 --nnodes 2 --node-rank 0 --rdzv-endpoint 127.0.0.1:1 --dry-run",
            "echo of $WORLD_SIZE, of $CONVOY_FULL_WORLD_SIZE"),
      0)
      << output_;
  EXPECT_NE(output_.find("the plan of 2 nodes, 4 ranks"), std::string::npos) << output_;
  EXPECT_NE(output_.find("of 2, of 4\n"), std::string::npos) << output_;
}

TEST_F(TrainCommand, AWishForManyGpusWithoutGpusIsAnswered) {
  ::setenv("CONVOY_NVML_LIBRARY", "/nowhere/libnvidia-ml.so", 1);
  EXPECT_EQ(train("sums.yaml --multi-gpu ddp --output-dir a", "exit 0"), 0);
  EXPECT_NE(output_.find("--multi-gpu ddp: no GPU can be used here, so ONE rank trains"),
            std::string::npos)
      << output_;
  EXPECT_EQ(train("sums.yaml --multi-gpu ddp --nproc 2 --output-dir b", "exit 0"), 0);
  EXPECT_EQ(output_.find("ONE"), std::string::npos) << output_;
  EXPECT_EQ(train("sums.yaml --multi-gpu dp --output-dir c", "exit 0"), 0);
  EXPECT_NE(output_.find("--multi-gpu dp: no GPU can be used here, so ONE replica trains"),
            std::string::npos)
      << output_;
  EXPECT_EQ(train("sums.yaml --multi-gpu dp parallel.replicas=2 --output-dir d", "exit 0"), 0);
  EXPECT_EQ(output_.find("ONE"), std::string::npos) << output_;
  ::unsetenv("CONVOY_NVML_LIBRARY");
}

TEST_F(TrainCommand, AProfileTakesPresetAndFlagsOfActivityRecognition) {
  fs::create_directories(folder_ / "windows");
  run("profile --preset har-quick-test --data-dir windows --hidden-dims 16 8 --no-compare "
      "--output-dir profile",
      "cat $5");
  for (const char* line : {"data_dir: windows", "hidden_dims: [16, 8]", "task: classify"})
    EXPECT_NE(output_.find(line), std::string::npos) << line << "\n" << output_;
}

TEST_F(TrainCommand, AllFilesThatAreNotThereAreNamedBeforeAnythingIsWritten) {
  EXPECT_EQ(train("sums.yaml model.name=Qwen/Qwen2.5-0.5B data.train_path=a/b "
                  "data.val_path=nix.jsonl",
                  "exit 0"),
            10);
  for (const char* part :
       {"model.name: ", "data.train_path: a/b: there is no such file, and no data set `a/b`",
        "data.val_path: nix.jsonl: ", "3 errors"})
    EXPECT_NE(output_.find(part), std::string::npos) << part << "\n" << output_;
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
}

TEST_F(TrainCommand, WhatRewardsNameIsLookedForBeforeAnythingIsWritten) {
  const std::string words =
      "sums.yaml task=grpo 'reward=[{kind: answer}, {kind: format, schema: answer.json}, "
      "{kind: command, command: python3 grade.py}]' ";
  for (const char* const flags : {"", "--dry-run"}) {
    EXPECT_EQ(train(words + flags, "exit 0"), 10);
    for (const char* part :
         {"answer.json: reward[1].schema of reward `format`: ",
          "grade.py: reward[2].command of reward `command`: there is no such file", "2 errors"})
      EXPECT_NE(output_.find(part), std::string::npos) << part << "\n" << output_;
  }
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
  EXPECT_EQ(run("config check " + words, ""), 0);
  EXPECT_NE(output_.find("reward[1].schema: "), std::string::npos) << output_;
  EXPECT_EQ(train("sums.yaml task=grpo 'reward=[{kind: format, pattern: (a}]'", "exit 0"), 2);
  EXPECT_NE(output_.find("reward[0].pattern of reward `format`"), std::string::npos) << output_;
}

TEST_F(TrainCommand, NoFolderOfItsOwnIsNamedAfterTheConfig) {
  EXPECT_EQ(train("sums.yaml", "exit 0"), 0);
  const fs::path made = fs::directory_iterator(folder_ / "runs")->path();
  EXPECT_TRUE(made.filename().string().starts_with("sums-"));
}

TEST_F(TrainCommand, FirstFailingRanksOwnErrorIsTheLastLine) {
  const std::string script =
      "[ $RANK = 0 ] && sleep 60\n"
      "echo '{\"message\": {\"message\": \"loss is NaN\"}, \"convoy\": {\"code\": 15, \"step\": "
      "3}}'"
      " > $TORCHELASTIC_ERROR_FILE\nexit 15";
  EXPECT_EQ(train("sums.yaml --nproc 2 --output-dir out", script), 15);
  EXPECT_NE(output_.find("rank 1: loss is NaN\n"), std::string::npos) << output_;
  EXPECT_EQ(last_line()["code"], 15);
  EXPECT_EQ(last_line()["rank"], 1);
}

TEST_F(TrainCommand, StopWithStateSavedSaysHowToGoOn) {
  const std::string script =
      "trap 'exit 75' TERM; [ $RANK = 0 ] && { sleep 0.3; kill -TERM $PPID; }\n"
      "while :; do sleep 0.05; done";
  EXPECT_EQ(train("sums.yaml --nproc 2 --output-dir out", script), 75);
  const std::string out = (folder_ / "out").string();
  EXPECT_NE(output_.find(fmt::format("resume with: convoy train {0}/config.yaml --run-dir {0} "
                                     "--ranks 2\n",
                                     out)),
            std::string::npos)
      << output_;
  EXPECT_EQ(last_line()["code"], 75) << output_;
  EXPECT_EQ(last_line()["kind"], "stopped");
}

TEST_F(TrainCommand, StopThatSavedNothingSaysHowToGoOn) {
  const std::string script =
      "trap '' TERM; sleep 0.3; kill -TERM $PPID; while :; do sleep 0.05; done";
  EXPECT_EQ(train("sums.yaml --output-dir out --shutdown-timeout 0.2", script), 143);
  EXPECT_NE(output_.find(fmt::format("are not saved; go on with: convoy train {0}/config.yaml "
                                     "--run-dir {0} --shutdown-timeout 0.2\n",
                                     (folder_ / "out").string())),
            std::string::npos)
      << output_;
}

TEST_F(TrainCommand, RunThatBeganAnewGoesOnFromItsOwnCheckpoints) {
  EXPECT_EQ(train("sums.yaml --output-dir 'an out' --resume never", "exit 75"), 75);
  EXPECT_NE(output_.find("/an out' --resume auto\n"), std::string::npos) << output_;
}

TEST_F(TrainCommand, DryRunLeavesNoRunFolder) {
  EXPECT_EQ(train("sums.yaml --nproc 2 --dry-run", "test -f $3/config.yaml && echo $*"), 0);
  EXPECT_NE(output_.find("--dry-run"), std::string::npos) << output_;
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
}

TEST_F(TrainCommand, TwoJobsDoNotShareARunFolder) {
  // While it runs, the script starts the same run a second time.
  const std::string script = fmt::format(
      "[ -n \"$INNER\" ] && exit 0; INNER=1 {}/convoy train sums.yaml --output-dir out; test $? = "
      "2",
      std::getenv("CONVOY_BIN_DIR"));
  EXPECT_EQ(train("sums.yaml --output-dir out", script), 0) << output_;
  EXPECT_NE(output_.find("in use by process"), std::string::npos) << output_;
}

// Without node ranks either launcher may become node 0. The other launcher uses node 0's run
// folder.
TEST_F(TrainCommand, TwoLaunchersOfOneHostShareTheRunFolderOfTheirJob) {
  const std::string folder = (folder_ / "out").string();
  const std::string node = fmt::format(
      "sums.yaml --nnodes 2 --rdzv-endpoint 127.0.0.1:{} --rdzv-conf join_timeout=30 "
      "--output-dir {}",
      testing::free_port(), folder);
  const std::string both = fmt::format(
      "{0} > {1}/other 2>&1 & cd {1} && CONVOY_WORKER={1}/worker {2}/convoy train {0}; "
      "code=$?; wait $! && cat other && exit $code",
      node, folder_.path().string(), std::getenv("CONVOY_BIN_DIR"));
  EXPECT_EQ(train(both, "echo $RANK of $WORLD_SIZE: $*"), 0) << output_;
  for (const int rank : {0, 1})
    EXPECT_NE(read_file(folder_ / fmt::format("out/logs/rank-0{}.log", rank))
                  .find(fmt::format("{} of 2: train --run-folder {}", rank, folder)),
              std::string::npos)
        << output_;
}

// The nodes share no folder: each has a run folder of its own, and only rank 0's node needs the
// configuration.
TEST_F(TrainCommand, NodeThatTakesPartNeedsNeitherTheRunFolderNorTheConfiguration) {
  const std::string job = fmt::format(
      "--nnodes 2 --rdzv-endpoint 127.0.0.1:{} --rdzv-conf join_timeout=30", testing::free_port());
  const std::string both = fmt::format(
      "missing.yaml seed=3 {0} --node-rank 1 --output-dir b > {1}/other 2>&1 & cd {1} && "
      "CONVOY_WORKER={1}/worker {2}/convoy train sums.yaml {0} --node-rank 0 --output-dir a; "
      "code=$?; wait $! && cat other && exit $code",
      job, folder_.path().string(), std::getenv("CONVOY_BIN_DIR"));
  EXPECT_EQ(train(both, "echo $*"), 0) << output_;
  const std::string log_0 = read_file(folder_ / "a/logs/rank-00.log");
  EXPECT_NE(log_0.find("--config " + (folder_ / "a/config.yaml").string()), std::string::npos)
      << log_0;
  const std::string log_1 = read_file(folder_ / "b/logs/rank-01.log");
  EXPECT_NE(log_1.find(" seed=3 "), std::string::npos) << log_1;
  EXPECT_FALSE(fs::exists(folder_ / "b/config.yaml"));
  EXPECT_NE(output_.find("rank 0's node sends its own"), std::string::npos) << output_;
}

TEST_F(TrainCommand, RanksOfAnElasticJobKnowHowManyThereMayBe) {
  const std::string node = fmt::format(
      "sums.yaml --nproc 2 --rdzv-endpoint 127.0.0.1:{} --rdzv-conf last_call_timeout=1 ",
      testing::free_port());
  EXPECT_EQ(train(node + "--nnodes 1:3", "echo of $WORLD_SIZE, of $CONVOY_FULL_WORLD_SIZE"), 0);
  EXPECT_NE(output_.find("of 2, of 6\n"), std::string::npos) << output_;
  EXPECT_EQ(train("sums.yaml --nproc 2", "echo of $WORLD_SIZE, of $CONVOY_FULL_WORLD_SIZE."), 0);
  EXPECT_NE(output_.find("of 2, of .\n"), std::string::npos) << output_;
}

TEST_F(TrainCommand, WordsOfLaunchersAreRefusedWithWhatToType) {
  EXPECT_EQ(train("sums.yaml WORLD_SIZE=2", "exit 0"), 2);
  EXPECT_NE(output_.find("WORLD_SIZE is a variable that a launcher gives to each rank"),
            std::string::npos)
      << output_;
  EXPECT_NE(output_.find("--ranks 2; a launcher of your own sets it before the command: "
                         "WORLD_SIZE=2 convoy train"),
            std::string::npos)
      << output_;
  EXPECT_EQ(train("sums.yaml RANK=0", "exit 0"), 2);
  write_file_atomic(folder_ / "of_accelerate.yaml",
                    "compute_environment: LOCAL_MACHINE\nnum_processes: 2\n");
  EXPECT_EQ(train("of_accelerate.yaml", "exit 0"), 2);
  const std::string hint = "convoy train CONFIG.yaml --accelerate-config of_accelerate.yaml";
  EXPECT_NE(output_.find(hint), std::string::npos) << output_;
  EXPECT_EQ(train("sums.yaml of_accelerate.yaml", "exit 0"), 2);
  EXPECT_NE(output_.find(hint), std::string::npos) << output_;
  EXPECT_EQ(train("sums.yaml sums.yaml", "exit 0"), 2);
  EXPECT_NE(output_.find("wanted one config file, found sums.yaml and sums.yaml"),
            std::string::npos)
      << output_;
}

TEST_F(TrainCommand, FilesAndVariablesOfOtherLaunchersSayHowManyRanks) {
  const std::string echo = "echo rank of $WORLD_SIZE, NCCL_DEBUG=$NCCL_DEBUG";
  EXPECT_EQ(train("sums.yaml NUM_GPUS=2 NCCL_DEBUG=WARN --devices cpu", echo), 0) << output_;
  EXPECT_NE(output_.find("rank of 2, NCCL_DEBUG=WARN"), std::string::npos) << output_;
  EXPECT_NE(output_.find("--nproc-per-node 2: command line"), std::string::npos) << output_;
  EXPECT_EQ(train("sums.yaml NUM_GPUS=2 --nproc 1 --devices cpu", echo), 0);
  EXPECT_NE(output_.find("rank of 1"), std::string::npos) << output_;
  write_file_atomic(folder_ / "accelerate.yaml",
                    "distributed_type: MULTI_CPU\nnum_processes: 2\nuse_cpu: true\n");
  EXPECT_EQ(train("sums.yaml --accelerate-config accelerate.yaml --output-dir a", echo), 0);
  EXPECT_NE(output_.find("rank of 2"), std::string::npos) << output_;
  EXPECT_NE(output_.find("--nproc-per-node 2: accelerate.yaml:2"), std::string::npos) << output_;
  EXPECT_EQ(json::parse(read_file(folder_ / "a/run.json"))["origins"]["parallel.strategy"],
            "accelerate.yaml:1");
  // A file that `accelerate config` wrote is read only if it is named. Otherwise a note says that
  // it is not read.
  const std::string wrote = (folder_ / "hub/accelerate/default_config.yaml").string();
  write_file_atomic(wrote, "num_processes: 2\n");
  const std::string unread = wrote + ", which `accelerate config` wrote, is not read";
  ::setenv("HF_HOME", (folder_ / "hub").c_str(), 1);
  EXPECT_EQ(train("sums.yaml --devices cpu", echo), 0);
  EXPECT_NE(output_.find(unread), std::string::npos) << output_;
  EXPECT_EQ(train("sums.yaml --devices cpu --accelerate-config " + wrote, echo), 0);
  EXPECT_EQ(output_.find(unread), std::string::npos) << output_;
  EXPECT_NE(output_.find("rank of 2"), std::string::npos) << output_;
  ::unsetenv("HF_HOME");
  // Convoy never sets a variable that turns off a network.
  EXPECT_EQ(train("sums.yaml --devices cpu", "echo \"[$NCCL_IB_DISABLE$NCCL_P2P_DISABLE]\""), 0);
  EXPECT_NE(output_.find("[]"), std::string::npos) << output_;
}

// The words that SFT-Play's make targets pass.
TEST_F(TrainCommand, WordsThatNameNodesAreFlags) {
  const std::string dry = "sums.yaml --devices cpu --nproc 2 --placement ";
  EXPECT_EQ(train(dry + "NNODES=2 NODE_RANK=1 MASTER_ADDR=10.0.0.9 MASTER_PORT=29501", "exit 0"), 0)
      << output_;
  EXPECT_NE(output_.find("node 1 of 2, which meet at 10.0.0.9:29501"), std::string::npos)
      << output_;
  EXPECT_NE(output_.find("--nnodes 2: command line, NNODES=2"), std::string::npos) << output_;
  EXPECT_EQ(train("sums.yaml --devices cpu --placement NPROC_PER_NODE=3", "exit 0"), 0) << output_;
  EXPECT_NE(output_.find("\n2     2 "), std::string::npos) << output_;
  EXPECT_EQ(train(dry + "NNODES=2 NODE_RANK=one MASTER_ADDR=a", "exit 0"), 2) << output_;
  EXPECT_NE(output_.find("wanted a number for --node-rank"), std::string::npos) << output_;
}

TEST_F(TrainCommand, TheRecognitionsFlagsLeadToItsConfiguration) {
  EXPECT_EQ(train("--multi-gpu ddp --epochs 5 --batch-size 32", "exit 0"), 2);
  EXPECT_NE(output_.find("convoy train examples/har/har.yaml and these flags"), std::string::npos)
      << output_;
  EXPECT_EQ(output_.find("model.name"), std::string::npos) << output_;
  EXPECT_EQ(train("--data-dir data", "exit 0"), 2);
  EXPECT_NE(output_.find("--preset har-4gpu"), std::string::npos) << output_;
  EXPECT_EQ(train("--multi-gpu ddp --model m --data rows.jsonl --devices cpu", "exit 0"), 10)
      << output_;
  EXPECT_EQ(train("sums.yaml --multi-gpu ddp --devices cpu", "exit 0"), 0) << output_;
}

TEST_F(TrainCommand, ADeepSpeedFileIsCheckedAgainstTheRanks) {
  write_file_atomic(folder_ / "ds.json",
                    "{\"train_batch_size\": 12, // rows of a step\n\"zero_optimization\": "
                    "{\"stage\": 2}}");
  EXPECT_EQ(train("sums.yaml --deepspeed ds.json --nproc 2 --devices cpu --output-dir a", "exit 0"),
            0)
      << output_;
  const json record = json::parse(read_file(folder_ / "a/run.json"));
  EXPECT_EQ(record["config"]["train"]["batch_size"], 6);
  EXPECT_EQ(record["origins"]["parallel.strategy"], "ds.json:2");
  EXPECT_EQ(train("sums.yaml --deepspeed ds.json --nproc 5 --devices cpu", "exit 0"), 2);
  EXPECT_NE(output_.find("no multiple of 5 ranks"), std::string::npos) << output_;
}

// A stand-in for the program tensorboard, which records its call and its end.
TEST_F(TrainCommand, TensorBoardStartsAndEndsWithTheRun) {
  const fs::path program = folder_ / "bin" / "tensorboard";
  write_file_atomic(program,
                    "#!/bin/sh\ntrap 'echo ended >> calls; exit' TERM\necho $* >> calls\n"
                    "while :; do sleep 0.05; done\n");
  fs::permissions(program, fs::perms::owner_all);
  const std::string path = (folder_ / "bin").string() + ":" + std::getenv("PATH");
  ::setenv("PATH", path.c_str(), 1);
  const std::string port = std::to_string(testing::free_port());
  const std::string flags = "sums.yaml --tensorboard --tensorboard-port " + port;
  EXPECT_EQ(train(flags + " --output-dir a",
                  "while [ ! -s calls ]; do sleep 0.05; done; grep ended calls; true"),
            0)
      << output_;
  EXPECT_NE(output_.find("TensorBoard of this run: http://localhost:" + port + "/"),
            std::string::npos)
      << output_;
  EXPECT_EQ(read_file(folder_ / "calls"),
            "--logdir " + (folder_ / "a/tb").string() + " --port " + port + "\nended\n");
  EXPECT_TRUE(fs::exists(folder_ / "a/logs/tensorboard.log"));
}

// All runs of a folder share one server, so the second run finds it.
TEST_F(TrainCommand, TensorBoardMayStayForAllRunsOfAFolder) {
  const fs::path program = folder_ / "bin" / "tensorboard";
  write_file_atomic(program,
                    "#!/bin/sh\ntrap 'echo ended >> calls; exit' TERM\necho $* >> calls\n"
                    "while :; do sleep 0.05; done\n");
  fs::permissions(program, fs::perms::owner_all);
  const std::string path = (folder_ / "bin").string() + ":" + std::getenv("PATH");
  ::setenv("PATH", path.c_str(), 1);
  const std::string port = std::to_string(testing::free_port());
  const std::string flags = "sums.yaml --tensorboard-stays --tensorboard-port " + port;
  const std::string called = "while [ ! -s calls ]; do sleep 0.05; done";
  EXPECT_EQ(train(flags + " --output-dir runs/a", called), 0) << output_;
  pid_t process = -1;
  std::ifstream(folder_ / "runs/tensorboard.pid") >> process;
  ASSERT_GT(process, 1) << output_;
  const std::string where =
      fmt::format("TensorBoard of the runs in {}: http://localhost:{}/; `kill {}` ends it",
                  (folder_ / "runs").string(), port, process);
  EXPECT_NE(output_.find(where), std::string::npos) << output_;
  EXPECT_EQ(train(flags + " --output-dir runs/b", called), 0) << output_;
  EXPECT_NE(output_.find(where), std::string::npos) << output_;
  EXPECT_EQ(::kill(process, SIGTERM), 0);
  const auto has_ended = [&] {
    return read_file(folder_ / "calls").find("ended") != std::string::npos;
  };
  for (int turn = 0; turn < 1000 && !has_ended(); ++turn)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(read_file(folder_ / "calls"),
            "--logdir " + (folder_ / "runs").string() + " --port " + port + "\nended\n");
}

TEST_F(TrainCommand, ConfigurationMayBeNamedAsOtherTrainersNameIt) {
  for (const char* const words : {"CONFIG=sums.yaml", "--config sums.yaml", "--config=sums.yaml"}) {
    EXPECT_EQ(train(std::string(words) + " --output-dir named", "cat $5"), 0) << output_;
    EXPECT_NE(output_.find("train_path: rows.jsonl"), std::string::npos) << words << output_;
  }
  write_file_atomic(folder_ / "ds.json", R"({"zero_optimization": {"stage": 2}})");
  EXPECT_EQ(train("--config sums.yaml --deepspeed_config ds.json --output-dir zero", "cat $5"), 0);
  EXPECT_NE(output_.find("strategy: zero2"), std::string::npos) << output_;
  EXPECT_EQ(train("--config sums.yaml other.yaml", "exit 0"), 2);
}

TEST_F(TrainCommand, ModelAndRowsMayBeFlags) {
  write_file_atomic(folder_ / "empty.yaml", "tuning: {mode: lora}\n");
  EXPECT_EQ(train("empty.yaml --model some-model --data rows.jsonl --run-dir named", "cat $5"), 0)
      << output_;
  EXPECT_NE(output_.find("train_path: rows.jsonl"), std::string::npos) << output_;
  EXPECT_NE(output_.find("name: some-model"), std::string::npos) << output_;
}

TEST_F(TrainCommand, JsonIsTheRunFolderAndItsFigures) {
  const std::string script = "echo '{\"train_loss\": 0.5}' > $3/metrics.json";
  EXPECT_EQ(train("sums.yaml --run-dir out --json", script), 0) << output_;
  const json result = last_line();
  ASSERT_TRUE(result.is_object()) << output_;
  EXPECT_EQ(result["run_dir"], (folder_ / "out").string());
  EXPECT_EQ(result["metrics"]["train_loss"], 0.5);
  EXPECT_EQ(train("sums.yaml --run-dir plain", script), 0) << output_;
  EXPECT_EQ(output_.find("train_loss"), std::string::npos) << output_;
}

TEST_F(TrainCommand, PlacementNeedsNeitherModelNorRows) {
  fs::remove_all(folder_ / "some-model");
  fs::remove(folder_ / "rows.jsonl");
  EXPECT_EQ(train("sums.yaml --nproc 2 --devices cpu --placement", "touch started"), 0) << output_;
  EXPECT_NE(output_.find("rank  local  host"), std::string::npos) << output_;
  EXPECT_EQ(train("sums.yaml --nproc 2 --devices cpu --placement --json --nnodes 2 --node-rank 1 "
                  "--master-addr host-a",
                  "touch started"),
            0);
  EXPECT_EQ(json::parse(output_.substr(output_.rfind("[{")), nullptr, false)[1]["rank"], 3)
      << output_;
  EXPECT_FALSE(fs::exists(folder_ / "runs") || fs::exists(folder_ / "started"));
}

TEST_F(TrainCommand, AWrongValueOfAKnownFlagIsNotCalledUnknown) {
  EXPECT_EQ(train("sums.yaml --multi-gpu xyz", "exit 0"), 2) << output_;
  EXPECT_EQ(output_.find("unknown flag"), std::string::npos) << output_;
}

TEST_F(TrainCommand, PlacementTellsFaultsOfAcceleratesFile) {
  std::ofstream(folder_ / "typo.yaml") << "num_processes: two\n";
  EXPECT_EQ(train("sums.yaml --devices cpu --placement --accelerate-config typo.yaml", "exit 0"), 2)
      << output_;
  EXPECT_NE(output_.find("num_processes"), std::string::npos) << output_;
}

TEST_F(TrainCommand, NodesOfTheEnvironmentThatNobodyReadsAreTold) {
  ::setenv("NNODES", "2", 1);
  EXPECT_EQ(train("sums.yaml --devices cpu", "exit 0"), 0) << output_;
  ::unsetenv("NNODES");
  EXPECT_NE(output_.find("NNODES=2 is set but ignored"), std::string::npos) << output_;
  EXPECT_EQ(train("sums.yaml --devices cpu", "exit 0"), 0) << output_;
  EXPECT_EQ(output_.find("NNODES"), std::string::npos) << output_;
}

TEST_F(TrainCommand, ReportsToOtherProgramsLeaveTensorBoardsFilesOn) {
  EXPECT_EQ(train("sums.yaml train.report_to=mlflow --output-dir out", "cat $5"), 0) << output_;
  EXPECT_NE(output_.find("there is no mlflow here"), std::string::npos) << output_;
  EXPECT_NE(output_.find("backend: [tensorboard]"), std::string::npos) << output_;
}

TEST_F(TrainCommand, WithoutTensorBoardTheRunGoesOn) {
  const Descriptor holder(::socket(AF_INET, SOCK_STREAM, 0));
  const int port = testing::free_port();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  ASSERT_EQ(::bind(holder.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(train("sums.yaml --tensorboard --tensorboard-port " + std::to_string(port), "exit 0"),
            0);
  EXPECT_NE(output_.find("is taken; --tensorboard-port N takes another. The run goes on"),
            std::string::npos)
      << output_;
}

TEST_F(TrainCommand, WrongUseIsExitTwo) {
  for (const char* arguments :
       {"", "missing.yaml", "sums.yaml --nproc 0", "sums.yaml --nproc two", "sums.yaml --devices 0",
        "sums.yaml --nprok 2", "sums.yaml train.batch_sise=1", "sums.yaml other.yaml"}) {
    EXPECT_EQ(train(arguments, "exit 0"), 2) << arguments << output_;
    EXPECT_EQ(last_line()["code"], 2) << output_;
  }
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
}

}  // namespace
}  // namespace convoy::apps
