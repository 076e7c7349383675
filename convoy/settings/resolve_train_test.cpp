// SPDX-License-Identifier: Apache-2.0
#include "convoy/settings/resolve_train.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/config/describe.h"
#include "convoy/config/document.h"
#include "convoy/config/value.h"

namespace convoy::settings {
namespace {

// What becomes of one key=value: "" accepted in silence, "notice ...", or the error.
std::string fate(const std::string& assignment) {
  TrainSettings settings;
  try {
    const config::Resolved resolved = resolve_train(settings, {.overrides = {assignment}});
    return resolved.notices().empty() ? "" : "notice " + resolved.notices()[0];
  } catch (const ConfigError& error) {
    return error.sentence();
  }
}

TrainSettings with(const std::vector<std::string>& assignments) {
  TrainSettings settings;
  resolve_train(settings, {.overrides = assignments});
  return settings;
}

TEST(TrainSettings, DefaultsAreWithinTheirBounds) {
  TrainSettings settings;
  const config::Section list = config::list_fields(settings);
  const config::Node nowhere;
  config::for_each_field(list, "", [&](const std::string& path, const config::Field& field) {
    if (std::holds_alternative<std::string*>(field.value) && field.choices.empty()) return;
    EXPECT_NO_THROW(config::check_bounds(field, nowhere, path)) << path;
  });
}

TEST(TrainSettings, NamesAndEnvironmentNamesAreUnique) {
  TrainSettings settings;
  const config::Section list = config::list_fields(settings);
  std::set<std::string> paths;
  std::set<std::string> names;
  config::for_each_field(list, "", [&](const std::string& path, const config::Field& field) {
    const std::string section = path.substr(0, path.size() - field.name.size());
    EXPECT_TRUE(names.insert(config::environment_name(path)).second) << path;
    EXPECT_TRUE(paths.insert(path).second) << path;
    for (const std::string& alias : field.aliases)
      EXPECT_TRUE(paths.insert(section + alias).second) << alias;
    for (const std::string& alias : field.root_aliases)
      EXPECT_TRUE(paths.insert(alias).second) << alias;
    EXPECT_FALSE(field.help.empty()) << path;
  });
  EXPECT_GT(paths.size(), 60u);
}

// Every key of SFT-Play's surface with its default: accepted, accepted with a notice, or refused by name.
TEST(TrainSettings, EverySftPlayKeyIsAcceptedOrRefusedByName) {
  const std::vector<std::string> accepted = {"seed=42",
                                             "run_name=a",
                                             "mode=sft",
                                             "mode=cpt",
                                             "task_mode=sft",
                                             "block_size=2048",
                                             "model.name=Qwen/Qwen2.5-1.5B-Instruct",
                                             "model.local_dir=x",
                                             "model.revision=main",
                                             "model.type=causal",
                                             "model.max_seq_len=512",
                                             "tuning.mode=lora",
                                             "tuning.mode=full",
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
                                             "train.generation_num_beams=1",
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
                                            "train.dataloader_num_workers=4",
                                            "train.dataloader_pin_memory=true",
                                            "train.ddp_broadcast_buffers=true",
                                            "train.generation_max_new_tokens=64",
                                            "train.eval_do_concat_batches=false",
                                            "train.eval_accumulation_steps=8",
                                            "train.per_device_eval_batch_size=auto",
                                            "train.target_tokens_per_device_step=16384",
                                            "train.autoscale_alpha=2e-6"};
  for (const std::string& assignment : noticed) {
    const std::string key = assignment.substr(0, assignment.find('='));
    EXPECT_EQ(fate(assignment).find("notice command line: " + key), 0u)
        << assignment << ": " << fate(assignment);
  }

  const std::vector<std::string> refused = {
      "mode=cpt_mixed",
      "datasets=[{name: a, path: b, type: chat, weight: 1.0}]",
      "model.type=seq2seq",
      "tuning.mode=qlora",
      "train.batch_size=auto",
      "train.fp16=true",
      "train.predict_with_generate=true",
      "train.generation_num_beams=4",
      "train.deepspeed=deepspeed_z2.json",
      "train.metric_for_best_model=rougeL"};
  for (const std::string& assignment : refused) {
    const std::string key = assignment.substr(0, assignment.find('='));
    EXPECT_EQ(fate(assignment).find("command line: " + key), 0u) << assignment;
    EXPECT_NE(fate(assignment).find("is not supported ("), std::string::npos) << fate(assignment);
  }
}

TEST(TrainSettings, DocumentedEnvironmentOverridesApply) {
  TrainSettings settings;
  const config::Resolved resolved =
      resolve_train(settings, {.environment = {{"TRAIN_BATCH_SIZE", "7"},
                                               {"TRAIN_GRAD_ACCUM", "3"},
                                               {"TRAIN_LEARNING_RATE", "1e-5"},
                                               {"TRAIN_DATALOADER_NUM_WORKERS", "2"},
                                               {"TRAIN_DATALOADER_PIN_MEMORY", "1"},
                                               {"TRAIN_GRADIENT_CHECKPOINTING", "true"},
                                               {"MODEL_MAX_SEQ_LEN", "64"},
                                               {"TUNING_LORA_R", "4"},
                                               {"CONVOY_SEED", "5"}}});
  EXPECT_EQ(settings.train.batch_size, 7);
  EXPECT_EQ(settings.train.grad_accum, 3);
  EXPECT_EQ(settings.train.learning_rate, 1e-5);
  EXPECT_TRUE(settings.train.gradient_checkpointing);
  EXPECT_EQ(settings.model.max_seq_len, 64);
  EXPECT_EQ(settings.tuning.lora.r, 4);
  EXPECT_EQ(settings.seed, 5);
  EXPECT_EQ(resolved.value("train.batch_size").origin, "environment TRAIN_BATCH_SIZE");
}

TEST(TrainSettings, VariablesWithNamesOfTheirOwnAreNotIgnored) {
  TrainSettings settings;
  const config::Resolved resolved = resolve_train(settings, {.environment = {{"NUM_GPUS", "2"}}});
  ASSERT_FALSE(resolved.notices().empty());
  EXPECT_EQ(resolved.notices().back(),
            "environment NUM_GPUS: num_gpus has no effect: --nproc says how many ranks there are");
  EXPECT_THROW(resolve_train(settings, {.environment = {{"DEEPSPEED_CONFIG", "z2.json"}}}),
               ConfigError);
}

TEST(TrainSettings, OtherProgramsWordsMeanTheSame) {
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

TEST(TrainSettings, CombinationsAreChecked) {
  EXPECT_EQ(
      fate("data.split.val_ratio=0.2").find("data.split: the shares must sum to 1, found 1.1"), 0u);
  EXPECT_EQ(fate("train.greater_is_better=true").find("train.greater_is_better is true"), 0u);
  // A share that can not be read is said alone: what it does to the sum is not known.
  EXPECT_EQ(fate("data.split.val_ratio=many").find("sum to 1"), std::string::npos);
}

// What a run lacks, from a folder of its own.
class TrainInputs : public testing::Test {
 protected:
  TrainInputs() : before_(std::filesystem::current_path()) {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "convoy-settings-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    std::filesystem::current_path(folder_);
  }
  ~TrainInputs() override {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(folder_);
  }

  static std::string error_of(const std::string& yaml) {
    write_file_atomic("run.yaml", yaml);
    TrainSettings settings;
    try {
      resolve_train(settings, {.file = "run.yaml"}, Wanted::TrainInputs);
      return "";
    } catch (const ConfigError& error) {
      return error.sentence();
    }
  }

  std::filesystem::path before_;
  std::filesystem::path folder_;
};

TEST_F(TrainInputs, WhatIsMissingIsSaidWithEverythingElse) {
  EXPECT_EQ(error_of("model: {name: m}\ndata: {train_path: rows.jsonl}\n"), "");
  EXPECT_EQ(error_of("train: {batch_sise: 2, epochs: none}\n"),
            "run.yaml:1: unknown key `train.batch_sise`, did you mean `train.batch_size`?\n"
            "run.yaml:1: train.epochs: wanted a number, found \"none\"\n"
            "model.name is not set: a model folder or a hub id is wanted (model.name=PATH)\n"
            "data.train_path is not set: a file of training rows is wanted "
            "(data.train_path=rows.jsonl; the default places of SFT-Play hold none: "
            "data/processed/train.jsonl, data/processed/val.jsonl, data/processed/test.jsonl)\n"
            "4 errors");
  // In a file that can not be read nothing is missed.
  EXPECT_EQ(error_of("model: [\n").find("not set"), std::string::npos);
}

TEST_F(TrainInputs, RowsInADefaultPlaceAreNamedAndNotTaken) {
  write_file_atomic("data/processed/train.jsonl", "{}\n");
  write_file_atomic("data/processed/test.jsonl", "{}\n");
  EXPECT_EQ(error_of("model: {name: m}\n"),
            "data.train_path is not set: a file of training rows is wanted (the default place of "
            "SFT-Play holds rows: data.train_path=data/processed/train.jsonl "
            "data.test_path=data/processed/test.jsonl)");
}

TEST(TrainSettings, EveryPresetResolvesWithoutNotice) {
  int num_presets = 0;
  const char* source = std::getenv("CONVOY_SOURCE_DIR");
  ASSERT_NE(source, nullptr);
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(source) / "presets")) {
    if (!entry.is_regular_file()) continue;
    const std::string name = entry.path().stem().string();
    const std::string text = read_file(entry.path());
    if (text.find("task: process") != std::string::npos) continue;  // of another command
    TrainSettings settings;
    const config::Resolved resolved =
        resolve_train(settings, {.presets = {{name, text}}, .preset = name});
    EXPECT_TRUE(resolved.notices().empty()) << name;
    ++num_presets;
  }
  EXPECT_GE(num_presets, 3);
}

// Values keep the types that YAML gives them, through the file that a run writes too.
TEST(TrainSettings, VariablesOfTheTemplateKeepTheirTypes) {
  const std::filesystem::path file = std::filesystem::temp_directory_path() /
                                     ("convoy-kwargs-" + std::to_string(getpid()) + ".yaml");
  write_file_atomic(file,
                    "data:\n  template_kwargs:\n    enable_thinking: false\n    lang: \"no\"\n"
                    "    depth: 3\n    ratio: 0.5\n    word: a1\n    none: null\n"
                    "    documents:\n      - {title: \"A \\\"b\\\" \\n\", text: x}\n");
  TrainSettings settings;
  const config::Resolved resolved = resolve_train(settings, {.file = file});
  EXPECT_EQ(settings.data.template_kwargs.json,
            R"({"enable_thinking":false,"lang":"no","depth":3,"ratio":0.5,"word":"a1","none":null,)"
            R"("documents":[{"title":"A \"b\" \n","text":"x"}]})");
  write_file_atomic(file, resolved.yaml());
  TrainSettings again;
  resolve_train(again, {.file = file});
  EXPECT_EQ(again.data.template_kwargs, settings.data.template_kwargs);
  std::filesystem::remove(file);
  TrainSettings overridden;
  resolve_train(overridden, {.overrides = {"data.template_kwargs.enable_thinking=false"}});
  EXPECT_EQ(overridden.data.template_kwargs.json, R"({"enable_thinking":false})");
}

