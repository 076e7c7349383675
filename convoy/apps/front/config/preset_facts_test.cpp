// SPDX-License-Identifier: Apache-2.0
//
// Presets of machines fit into their memory, and `convoy init` writes configurations that train.
#include "convoy/apps/front/config/preset_facts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "convoy/core/base/files.h"
#include "convoy/core/settings/resolve_train.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/model/sizing/training_request.h"
#include "files/run_script.h"
#include "files/temporary_folder.h"

namespace convoy::apps {
namespace {

using convoy::testing::run_script;
using convoy::testing::ScriptEnd;
using convoy::testing::TemporaryFolder;

std::string convoy_program() { return fmt::format("'{}/convoy'", std::getenv("CONVOY_BIN_DIR")); }

TEST(PresetsOfMachines, AllFitAndThereIsOneForEach) {
  std::map<std::string, int> of_machine;
  for (const PresetFacts& preset : preset_facts()) {
    if (preset.machine == nullptr) continue;
    ++of_machine[preset.machine->name];
    EXPECT_TRUE(preset.fits()) << preset.name << ": " << preset.memory.text();
    EXPECT_GT(preset.memory.total_bytes(), preset.machine->device_bytes / 20) << preset.name;
    EXPECT_FALSE(preset.settings.model.name.empty()) << preset.name;
  }
  for (const sizing::Machine& machine : sizing::known_machines())
    EXPECT_GE(of_machine[machine.name], 1) << machine.name;
}

// The presets of H100 and H200 recompute nothing that fits into their memory.
TEST(PresetsOfMachines, RecomputeNoMoreThanTheirMemoryAsksFor) {
  for (const PresetFacts& preset : preset_facts()) {
    if (preset.settings.train.gradient_checkpointing != "auto" || !preset.machine) continue;
    const auto model = *sizing::known_model(preset.settings.model.name);
    sizing::EstimateRequest request = estimate_request(preset.settings, *preset.machine);
    const int64_t device_bytes = preset.machine->device_bytes;
    sizing::settle_recompute(model, preset.settings, device_bytes, request);
    // Without recomputation h200x2 would leave less than a tenth of the memory free.
    if (preset.name == "h200x2") {
      EXPECT_EQ(request.recompute, architecture::Recompute::Selective);
    }
    if (request.recompute == architecture::Recompute::Nothing) continue;
    request.recompute = request.recompute == architecture::Recompute::Blocks
                            ? architecture::Recompute::Selective
                            : architecture::Recompute::Nothing;
    EXPECT_GT(sizing::estimate_memory(model, request).total_bytes(),
              device_bytes - device_bytes / 10)
        << preset.name;
  }
}

TEST(PresetsOfMachines, PrintTheEstimateOfTheFormula) {
  const TemporaryFolder folder;
  const ScriptEnd list = run_script(folder.path(), convoy_program() + " config presets --json");
  ASSERT_EQ(list.code, 0) << list.out;
  const nlohmann::json json = nlohmann::json::parse(list.out);
  const ScriptEnd table = run_script(folder.path(), convoy_program() + " config presets");
  for (const PresetFacts& preset : preset_facts()) {
    ASSERT_TRUE(json.contains(preset.name)) << preset.name;
    EXPECT_EQ(json[preset.name]["summary"], preset.summary);
    if (preset.machine == nullptr) continue;
    const auto model = sizing::known_model(preset.settings.model.name);
    sizing::EstimateRequest request = estimate_request(preset.settings, *preset.machine);
    sizing::settle_recompute(*model, preset.settings, preset.machine->device_bytes, request);
    const sizing::MemoryPlan plan = sizing::estimate_memory(*model, request);
    EXPECT_EQ(json[preset.name]["memory"]["total_bytes"], plan.total_bytes());
    EXPECT_NE(table.out.find(telemetry::bytes_text(plan.total_bytes()) + " of " +
                             telemetry::bytes_text(preset.machine->device_bytes)),
              std::string::npos)
        << table.out;
  }
}

// The check needs neither weights nor the machine: the sizes come from the model's name or from
// config.json.
TEST(MemoryFit, IsSaidOfGuidesModelsAndMachines) {
  const TemporaryFolder folder;
  const auto check = [&](const std::string& words) {
    return run_script(folder.path(), fmt::format("{} config check data.train_path=rows.jsonl {}",
                                                 convoy_program(), words));
  };
  const ScriptEnd guide = check(
      "model.name=meta-llama/Llama-3.1-70B-Instruct model.max_seq_len=4096 tuning.mode=qlora "
      "train.gradient_checkpointing=true train.batch_size=16 parallel.strategy=ddp "
      "--hardware h200x4");
  EXPECT_EQ(guide.code, 0) << guide.out;
  EXPECT_NE(guide.out.find("which does not fit; "), std::string::npos) << guide.out;
  EXPECT_NE(guide.out.find("rows fit at most"), std::string::npos) << guide.out;
  const ScriptEnd fits = check(
      "model.name=Qwen/Qwen2.5-32B-Instruct tuning.mode=qlora model.max_seq_len=1024 "
      "train.gradient_checkpointing=true train.batch_size=2 --hardware h200x2 --json");
  ASSERT_EQ(fits.code, 0) << fits.out;
  const nlohmann::json report =
      nlohmann::json::parse(fits.out.substr(fits.out.find("{\"ok\"")), nullptr, false);
  ASSERT_TRUE(report.is_object()) << fits.out;
  EXPECT_EQ(report["memory"]["fits"], true);
  EXPECT_EQ(report["memory"]["batch_rows"], 2);
  EXPECT_GT(report["memory"]["most_rows"], 2);
  const ScriptEnd preset = check("--preset rtx4090x2");
  EXPECT_NE(preset.out.find("memory by formula, 2x RTX 4090, 24 GB each: "), std::string::npos)
      << preset.out;
  // As docs/how-to/learn-from-rewards.md has them.
  for (const auto& [name, said] : {std::pair("h100",
                                             "one H100, 80 GB: 72.16 GiB of 79.65 GiB with 1 "
                                             "problem of 8 texts of 1024 tokens a micro-batch: "
                                             "71.63 GiB while texts are drawn, 72.16 GiB while it "
                                             "learns from them; 1 problem fits at most"),
                                   std::pair("rtx5090",
                                             "one RTX 5090, 32 GB: 29.27 GiB of 31.84 GiB with 1 "
                                             "problem of 8 texts of 1024 tokens a micro-batch: "
                                             "26.28 GiB while texts are drawn, 29.27 GiB while it "
                                             "learns from them; 1 problem fits at most")}) {
    const ScriptEnd rewards = check(fmt::format("--preset {}", name));
    EXPECT_EQ(rewards.code, 0) << rewards.out;
    EXPECT_NE(rewards.out.find(said), std::string::npos) << rewards.out;
  }
  const ScriptEnd many = check("--preset rtx5090 tuning.mode=lora");
  EXPECT_NE(many.out.find("not even one problem fits: lower rollout.samples or"), std::string::npos)
      << many.out;
  EXPECT_EQ(check("model.name=unknown/model --hardware h100x2").out.find("memory by formula"),
            std::string::npos);
}

TEST(MemoryFit, IsSaidByADryRunWithoutWeights) {
  const TemporaryFolder folder;
  const auto dry_run = [&](const std::string& model) {
    return run_script(folder.path(), fmt::format("{} train --dry-run --preset rtx4090x2 "
                                                 "model.name={} data.train_path=rows.jsonl",
                                                 convoy_program(), model));
  };
  const ScriptEnd missing = dry_run("Qwen/Qwen2.5-14B-Instruct");
  EXPECT_EQ(missing.code, 10) << missing.out;
  EXPECT_NE(missing.out.find("memory by formula, 2x RTX 4090"), std::string::npos) << missing.out;
  const std::filesystem::path source = std::getenv("CONVOY_SOURCE_DIR");
  std::filesystem::create_directories(folder / "small");
  std::filesystem::copy(source / "examples/tally-3m/config.json", folder / "small/config.json");
  const ScriptEnd config_alone = dry_run("small");
  EXPECT_NE(config_alone.out.find("memory by formula"), std::string::npos) << config_alone.out;
  const ScriptEnd whole = dry_run((source / "examples/tally-3m").string());
  EXPECT_EQ(whole.out.find("memory by formula"), std::string::npos) << whole.out;
}

class Init : public ::testing::Test {
 protected:
  Init() {
    const std::filesystem::path source = std::getenv("CONVOY_SOURCE_DIR");
    std::filesystem::create_directory_symlink(source / "examples", folder_ / "examples");
  }
  ScriptEnd init(const std::string& flags) const {
    return run_script(folder_.path(), convoy_program() + " init " + flags + " </dev/null");
  }
  settings::TrainSettings written(const std::string& file) const {
    settings::TrainSettings settings;
    settings::resolve_train(settings, {.file = folder_ / file});
    return settings;
  }
  TemporaryFolder folder_;
};

constexpr const char* kSums = "--model examples/tally-3m --data examples/sums/train.jsonl";

TEST_F(Init, WritesWhatTrains) {
  const ScriptEnd made = init(fmt::format("{} --hardware cpu --mode lora --output a.yaml", kSums));
  ASSERT_EQ(made.code, 0) << made.out;
  const settings::TrainSettings settings = written("a.yaml");
  EXPECT_TRUE(settings.train.batch_size.is_auto());
  EXPECT_EQ(settings.data.schema, "loose") << "by the keys of its rows";
  EXPECT_EQ(settings.model.max_seq_len, 128) << "the longest row has 125 tokens";
  EXPECT_EQ(settings.tuning.mode, "lora");
  const std::string text = read_file(folder_ / "a.yaml");
  // A comment describes the value beside it, or names the value that it describes.
  for (const char* const line :
       {"packing: false  # true: whole rows side by side", "# auto: what fits into memory",
        "save_steps: 0  # 0: save at the end of each epoch",
        "gradient_checkpointing: false  # selective: "})
    EXPECT_NE(text.find(line), std::string::npos) << line << " in\n" << text;
  const ScriptEnd trained =
      run_script(folder_.path(),
                 fmt::format("OMP_NUM_THREADS=1 {} train a.yaml --output-dir run train.steps=2 "
                             "data.cache_dir=none train.eval_strategy=no train.final_eval=false",
                             convoy_program()));
  EXPECT_EQ(trained.code, 0) << trained.out;
}

TEST_F(Init, SeesPairsInTheRows) {
  const std::string pairs =
      "--model examples/tally-3m --data examples/preferences/train.jsonl --hardware cpu";
  ASSERT_EQ(init(pairs + " --output a.yaml").code, 0);
  EXPECT_EQ(written("a.yaml").task, "dpo");
  EXPECT_EQ(written("a.yaml").model.max_seq_len, 128) << "the longer side of a pair";
  ASSERT_EQ(init(pairs + " --task orpo --output b.yaml").code, 0);
  EXPECT_EQ(written("b.yaml").task, "orpo");
  ASSERT_EQ(init(pairs + " --task kto --output k.yaml").code, 0);
  EXPECT_EQ(written("k.yaml").task, "kto") << "pairs are two rows each";
  const ScriptEnd answers = init(pairs + " --task sft --output c.yaml");
  EXPECT_EQ(answers.code, 10) << answers.out;
  EXPECT_NE(answers.out.find("these are preferences"), std::string::npos) << answers.out;
}

TEST_F(Init, SeesLabelsInTheRows) {
  write_file_atomic(folder_.path() / "judged.jsonl",
                    R"({"prompt": "1 + 1 = ", "completion": "2", "label": true})"
                    "\n");
  const ScriptEnd end = init(fmt::format("--model examples/tally-3m --data {} --hardware cpu",
                                         (folder_.path() / "judged.jsonl").string()));
  ASSERT_EQ(end.code, 0) << end.out;
  EXPECT_EQ(written("train.yaml").task, "kto");
  EXPECT_EQ(written("train.yaml").data.schema, "unpaired_preference");
}

TEST_F(Init, AsksNobodyWhereThereIsNoTerminal) {
  const ScriptEnd end = init("--model examples/tally-3m");
  EXPECT_EQ(end.code, 2);
  EXPECT_NE(end.out.find("--data"), std::string::npos) << end.out;
  EXPECT_EQ(end.out.find("--model is not"), std::string::npos) << end.out;
}

TEST_F(Init, WritesOverNothingUnasked) {
  ASSERT_EQ(init(kSums).code, 0);
  const ScriptEnd again = init(kSums);
  EXPECT_EQ(again.code, 2);
  EXPECT_NE(again.out.find("--force"), std::string::npos) << again.out;
  EXPECT_EQ(init(std::string(kSums) + " --mode full --force").code, 0);
  EXPECT_EQ(written("train.yaml").tuning.mode, "full");
}

TEST_F(Init, RefusesWhatNobodyKnows) {
  const ScriptEnd hardware = init(std::string(kSums) + " --hardware h100x3");
  EXPECT_EQ(hardware.code, 2);
  EXPECT_NE(hardware.out.find("h100x2"), std::string::npos) << hardware.out;
  const ScriptEnd mode = init(std::string(kSums) + " --mode adapter");
  EXPECT_EQ(mode.code, 2);
  EXPECT_NE(mode.out.find("one of lora, qlora, full"), std::string::npos) << mode.out;
  std::error_code ignored;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "train.yaml", ignored));
}

TEST_F(Init, WritesForAModelThatIsNotHere) {
  const ScriptEnd end =
      init("--model Qwen/Qwen2.5-7B-Instruct --data rows.jsonl --hardware rtx4090x2 --mode lora");
  ASSERT_EQ(end.code, 0) << end.out;
  EXPECT_NE(end.out.find("rows.jsonl"), std::string::npos) << "it is said: " << end.out;
  EXPECT_NE(end.out.find("--ranks auto"), std::string::npos) << end.out;
  EXPECT_EQ(written("train.yaml").model.name, "Qwen/Qwen2.5-7B-Instruct");
}

}  // namespace
}  // namespace convoy::apps
