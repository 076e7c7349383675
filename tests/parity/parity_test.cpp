// SPDX-License-Identifier: Apache-2.0
//
// Compares training and scoring with transformers and PEFT (tests/golden/train), and with other
// ranks, accumulation and packing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include "convoy/core/base/files.h"
#include "parity/convoy_program.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::ConvoyProgram;
using testing::golden_folder;

json golden(const std::string& family) {
  return json::parse(read_file(golden_folder() / family / "golden.json"));
}

double relative_difference(const json& found, const json& wanted) {
  return std::abs(found.get<double>() - wanted.get<double>()) / std::abs(wanted.get<double>());
}

// The schedule reaches the configured learning rate once, after the warm-up.
double highest_rate(const json& curve) {
  double highest = 0;
  for (const json& step : curve) highest = std::max(highest, step["learning_rate"].get<double>());
  return highest;
}

std::string name_of_family(const ::testing::TestParamInfo<const char*>& family) {
  std::string name = family.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

class Family : public ::testing::TestWithParam<const char*> {
 protected:
  json curve_config(const std::string& rows, double learning_rate) const {
    return {{"model", {{"name", convoy_.model(GetParam()).string()}, {"max_seq_len", 256}}},
            {"train",
             {{"steps", 12},
              {"batch_size", 2},
              {"grad_accum", 2},
              {"learning_rate", learning_rate},
              {"weight_decay", 2.0},
              {"lr_scheduler_type", "linear"},
              {"warmup_steps", 2},
              {"max_grad_norm", 1.0}}},
            {"data", {{"train_path", (golden_folder() / (rows + ".jsonl")).string()}}}};
  }
  void expect_curve(const std::vector<json>& steps, const json& wanted) const;
  void expect_scores(const std::string& adapter) const;

  ConvoyProgram convoy_;
};

void Family::expect_curve(const std::vector<json>& steps, const json& wanted) const {
  ASSERT_EQ(steps.size(), wanted.size());
  double worst = 0;
  for (size_t step = 0; step < steps.size(); ++step) {
    EXPECT_EQ(steps[step]["supervised_tokens"], wanted[step]["tokens"]) << "step " << step;
    EXPECT_NEAR(steps[step]["learning_rate"].get<double>(),
                wanted[step]["learning_rate"].get<double>(), 1e-12);
    for (const char* figure : {"loss", "grad_norm"}) {
      const double difference = relative_difference(steps[step][figure], wanted[step][figure]);
      EXPECT_LE(difference, 1e-4) << figure << " of step " << step;
      worst = std::max(worst, difference);
    }
  }
  RecordProperty("largest_relative_difference", fmt::format("{:.1e}", worst));
}

void Family::expect_scores(const std::string& adapter) const {
  const json expected = golden(GetParam())["scores"];
  const std::string model = convoy_.model(GetParam()).string();
  const fs::path folder = golden_folder() / GetParam() / adapter;
  double worst = 0;
  for (const std::string rows : {"chats", "completions"}) {
    const json& wanted = expected[adapter.empty() ? "base" : adapter][rows];
    const std::vector<json> found = convoy_.score(fmt::format(
        "--model {} --data {} {}", model, (golden_folder() / (rows + ".jsonl")).string(),
        adapter.empty() ? "" : "--adapter " + folder.string()));
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t row = 0; row < found.size(); ++row) {
      EXPECT_EQ(found[row]["index"], row);
      EXPECT_EQ(found[row]["tokens"], wanted[row]["tokens"]) << rows << " " << row;
      const double difference = relative_difference(found[row]["nll"], wanted[row]["nll"]);
      EXPECT_LE(difference, 1e-5) << adapter << " " << rows << " " << row;
      worst = std::max(worst, difference);
    }
  }
  RecordProperty("largest_relative_difference", fmt::format("{:.1e}", worst));
}

TEST_P(Family, FullTrainingFollowsTransformers) {
  const json wanted = golden(GetParam())["curves"]["full"];
  json config = curve_config("chats", highest_rate(wanted));
  config["tuning"]["mode"] = "full";
  expect_curve(convoy_.train("full", config), wanted);
}

