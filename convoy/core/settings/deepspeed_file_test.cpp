// SPDX-License-Identifier: Apache-2.0
//
// Tests how DeepSpeed's files become settings, notices, or one error with all contradictions.
#include "convoy/core/settings/deepspeed_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/settings/resolve_train.h"
#include "tests/files/temporary_folder.h"

namespace convoy::settings {
namespace {

namespace fs = std::filesystem;

fs::path peer_file(const std::string& name) {
  const char* source = std::getenv("CONVOY_SOURCE_DIR");
  return fs::path(source == nullptr ? "." : source) / "tests/files/peers" / name;
}

class DeepSpeedFile : public ::testing::Test {
 protected:
  // A run with `json` as its DeepSpeed file and `yaml` around it, on `ranks`.
  TrainSettings read(const std::string& json, const std::string& yaml = "", int64_t ranks = 0) {
    write_file_atomic(folder_.path() / "ds.json", json);
    write_file_atomic(folder_.path() / "run.yaml", yaml);
    TrainSettings settings;
    const config::Resolved resolved = resolve_train(settings, sources(), Wanted::Anything, ranks);
    notices_ = resolved.notices();
    yaml_ = resolved.yaml();
    origins_.clear();
    for (const config::ResolvedValue& value : resolved.values())
      origins_[value.path] = value.origin;
    return settings;
  }

  config::Sources sources() const {
    return {.file = folder_.path() / "run.yaml",
            .environment = {{"DEEPSPEED_CONFIG", (folder_.path() / "ds.json").string()}}};
  }

  // The message of the error, without the path of the folder.
  std::string error(const std::string& json, const std::string& yaml = "", int64_t ranks = 0) {
    try {
      read(json, yaml, ranks);
    } catch (const ConfigError& error) {
      return without_folder(error.sentence());
    }
    return "";
  }

  std::string without_folder(std::string text) const {
    const std::string folder = folder_.path().string() + "/";
    for (size_t at = text.find(folder); at != std::string::npos; at = text.find(folder))
      text.erase(at, folder.size());
    return text;
  }

  bool said(const std::string& part) const {
    for (const std::string& notice : notices_)
      if (notice.find(part) != std::string::npos) return true;
    return false;
  }

