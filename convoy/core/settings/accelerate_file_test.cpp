// SPDX-License-Identifier: Apache-2.0
//
// accelerate's file and FSDP of TrainingArguments as settings and requests for the launcher.
#include "convoy/core/settings/accelerate_file.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/settings/resolve_train.h"
#include "tests/files/temporary_folder.h"

namespace convoy::settings {
namespace {

namespace fs = std::filesystem;

struct Read {
  TrainSettings settings;
  LaunchRequest launch_request;
  std::vector<std::string> notices;
  std::string error;
};

Read read(const std::vector<std::string>& overrides) {
  Read read;
  const TrainDocuments documents = read_train_documents({.overrides = overrides});
  read.launch_request = documents.launch_request;
  try {
    read.notices = resolve_documents(read.settings, documents).notices();
  } catch (const ConfigError& error) {
    read.error = error.sentence();
  }
  return read;
}

Read read_file_named(const std::string& name) {
  const char* source = std::getenv("CONVOY_SOURCE_DIR");
  return read({"accelerate=" +
               (fs::path(source == nullptr ? "." : source) / "tests/files/peers" / name).string()});
}

Read read_text(const std::string& yaml) {
  const convoy::testing::TemporaryFolder folder;
  write_file_atomic(folder / "accelerate.yaml", yaml);
  return read({"accelerate=" + (folder / "accelerate.yaml").string()});
}

TEST(AccelerateFile, OfSeveralGpus) {
  const Read ddp = read_file_named("accelerate_ddp.yaml");
  EXPECT_EQ(ddp.error, "");
  EXPECT_EQ(ddp.settings.parallel.strategy, "ddp");
  EXPECT_EQ(ddp.settings.train.wished_dtype(), "bf16");
  EXPECT_EQ(ddp.launch_request.ranks_of_node.value, "2");
  EXPECT_TRUE(ddp.launch_request.ranks_of_node.origin.ends_with("accelerate_ddp.yaml:11"));
  EXPECT_EQ(ddp.launch_request.nodes.value, "");
}

TEST(AccelerateFile, OfFsdp) {
  const Read fsdp = read_file_named("accelerate_fsdp.yaml");
  EXPECT_EQ(fsdp.error, "");
  EXPECT_EQ(fsdp.settings.parallel.strategy, "zero3");
  EXPECT_TRUE(fsdp.settings.parallel.reshard_after_forward);
  EXPECT_EQ(fsdp.settings.train.gradient_checkpointing, "true");
  EXPECT_EQ(fsdp.settings.parallel.offload, "none");
}

TEST(AccelerateFile, OfDeepSpeedOnSeveralNodes) {
  const Read zero2 = read_file_named("accelerate_deepspeed.yaml");
  EXPECT_EQ(zero2.error, "");
  EXPECT_EQ(zero2.settings.parallel.strategy, "zero2");
  EXPECT_EQ(zero2.settings.train.grad_accum, 4);
  EXPECT_EQ(zero2.settings.train.wished_dtype(), "fp32");
  EXPECT_EQ(zero2.launch_request.ranks_of_node.value, "4");
  EXPECT_EQ(zero2.launch_request.nodes.value, "2");
  EXPECT_EQ(zero2.launch_request.node_rank.value, "1");
  EXPECT_EQ(zero2.launch_request.master_addr.value, "192.0.2.7");
  EXPECT_EQ(zero2.launch_request.master_port.value, "29501");
}

TEST(AccelerateFile, NamesADeepSpeedFileBesideIt) {
  const convoy::testing::TemporaryFolder folder;
  write_file_atomic(folder / "ds.json", R"({"zero_optimization": {"stage": 3}})");
  const std::string begin =
      "distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: ds.json\n";
  write_file_atomic(folder / "a.yaml", begin);
  EXPECT_EQ(read({"accelerate=" + (folder / "a.yaml").string()}).settings.parallel.strategy,
            "zero3");
  write_file_atomic(folder / "a.yaml", begin + "  zero_stage: 2\n");
  EXPECT_NE(read({"accelerate=" + (folder / "a.yaml").string()}).error.find("zero_stage"),
            std::string::npos);
}

TEST(AccelerateFile, TheRanksDecideTheBatchOfTheDeepSpeedFileItNames) {
  const convoy::testing::TemporaryFolder folder;
  write_file_atomic(folder / "ds.json", R"({"train_batch_size": 32})");
  write_file_atomic(folder / "a.yaml",
                    "distributed_type: DEEPSPEED\nnum_processes: 2\ndeepspeed_config:\n"
                    "  deepspeed_config_file: ds.json\n  gradient_accumulation_steps: auto\n");
  const TrainDocuments documents =
      read_train_documents({.overrides = {"accelerate=" + (folder / "a.yaml").string()}});
  std::filesystem::remove(folder / "a.yaml");
  std::filesystem::remove(folder / "ds.json");
  EXPECT_EQ(documents.launch_request.ranks_of_node.value, "2");
  for (const auto& [ranks, rows] : {std::pair(2, 16), std::pair(4, 8)}) {
    TrainSettings settings;
    const config::Resolved resolved =
        resolve_documents(settings, documents, Wanted::Anything, ranks);
    EXPECT_EQ(settings.train.batch_rows(), rows);
    EXPECT_EQ(resolved.value("train.batch_size").origin, (folder / "ds.json").string() + ":1");
    EXPECT_EQ(settings.train.global_batch_size, 32);
  }
}

TEST(AccelerateFile, SectionsOfAnotherTypeAreInactive) {
  const Read found = read_text(
      "distributed_type: \"NO\"\ndeepspeed_config:\n  gradient_accumulation_steps: 7\n"
      "  gradient_clipping: 0.3\n  zero_stage: 2\n");
  EXPECT_EQ(found.error, "");
  EXPECT_NE(found.settings.train.grad_accum, 7);
  EXPECT_NE(found.settings.train.max_grad_norm, 0.3);
  EXPECT_EQ(found.settings.parallel.strategy, TrainSettings().parallel.strategy);
  ASSERT_EQ(found.notices.size(), 2u);  // the first names the file
  EXPECT_NE(found.notices[1].find("deepspeed_config is inactive: distributed_type is NO"),
            std::string::npos)
      << found.notices[1];
}

TEST(AccelerateFile, Fp16ComputesInBf16AndSaysSo) {
  const Read found = read_text("mixed_precision: fp16\n");
  EXPECT_EQ(found.error, "");
  EXPECT_TRUE(found.settings.train.fp16);
  ASSERT_EQ(found.notices.size(), 2u);
  EXPECT_NE(found.notices[1].find("mixed_precision: fp16: computing in bf16"), std::string::npos);
}

TEST(AccelerateFile, MismatchQuotesTheFile) {
  const convoy::testing::TemporaryFolder folder;
  write_file_atomic(folder / "a.yaml", "mixed_precision: bf16\n");
  const std::string error =
      read({"accelerate=" + (folder / "a.yaml").string(), "train.bf16=false"}).error;
  EXPECT_NE(error.find("mixed_precision is bf16 (train.bf16 true), but train.bf16 is false"),
            std::string::npos)
      << error;
}

TEST(AccelerateFile, PrecisionIsComparedByWhatIsComputed) {
  const convoy::testing::TemporaryFolder folder;
  const auto found = [&](const std::string& precision, const std::vector<std::string>& settings) {
    write_file_atomic(folder / "a.yaml", "mixed_precision: " + precision + "\n");
    std::vector<std::string> words = settings;
    words.push_back("accelerate=" + (folder / "a.yaml").string());
    return read(words);
  };
  // SFT-Play's run_bnb.yaml under the accelerate file that its guide asks for.
  EXPECT_EQ(found("bf16", {"train.bf16=false", "train.fp16=true"}).error, "");
  EXPECT_EQ(found("fp16", {"train.bf16=true", "train.fp16=false"}).error, "");
  EXPECT_NE(found("no", {"train.fp16=true", "train.bf16=false"}).error.find("train.fp16 is true"),
            std::string::npos);
  EXPECT_NE(found("no", {"train.bf16=true"}).error.find("train.bf16 is true"), std::string::npos);
  EXPECT_EQ(found("no", {}).settings.train.wished_dtype(), "fp32");
}

TEST(AccelerateFile, SeveralProcessesMayShareTheirStateAsOthersSay) {
  const convoy::testing::TemporaryFolder folder;
  write_file_atomic(folder / "a.yaml", "distributed_type: MULTI_GPU\n");
  write_file_atomic(folder / "ds.json",
                    R"({"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}})");
  const Read both = read({"accelerate=" + (folder / "a.yaml").string(),
                          "train.deepspeed=" + (folder / "ds.json").string(), "train.bf16=false",
                          "train.fp16=true"});
  EXPECT_EQ(both.error, "");
  EXPECT_EQ(both.settings.parallel.strategy, "zero2");
}