TEST_P(Family, LoraTrainingFollowsPeft) {
  const json wanted = golden(GetParam())["curves"]["lora"];
  json config = curve_config("completions", highest_rate(wanted));
  config["tuning"]["lora"]["adapter"] = (golden_folder() / GetParam() / "start").string();
  expect_curve(convoy_.train("lora", config), wanted);
}

TEST_P(Family, ScoresEqualTransformers) { expect_scores(""); }
TEST_P(Family, LoraOfPeftScoresEqual) { expect_scores("lora"); }
TEST_P(Family, RsLoraOfPeftScoresEqual) { expect_scores("rslora"); }
TEST_P(Family, DoraOfPeftScoresEqual) { expect_scores("dora"); }

// The loss of `eval` is the mean over all supervised tokens, not over rows or batches.
TEST_P(Family, EvaluationIsTheMeanOfScores) {
  const std::string model = convoy_.model(GetParam()).string();
  const std::string adapter = (golden_folder() / GetParam() / "dora").string();
  const fs::path rows = convoy_ / "sums.jsonl";
  {
    std::ifstream source(fs::path(std::getenv("CONVOY_SOURCE_DIR")) / "examples/sums/test.jsonl");
    std::ofstream target(rows);
    std::string line;
    for (int count = 0; count < 21 && std::getline(source, line); ++count) target << line << '\n';
  }
  const std::string what =
      fmt::format("--model {} --adapter {} --data {} ", model, adapter, rows.string());
  double nll = 0;
  int64_t tokens = 0;
  for (const json& row : convoy_.score(what + "--max-seq-len 200")) {
    nll += row["nll"].get<double>();
    tokens += row["tokens"].get<int64_t>();
  }
  ASSERT_GT(tokens, 500);
  const json figures = convoy_.figures("eval " + what + "model.max_seq_len=200");
  EXPECT_EQ(figures["supervised_tokens"], tokens);
  EXPECT_LE(relative_difference(figures["loss"], nll / static_cast<double>(tokens)), 1e-6);
  EXPECT_LE(relative_difference(figures["perplexity"], std::exp(nll / static_cast<double>(tokens))),
            1e-5);
}

INSTANTIATE_TEST_SUITE_P(All, Family,
                         ::testing::Values("llama", "qwen2", "qwen3", "gemma3", "mistral",
                                           "smollm3", "phi3", "gemma2", "qwen3_5", "gemma4",
                                           "muse_glimmer", "gemma", "gemma4-unified"),
                         name_of_family);

// The families whose layers share keys, have states or hold tensors outside their blocks: ranks sum
// and share these too.
class FamilyOnTwoRanks : public Family {
 protected:
  void expect_curve_of(const std::string& name, json config, const std::string& strategy,
                       const json& wanted) const {
    SCOPED_TRACE(strategy);
    config["train"]["grad_accum"] = 1;
    config["parallel"] = {{"strategy", strategy}};
    if (strategy == "zero3") config["parallel"]["keep_whole_below"] = 0;
    expect_curve(convoy_.train(name + strategy, config, "--nproc 2"), wanted);
  }
};

TEST_P(FamilyOnTwoRanks, FullTrainingFollowsTransformers) {
  const json wanted = golden(GetParam())["curves"]["full"];
  json config = curve_config("chats", highest_rate(wanted));
  config["tuning"]["mode"] = "full";
  for (const char* strategy : {"ddp", "zero3"}) expect_curve_of("full", config, strategy, wanted);
}

TEST_P(FamilyOnTwoRanks, LoraTrainingFollowsPeft) {
  const json wanted = golden(GetParam())["curves"]["lora"];
  json config = curve_config("completions", highest_rate(wanted));
  config["tuning"]["lora"]["adapter"] = (golden_folder() / GetParam() / "start").string();
  expect_curve_of("lora", config, "zero3", wanted);
}

INSTANTIATE_TEST_SUITE_P(All, FamilyOnTwoRanks,
                         ::testing::Values("gemma4", "gemma4-unified", "qwen3_5", "muse_glimmer"),
                         name_of_family);

