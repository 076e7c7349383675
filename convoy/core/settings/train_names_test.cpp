// SPDX-License-Identifier: Apache-2.0
//
// Keys, values and variables by the names of other programs.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/config/describe.h"
#include "convoy/core/config/document.h"
#include "convoy/core/config/value.h"
#include "convoy/core/settings/assigned_settings_test.h"
#include "convoy/core/settings/resolve_train.h"

namespace convoy::settings {
namespace {

using testing::fate;
using testing::with;

// Every key of SFT-Play's surface with its default: accepted, accepted with a notice, or refused by
// name.
TEST(TrainNames, EverySftPlayKeyIsAcceptedOrRefusedByName) {
  const std::vector<std::string> accepted = {"seed=42",
                                             "run_name=a",
                                             "mode=sft",
                                             "mode=cpt",
                                             "mode=cpt_mixed",
                                             "task_mode=sft",
                                             "model.name=Qwen/Qwen2.5-1.5B-Instruct",
                                             "model.local_dir=x",
                                             "model.revision=main",
                                             "model.type=causal",
                                             "model.max_seq_len=512",
                                             "tuning.mode=lora",
                                             "tuning.mode=full",
                                             "tuning.mode=qlora",
                                             "tuning.lora.r=32",
                                             "tuning.lora.alpha=64",
                                             "tuning.lora.dropout=0.05",
                                             "tuning.lora.target_modules=auto",
                                             "tuning.lora.target_modules=[q_proj, v_proj]",
                                             "train.epochs=3",
                                             "train.steps=10",
                                             "train.learning_rate=2e-4",
                                             "train.lr=2e-4",
                                             "train.weight_decay=0.01",
                                             "train.lr_scheduler_type=cosine",
                                             "train.warmup_ratio=0.06",
                                             "train.num_warmup_steps=5",
                                             "train.warmup_steps=5",
                                             "train.optim=adamw_torch",
                                             "train.adam_beta1=0.9",
                                             "train.batch_size=2",
                                             "train.grad_accum=2",
                                             "train.bf16=true",
                                             "train.fp16=false",
                                             "train.gradient_checkpointing=true",
                                             "train.logging_steps=1",
                                             "train.eval_strategy=steps",
                                             "train.evaluation_strategy=no",
                                             "train.eval_steps=10",
                                             "train.save_strategy=steps",
                                             "train.save_steps=10",
                                             "train.save_total_limit=3",
                                             "train.load_best_model_at_end=true",
                                             "train.metric_for_best_model=eval_loss",
                                             "train.greater_is_better=false",
                                             "train.output_dir=outputs/run-01",
                                             "train.run_name=a",
                                             "train.resume_from_checkpoint=auto",
                                             "train.final_eval=false",
                                             "final_eval=false",
                                             "train.ddp_find_unused_parameters=false",
                                             "train.ddp_broadcast_buffers=false",
                                             "train.ddp_bucket_cap_mb=200",
                                             "train.predict_with_generate=false",
                                             "train.predict_with_generate=true",
                                             "train.generation_num_beams=1",
                                             "train.generation_max_new_tokens=64",
                                             "data.format=chat",
                                             "data.template_path=t.jinja",
                                             "data.train_path=a.jsonl",
                                             "data.val_path=b.jsonl",
                                             "data.test_path=c.jsonl",
                                             "data.cache_dir=none",
                                             "data.split.train_ratio=0.7",
                                             "data.split.val_ratio=0.1",
                                             "data.split.test_ratio=0.2",
                                             "logging.backend=tensorboard",
                                             "logging.report_to=tensorboard",
                                             "train.report_to=none",
                                             "logging.project=sums",
                                             "train.project=sums",
                                             "logging.log_interval=1",
                                             "generation.max_new_tokens=200",
                                             "generation.temperature=0.2",
                                             "generation.top_p=0.9",
                                             "gen.top_p=0.9"};
  for (const std::string& assignment : accepted) EXPECT_EQ(fate(assignment), "") << assignment;

  const std::vector<std::string> noticed = {"pack_factor=4",
                                            "model.trust_remote_code=true",
                                            "tuning.backend=bnb",
                                            "tuning.backend=unsloth",
                                            "train.fp16=true",
                                            "train.dataloader_num_workers=4",
                                            "train.dataloader_pin_memory=true",
                                            "train.ddp_broadcast_buffers=true",
                                            "train.eval_do_concat_batches=false",
                                            "train.eval_accumulation_steps=8",
                                            "train.per_device_eval_batch_size=auto",
                                            "block_size=2048",
                                            "train.autoscale_alpha=2e-6"};
  for (const std::string& assignment : noticed) {
    const std::string key = assignment.substr(0, assignment.find('='));
    EXPECT_EQ(fate(assignment).find("notice command line: " + key), 0u)
        << assignment << ": " << fate(assignment);
  }

  const std::vector<std::string> refused = {
      "model.type=seq2seq",     "tuning.bnb_4bit_compute_dtype=float16",
      "train.push_to_hub=true", "train.hub_model_id=me/sums",
      "hub_model_id=me/sums",   "train.generation_num_beams=4"};
  for (const std::string& assignment : refused) {
    const std::string key = assignment.substr(0, assignment.find('='));
    EXPECT_EQ(fate(assignment).find("command line: " + key), 0u) << assignment;
    EXPECT_NE(fate(assignment).find("is not supported ("), std::string::npos) << fate(assignment);
  }
}

// Keys of other sections, by other words, and of other programs.
TEST(TrainNames, UnknownKeysAreFoundElsewhere) {
  const std::pair<const char*, const char*> cases[] = {
      {"eval.every=5", "train.eval_steps"},
      {"eval_every=5", "train.eval_steps"},
      {"save.interval=5", "train.save_steps"},
      {"logging.steps=5", "logging.log_interval"},
      {"tuning.lora.dora=true", "tuning.lora.use_dora"},
      {"train.dora=true", "tuning.lora.use_dora"},
      {"lora_r=8", "tuning.lora.r"},
      {"lora.rank=8", "tuning.lora.r"},
      {"tuning.dropout=0", "tuning.lora.dropout"},
      {"max_seq_length=8", "model.max_seq_len"},
      {"train.seq_len=8", "model.max_seq_len"},
      {"sequence_len=8", "model.max_seq_len"},
      {"model.batch_size=8", "train.batch_size"},
      {"data.max_seq_lne=8", "model.max_seq_len"},
      {"micro_batch_size=2", "train.batch_size"},
      {"base_model=m", "model.name"},
      {"val_set_size=0.1", "data.split.val_ratio"},
      {"wandb_project=sums", "logging.project"},
      {"project=sums", "logging.project"}};
  for (const auto& [typed, meant] : cases) {
    const std::string key = std::string(typed).substr(0, std::string(typed).find('='));
    EXPECT_EQ(fate(typed),
              fmt::format("command line: unknown key `{}`, did you mean `{}`?", key, meant));
  }
  // Common words alone are not matched.
  for (const char* typed : {"size=5", "parallel.type=x", "qqq.zzz=1"})
    EXPECT_EQ(fate(typed).find("did you mean"), std::string::npos) << fate(typed);
}

TEST(TrainNames, QuantizationHasHuggingFacesSpellings) {
  const auto format = [](const std::vector<std::string>& assignments) {
    const TrainSettings settings = with(assignments);
    return settings.tuning.quantization.format(settings.tuning.mode == "qlora");
  };
  EXPECT_EQ(format({}), "none");
  EXPECT_EQ(format({"tuning.mode=qlora"}), "nf4");
  EXPECT_EQ(format({"tuning.mode=qlora", "tuning.load_in_4bit=true"}), "nf4");
  EXPECT_EQ(format({"tuning.load_in_4bit=true"}), "nf4");
  EXPECT_EQ(format({"model.load_in_4bit=true", "model.bnb_4bit_quant_type=fp4"}), "fp4");
  EXPECT_EQ(format({"tuning.load_in_8bit=true", "tuning.mode=qlora"}), "int8");
  EXPECT_EQ(format({"tuning.load_in_4bit=false"}), "none");
  const TrainSettings settings =
      with({"tuning.mode=qlora", "tuning.bnb_4bit_compute_dtype=bfloat16",
            "tuning.bnb_4bit_use_double_quant=false", "tuning.llm_int8_skip_modules=[down_proj]"});
  EXPECT_EQ(settings.model.dtype, "bf16");
  EXPECT_FALSE(settings.tuning.quantization.double_quant);
  EXPECT_EQ(settings.tuning.quantization.skip_modules.names, std::vector<std::string>{"down_proj"});
  EXPECT_EQ(fate("tuning.bnb_4bit_quant_storage=uint8").find("notice"), 0u);
}

// A variable with the name of such a key may belong to a build or to another program.
TEST(TrainNames, VariablesWithNamesOfOtherTrainersKeysAreNotOurs) {
  TrainSettings settings;
  EXPECT_NO_THROW(
      resolve_train(settings, {.environment = {{"LOSS", "0.3"}, {"STAGE", "production"}}}));
}

TEST(TrainNames, DocumentedEnvironmentOverridesApply) {
  TrainSettings settings;
  const config::Resolved resolved =
      resolve_train(settings, {.environment = {{"TRAIN_BATCH_SIZE", "7"},
                                               {"TRAIN_GRAD_ACCUM", "3"},
                                               {"TRAIN_LEARNING_RATE", "1e-5"},
                                               {"TRAIN_DATALOADER_NUM_WORKERS", "2"},
                                               {"TRAIN_DATALOADER_PIN_MEMORY", "1"},
                                               {"TRAIN_GRADIENT_CHECKPOINTING", "1"},
                                               {"MODEL_MAX_SEQ_LEN", "64"},
                                               {"TUNING_LORA_R", "4"},
                                               {"CONVOY_SEED", "5"}}});
  EXPECT_EQ(settings.train.batch_rows(), 7);
  EXPECT_EQ(settings.train.accumulation(), 3);
  EXPECT_EQ(settings.train.learning_rate, 1e-5);
  EXPECT_EQ(settings.train.gradient_checkpointing, "true");
  EXPECT_EQ(settings.model.max_seq_len, 64);
  EXPECT_EQ(settings.tuning.lora.r, 4);
  EXPECT_EQ(settings.seed, 5);
  EXPECT_EQ(resolved.value("train.batch_size").origin, "environment TRAIN_BATCH_SIZE");
}

TEST(TrainNames, ReplicasOfOneRankAreRequestedWhateverElseIsWrong) {
  const auto devices = [](const std::vector<std::string>& words) {
    return read_train_documents({.overrides = words}).launch_request.devices_of_rank;
  };
  EXPECT_EQ(devices({"parallel.replicas=3"}), 1);
  EXPECT_EQ(devices({"parallel.strategy=dp", "parallel.replicas=3"}), 3);
  EXPECT_EQ(devices({"parallel.strategy=dp"}), 0) << "all devices";
  EXPECT_EQ(devices({"parallel.strategy=dp", "parallel.replicas=3", "train.batch_sze=1"}), 3);
  EXPECT_EQ(devices({"parallel.strategy=pd"}), 1);
}

TEST(TrainNames, VariablesWithNamesOfTheirOwnAreNotIgnored) {
  TrainSettings settings;
  const TrainDocuments documents = read_train_documents({.environment = {{"NUM_GPUS", "2"}}});
  EXPECT_EQ(documents.launch_request.ranks_of_node.value, "2");
  EXPECT_EQ(documents.launch_request.ranks_of_node.origin, "environment NUM_GPUS");
  EXPECT_THROW(resolve_train(settings, {.environment = {{"NUM_GPUS", "two"}}}), ConfigError);
  EXPECT_THROW(resolve_train(settings, {.environment = {{"DEEPSPEED_CONFIG", "absent.json"}}}),
               ConfigError);
  const config::Resolved resolved =
      resolve_train(settings, {.environment = {{"NCCL_TIMEOUT", "900"}}});
  EXPECT_EQ(settings.parallel.timeout_s, 900);
  EXPECT_EQ(resolved.notices().front(), "environment NCCL_TIMEOUT=900 sets parallel.timeout_s");
}

// `make train CONFIG=c.yaml TRAIN_BATCH_SIZE=1`
TEST(TrainNames, EveryVariableOfTheGuideMayStandOnTheCommandLine) {
  const TrainSettings settings =
      with({"TRAIN_BATCH_SIZE=7", "TRAIN_GRAD_ACCUM=3", "TRAIN_LEARNING_RATE=1e-5",
            "TRAIN_DATALOADER_NUM_WORKERS=2", "TRAIN_DATALOADER_PIN_MEMORY=true",
            "TRAIN_GRADIENT_CHECKPOINTING=true", "MODEL_MAX_SEQ_LEN=64", "NUM_GPUS=2",
            "NCCL_TIMEOUT=60", "TUNING_LORA_R=4"});
  EXPECT_EQ(settings.train.batch_size, 7);
  EXPECT_EQ(settings.train.grad_accum, 3);
  EXPECT_EQ(settings.train.learning_rate, 1e-5);
  EXPECT_EQ(settings.train.gradient_checkpointing, "true");
  EXPECT_EQ(settings.model.max_seq_len, 64);
  EXPECT_EQ(settings.parallel.timeout_s, 60);
  EXPECT_EQ(settings.tuning.lora.r, 4);
}

TEST(TrainNames, OtherProgramsWordsMeanTheSame) {
  EXPECT_EQ(with({"mode=cpt"}).task, "pretrain");
  EXPECT_EQ(with({"data.format=chat"}).data.schema, "auto");
  EXPECT_EQ(with({"train.eval_strategy=false"}).train.eval_strategy, "no");
  EXPECT_EQ(with({"train.warmup_ratio=0.5"}).train.schedule.warmup_ratio, 0.5);
  EXPECT_EQ(with({"train.adam_beta2=0.5"}).train.optimizer.adam_beta2, 0.5);
  EXPECT_EQ(with({"model.local_dir=here", "model.name=there"}).model.name, "here");
  EXPECT_EQ(with({"train.run_name=x"}).run_name, "x");
  EXPECT_EQ(with({"final_eval=false"}).train.final_eval, false);
  EXPECT_EQ(with({"block_size=99"}).model.max_seq_len, 99);
}

TEST(TrainNames, OptimizersHaveTheNamesOfTransformers) {
  for (const char* name : {"adamw_torch", "adamw_torch_fused", "adamw_8bit", "adamw_bnb_8bit",
                           "paged_adamw_8bit", "paged_adamw_32bit"})
    EXPECT_EQ(fate(std::string("train.optim=") + name), "") << name;
  EXPECT_EQ(with({"train.optim=adamw_8bit"}).train.moment_type(), "int8");
  EXPECT_EQ(with({"train.optim=paged_adamw_32bit"}).train.moment_type(), "fp32");
  EXPECT_EQ(with({"train.optimizer_state_dtype=bf16"}).train.moment_type(), "bf16");
  EXPECT_NE(fate("train.optim=adafactor").find("adamw_torch"), std::string::npos);
  TrainSettings settings;
  EXPECT_THROW(resolve_train(settings, {.overrides = {"train.optim=adamw_8bit",
                                                      "train.optimizer_state_dtype=bf16"}}),
               ConfigError);
  EXPECT_NO_THROW(resolve_train(
      settings, {.overrides = {"train.optim=adamw_8bit", "train.optimizer_state_dtype=int8"}}));
}

TEST(TrainNames, PeersNamesOfNoiseOffloadAndFloorsAreKnown) {
  EXPECT_EQ(with({"train.neftune_alpha=5"}).train.neftune_noise_alpha, 5);
  EXPECT_TRUE(with({"train.full_determinism=true"}).train.deterministic);
  EXPECT_FALSE(with({}).train.deterministic);
  EXPECT_EQ(with({"loraplus_lr_ratio=16"}).tuning.lora.loraplus_lr_ratio, 16);
  EXPECT_EQ(with({"train.cosine_min_lr_ratio=0.1"}).train.schedule.min_lr_ratio, 0.1);
  const ScheduleSettings schedule =
      with({"train.lr_scheduler_kwargs.min_lr_rate=0.2", "train.lr_scheduler_kwargs.num_cycles=2"})
          .train.schedule;
  EXPECT_EQ(schedule.min_lr_ratio, 0.2);
  EXPECT_EQ(schedule.num_cycles, 2);
  EXPECT_NE(fate("train.lr_scheduler_kwargs.min_lr=1e-5").find("min_lr_ratio"), std::string::npos);
  EXPECT_THROW(with({"tuning.mode=full", "loraplus_lr_ratio=16"}), ConfigError);
  EXPECT_THROW(with({"task=classify", "train.neftune_noise_alpha=5"}), ConfigError);
  EXPECT_EQ(fate("loraplus_lr_embedding=1e-6").find("notice"), 0u);
  EXPECT_NE(fate("train.gradient_checkpointing=offload").find("train.activation_offload: cpu"),
            std::string::npos);
  EXPECT_NE(fate("activation_offloading=true").find("train.activation_offload: cpu"),
            std::string::npos);
  EXPECT_NE(fate("train.activation_offload=cpu").find("gradient_checkpointing is false"),
            std::string::npos);
  TrainSettings settings;
  EXPECT_THROW(resolve_train(settings, {.overrides = {"train.min_lr_ratio=0.1",
                                                      "train.lr_scheduler_type=linear"}}),
               ConfigError);
}

TEST(TrainNames, TheSideThatIsCutHasHuggingFacesName) {
  for (const std::string key : {"data.truncation_side", "truncation_side"}) {
    EXPECT_EQ(fate(key + "=left"), "");
    EXPECT_EQ(with({key + "=left"}).data.truncation, "keep_end");
    EXPECT_EQ(with({key + "=right"}).data.truncation, "keep_start");
    EXPECT_NE(fate(key + "=middle"), "");
  }
}

}  // namespace
}  // namespace convoy::settings
