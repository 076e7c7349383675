// SPDX-License-Identifier: Apache-2.0
//
// Tests `train.batch_size: auto`: the search does not change the run, predicts its peak, and stays
// within a real memory limit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "convoy/core/base/files.h"
#include "files/run_script.h"
#include "files/temporary_folder.h"
#include "sharing/memory_group.h"

namespace convoy::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int64_t kMiB = int64_t{1} << 20;

struct TrainRun {
  ScriptEnd end;
  fs::path folder;

  json metrics() const { return json::parse(read_file(folder / "metrics.json")); }
  std::vector<double> losses() const {
    std::vector<double> losses;
    std::ifstream events(folder / "events.jsonl");
    for (std::string line; std::getline(events, line);) {
      const json event = json::parse(line);
      if (event.value("event", "") == "step") losses.push_back(event.at("loss"));
    }
    return losses;
  }
};

class AutoBatch : public ::testing::Test {
 protected:
  // Trains tally-3m on its sums. Only this test uses the token cache.
  TrainRun train(const std::string& name, const std::string& arguments,
                 const MemoryGroup* group = nullptr) const {
    const fs::path source = std::getenv("CONVOY_SOURCE_DIR");
    std::string command = fmt::format(
        "env OMP_NUM_THREADS=1 '{}/convoy' train model.name={}/examples/tally-3m "
        "model.max_seq_len=256 data.train_path={}/examples/sums/train.jsonl "
        "data.cache_dir={}/cache "
        "train.bf16=false train.eval_strategy=no train.final_eval=false tuning.lora.r=8 "
        "logging.backend=none --output-dir {}/{} {}",
        std::getenv("CONVOY_BIN_DIR"), source.string(), source.string(), folder_.path().string(),
        folder_.path().string(), name, arguments);
    if (group != nullptr) command = group->around(command);
    return {run_script(folder_.path(), command), folder_ / name};
  }

  TemporaryFolder folder_;
};

int64_t file_hash(const fs::path& file) {
  return static_cast<int64_t>(std::hash<std::string>{}(read_file(file)));
}

// Returns the hashes of the last checkpoint: weights, moments, and all other state that a resumed
// run needs.
std::map<std::string, int64_t> checkpoint_hashes(const fs::path& run) {
  std::map<std::string, int64_t> hashes;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(run / "checkpoints"))
    if (entry.path().extension() == ".safetensors")
      hashes[fs::relative(entry.path(), run).string()] = file_hash(entry.path());
  return hashes;
}

class LeavesNoTrace : public AutoBatch, public ::testing::WithParamInterface<const char*> {};

TEST_P(LeavesNoTrace, TheRunIsThatOfItsNumbers) {
  const std::string common =
      fmt::format("train.steps=3 train.save_steps=3 tuning.lora.dropout=0.1 {}", GetParam());
  const TrainRun chosen = train("auto", common +
                                            " train.batch_size=auto train.grad_accum=auto "
                                            "train.target_tokens_per_device_step=1500");
  ASSERT_EQ(chosen.end.code, 0) << chosen.end.out;
  const json metrics = chosen.metrics();
  const int64_t rows = metrics["per_device_train_batch_size"];
  const int64_t accumulation = metrics["gradient_accumulation_steps"];
  EXPECT_GT(rows, 1) << "there is room for more than a row";
  const TrainRun written =
      train("written",
            fmt::format("{} train.batch_size={} train.grad_accum={}", common, rows, accumulation));
  ASSERT_EQ(written.end.code, 0) << written.end.out;
  EXPECT_EQ(chosen.losses().size(), 3U);
  EXPECT_EQ(chosen.losses(), written.losses());
  const auto hashes = checkpoint_hashes(chosen.folder);
  EXPECT_GE(hashes.size(), 2U) << "weights and moments";
  EXPECT_EQ(hashes, checkpoint_hashes(written.folder));
}
INSTANTIATE_TEST_SUITE_P(Strategies, LeavesNoTrace,
                         ::testing::Values("--nproc 1", "--nproc 2",
                                           "--nproc 1 parallel.strategy=dp parallel.replicas=2",
                                           "--nproc 2 parallel.strategy=zero1 tuning.mode=full",
                                           "--nproc 2 parallel.strategy=zero2 train.bf16=true",
                                           "--nproc 2 parallel.strategy=zero3 tuning.mode=full "
                                           "train.bf16=true train.packing=true"));

struct Limited {
  const char* name;
  int64_t limit_mib;
  const char* arguments;
};

class WithinALimit : public AutoBatch, public ::testing::WithParamInterface<Limited> {};

struct MeasuredSize {
  int64_t rows = 0;
  double tokens_per_second = 0;
};

// Reads the sizes from the lines that a search prints, in order.
std::vector<MeasuredSize> measured_sizes(const std::string& out) {
  static const std::regex line("batch size (\\d+): (\\d+) tokens/s, ");
  std::vector<MeasuredSize> sizes;
  for (std::sregex_iterator found(out.begin(), out.end(), line), end; found != end; ++found)
    sizes.push_back({std::stoll((*found)[1]), std::stod((*found)[2])});
  return sizes;
}