TEST(TrainSettings, VariablesThatAreNotTheUsersAreRefused) {
  for (const char* wrong : {"{messages: []}", "{add_generation_prompt: true}", "{tools: 1}",
                            "{documents: [text]}", "thinking", "[1]"}) {
    TrainSettings settings;
    EXPECT_THROW(
        resolve_train(settings, {.overrides = {std::string("data.template_kwargs=") + wrong}}),
        ConfigError)
        << wrong;
  }
}

TEST(TrainSettings, WrittenFileReadsBackTheSame) {
  TrainSettings settings;
  const config::Resolved first =
      resolve_train(settings, {.overrides = {"tuning.lora.rank_pattern={a: 3}",
                                             "generation.stop=[\"\\n\", x]", "run_name=1e5"}});
  const std::filesystem::path file = std::filesystem::temp_directory_path() /
                                     ("convoy-settings-" + std::to_string(getpid()) + ".yaml");
  write_file_atomic(file, first.yaml());
  TrainSettings again;
  const config::Resolved second = resolve_train(again, {.file = file});
  std::filesystem::remove(file);
  EXPECT_EQ(second.yaml(), first.yaml());
  EXPECT_EQ(again.generation.stop.names, (std::vector<std::string>{"\n", "x"}));
  EXPECT_TRUE(second.notices().empty());
}

