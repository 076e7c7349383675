// SPDX-License-Identifier: Apache-2.0
//
// Measures that sharding saves the memory that its formula predicts, and trains models that do not
// fit without it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "convoy/core/base/files.h"
#include "convoy/core/io/model_folder.h"
#include "files/run_script.h"
#include "files/temporary_folder.h"
#include "sharing/memory_group.h"

namespace convoy::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int64_t kMiB = int64_t{1} << 20;

std::string convoy() { return fmt::format("'{}/convoy'", std::getenv("CONVOY_BIN_DIR")); }

struct PlannedRun {
  const char* name;
  const char* arguments;
};

class Planned : public ::testing::TestWithParam<PlannedRun> {};

TEST_P(Planned, IsWithinFifteenPercentOfThePeak) {
  const TemporaryFolder folder;
  const ScriptEnd outcome = run_script(
      folder.path(), fmt::format("OMP_NUM_THREADS=1 {} bench train --geometry small --dtype fp32 "
                                 "--seq 256 --steps 1 {}",
                                 convoy(), GetParam().arguments));
  ASSERT_EQ(outcome.code, 0) << outcome.out;
  const json result = json::parse(outcome.out.substr(outcome.out.find('{')));
  const double planned = result["planned_mb"];
  const double peak = result["peak_rss_mb"];
  EXPECT_LT(std::abs(peak / planned - 1), 0.15) << outcome.out;
}
INSTANTIATE_TEST_SUITE_P(
    Runs, Planned,
    ::testing::Values(PlannedRun{"ddp", "--mode full --nproc 2 --batch 1 --strategy ddp"},
                      PlannedRun{"zero1", "--mode full --nproc 2 --batch 1 --strategy zero1"},
                      PlannedRun{"zero2", "--mode full --nproc 2 --batch 1 --strategy zero2"},
                      PlannedRun{"zero3", "--mode full --nproc 2 --batch 1 --strategy zero3"},
                      PlannedRun{"dora", "--mode dora --nproc 1 --batch 2 --no-peer"}),
    [](const auto& one) { return std::string(one.param.name); });