  convoy::testing::TemporaryFolder folder_;
  std::vector<std::string> notices_;
  std::string yaml_;
  std::map<std::string, std::string> origins_;
};

TEST_F(DeepSpeedFile, ReadsTheFileOfSftPlay) {
  const TrainSettings settings = read(read_file(peer_file("sft_play_z2.json")));
  EXPECT_EQ(settings.parallel.strategy, "zero2");
  EXPECT_EQ(settings.parallel.offload, "none");
  EXPECT_EQ(settings.train.wished_dtype(), "bf16");
  EXPECT_EQ(origins_["parallel.strategy"], (folder_.path() / "ds.json").string() + ":9");
  EXPECT_TRUE(said("zero_optimization.cpu_offload is deprecated"));
  EXPECT_TRUE(said("zero_optimization.overlap_comm (line 12)"));
}

TEST_F(DeepSpeedFile, ReadsTheCommentedFileOfItsGuide) {
  const TrainSettings settings = read(read_file(peer_file("sft_play_custom.json")));
  EXPECT_EQ(settings.parallel.strategy, "zero3");
  EXPECT_EQ(settings.parallel.offload, "optimizer");
}

TEST_F(DeepSpeedFile, ReadsTheFilesOfTransformers) {
  const TrainSettings zero2 = read(read_file(peer_file("hf_zero2.json")));
  EXPECT_EQ(zero2.parallel.strategy, "zero2");
  EXPECT_EQ(zero2.parallel.offload, "optimizer");
  EXPECT_EQ(zero2.train.schedule.lr_scheduler_type, "warmup_lr");
  EXPECT_EQ(zero2.train.schedule.warmup.warmup_type, "log");
  EXPECT_EQ(zero2.train.learning_rate, TrainSettings().train.learning_rate);
  const TrainSettings zero3 = read(read_file(peer_file("hf_zero3.json")));
  EXPECT_EQ(zero3.parallel.strategy, "zero3");
  EXPECT_EQ(zero3.parallel.offload, "parameters");
  EXPECT_EQ(read(read_file(peer_file("hf_docs_zero2.json"))).parallel.strategy, "zero2");
  EXPECT_EQ(read(read_file(peer_file("hf_docs_zero3.json"))).parallel.strategy, "zero3");
}

TEST_F(DeepSpeedFile, RefusesNvmeByItsNameTwice) {
  const std::string sentence = error(read_file(peer_file("hf_docs_nvme.json")));
  EXPECT_NE(sentence.find("ds.json:33: zero_optimization.offload_optimizer.device: nvme is not"),
            std::string::npos)
      << sentence;
  EXPECT_NE(sentence.find("ds.json:40: zero_optimization.offload_param.device: nvme is not"),
            std::string::npos)
      << sentence;
  EXPECT_NE(sentence.find("2 errors"), std::string::npos) << sentence;
}

TEST_F(DeepSpeedFile, Fp16ComputesInBf16AndSaysSo) {
  const TrainSettings settings = read(R"({"fp16": {"enabled": true, "loss_scale": 0}})");
  EXPECT_TRUE(settings.train.fp16);
  EXPECT_EQ(settings.train.wished_dtype(), "bf16");
  EXPECT_TRUE(said("fp16.enabled: computing in bf16"));
  EXPECT_TRUE(said("fp16.loss_scale"));
}

TEST_F(DeepSpeedFile, ListsTheBatchBesideOtherErrors) {
  const std::string sentence =
      error(R"({"train_batch_size": 30, "train_micro_batch_size_per_gpu": 8,
                "gradient_accumulation_steps": 3, "gradient_clipping": "big"})",
            "", 2);
  EXPECT_NE(sentence.find("gradient_clipping"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("train_batch_size is 30, but"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("2 errors"), std::string::npos) << sentence;
}

TEST_F(DeepSpeedFile, SaysTheCompleteListOfReasons) {
  const std::string sentence = error(read_file(peer_file("hf_zero3_fp16.json")),
                                     "train:\n  learning_rate: 2e-4\n  adam_beta1: 0.9\n");
  EXPECT_NE(sentence.find("optimizer.params.lr is 3e-5, but train.learning_rate is 0.0002 "
                          "(run.yaml:2)"),
            std::string::npos)
      << sentence;
  EXPECT_NE(sentence.find("scheduler.params.warmup_max_lr is 3e-5, but train.learning_rate is "
                          "0.0002 (run.yaml:2)"),
            std::string::npos)
      << sentence;
  EXPECT_NE(
      sentence.find("optimizer.params.betas is 0.8, but train.adam_beta1 is 0.9 (run.yaml:3)"),
      std::string::npos)
      << sentence;
  EXPECT_NE(sentence.find("3 errors"), std::string::npos) << sentence;
}

TEST_F(DeepSpeedFile, RefusesKeysThatWarmupCosineHasNot) {
  const std::string sentence = error(read_file(peer_file("warmup_cosine.json")), "", 8);
  EXPECT_NE(sentence.find("ds.json:12: WarmupCosineLR has no warmup_min_lr"), std::string::npos)
      << sentence;
  EXPECT_NE(sentence.find("WarmupCosineLR has no warmup_max_lr"), std::string::npos);
  EXPECT_NE(sentence.find("warmup_min_ratio and cos_min_ratio"), std::string::npos);
}

TEST_F(DeepSpeedFile, OptimizerAndScheduleBecomeSettings) {
  const TrainSettings settings = read(R"({
    "optimizer": {"type": "Adam", "params": {"lr": 3e-4, "betas": [0.8, 0.95], "eps": 1e-6,
                                             "weight_decay": 0.1, "torch_adam": true}},
    "scheduler": {"type": "WarmupCosineLR", "params": {"warmup_num_steps": 7, "total_num_steps": 50,
        "warmup_min_ratio": 0.1, "cos_min_ratio": 0.2, "warmup_type": "linear"}},
    "gradient_clipping": 0.5, "bf16": {"enabled": false}})");
  EXPECT_EQ(settings.train.learning_rate, 3e-4);
  EXPECT_EQ(settings.train.optimizer.adam_beta1, 0.8);
  EXPECT_EQ(settings.train.optimizer.adam_beta2, 0.95);
  EXPECT_EQ(settings.train.optimizer.adam_epsilon, 1e-6);
  EXPECT_EQ(settings.train.weight_decay, 0.1);
  EXPECT_EQ(settings.train.schedule.lr_scheduler_type, "warmup_cosine_lr");
  EXPECT_EQ(settings.train.schedule.warmup_steps, 7);
  EXPECT_EQ(settings.train.schedule.warmup.schedule_steps, 50);
  EXPECT_EQ(settings.train.schedule.warmup.warmup_min_ratio, 0.1);
  EXPECT_EQ(settings.train.schedule.min_lr_ratio, 0.2);
  EXPECT_EQ(settings.train.schedule.warmup.warmup_type, "linear");
  EXPECT_EQ(settings.train.max_grad_norm, 0.5);
  EXPECT_EQ(settings.train.wished_dtype(), "fp32");
  // WarmupDecayLR begins and ends at its own floor.
  const TrainSettings decay = read(R"({"scheduler": {"type": "WarmupDecayLR", "params": {
      "warmup_min_lr": 1e-6, "warmup_max_lr": 1e-4, "warmup_num_steps": 3}}})");
  EXPECT_EQ(decay.train.schedule.lr_scheduler_type, "warmup_decay_lr");
  EXPECT_EQ(decay.train.schedule.warmup.warmup_min_lr, 1e-6);
  EXPECT_EQ(decay.train.learning_rate, 1e-4);
}

