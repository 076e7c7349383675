// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/resolve_train.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/config/describe.h"
#include "convoy/core/config/document.h"
#include "convoy/core/config/value.h"
#include "convoy/core/settings/assigned_settings_test.h"

namespace convoy::settings {
namespace {

using testing::fate;
using testing::with;

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

TEST(TrainSettings, StepsAsTransformersWritesNoneAndBooleansOfYaml) {
  EXPECT_EQ(with({"train.steps=-1"}).train.steps, 0);
  EXPECT_EQ(with({"train.max_steps=-1"}).train.steps, 0);
  EXPECT_NE(fate("train.max_steps=-2").find("at least 0"), std::string::npos);
  for (const char* const text : {"train.save_steps=-1", "train.eval_steps=-1"})
    EXPECT_NE(fate(text).find("write 0 for the end of each epoch"), std::string::npos) << text;
  EXPECT_NE(fate("train.packing=on").find("write true"), std::string::npos);
  EXPECT_NE(fate("train.packing=1").find("write true"), std::string::npos);
  EXPECT_NE(fate("train.gradient_checkpointing=off").find("write false"), std::string::npos);
}

TEST(TrainSettings, QuantizationThatContradictsItselfIsRefused) {
  for (const std::vector<std::string>& assignments : std::vector<std::vector<std::string>>{
           {"tuning.mode=qlora", "tuning.quantization.type=none"},
           {"tuning.mode=full", "tuning.quantization.type=nf4"},
           {"tuning.mode=full", "tuning.load_in_8bit=true"},
           {"tuning.load_in_4bit=true", "tuning.load_in_8bit=true"},
           {"tuning.load_in_4bit=true", "tuning.quantization.type=int8"},
           {"tuning.load_in_8bit=true", "tuning.quantization.type=nf4"},
           {"tuning.quantization.type=nf4", "tuning.quantization.block_size=48"}})
    EXPECT_THROW(with(assignments), ConfigError) << assignments.back();
}

TEST(TrainSettings, DataSetsOfAMix) {
  const TrainSettings settings =
      with({"mode=cpt_mixed",
            "datasets=[{name: a, path: b, type: cpt, weight: 0.9}, {path: c, type: chat}]"});
  EXPECT_EQ(settings.task, "mixed");
  const std::vector<MixedDataset> datasets = mixed_datasets(settings.datasets);
  ASSERT_EQ(datasets.size(), 2u);
  EXPECT_EQ(datasets[0].task, "pretrain");
  EXPECT_EQ(datasets[0].weight, 0.9);
  EXPECT_EQ(datasets[1].name, "dataset-2");
  EXPECT_EQ(datasets[1].task, "sft");
  EXPECT_EQ(datasets[1].weight, 1);
  const std::pair<const char*, const char*> bad[] = {
      {"[{path: b, type: cpt, wieght: 1}]", "did you mean `weight`"},
      {"[{path: b, type: cpt, weight: 0}]", "datasets[0].weight"},
      {"[{type: cpt}]", "datasets[0].path"},
      {"[{path: b, type: text}]", "wanted cpt"},
      {"[{name: a, path: b, type: cpt}, {name: a, path: c, type: chat}]", "datasets[1].name"},
      {"[{path: b, type: cpt, val_path: c, val_ratio: 0.1}]", "one of val_path and val_ratio"},
      {"[b]", "pairs"}};
  for (const auto& [list, reason] : bad)
    EXPECT_THROW(
        try {
          with({"task=mixed", fmt::format("datasets={}", list)});
        } catch (const ConfigError& error) {
          EXPECT_NE(error.sentence().find(reason), std::string::npos) << error.sentence();
          throw;
        },
        ConfigError)
        << list;
  EXPECT_NE(fate("datasets=[{path: b, type: cpt}]").find("apply only to task mixed"),
            std::string::npos);
}

TEST(TrainSettings, AnErrorOfADataSetNamesItsLine) {
  const std::string file = ::testing::TempDir() + "convoy-mix-lines.yaml";
  const auto line_of = [&](const std::string& text) -> int64_t {
    std::ofstream(file) << "task: mixed\ndatasets:\n" << text;
    TrainSettings settings;
    try {
      resolve_train(settings, {.file = file});
    } catch (const ConfigError& error) {
      return error.location().line;
    }
    return 0;
  };
  EXPECT_EQ(line_of("  - {path: a, type: cpt}\n  - path: b\n    type: cpt\n    weight: 0\n"), 6);
  EXPECT_EQ(line_of("  - {path: a, type: cpt}\n  - {type: cpt}\n"), 4);
  EXPECT_EQ(line_of("  - {path: a, type: cpt}\n  - {path: b, type: cpt}\n"), 0);
  std::remove(file.c_str());
}

TEST(TrainSettings, RowsAreHeldOutForEvaluationsAlone) {
  TrainSettings none;
  resolve_train(none, {.overrides = {"train.eval_strategy=no", "train.final_eval=false"}});
  EXPECT_EQ(none.data.split.val_ratio.value, 0.0);
  TrainSettings asked;
  resolve_train(asked, {.overrides = {"train.eval_strategy=no", "train.final_eval=false",
                                      "data.split.val_ratio=0.2"}});
  EXPECT_EQ(asked.data.split.val_ratio.value, 0.2);
  TrainSettings at_the_end;
  resolve_train(at_the_end, {.overrides = {"train.eval_strategy=no"}});
  EXPECT_TRUE(at_the_end.data.split.val_ratio.is_auto());
}

TEST(TrainSettings, CombinationsAreChecked) {
  for (const char* other : {"data.split.val_ratio=0.2", "data.split.test_ratio=0.2"}) try {
      with({"data.split.train_ratio=0.9", other});
      ADD_FAILURE() << other;
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.sentence().find("data.split: the shares must sum to 1, found 1.1"), 0u)
          << error.sentence();
    }
  EXPECT_EQ(fate("data.split.val_ratio=0.2"), "") << "training takes what is left";
  EXPECT_EQ(fate("train.greater_is_better=true").find("train.greater_is_better is true"), 0u);
  // A share that cannot be read is said alone: what it does to the sum is not known.
  EXPECT_EQ(fate("data.split.val_ratio=many").find("sum to 1"), std::string::npos);
}

TEST(TrainSettings, SettingsOfOtherStrategiesAreRefused) {
  for (const char* const one :
       {"offload=optimizer", "shard_over=node", "prefetch_blocks=3", "reshard_after_forward=false"})
    try {
      with({"parallel.strategy=ddp", std::string("parallel.") + one});
      ADD_FAILURE() << one;
    } catch (const ConfigError& error) {
      EXPECT_NE(error.sentence().find("and the strategy is ddp"), std::string::npos)
          << error.sentence();
    }
  EXPECT_EQ(
      with({"parallel.strategy=zero3", "parallel.prefetch_blocks=3"}).parallel.prefetch_blocks, 3);
}

TEST(TrainSettings, AnAdapterToGoOnWithIsNotForAllWeights) {
  try {
    with({"tuning.mode=full", "tuning.lora.adapter=adapter"});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.location().key, "tuning.lora.adapter");
  }
  EXPECT_EQ(with({"tuning.lora.adapter=adapter"}).tuning.lora.adapter, "adapter");
}