// The golden curve is from tests/golden/train/make_weighted.py: turns have weights, and one divisor
// holds for all rows of a step.
TEST(WeightsOfTurns, TrainingFollowsPyTorchUnderEveryStrategy) {
  const ConvoyProgram convoy;
  const json wanted = json::parse(read_file(golden_folder() / "weighted/curve.json"));
  struct Way {
    json parallel;
    int processes;
  };
  for (const Way& way : std::vector<Way>{{{{"strategy", "none"}}, 1},
                                         {{{"strategy", "dp"}, {"replicas", 2}}, 1},
                                         {{{"strategy", "ddp"}}, 2},
                                         {{{"strategy", "zero1"}}, 2},
                                         {{{"strategy", "zero2"}}, 2},
                                         {{{"strategy", "zero3"}, {"keep_whole_below", 0}}, 2}}) {
    SCOPED_TRACE(way.parallel.dump());
    const json config = {
        {"model", {{"name", convoy.model("qwen2").string()}, {"max_seq_len", 256}}},
        {"tuning", {{"mode", "full"}}},
        {"parallel", way.parallel},
        {"train",
         {{"steps", wanted.size()},
          {"batch_size", 2},
          {"global_batch_size", 4},
          {"learning_rate", 2e-3},
          {"weight_decay", 2.0},
          {"lr_scheduler_type", "linear"},
          {"warmup_steps", 2},
          {"max_grad_norm", 1.0}}},
        {"data", {{"train_path", (golden_folder() / "weighted/rows.jsonl").string()}}}};
    const std::vector<json> steps =
        convoy.train(way.parallel["strategy"], config, fmt::format("--nproc {}", way.processes));
    ASSERT_EQ(steps.size(), wanted.size());
    for (size_t step = 0; step < steps.size(); ++step) {
      EXPECT_EQ(steps[step]["supervised_tokens"], wanted[step]["tokens"]) << "step " << step;
      for (const char* figure : {"loss", "grad_norm"})
        EXPECT_LE(relative_difference(steps[step][figure], wanted[step][figure]), 1e-4)
            << figure << " of step " << step;
    }
  }
}

struct Layout {
  int ranks;
  int accumulation;
  bool packed;
  bool recomputed = false;
};

// Every step has all rows, so packed blocks and single rows form the same global batch.
std::vector<json> train_all_rows(const ConvoyProgram& convoy, const std::string& model,
                                 const Layout& layout, const json& tuning) {
  const int slots = layout.ranks * layout.accumulation;
  return convoy.train(fmt::format("{}-ranks-{}-accumulation-{}", layout.ranks, layout.accumulation,
                                  layout.packed ? "packed" : "rows"),
                      {{"model", {{"name", model}, {"max_seq_len", 128}}},
                       {"tuning", tuning},
                       {"train",
                        {{"steps", 5},
                         {"batch_size", (18 + slots - 1) / slots},
                         {"grad_accum", layout.accumulation},
                         {"learning_rate", 3e-3},
                         {"packing", layout.packed},
                         {"gradient_checkpointing", layout.recomputed}}},
                       {"data", {{"train_path", (golden_folder() / "chats.jsonl").string()}}}},
                      fmt::format("--nproc {}", layout.ranks));
}

void expect_invariance(const std::string& family, const json& tuning) {
  const ConvoyProgram convoy;
  const std::string model = convoy.model(family).string();
  const std::vector<json> wanted = train_all_rows(convoy, model, {1, 1, false}, tuning);
  ASSERT_EQ(wanted.size(), 5u);
  EXPECT_LT(wanted[4]["loss"], wanted[0]["loss"]);
  double worst = 0;
  for (const Layout& layout : std::vector<Layout>{{1, 1, true},
                                                  {1, 4, false},
                                                  {1, 4, true},
                                                  {2, 1, false},
                                                  {2, 1, true},
                                                  {2, 4, false},
                                                  {2, 4, true},
                                                  {1, 1, false, true},
                                                  {2, 4, true, true}}) {
    const std::vector<json> found = train_all_rows(convoy, model, layout, tuning);
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t step = 0; step < wanted.size(); ++step) {
      EXPECT_EQ(found[step]["supervised_tokens"], wanted[step]["supervised_tokens"]);
      for (const char* figure : {"loss", "grad_norm"}) {
        const double difference = relative_difference(found[step][figure], wanted[step][figure]);
        EXPECT_LE(difference, 1e-5) << figure << " of step " << step << ": ranks " << layout.ranks
                                    << ", accumulation " << layout.accumulation << ", packed "
                                    << layout.packed << ", recomputed " << layout.recomputed;
        worst = std::max(worst, difference);
      }
    }
  }
  ::testing::Test::RecordProperty("largest_relative_difference", fmt::format("{:.1e}", worst));
}