// DeepSpeed's own defaults count where neither file says anything, and are said.
TEST_F(DeepSpeedFile, WhatAnOptimizerLeavesOutIsDeepSpeedsUnlessTheConfigurationSaysIt) {
  const std::string json = R"({"optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}})";
  EXPECT_EQ(read(json).train.weight_decay, 0);
  EXPECT_TRUE(
      said("optimizer.params.weight_decay is not given: train.weight_decay is DeepSpeed's"));
  EXPECT_EQ(read(json, "train:\n  weight_decay: 0.03\n").train.weight_decay, 0.03);
}

TEST_F(DeepSpeedFile, PersistenceThresholdIsKeepWholeBelow) {
  EXPECT_EQ(read(R"({"zero_optimization": {"stage": 3,
                     "stage3_param_persistence_threshold": 1e4}})")
                .parallel.keep_whole_below,
            10000);
}

TEST_F(DeepSpeedFile, CpuCheckpointingIsOffloadedRecomputation) {
  const TrainSettings settings =
      read(R"({"activation_checkpointing": {"cpu_checkpointing": true}})");
  EXPECT_EQ(settings.train.activation_offload, "cpu");
  EXPECT_EQ(settings.train.gradient_checkpointing, "true");
}

TEST_F(DeepSpeedFile, MismatchesAreErrorsAndAutoIsNot) {
  EXPECT_EQ(error(R"({"gradient_clipping": 0.5})", "train:\n  max_grad_norm: 1.0\n"),
            "ds.json:1: gradient_clipping is 0.5, but train.max_grad_norm is 1 (run.yaml:2) "
            "(make them equal, remove one of them, or write \"auto\" for this one)");
  EXPECT_EQ(read(R"({"gradient_clipping": "auto"})", "train:\n  max_grad_norm: 0.7\n")
                .train.max_grad_norm,
            0.7);
  EXPECT_EQ(
      read(R"({"gradient_clipping": 1.0})", "train:\n  max_grad_norm: 1\n").train.max_grad_norm,
      1.0);
  EXPECT_NE(error(R"({"zero_optimization": {"stage": 2}})", "parallel:\n  strategy: zero3\n"), "");
  EXPECT_EQ(read(R"({"zero_optimization": {"stage": 2}})", "parallel:\n  strategy: auto\n")
                .parallel.strategy,
            "zero2");
  // A share of the steps is no number of steps.
  EXPECT_NE(error(R"({"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 5}}})",
                  "train:\n  warmup_ratio: 0.06\n")
                .find("warmup_num_steps is 5, but train.warmup_ratio is 0.06"),
            std::string::npos);
  EXPECT_NE(error(R"({"scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 5}}})",
                  "train:\n  steps: 9\n")
                .find("total_num_steps is 5, but train.steps is 9"),
            std::string::npos);
}