TEST(TrainSettings, TheTextModelAloneIsWrittenOfAModelTrainedWhole) {
  try {
    with({"tuning.mode=lora", "train.export_text_only=true"});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.location().key, "train.export_text_only");
  }
  EXPECT_TRUE(with({"tuning.mode=full", "train.export_text_only=true"}).train.export_text_only);
}

TEST(TrainSettings, BestMetricOfPairsIsOneOfPairs) {
  for (const std::string name : {"rewards/margins", "eval_rewards/margins", "margins"}) {
    const TrainSettings settings = with({"task=dpo", "train.metric_for_best_model=" + name});
    EXPECT_EQ(settings.train.best_metric_name(), "rewards/margins");
    EXPECT_TRUE(settings.train.larger_is_better());
    EXPECT_THROW(with({"train.metric_for_best_model=" + name}), ConfigError);
  }
}

TEST(TrainSettings, BestMetricIsOneThatEvaluationsProduce) {
  const std::string generating = "train.predict_with_generate=true";
  for (const std::string name : {"rougeL", "eval_rougeL", "rougel", "EVAL_ROUGEL"})
    EXPECT_EQ(with({generating, "train.metric_for_best_model=" + name}).train.best_metric_name(),
              "rougeL");
  EXPECT_TRUE(with({generating, "train.metric_for_best_model=sari"}).train.larger_is_better());
  EXPECT_FALSE(with({"train.metric_for_best_model=perplexity"}).train.larger_is_better());
  for (const std::string& name : text_metric_names()) {
    if (name == "schema_compliance") continue;
    EXPECT_NO_THROW(with({generating, "train.metric_for_best_model=" + name})) << name;
  }
  const auto refused = [&](std::vector<std::string> assignments) {
    assignments.push_back(generating);
    try {
      with(assignments);
      return std::string();
    } catch (const ConfigError& error) {
      return error.sentence();
    }
  };
  EXPECT_NE(refused({"train.metric_for_best_model=sari", "train.greater_is_better=false"})
                .find("a larger eval_sari is better"),
            std::string::npos);
  EXPECT_EQ(refused({"train.metric_for_best_model=sari", "train.greater_is_better=true"}), "");
  EXPECT_NE(refused({"train.metric_for_best_model=sari", "train.eval_strategy=no",
                     "train.final_eval=false"})
                .find("there are no evaluations"),
            std::string::npos);
  EXPECT_NE(refused({"train.metric_for_best_model=schema_compliance"}).find("no schema"),
            std::string::npos);
  EXPECT_NE(refused({"task=pretrain"}).find("rows of task pretrain have no answers"),
            std::string::npos);
  EXPECT_NE(refused({"train.eval_metrics=[rougeL, bleu]"}).find("bleu"), std::string::npos);
  EXPECT_EQ(with({"train.eval_metrics=rougeL,sari"}).train.generating_evaluation.eval_metrics,
            (std::vector<std::string>{"rougeL", "sari"}));
  EXPECT_EQ(with({generating, "train.eval_metrics=[sari]", "train.metric_for_best_model=rouge2"})
                .train.generating_evaluation.measured_metrics("rouge2"),
            (std::vector<std::string>{"sari", "rouge2"}));
}

