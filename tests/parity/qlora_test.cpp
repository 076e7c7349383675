// SPDX-License-Identifier: Apache-2.0
//
// Compares training over 4-bit weights with transformers, PEFT and bitsandbytes on the CPU
// (tests/golden/quantization).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "convoy/core/base/files.h"
#include "files/temporary_folder.h"
#include "parity/convoy_program.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::ConvoyProgram;
using testing::Outcome;

fs::path quantization_folder() { return testing::golden_folder().parent_path() / "quantization"; }

class Qlora : public ::testing::Test {
 protected:
  // Copies a folder of tests/golden/quantization and adds a tokenizer.
  fs::path model(const std::string& name) const {
    const fs::path folder = folder_.path() / name;
    fs::create_directories(folder);
    for (const fs::path& source :
         {testing::golden_folder() / "tokenizer", quantization_folder() / name})
      for (const fs::directory_entry& entry : fs::directory_iterator(source))
        fs::copy_file(entry.path(), folder / entry.path().filename(),
                      fs::copy_options::skip_existing);
    return folder;
  }

  json config(const std::string& name) const {
    return {
        {"model", {{"name", model(name).string()}, {"max_seq_len", 256}}},
        {"tuning",
         {{"mode", "qlora"}, {"lora", {{"adapter", (quantization_folder() / "start").string()}}}}},
        {"train",
         {{"steps", 12},
          {"batch_size", 2},
          {"grad_accum", 2},
          {"learning_rate", 1e-2},
          {"weight_decay", 2.0},
          {"lr_scheduler_type", "linear"},
          {"warmup_steps", 2},
          {"max_grad_norm", 1.0}}},
        {"data", {{"train_path", (testing::golden_folder() / "completions.jsonl").string()}}}};
  }

  static void expect_curve(const std::vector<json>& steps) {
    const json wanted = json::parse(read_file(quantization_folder() / "golden.json"))["curve"];
    ASSERT_EQ(steps.size(), wanted.size());
    for (size_t step = 0; step < steps.size(); ++step) {
      EXPECT_EQ(steps[step]["supervised_tokens"], wanted[step]["tokens"]);
      for (const char* figure : {"loss", "grad_norm"})
        EXPECT_NEAR(steps[step][figure].get<double>(), wanted[step][figure].get<double>(),
                    1e-4 * wanted[step][figure].get<double>())
            << figure << " of step " << step;
    }
  }

  ConvoyProgram convoy_;
  testing::TemporaryFolder folder_;
};

TEST_F(Qlora, FollowsPeftOverBitsandbytes) { expect_curve(convoy_.train("qlora", config("base"))); }

TEST_F(Qlora, FollowsPeftFromAQuantizedFolder) {
  expect_curve(convoy_.train("qlora", config("nf4-double")));
  json plain = config("nf4-double");
  plain["tuning"]["mode"] = "lora";  // the model folder gives the format of the weights
  expect_curve(convoy_.train("lora", plain));
}

// zero3 shards the codes and the tensors beside them.
TEST_F(Qlora, FollowsPeftOnTwoRanks) {
  for (const char* strategy : {"ddp", "zero1", "zero2", "zero3"}) {
    json shared = config("base");
    shared["train"]["grad_accum"] = 1;
    shared["parallel"] = {{"strategy", strategy}, {"keep_whole_below", 0}};
    expect_curve(convoy_.train(strategy, shared, "--nproc 2"));
  }
}

TEST_F(Qlora, HuggingFacesKeysMeanTheSame) {
  json spelled = config("base");
  spelled["tuning"].update({{"mode", "lora"},
                            {"load_in_4bit", true},
                            {"bnb_4bit_quant_type", "nf4"},
                            {"bnb_4bit_use_double_quant", true},
                            {"bnb_4bit_compute_dtype", "float32"}});
  expect_curve(convoy_.train("spelled", spelled));
}

TEST_F(Qlora, ScoresOfAFolderAreThoseOfWeightsQuantizedWhileLoading) {
  const std::string rows = (testing::golden_folder() / "completions.jsonl").string();
  const auto scores = [&](const std::string& flags) {
    return convoy_.score(fmt::format("--data {} {}", rows, flags));
  };
  const std::string base = model("base").string();
  for (const auto& [folder, flags] : std::vector<std::pair<std::string, std::string>>{
           {"nf4", "--quantization nf4"},
           {"nf4-double", "--quantization nf4 --double-quant"},
           {"fp4", "--quantization fp4"},
           {"int8", "--quantization int8"}}) {
    const std::vector<json> stored = scores("--model " + model(folder).string());
    EXPECT_EQ(stored, scores(fmt::format("--model {} {}", base, flags))) << folder;
    EXPECT_NE(stored, scores("--model " + base)) << folder;
  }
}

TEST_F(Qlora, ContradictionsAreRefused) {
  const std::string rows = (testing::golden_folder() / "completions.jsonl").string();
  const auto refusal = [&](const std::string& command) {
    const Outcome outcome = convoy_.run(command);
    EXPECT_EQ(outcome.status, 2) << outcome.output;
    return outcome.output;
  };
  EXPECT_NE(refusal(fmt::format("score --data {} --model {} --quantization fp4", rows,
                                model("nf4").string()))
                .find("its weights are nf4, and fp4 was requested"),
            std::string::npos);
  EXPECT_NE(refusal(fmt::format("score --data {} --model {} --double-quant", rows,
                                model("base").string()))
                .find("double-quant"),
            std::string::npos);
  EXPECT_NE(refusal(fmt::format("generate --prompt a --model {} --quantization nf4 --weights int4",
                                model("base").string()))
                .find("give one of them"),
            std::string::npos);
}

// A resumed run must have the weights that it began with.
TEST_F(Qlora, AnotherQuantizationOnResumeIsRefusedByName) {
  const fs::path output = folder_.path() / "run";
  json settings = config("base");
  settings["train"].update({{"steps", 2},
                            {"bf16", false},
                            {"eval_strategy", "no"},
                            {"save_steps", 1},
                            {"output_dir", output.string()}});
  settings["data"].update({{"cache_dir", "none"},
                           {"split", {{"train_ratio", 1}, {"val_ratio", 0}, {"test_ratio", 0}}}});
  settings["logging"]["backend"] = "none";
  const fs::path file = folder_.path() / "run.yaml";
  write_file_atomic(file, settings.dump());
  ASSERT_EQ(convoy_.run("train " + file.string()).status, 0);
  const Outcome other = convoy_.run("train " + file.string() +
                                    " train.steps=3 tuning.quantization.double_quant=false");
  EXPECT_NE(other.status, 0);
  EXPECT_NE(other.output.find("quantisation"), std::string::npos) << other.output;
  EXPECT_NE(other.output.find("nf4, blocks of 64, double"), std::string::npos) << other.output;
  EXPECT_EQ(convoy_.run("train " + file.string() + " train.steps=3").status, 0);
}

}  // namespace
}  // namespace convoy