TEST(AccelerateFile, RefusesByNameWhatItCanNotHonour) {
  EXPECT_NE(read_text("mixed_precision: fp8\nfp8_config: {backend: TE}\n").error.find("2 errors"),
            std::string::npos);
  EXPECT_NE(read_text("distributed_type: MEGATRON_LM\n").error, "");
  EXPECT_NE(read_text("gpu_ids: 0,1\n").error.find("CUDA_VISIBLE_DEVICES"), std::string::npos);
  EXPECT_NE(read_text("num_process: 2\n").error.find("did you mean `num_processes`"),
            std::string::npos);
  EXPECT_NE(read_text("num_processes: 3\nnum_machines: 2\n").error.find("no multiple"),
            std::string::npos);
  EXPECT_NE(read_text("distributed_type: FSDP\nfsdp_config: {fsdp_sharding_strategy: LOCAL}\n")
                .error.find("local is not supported"),
            std::string::npos);
  EXPECT_EQ(read_text("use_cpu: true\n").launch_request.devices.value, "cpu");
}

struct Strategy {
  const char* words;
  const char* strategy;
  bool reshards;
  const char* shard_over;
  const char* offload;
};

TEST(FsdpArguments, BecomeSettingsOfParallel) {
  const std::vector<Strategy> strategies = {
      {"full_shard auto_wrap", "zero3", true, "all", "none"},
      {"full_shard auto_wrap offload", "zero3", true, "all", "parameters"},
      {"shard_grad_op", "zero3", false, "all", "none"},
      {"hybrid_shard", "zero3", true, "node", "none"},
      {"hybrid_shard_zero2 offload", "zero3", false, "node", "parameters"},
      {"no_shard", "ddp", true, "all", "none"},
      {"true", "zero3", true, "all", "none"},
      {"false", "auto", true, "all", "none"}};
  for (const Strategy& wanted : strategies) {
    const Read found = read({std::string("train.fsdp=") + wanted.words});
    EXPECT_EQ(found.error, "") << wanted.words;
    const ParallelSettings& parallel = found.settings.parallel;
    EXPECT_EQ(parallel.strategy, wanted.strategy) << wanted.words;
    EXPECT_EQ(parallel.reshard_after_forward, wanted.reshards) << wanted.words;
    EXPECT_EQ(parallel.shard_over, wanted.shard_over) << wanted.words;
    EXPECT_EQ(parallel.offload, wanted.offload) << wanted.words;
  }
  EXPECT_NE(read({"train.fsdp=full_shrd"}).error.find("did you mean `full_shard`"),
            std::string::npos);
  EXPECT_NE(read({"train.fsdp=full_shard", "parallel.strategy=ddp"}).error, "");
}