std::vector<std::string> warnings_of(TrainSettings& settings,
                                     const std::vector<std::string>& assignments) {
  return resolve_train(settings, {.overrides = assignments}).warnings();
}

TEST(TrainSettings, WithoutAnswersTheLossDecidesWhichCheckpointIsBest) {
  for (const std::string& name : text_metric_names()) {
    TrainSettings settings;
    const std::vector<std::string> warnings = warnings_of(
        settings, {"train.metric_for_best_model=" + name, "train.greater_is_better=true"});
    EXPECT_EQ(settings.train.metric_for_best_model, "eval_loss");
    EXPECT_FALSE(settings.train.larger_is_better());
    EXPECT_EQ(settings.train.greater_is_better, "auto");
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_NE(warnings[0].find("command line: train.metric_for_best_model is eval_" + name),
              std::string::npos)
        << warnings[0];
    EXPECT_NE(warnings[0].find("train.predict_with_generate=true"), std::string::npos);
  }
  TrainSettings settings;
  EXPECT_TRUE(warnings_of(settings, {"train.metric_for_best_model=perplexity"}).empty());
  EXPECT_EQ(settings.train.metric_for_best_model, "eval_perplexity");
}

TEST(TrainSettings, AnEarlyStopWithoutEvaluationsIsWarnedOf) {
  TrainSettings settings;
  const auto warnings =
      warnings_of(settings, {"train.early_stopping_patience=2", "train.eval_strategy=no"});
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("train.early_stopping_patience is 2"), std::string::npos);
  EXPECT_TRUE(
      warnings_of(settings, {"train.early_stopping_patience=2", "train.eval_strategy=steps"})
          .empty());
}

TEST(TrainSettings, ReportsThatAreNotHereBecomeTensorBoards) {
  using Names = std::vector<std::string>;
  const auto reports = [](const std::string& value, size_t num_warnings) {
    TrainSettings settings;
    const Names warnings = warnings_of(settings, {"train.report_to=" + value});
    EXPECT_EQ(warnings.size(), num_warnings) << value;
    for (const std::string& warning : warnings)
      EXPECT_NE(warning.find("there is no mlflow"), std::string::npos) << warning;
    return settings.logging.backend.names;
  };
  EXPECT_EQ(reports("mlflow", 1), Names{"tensorboard"});
  EXPECT_EQ(reports("[mlflow, tensorboard]", 1), Names{"tensorboard"});
  EXPECT_EQ(reports("[mlflow, wandb]", 1), Names{"wandb"});
  EXPECT_EQ(reports("[wandb, trackio]", 0), (Names{"wandb", "trackio"}));
  EXPECT_EQ(reports("tensorboard", 0), Names{"tensorboard"});
  EXPECT_EQ(reports("none", 0), Names{"none"});
  EXPECT_NE(fate("logging.backend=tensorbord").find("did you mean `tensorboard`"),
            std::string::npos)
      << fate("logging.backend=tensorbord");
  EXPECT_NE(fate("logging.backend=wandv").find("did you mean `wandb`"), std::string::npos);
}