struct Batch {
  const char* json;
  int64_t ranks;
  int64_t micro;
  int64_t accumulation;  // 0 = follows from the whole batch
  int64_t whole;         // 0 = follows
};

TEST_F(DeepSpeedFile, BatchTriad) {
  const std::string train = R"("train_batch_size": 32)";
  const std::string micro = R"("train_micro_batch_size_per_gpu": 4)";
  const std::string steps = R"("gradient_accumulation_steps": 2.0)";
  const std::vector<Batch> good = {
      {R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4,
           "gradient_accumulation_steps": 2})",
       4, 4, 2, 32},
      {R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4})", 2, 4, 0, 32},
      {R"({"train_batch_size": 32, "gradient_accumulation_steps": 2})", 2, 8, 2, 32},
      {R"({"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2})", 2, 4, 2, 0},
      {R"({"train_batch_size": 32})", 4, 8, 0, 32},
      {R"({"train_batch_size": 3.2e1, "train_micro_batch_size_per_gpu": "auto"})", 4, 8, 0, 32},
      {R"({"train_micro_batch_size_per_gpu": 4})", 4, 4, 0, 0},
      {R"({})", 4, TrainSettings().train.batch_rows(), 0, 0}};
  for (const Batch& batch : good) {
    const TrainSettings settings = read(batch.json, "", batch.ranks);
    EXPECT_EQ(settings.train.batch_size, batch.micro) << batch.json;
    EXPECT_EQ(settings.train.grad_accum, batch.accumulation) << batch.json;
    EXPECT_EQ(settings.train.global_batch_size, batch.whole) << batch.json;
  }
  EXPECT_EQ(error("{" + train + "," + micro + "," + steps + "}", "", 4), "");
  EXPECT_NE(error("{" + train + "," + micro + "," + steps + "}", "", 3).find("ranks are 24"),
            std::string::npos);
  EXPECT_NE(error("{" + train + "," + micro + "}", "", 3), "");
  EXPECT_NE(error("{" + train + "," + steps + "}", "", 3).find("no multiple of 3 ranks x"),
            std::string::npos);
  EXPECT_NE(error("{" + train + "}", "", 3).find("no multiple of 3 ranks"), std::string::npos);
  EXPECT_NE(error("{" + steps + "}", "", 2).find("without a batch size"), std::string::npos);
  EXPECT_EQ(error("{" + steps + "}", "train:\n  batch_size: 3\n", 2), "");
  EXPECT_NE(error(R"({"train_batch_size": 0})", "", 2).find("at least 1"), std::string::npos);
  EXPECT_NE(error(R"({"train_batch_size": 2.5})", "", 2).find("an integer"), std::string::npos);
  // While the number of ranks is unknown, nothing is guessed.
  EXPECT_EQ(read("{" + train + "}").train.batch_size, TrainSettings().train.batch_size);
  // A configuration that gives a micro-batch gets the accumulation that belongs to it.
  EXPECT_EQ(read("{" + train + "}", "train:\n  batch_size: 2\n", 4).train.batch_size, 2);
  EXPECT_NE(error("{" + train + "}", "train:\n  batch_size: 3\n", 4), "");
}