TEST(Invariance, FullTrainingUnderRanksAccumulationAndPacking) {
  expect_invariance("gemma3", {{"mode", "full"}});
}

TEST(Invariance, LoraUnderRanksAccumulationAndPacking) {
  expect_invariance("qwen3", {{"lora", {{"r", 4}, {"dropout", 0}, {"use_dora", true}}}});
}

// The figures that training reports for its exported adapter equal the figures of `eval`, on any
// number of ranks.
TEST(Evaluation, AfterTrainingEqualsEvalOfTheExport) {
  const ConvoyProgram convoy;
  const std::string model = convoy.model("qwen2").string();
  const std::string rows = (golden_folder() / "completions.jsonl").string();
  const auto steps = convoy.train(
      "run",
      {{"model", {{"name", model}, {"max_seq_len", 256}}},
       {"tuning", {{"lora", {{"r", 4}, {"dropout", 0.1}}}}},
       {"train", {{"steps", 3}, {"batch_size", 5}, {"learning_rate", 1e-2}, {"final_eval", true}}},
       {"data", {{"train_path", (golden_folder() / "chats.jsonl").string()}, {"val_path", rows}}}},
      "--nproc 2");
  ASSERT_EQ(steps.size(), 3u);
  json evaluation;
  for (const json& row : testing::read_json_lines(convoy / "run/events.jsonl"))
    if (row["event"] == "eval") evaluation = row;
  ASSERT_TRUE(evaluation.is_object());
  const json figures = convoy.figures(fmt::format("eval --model {} --adapter {} --data {}", model,
                                                  (convoy / "run/adapter").string(), rows));
  EXPECT_LE(relative_difference(evaluation["loss"], figures["loss"]), 1e-6) << evaluation.dump();
}

TEST(Evaluation, TakesGenerationFromTheConfigAndFlagsBeatIt) {
  const ConvoyProgram convoy;
  const std::string source = std::getenv("CONVOY_SOURCE_DIR");
  const auto longest_answer = [&](const std::string& folder, const std::string& more) {
    convoy.figures("eval " + source + "/examples/sums/lora.yaml model.name=" + source +
                   "/examples/tally-3m --generate --limit 3 --data " + source +
                   "/examples/sums/test.jsonl --output-dir " + (convoy / folder).string() + " " +
                   more);
    size_t longest = 0;
    for (const json& row : testing::read_json_lines(convoy / folder / "samples.jsonl"))
      longest = std::max(longest, row["pred"].get<std::string>().size());
    return longest;
  };
  const size_t one_token = longest_answer("file", "generation.max_new_tokens=1");
  EXPECT_GT(longest_answer("flag", "generation.max_new_tokens=1 --max-new-tokens 60"), one_token);
  EXPECT_GT(longest_answer("default", ""), one_token);
}

// PEFT and transformers load the adapters, merged models and full models that `convoy` writes.
TEST(Written, LoadsAndScoresEqualInPython) {
  const char* python = std::getenv("CONVOY_PEER_PYTHON");
  if (python == nullptr)
    GTEST_SKIP() << "CONVOY_PEER_PYTHON names no Python with torch, transformers and peft";
  const std::string command =
      fmt::format("'{}' '{}' '{}'", python, (golden_folder() / "check_written.py").string(),
                  std::getenv("CONVOY_BIN_DIR"));
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace convoy