TEST(TrainSettings, ClassifyWantsItsOwnSettingsAndOnlyThere) {
  EXPECT_EQ(with({"task=classify", "classify.mode=average"}).classify.pooling, "average");
  EXPECT_EQ(with({"task=causal-lm"}).task, "sft");
  EXPECT_EQ(fate("task=classify"), "");
  EXPECT_NE(
      fate("classify.val_ratio=0.2").find("classify.val_ratio is of task classify, found task sft"),
      std::string::npos);
  EXPECT_EQ(fate("classify.val_ratio=0.1"), "") << "a run's own configuration spells out defaults";
  EXPECT_NE(fate("train.metric_for_best_model=accuracy").find("is of task classify"),
            std::string::npos);
  EXPECT_TRUE(
      with({"task=classify", "train.metric_for_best_model=accuracy"}).train.larger_is_better());
  const auto refused = [](const std::vector<std::string>& assignments) {
    try {
      with(assignments);
      return std::string();
    } catch (const ConfigError& error) {
      return error.sentence();
    }
  };
  EXPECT_NE(refused({"task=classify", "classify.kernel_sizes=[3, 3]"})
                .find("one for each of 3 widths, found 2"),
            std::string::npos);
  EXPECT_NE(
      refused({"task=classify", "classify.kernel_sizes=[3, 4, 3]"}).find("odd sizes, found 4"),
      std::string::npos);
  EXPECT_NE(refused({"task=classify", "classify.freeze_encoder=true"}).find("never learn"),
            std::string::npos);
  EXPECT_TRUE(with({"task=classify", "classify.encoder_path=a"}).classify.freezes_encoder());
  TrainSettings settings;
  try {
    resolve_train(settings, {.overrides = {"task=classify"}}, Wanted::TrainInputs);
    ADD_FAILURE() << "without data";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.place().key, "classify.data_dir");
  }
}

}  // namespace
}  // namespace convoy::settings