// Files are read once; the ranks' part is decided for each number of ranks.
TEST_F(DeepSpeedFile, DocumentsGiveTheBatchOfEachNumberOfRanks) {
  struct Rows {
    const char* json;
    const char* yaml;
    std::vector<int64_t> micro;  // rows of a micro-batch on 0, 2, 4, 0 ranks
  };
  const int64_t usual = TrainSettings().train.batch_rows();
  for (const Rows& rows : std::vector<Rows>{
           {R"({"train_batch_size": 32})", "", {usual, 16, 8, usual}},
           {R"({"train_batch_size": 32, "gradient_accumulation_steps": 2})",
            "",
            {usual, 8, 4, usual}},
           {R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": "auto",
                "gradient_accumulation_steps": "auto"})",
            "",
            {usual, 16, 8, usual}},
           {R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": 4})",
            "",
            {4, 4, 4, 4}},
           {R"({"train_batch_size": 32})", "train: {batch_size: 4}\n", {4, 4, 4, 4}}}) {
    write_file_atomic(folder_.path() / "ds.json", rows.json);
    write_file_atomic(folder_.path() / "run.yaml", rows.yaml);
    const TrainDocuments documents = read_train_documents(sources());
    fs::remove(folder_.path() / "ds.json");
    fs::remove(folder_.path() / "run.yaml");
    std::vector<int64_t> found;
    for (const int64_t ranks : {0, 2, 4, 0}) {
      TrainSettings settings;
      const config::Resolved resolved =
          resolve_documents(settings, documents, Wanted::Anything, ranks);
      found.push_back(settings.train.batch_rows());
      TrainSettings anew;
      write_file_atomic(folder_.path() / "ds.json", rows.json);
      write_file_atomic(folder_.path() / "run.yaml", rows.yaml);
      const config::Resolved again = resolve_train(anew, sources(), Wanted::Anything, ranks);
      EXPECT_EQ(resolved.json_with_origins(), again.json_with_origins()) << rows.json;
      EXPECT_EQ(resolved.notices(), again.notices()) << rows.json;
    }
    EXPECT_EQ(found, rows.micro) << rows.json;
  }
}

TEST_F(DeepSpeedFile, DocumentsThatDoNotFitOneNumberOfRanksFitAnother) {
  write_file_atomic(folder_.path() / "ds.json", R"({"train_batch_size": 32})");
  write_file_atomic(folder_.path() / "run.yaml", "");
  const TrainDocuments documents = read_train_documents(sources());
  TrainSettings settings;
  try {
    resolve_documents(settings, documents, Wanted::Anything, 3);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(without_folder(error.sentence()),
              "ds.json:1: train_batch_size 32 is no multiple of 3 ranks (give a multiple of it, or "
              "write \"auto\")");
  }
  EXPECT_NO_THROW(resolve_documents(settings, documents, Wanted::Anything, 4));
}

TEST_F(DeepSpeedFile, UnknownKeysAreErrorsWithTheNearest) {
  EXPECT_EQ(
      error("{\n\"gradient_clippin\": 1}"),
      "ds.json:2: DeepSpeed has no key `gradient_clippin`, did you mean `gradient_clipping`?");
  EXPECT_NE(error(R"({"zero_optimization": {"stge": 2}})").find("`zero_optimization.stage`?"),
            std::string::npos);
  EXPECT_NE(error(R"({"overlap_comm": true})").find("`zero_optimization.overlap_comm`?"),
            std::string::npos);
  EXPECT_NE(error(R"({"zero_optimization": 2})").find("true or false"), std::string::npos);
  EXPECT_NE(error(R"({"zero_optimization": {"stage": 4}})").find("0 to 3"), std::string::npos);
  EXPECT_NE(error(R"({"zero_optimization": {"stage": "auto"}})").find("0 to 3"), std::string::npos);
  EXPECT_NE(error(R"([1])").find("found a list"), std::string::npos);
  EXPECT_EQ(error("{\"fp16\": {\"enabled\": \"maybe\"}}"),
            "ds.json:1: fp16.enabled: wanted true or false, found \"maybe\"");
}