// tally-3m with wider blocks: 29 million random parameters.
class LargerThanARank : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!group_.works()) GTEST_SKIP() << "this machine lets nobody limit memory";
    const fs::path tally = fs::path(std::getenv("CONVOY_SOURCE_DIR")) / "examples/tally-3m";
    fs::create_directory(folder_ / "model");
    for (const fs::directory_entry& entry : fs::directory_iterator(tally))
      if (entry.is_regular_file() && entry.path().extension() != ".safetensors")
        fs::copy_file(entry.path(), folder_ / "model" / entry.path().filename());
    json config = json::parse(read_file(tally / "config.json"));
    config["hidden_size"] = kHidden;
    config["intermediate_size"] = kFfn;
    config["num_hidden_layers"] = kLayers;
    config["dtype"] = "float32";
    config["layer_types"] = std::vector<std::string>(kLayers, "full_attention");
    std::ofstream(folder_ / "model/config.json") << config.dump(2);
    io::write_model_weights(folder_ / "model", weights());
    std::ofstream rows(folder_ / "rows.jsonl");
    for (int row = 0; row < 24; ++row)
      rows << json{{"prompt", fmt::format("{} + 1 =", row)},
                   {"completion", fmt::format(" {}", row + 1)}}
           << "\n";
    std::ofstream(folder_ / "run.yaml") << fmt::format(
        "model: {{name: {0}/model, max_seq_len: 32}}\ntuning: {{mode: full}}\n"
        "train: {{steps: 2, batch_size: 1, bf16: false, save_steps: 2, eval_strategy: 'no', "
        "final_eval: false}}\nlogging: {{backend: none}}\n"
        "data: {{train_path: {0}/rows.jsonl, cache_dir: none}}\n",
        folder_.path().string());
  }

  ScriptEnd train(const std::string& arguments) const {
    return run_script(folder_.path(),
                      group_.around(fmt::format(
                          "env OMP_NUM_THREADS=1 {} train {}/run.yaml --nproc 4 "
                          "--output-dir {}/run {}",
                          convoy(), folder_.path().string(), folder_.path().string(), arguments)));
  }

  static constexpr int64_t kHidden = 640;
  static constexpr int64_t kFfn = 1792;
  static constexpr int kLayers = 6;
  static constexpr int64_t kVocab = 2048;

  TemporaryFolder folder_;
  // Four ranks need 2.4 GiB under ddp and 1.3 GiB under zero3.
  MemoryGroup group_{1800 * kMiB};

 private:
  static std::vector<io::TensorSource> weights() {
    std::vector<io::TensorSource> sources;
    const auto add = [&](const std::string& name, std::vector<int64_t> shape, float scale) {
      int64_t count = 1;
      for (const int64_t size : shape) count *= size;
      sources.push_back({.name = name,
                         .dtype = io::Dtype::F32,
                         .shape = std::move(shape),
                         .produce = [count, scale](const io::ByteSink& sink) {
                           std::vector<float> values(static_cast<size_t>(count));
                           uint32_t state = 1;
                           for (float& value : values) {
                             state = state * 1664525U + 1013904223U;
                             const float centred = static_cast<float>(state >> 8) / 8388608.0F - 1;
                             value = scale == 1.0F ? 1.0F : scale * centred;
                           }
                           sink(std::as_bytes(std::span(values)));
                         }});
    };
    add("model.embed_tokens.weight", {kVocab, kHidden}, 0.02F);
    add("model.norm.weight", {kHidden}, 1.0F);
    for (int layer = 0; layer < kLayers; ++layer) {
      const std::string prefix = fmt::format("model.layers.{}.", layer);
      add(prefix + "input_layernorm.weight", {kHidden}, 1.0F);
      add(prefix + "post_attention_layernorm.weight", {kHidden}, 1.0F);
      for (const auto& [name, out] :
           {std::pair{"q", kHidden}, std::pair{"k", kHidden / 2}, std::pair{"v", kHidden / 2}}) {
        add(fmt::format("{}self_attn.{}_proj.weight", prefix, name), {out, kHidden}, 0.02F);
        add(fmt::format("{}self_attn.{}_proj.bias", prefix, name), {out}, 0.02F);
      }
      add(prefix + "self_attn.o_proj.weight", {kHidden, kHidden}, 0.02F);
      add(prefix + "mlp.gate_proj.weight", {kFfn, kHidden}, 0.02F);
      add(prefix + "mlp.up_proj.weight", {kFfn, kHidden}, 0.02F);
      add(prefix + "mlp.down_proj.weight", {kHidden, kFfn}, 0.02F);
    }
    return sources;
  }
};

TEST_F(LargerThanARank, TrainsResumesAndExportsUnderZero3Only) {
  const ScriptEnd ddp = train("parallel.strategy=ddp --resume never");
  EXPECT_NE(ddp.code, 0) << "the limit is too high for this test: " << ddp.out;

  const ScriptEnd chosen = train("--dry-run");
  EXPECT_EQ(chosen.code, 0) << chosen.out;
  EXPECT_NE(chosen.out.find("ddp needs"), std::string::npos) << chosen.out;

  const ScriptEnd first = train("parallel.strategy=zero3 --resume never");
  ASSERT_EQ(first.code, 0) << first.out;
  const ScriptEnd second = train("parallel.strategy=zero3 train.steps=3");
  ASSERT_EQ(second.code, 0) << second.out;
  EXPECT_NE(second.out.find("resuming at step 2"), std::string::npos) << second.out;
  EXPECT_EQ(fs::file_size(folder_ / "run/model/model.safetensors") >> 20,
            fs::file_size(folder_ / "model/model.safetensors") >> 20);
  const ScriptEnd scored = run_script(
      folder_.path(),
      group_.around(fmt::format("{} eval --model {}/run/model --data {}/rows.jsonl", convoy(),
                                folder_.path().string(), folder_.path().string())));
  EXPECT_EQ(scored.code, 0) << scored.out;
}

}  // namespace
}  // namespace convoy::testing