// The run counts steps, and there is memory for all of its rows at once.
TEST_F(AutoBatch, OnCpusTheSearchEndsWhereMoreRowsBringNoSpeed) {
  const TrainRun run =
      train("run", "train.batch_size=auto train.grad_accum=1 train.steps=1 train.save_strategy=no");
  ASSERT_EQ(run.end.code, 0) << run.end.out;
  const std::vector<MeasuredSize> sizes = measured_sizes(run.end.out);
  ASSERT_GE(sizes.size(), 2U) << run.end.out;
  for (size_t size = 1; size < sizes.size(); ++size)
    EXPECT_LE(sizes[size].rows, 2 * sizes[size - 1].rows) << run.end.out;
  const json metrics = run.metrics();
  const bool gained = metrics["auto_batch"]["bound"] != "speed";
  const MeasuredSize& last = sizes.back();
  const MeasuredSize& before = sizes[sizes.size() - 2];
  EXPECT_EQ(metrics["per_device_train_batch_size"], (gained ? last : before).rows) << run.end.out;
  constexpr double kGain = 1.05;
  constexpr double kRounding = 0.01;  // the numbers are printed as whole numbers
  const double gain = last.tokens_per_second / before.tokens_per_second;
  if (gained)
    EXPECT_GT(gain, kGain - kRounding) << run.end.out;
  else
    EXPECT_LT(gain, kGain + kRounding) << run.end.out;
}

// The chosen rows fit and a quarter more do not, and the memory is within a tenth of the
// prediction. If the greatest number of rows is given, only memory limits the rows, also on CPUs.
TEST_P(WithinALimit, FillsItAndNoMore) {
  const MemoryGroup group(GetParam().limit_mib * kMiB);
  if (!group.works()) GTEST_SKIP() << "this machine lets nobody limit memory";
  const std::string common =
      fmt::format("train.steps=2 train.save_strategy=no {}", GetParam().arguments);
  const TrainRun chosen =
      train("auto", common + " train.batch_size=100000 train.auto_find_batch_size=true", &group);
  ASSERT_EQ(chosen.end.code, 0) << chosen.end.out;
  const json metrics = chosen.metrics();
  const json& choice = metrics["auto_batch"];
  EXPECT_EQ(choice["bound"], "memory");
  // The kernel takes pages of mapped files back, so they do not count against the limit.
  const double predicted = choice["predicted_bytes"];
  const double mapped = predicted - choice["owned_bytes"].get<double>();
  const std::vector<double> peaks = metrics["rank_peak_memory_bytes"];
  double owned = 0;
  for (const double peak : peaks) {
    EXPECT_LT(std::abs(peak / predicted - 1), 0.1) << chosen.end.out;
    owned += peak - mapped;
  }
  EXPECT_GT(owned, 0.8 * static_cast<double>(GetParam().limit_mib * kMiB)) << chosen.end.out;
  // Several ranks may reach their peaks one after another, so sometimes more rows fit.
  if (peaks.size() > 1) return;
  const int64_t rows = metrics["per_device_train_batch_size"];
  const TrainRun more =
      train("more", fmt::format("{} train.batch_size={}", common, rows * 5 / 4 + 1), &group);
  EXPECT_NE(more.end.code, 0) << rows
                              << " rows are less than four fifths of what fits: " << chosen.end.out;
}
INSTANTIATE_TEST_SUITE_P(
    Limits, WithinALimit,
    ::testing::Values(Limited{"one", 380, "--nproc 1"}, Limited{"two", 700, "--nproc 2"},
                      Limited{"packed", 420, "--nproc 1 train.packing=true"},
                      Limited{"sharded", 700,
                              "--nproc 2 parallel.strategy=zero3 tuning.mode=full"}),
    [](const auto& one) { return std::string(one.param.name); });

TEST_F(AutoBatch, AResumeKeepsWhatWasChosen) {
  const std::string common =
      "train.batch_size=auto train.grad_accum=auto train.target_tokens_per_device_step=1500 "
      "train.save_steps=2";
  const TrainRun first = train("run", common + " train.steps=2 --nproc 2");
  ASSERT_EQ(first.end.code, 0) << first.end.out;
  const json before = first.metrics();
  const TrainRun second = train("run", common + " train.steps=4 --nproc 1");
  ASSERT_EQ(second.end.code, 0) << second.end.out;
  const json after = second.metrics();
  EXPECT_EQ(after["per_device_train_batch_size"], before["per_device_train_batch_size"]);
  EXPECT_EQ(after["global_batch_size"], before["global_batch_size"]) << "on half the ranks";
  EXPECT_EQ(after["auto_batch"], before["auto_batch"]) << "the record of the choice stays";
  EXPECT_EQ(second.end.out.find("measured; with mapped"), std::string::npos) << second.end.out;
  EXPECT_NE(second.end.out.find(", from the checkpoint"), std::string::npos);
}

TEST_F(AutoBatch, WhatCannotFitIsSaid) {
  const MemoryGroup group(170 * kMiB);
  if (!group.works()) GTEST_SKIP() << "this machine lets nobody limit memory";
  const TrainRun run =
      train("run",
            "train.batch_size=auto train.steps=1 tuning.mode=full model.max_seq_len=1024 "
            "data.schema=text data.text_field=question train.packing=true "
            "task=pretrain",
            &group);
  EXPECT_EQ(run.end.code, 2) << run.end.out;
  EXPECT_NE(run.end.out.find("a micro-batch of one row"), std::string::npos) << run.end.out;
}

}  // namespace
}  // namespace convoy::testing