TEST(TrainSettings, AllReportsAreThoseThatAreHere) {
  TrainSettings settings;
  const auto warnings = warnings_of(settings, {"train.report_to=all"});
  EXPECT_EQ(settings.logging.backend.names,
            (std::vector<std::string>{"tensorboard", "trackio", "wandb"}));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("tensorboard, trackio, wandb, whether"), std::string::npos)
      << warnings[0];
}

// Tests a run's missing inputs, in a folder of its own.
class TrainInputs : public ::testing::Test {
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
            "model.name is not set: a model folder or a hub id is needed (model.name=PATH)\n"
            "data.train_path is not set: a file of training rows is needed "
            "(data.train_path=rows.jsonl; SFT-Play's default paths have no rows: "
            "data/processed/train.jsonl, data/processed/val.jsonl, data/processed/test.jsonl)\n"
            "4 errors");
  // An unknown section: its keys are reported, not the section.
  const std::string elsewhere =
      error_of("model: {name: m}\ndata: {train_path: rows.jsonl}\neval:\n  every: 5\n  zzz: 1\n");
  EXPECT_EQ(elsewhere,
            "run.yaml:4: unknown key `eval.every`, did you mean `train.eval_steps`?\n"
            "run.yaml:5: unknown key `eval.zzz` (`convoy config schema` lists the keys)\n2 errors");
  // A file that cannot be parsed gets no error about keys that are not set.
  EXPECT_EQ(error_of("model: [\n").find("not set"), std::string::npos);
}