TEST_F(DeepSpeedFile, RefusesByNameWhatItCanNotHonour) {
  const std::vector<std::string> refused = {
      R"({"optimizer": {"type": "Lamb", "params": {"lr": 1}}})",
      R"({"optimizer": {"type": "OneBitAdam", "params": {"freeze_step": 5}}})",
      R"({"optimizer": {"type": "Adam", "params": {"adam_w_mode": false}}})",
      R"({"optimizer": {"type": "AdamW", "params": {"amsgrad": true}}})",
      R"({"scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 1}}})",
      R"({"zero_optimization": {"stage": 3, "zero_quantized_weights": true}})",
      R"({"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}})",
      R"({"zero_optimization": {"stage": 0, "offload_optimizer": {"device": "cpu"}}})",
      R"({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "ratio": 0.3}}})",
      R"({"amp": {"enabled": true}})",
      R"({"gradient_allreduce_op": "sum"})",
      R"({"elasticity": {"enabled": true}})",
      R"({"compression_training": {"weight_quantization": {}}})",
      R"({"checkpoint": {"load_universal": true}})",
      R"({"tensor_parallel": {"autotp_size": 4}})"};
  for (const std::string& json : refused) EXPECT_NE(error(json), "") << json;
  const std::vector<std::string> accepted = {
      R"({"amp": {"enabled": "auto", "opt_level": "auto"}})",
      R"({"elasticity": {"enabled": false, "max_gpus": 4}})",
      R"({"tensorboard": {"enabled": true, "output_path": "x"}})",
      R"({"comms_logger": {"enabled": true, "verbose": false}})",
      R"({"zero_optimization": true})",
      R"({"activation_checkpointing": {"partition_activations": true}})"};
  for (const std::string& json : accepted) EXPECT_EQ(error(json), "") << json;
}

TEST_F(DeepSpeedFile, IsFoundByEnvironmentCommandAndSections) {
  const fs::path file = folder_.path() / "ds.json";
  write_file_atomic(file, R"({"zero_optimization": {"stage": 3}})");
  TrainSettings settings;
  const config::Resolved by_variable =
      resolve_train(settings, {.environment = {{"DEEPSPEED_CONFIG", file.string()}}});
  EXPECT_EQ(settings.parallel.strategy, "zero3");
  EXPECT_EQ(by_variable.value("parallel.strategy").origin, file.string() + ":1");
  settings = {};
  resolve_train(settings, {.overrides = {"DEEPSPEED_CONFIG=" + file.string()}});
  EXPECT_EQ(settings.parallel.strategy, "zero3");
  settings = {};
  resolve_train(settings, {.overrides = {"train.deepspeed={zero_optimization: {stage: 1}}"}});
  EXPECT_EQ(settings.parallel.strategy, "zero1");
  EXPECT_THROW(resolve_train(settings, {.overrides = {"train.deepspeed=absent.json"}}),
               ConfigError);
}

TEST_F(DeepSpeedFile, TheResolvedConfigurationRepeatsTheRunWithoutTheFile) {
  read(read_file(peer_file("hf_zero3.json")));
  const std::string yaml = yaml_;
  EXPECT_EQ(yaml.find("deepspeed"), std::string::npos);
  fs::remove(folder_.path() / "ds.json");
  write_file_atomic(folder_.path() / "again.yaml", yaml);
  TrainSettings again;
  EXPECT_EQ(resolve_train(again, {.file = folder_.path() / "again.yaml"}).yaml(), yaml);
}

TEST_F(DeepSpeedFile, IsLookedForBesideTheFileThatNamesIt) {
  fs::create_directories(folder_.path() / "configs");
  write_file_atomic(folder_.path() / "configs/z.json", R"({"zero_optimization": {"stage": 1}})");
  write_file_atomic(folder_.path() / "configs/base.yaml", "train: {deepspeed: z.json}\n");
  write_file_atomic(folder_.path() / "run.yaml", "include: configs/base.yaml\n");
  TrainSettings settings;
  resolve_train(settings, {.file = folder_.path() / "run.yaml"});
  EXPECT_EQ(settings.parallel.strategy, "zero1");
}

TEST(DeepSpeedKeys, EachIsListedOnce) {
  std::set<std::string> paths;
  for (const PeerKey& key : deepspeed_keys()) {
    EXPECT_TRUE(paths.insert(key.path).second) << key.path;
    EXPECT_EQ(key.why.empty(), key.action == PeerAction::Read) << key.path;
  }
}

}  // namespace
}  // namespace convoy::settings