TEST(FsdpArguments, ConfigIsReadWithAndWithoutItsPrefix) {
  const Read found =
      read({"train.fsdp=[full_shard, offload]",
            "train.fsdp_config={fsdp_transformer_layer_cls_to_wrap: [X], activation_checkpointing: "
            "true, backward_prefetch: backward_pre}"});
  EXPECT_EQ(found.error, "");
  EXPECT_EQ(found.settings.train.gradient_checkpointing, "true");
  EXPECT_EQ(read({"train.fsdp=true", "train.fsdp_config={reshard_after_forward: false}"})
                .settings.parallel.reshard_after_forward,
            false);
  EXPECT_NE(read({"train.fsdp=true", "train.fsdp_config={xla: true}"}).error.find("XLA"),
            std::string::npos);
  EXPECT_NE(read({"train.fsdp=true", "train.fsdp_config={shard: true}"}).error, "");
  EXPECT_FALSE(read({"train.fsdp_config={version: 2}"}).notices.empty());
}

TEST(FsdpArguments, KeysAreNamedAsTheyWereWritten) {
  const auto error = [](const std::string& config, const std::string& more = "seed=1") {
    return read({"train.fsdp=full_shard", "train.fsdp_config=" + config, more}).error;
  };
  EXPECT_NE(
      error("{fsdp_offload_params: maybe}").find("train.fsdp_config.fsdp_offload_params: wanted"),
      std::string::npos)
      << error("{fsdp_offload_params: maybe}");
  EXPECT_NE(error("{offload_params: maybe}").find("train.fsdp_config.offload_params: wanted"),
            std::string::npos);
  EXPECT_NE(error("{fsdp_offload_params: true}", "parallel.offload=optimizer")
                .find("train.fsdp_config.fsdp_offload_params is true"),
            std::string::npos)
      << error("{fsdp_offload_params: true}", "parallel.offload=optimizer");
  EXPECT_NE(error("{fsdp_offload_param: true}")
                .find("did you mean `train.fsdp_config.fsdp_offload_params`"),
            std::string::npos)
      << error("{fsdp_offload_param: true}");
  EXPECT_NE(error("{fsdp_sharding_strategy: LOCAL}")
                .find("train.fsdp_config.fsdp_sharding_strategy: local"),
            std::string::npos);
  EXPECT_NE(
      read({"train.fsdp=full_shard offload", "parallel.offload=none"}).error.find("train.fsdp is"),
      std::string::npos);
  // Keys of an accelerate file are named as they stand in that file.
  EXPECT_NE(read_text("distributed_type: FSDP\nfsdp_config: {fsdp_offload_params: maybe}\n")
                .error.find("fsdp_config.fsdp_offload_params: wanted"),
            std::string::npos);
}

}  // namespace
}  // namespace convoy::settings
