// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/process_flags.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/config/describe.h"
#include "convoy/core/config/flags.h"
#include "convoy/core/config/value.h"
#include "convoy/core/settings/resolve_process.h"
#include "tests/files/temporary_folder.h"

namespace convoy::settings {
namespace {

// Settings from `sources`, with the flags `words` over them.
config::Resolved with_flags(ProcessSettings& settings, const config::Sources& sources,
                            const std::vector<std::string>& words) {
  ProcessFlagValues flags;
  flags.names = config::take_flags({process_flag_list(flags.settings)}, {}, words).given;
  return resolve_process(settings, sources, std::move(flags));
}

std::set<std::string> flag_names() {
  ProcessSettings settings;
  ProcessCommandFlags flags;
  std::set<std::string> names;
  for (const config::Section& list : {process_flag_list(settings), config::list_fields(flags)})
    for (const config::Field& field : list.fields) {
      EXPECT_TRUE(names.insert(field.name).second) << field.name;
      EXPECT_FALSE(field.help.empty()) << field.name;
      for (const std::string& alias : field.aliases)
        EXPECT_TRUE(names.insert(alias).second) << alias;
    }
  return names;
}

TEST(ProcessFlags, AreUniqueAndHaveAllOfTheGuide) {
  const std::set<std::string> names = flag_names();
  for (const char* flag :
       {"dataset",     "dataset_name",   "config",         "split",         "num_examples",
        "start_from",  "force_download", "max_iterations", "seed",          "max_tokens",
        "batch_size",  "output",         "world_size",     "num_nodes",     "node_rank",
        "master_addr", "master_port",    "low_memory",     "optimize_gpu",  "cleanup_delay",
        "no_warnings", "debug",          "list_datasets",  "dataset_info",  "model",
        "adapter",     "dtype",          "revision",       "problem_field", "solution_field",
        "answer_field"})
    EXPECT_TRUE(names.contains(flag)) << flag;
}

TEST(ProcessSettings, DefaultsAreWithinTheirBoundsAndThoseOfTheGuide) {
  ProcessSettings settings;
  const config::Node nowhere;
  config::for_each_field(
      config::list_fields(settings), "", [&](const std::string& path, const config::Field& field) {
        if (std::holds_alternative<std::string*>(field.value) && field.choices.empty()) return;
        EXPECT_NO_THROW(config::check_bounds(field, nowhere, path)) << path;
      });
  EXPECT_EQ(settings.seed, 42);
  EXPECT_EQ(settings.generate.max_tokens, 4096);
  EXPECT_EQ(settings.improve.max_iterations, 2);
  EXPECT_EQ(settings.output.path, "./data/final_data.json");
  EXPECT_EQ(settings.evaluate.weights.begin()->second, 0.4);
  EXPECT_EQ(settings.evaluate.threshold, 0.8);
}

// A flag beats the other sources even when its value is the default; the record names the origin of
// each value.
TEST(ProcessSettings, FlagsComeLast) {
  ProcessSettings settings;
  const config::Resolved resolved =
      with_flags(settings, {.overrides = {"seed=7", "generate.max_tokens=9", "generate.n=3"}},
                 {"--max-tokens", "4096", "--seed=0"});
  EXPECT_EQ(settings.generate.max_tokens, 4096);
  EXPECT_EQ(settings.seed, 0);
  EXPECT_EQ(settings.generate.n, 3);
  EXPECT_EQ(resolved.value("seed").origin, "decided: by a flag");
  EXPECT_EQ(resolved.value("generate.n").origin, "command line");
}

TEST(ProcessSettings, RefusesWhatCanNotBeTogether) {
  ProcessSettings settings;
  EXPECT_THROW(with_flags(settings, {}, {"--node-rank", "1"}), ConfigError);
  EXPECT_THROW(with_flags(settings, {}, {"--world-size", "0"}), ConfigError);
  EXPECT_THROW(with_flags(settings, {}, {"--max-iterations", "-1"}), ConfigError);
}

TEST(ProcessSettings, AConfigurationSaysByItsTaskWhoseItIs) {
  const std::map<std::string, std::string> presets = {{"rows", "task: process"},
                                                      {"tune", "task: sft"}};
  EXPECT_TRUE(is_process_config({.overrides = {"task=process"}}));
  EXPECT_TRUE(is_process_config({.presets = presets, .preset = "rows"}));
  EXPECT_FALSE(is_process_config({.presets = presets, .preset = "tune"}));
  EXPECT_FALSE(is_process_config({.overrides = {"seed=1"}}));
}

TEST(ProcessSettings, TheFileThatSaysItsTaskIsReadOnce) {
  const convoy::testing::TemporaryFolder folder;
  config::Sources sources{.file = folder / "rows.yaml"};
  write_file_atomic(sources.file, "task: process\nseed: 7\n");
  sources.files = config::read_files(sources);
  std::filesystem::remove(sources.file);
  EXPECT_TRUE(is_process_config(sources));
  ProcessSettings settings;
  const config::Resolved resolved = resolve_process(settings, sources);
  EXPECT_EQ(settings.seed, 7);
  EXPECT_EQ(resolved.value("seed").origin, sources.file.string() + ":2");
}

TEST(ProcessCommandFlags, SaysWhatHasNoEffect) {
  ProcessCommandFlags flags;
  EXPECT_TRUE(flags.notices(true).empty());
  flags.cleanup_delay = 0.0;  // 0 is a value
  flags.optimize_gpu = true;
  EXPECT_EQ(flags.notices(true).size(), 2u);
  flags.force_download = true;
  EXPECT_EQ(flags.notices(true).front().find("fetch"), std::string::npos);
  EXPECT_NE(flags.notices(false).front().find("convoy data fetch"), std::string::npos);
}

TEST(ProcessFlags, ASettingLeadsToItsFlag) {
  EXPECT_EQ(process_flag("generate.max_tokens"), "--max-tokens");
  EXPECT_EQ(process_flag("generate.n"), "--samples");
  EXPECT_EQ(process_flag("stages"), "--stages");
  EXPECT_EQ(process_flag("evaluate.weights"), "");
  EXPECT_EQ(process_flag("sampling.temperature"), "");
}

TEST(ProcessFlags, WeightsAreHeldInOneWay) {
  ProcessSettings settings;
  with_flags(settings, {}, {"--quantization", "nf4", "--double-quant"});
  EXPECT_EQ(settings.model.quantization, "nf4");
  EXPECT_TRUE(settings.model.double_quant);
  ProcessSettings rounded;
  with_flags(rounded, {}, {"--weights", "int4", "--activations", "int8"});
  EXPECT_EQ(rounded.engine.activations, "int8");
  for (const std::vector<std::string>& flags : {std::vector<std::string>{"--double-quant"},
                                                {"--quantization", "int8", "--double-quant"},
                                                {"--quantization", "nf4", "--weights", "int8"},
                                                {"--activations", "int8"},
                                                {"--quantization", "nf4", "--activations", "int8"},
                                                {"--quantization", "nf5"}}) {
    ProcessSettings refused;
    EXPECT_THROW(with_flags(refused, {}, flags), ConfigError) << flags.back();
  }
}

}  // namespace
}  // namespace convoy::settings