TEST_F(TrainInputs, RowsInADefaultPlaceAreNamedAndNotTaken) {
  write_file_atomic("data/processed/train.jsonl", "{}\n");
  write_file_atomic("data/processed/test.jsonl", "{}\n");
  EXPECT_EQ(error_of("model: {name: m}\n"),
            "data.train_path is not set: a file of training rows is needed (rows were found at "
            "SFT-Play's default path: data.train_path=data/processed/train.jsonl "
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
    if (text.find("task: process") != std::string::npos) continue;  // configures another command
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

TEST(TrainSettings, ATaskOfPreferencesRefusesWhatItsLossDoesNotRead) {
  const auto error_of = [](const std::vector<std::string>& assignments) {
    try {
      with(assignments);
      return std::string();
    } catch (const ConfigError& error) {
      return error.sentence();
    }
  };
  EXPECT_EQ(error_of({"preference.loss=sigmoid"}), "");  // as in the run folders of 0.2.0
  EXPECT_EQ(error_of({"task=dpo", "preference.loss=robust", "preference.label_smoothing=0.1"}), "");
  EXPECT_EQ(error_of({"task=orpo", "preference.beta=0.5"}), "");
  EXPECT_EQ(error_of({"task=kto", "preference.undesirable_weight=1.5", "preference.reference=other",
                      "data.empty_answers=learn", "data.schema=unpaired_preference",
                      "train.metric_for_best_model=eval_rewards/margins"}),
            "");
  EXPECT_EQ(error_of({"task=dpo", "preference.loss=simpo", "preference.target_margin=1.5"}), "");
  EXPECT_EQ(error_of({"task=kto", "preference.loss=kto"}), "");
  EXPECT_EQ(error_of({"task=kto", "train.batch_size=auto"}), "");
  EXPECT_EQ(error_of({"task=kto", "train.auto_find_batch_size=true"}), "");
  for (const char* const task : {"task=dpo", "task=kto", "task=orpo"})
    EXPECT_EQ(error_of({task, "preference.loss=auto"}), "") << task;
  EXPECT_EQ(error_of({"task=kto", "preference.loss=apo_zero_unpaired", "train.batch_size=auto"}),
            "");
  EXPECT_TRUE(with({"task=kto"}).estimates_divergence());
  EXPECT_FALSE(with({"task=kto", "preference.loss=apo_zero_unpaired"}).estimates_divergence());
  EXPECT_FALSE(with({"task=dpo"}).estimates_divergence());
  EXPECT_TRUE(with({"task=dpo", "train.metric_for_best_model=rewards/accuracies"})
                  .train.larger_is_better());
  const std::vector<std::pair<std::vector<std::string>, const char*>> refused = {
      {{"preference.beta=0.5"},
       "preference.beta applies only to task dpo, orpo, kto, found task sft"},
      {{"task=dpo", "preference.desirable_weight=2"}, "loss sigmoid does not read it"},
      {{"task=kto", "preference.loss=ipo"}, "preference.loss: ipo is no loss of task kto"},
      {{"task=dpo", "preference.loss=kto"}, "preference.loss: kto is no loss of task dpo"},
      {{"task=kto", "preference.loss=sigmoid"},
       "preference.loss: sigmoid is no loss of task kto (one of kto, apo_zero_unpaired)"},
      {{"task=orpo", "preference.loss=sigmoid"},
       "preference.loss: sigmoid is no loss of task orpo (task orpo has one loss"},
      {{"task=kto", "preference.desirable_weight=0", "preference.undesirable_weight=0"},
       "both weights of answers are 0"},
      {{"task=kto", "data.supervise=all"}, "compares whole completions"},
      {{"task=kto", "data.schema=messages"}, "reads preferences, found messages"},
      {{"task=kto", "train.metric_for_best_model=eval_accuracy"},
       "eval_accuracy applies only to task classify, dpo, orpo"},
      {{"task=orpo", "preference.loss=ipo"}, "preference.loss: ipo is no loss of task orpo"},
      {{"preference.loss=hinge"}, "preference.loss applies only to task dpo, orpo, kto"},
      {{"task=dpo", "preference.loss=hinge", "preference.label_smoothing=0.1"},
       "label_smoothing: loss hinge does not read it"},
      {{"task=dpo", "preference.target_margin=1"}, "target_margin: loss sigmoid does not read it"},
      {{"task=dpo", "preference.loss=simpo", "preference.reference=other"},
       "reference: loss simpo does not read it"},
      {{"task=dpo", "preference.reference=start"}, "no adapter is continued"},
      {{"task=dpo", "data.supervise=all"}, "compares whole completions"},
      {{"task=dpo", "data.truncation=split"}, "are not split"},
      {{"task=dpo", "data.schema=text"}, "reads preferences, found text"},
      {{"data.schema=preference"}, "schema preference applies only to task dpo, orpo"},
      {{"task=dpo", "train.predict_with_generate=true"}, "have no answers"},
      {{"task=dppo"}, "task must be one of"}};
  for (const auto& [assignments, mention] : refused)
    EXPECT_NE(error_of(assignments).find(mention), std::string::npos)
        << mention << ": " << error_of(assignments);
  constexpr auto kStart = "preference.reference=start";
  EXPECT_EQ(error_of({"task=orpo", kStart}),
            "preference.reference: task orpo does not read it (remove it)");
  EXPECT_EQ(error_of({"task=dpo", "preference.loss=simpo", kStart}),
            "preference.reference: loss simpo does not read it (remove it)");
}

TEST(TrainSettings, APreferenceWrittenWithItsDefaultThatNothingReadsIsWarnedOf) {
  const auto warned = [](const std::vector<std::string>& assignments) {
    TrainSettings settings;
    return fmt::format("{}", fmt::join(warnings_of(settings, assignments), "; "));
  };
  constexpr auto kMargin = "preference.target_margin=0.5";
  EXPECT_EQ(warned({"task=dpo", kMargin}),
            "command line: preference.target_margin has no effect: loss sigmoid does not read it");
  EXPECT_EQ(warned({"task=kto", kMargin}),
            "command line: preference.target_margin has no effect: task kto does not read it");
  EXPECT_EQ(warned({"preference.beta=0.1"}),
            "command line: preference.beta has no effect: task sft does not read it");
  EXPECT_EQ(warned({"task=dpo", "preference.loss=simpo", kMargin, "preference.beta=0.1"}), "");
  EXPECT_EQ(warned({"task=dpo"}), "");
}

// The default of preference.loss is `auto`, so the file that a run of any task writes reads back.
TEST(TrainSettings, TheFileOfARunOfPreferencesReadsBackTheSame) {
  const std::filesystem::path file = std::filesystem::temp_directory_path() /
                                     ("convoy-preferences-" + std::to_string(getpid()) + ".yaml");
  for (const char* const task : {"task=dpo", "task=kto", "task=orpo"}) {
    TrainSettings settings;
    write_file_atomic(file, resolve_train(settings, {.overrides = {task}}).yaml());
    TrainSettings again;
    EXPECT_TRUE(resolve_train(again, {.file = file}).warnings().empty()) << task;
    EXPECT_EQ(again.preference.loss, settings.preference.loss);
  }
  std::filesystem::remove(file);
  EXPECT_EQ(pair_loss_named(with({"task=dpo"}).preference.loss).name, "sigmoid");
  EXPECT_EQ(unpaired_loss_named(with({"task=kto"}).preference.loss).name, "kto");
  EXPECT_THROW(unpaired_loss_named("sigmoid"), ConfigError);
}

// The names may stand at the top, in `train` and in `preference`.
TEST(TrainSettings, NamesOfOtherTrainersAreAnsweredInEverySection) {
  const std::vector<std::pair<std::string, std::string>> answers = {
      {"loss_type=ipo", "`preference.loss`"},
      {"loss_type=dpo", "preference.loss: sigmoid"},
      {"loss_type=sft", "preference.sft_weight"},
      {"pref_loss=orpo", "task: orpo"},
      {"simpo_gamma=0.5", "preference.target_margin"},
      {"gamma=0.5", "preference.target_margin"},
      {"cpo_alpha=1", "preference.sft_weight"},
      {"rpo_alpha=1", "preference.sft_weight"},
      {"pref_ftx=1", "preference.sft_weight"},
      {"pref_beta=0.1", "preference.beta"},
      {"orpo_alpha=0.1", "preference.beta"},
      {"ref_model=m", "preference.reference"},
      {"ref_model_init_kwargs={dtype: bf16}", "preference.reference"},
      {"ref_model_adapters=a", "preference.reference"},
      {"dpo_label_smoothing=0.1", "preference.label_smoothing"},
      {"label_smoothing_factor=0.1", "preference.label_smoothing"},
      {"kto_desirable_weight=1", "preference.desirable_weight"},
      {"kto_chosen_weight=1", "preference.desirable_weight"},
      {"kto_rejected_weight=1", "preference.undesirable_weight"},
      {"dpo_norm_loss=true", "preference.length_normalised"},
      {"disable_dropout=true", "tuning.lora.dropout: 0"},
      {"loss_weights=[1, 0.3]", "preference.sft_weight"},
      {"max_length=512", "model.max_seq_len"},
      {"max_prompt_length=512", "model.max_seq_len and data.truncation"},
      {"max_completion_length=512", "model.max_seq_len and data.truncation"},
      {"max_completion_length=512", "rejection.max_tokens"},
      {"truncation_mode=keep_end", "data.truncation"},
      {"ld_alpha=0.5", "preference.length_normalised: true"},
      {"f_divergence_type=js_divergence", "reverse KL"},
      {"f_alpha_divergence_coef=0.5", "reverse KL"},
      {"sync_ref_model=true", "train in rounds"},
      {"ref_model_mixup_alpha=0.5", "train in rounds"},
      {"ref_model_sync_steps=64", "train in rounds"},
      {"reference_free=true", "preference.loss: simpo"},
      {"use_weighting=true", "leave it out"},
      {"dpo_use_weighting=true", "leave it out"},
      {"discopop_tau=0.05", "another preference.loss"},
      {"gamma_beta_ratio=0.5", "preference.target_margin: this ratio times preference.beta"},
      {"kto_tag=label", "the column `label` or `kto_tag` of each row"},
      {"generate_during_eval=true", "`convoy generate`"},
      {"train_sampling_strategy=sequential", "data.shuffle: false"},
      {"precompute_ref_log_probs=true", "before the first step"},
      {"precompute_ref_batch_size=8", "train.eval_batch_size"},
      {"padding_free=false", "without padding"}};
  for (const std::string section : {"", "train.", "preference."})
    for (const auto& [key, answer] : answers)
      EXPECT_NE(fate(section + key).find(answer), std::string::npos)
          << section << key << ": " << fate(section + key);
  for (const char* const key :
       {"disable_dropout=false", "sync_ref_model=false", "f_divergence_type=reverse_kl",
        "use_weighting=False", "generate_during_eval=false", "padding_free=true",
        "reference_free=false", "label_smoothing_factor=0.0"})
    for (const std::string section : {"", "train.", "preference."})
      EXPECT_EQ(fate(section + key), "") << section << key;
}

TEST(TrainSettings, KeysOfOtherTrainersOfPreferencesAreHinted) {
  for (const auto& [key, ours] : std::vector<std::pair<std::string, std::string>>{
           {"train.beta=0.1", "preference.beta"},
           {"train.loss_type=ipo", "preference.loss"},
           {"rl=dpo", "task"},
           {"pref_beta=0.1", "preference.beta"},
           {"train.rpo_alpha=1", "preference.sft_weight"},
           {"simpo_gamma=0.5", "preference.target_margin"},
           {"train.desirable_weight=2", "preference.desirable_weight"},
           {"kto_rejected_weight=2", "preference.undesirable_weight"},
           {"rl=simpo", "task: dpo and preference.loss: simpo"},
           {"task=ipo", "task: dpo and preference.loss: ipo"},
           {"preference.loss=orpo", "task: orpo"},
           {"preference.loss=dpo", "preference.loss: sigmoid"},
           {"loss_type=slic", "preference.loss: hinge"},
           {"task=dapo", "task: grpo and policy.loss"},
           {"task=ppo", "task: grpo"},
           {"pref_loss=kto_pair", "task: kto"},
           {"task=reward", "task: dpo learns from the same rows"},
           {"task=rm", "task: dpo learns from the same rows"},
           {"stage=rm", "no reward model is trained here"},
           {"rlhf_type=cpo", "preference.loss: simpo and preference.sft_weight"},
           {"task=cpo", "preference.loss: simpo and preference.sft_weight"},
           {"type=chatml.intel", "rows are recognised by their columns"},
           {"data.schema=chatml.argilla", "rows are recognised by their columns"},
           {"data.format=llama3.ultra", "rows are recognised by their columns"},
           {"data.type=chat_template.default", "rows are recognised by their columns"},
           {"preference.loss=sigmoid_norm", "preference.length_normalised: true"},
           {"train.num_generations=8", "rejection.samples"},
           {"train.num_generations=8", "of tasks grpo and distill it is rollout.samples"},
           {"beta=0.04", "of task grpo it is policy.kl_beta"},
           {"train.loss_type=dr_grpo", "of task grpo it is policy.loss"},
           {"epsilon_high=0.28", "policy.clip_high"},
           {"vllm_importance_sampling_clip_max=2", "policy.importance_cap"},
           {"train.num_iterations=2", "policy.inner_steps"},
           {"reward_funcs=[f]", "reward"},
           {"rejection.max_new_tokens=64", "rejection.max_tokens"}})
    EXPECT_NE(fate(key).find(ours), std::string::npos) << key << ": " << fate(key);
  EXPECT_NE(fate("train.precompute_ref_log_probs=true").find("before the first step"),
            std::string::npos);
}

TEST(TrainSettings, AListOfDataSetsOfAnotherTrainerIsPointedToTheFile) {
  for (const char* const task : {"task=dpo", "task=kto", "task=orpo"}) try {
      with({task, "datasets=[{path: pairs.jsonl, type: chatml.intel}]"});
      ADD_FAILURE() << task;
    } catch (const ConfigError& error) {
      EXPECT_NE(error.sentence().find("write the file as data.train_path, without a type"),
                std::string::npos)
          << error.sentence();
      EXPECT_EQ(error.sentence().find("type: cpt"), std::string::npos) << error.sentence();
    }
}

TEST(TrainSettings, ClassifyWantsItsOwnSettingsAndOnlyThere) {
  EXPECT_EQ(with({"task=classify", "classify.mode=average"}).classify.pooling, "average");
  EXPECT_EQ(with({"task=causal-lm"}).task, "sft");
  EXPECT_EQ(fate("task=classify"), "");
  EXPECT_NE(fate("classify.val_ratio=0.2")
                .find("classify.val_ratio applies only to task classify, found task sft"),
            std::string::npos);
  EXPECT_EQ(fate("classify.val_ratio=0.1"), "") << "a run's own configuration spells out defaults";
  EXPECT_NE(fate("train.metric_for_best_model=accuracy").find("applies only to task classify"),
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
    EXPECT_EQ(error.location().key, "classify.data_dir");
  }
}

}  // namespace
}  // namespace convoy::settings
