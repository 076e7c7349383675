// SPDX-License-Identifier: Apache-2.0
//
// Compares the reading of adapter_config.json with PEFT's (tests/golden/adapters).
#include "convoy/model/adapters/lora_config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "convoy/core/base/error.h"
#include "convoy/core/io/json_text.h"

namespace convoy::adapters {
namespace {

using io::Json;

std::filesystem::path golden_folder() {
  return std::filesystem::path(std::getenv("CONVOY_SOURCE_DIR")) / "tests/golden";
}

Json written_by_peft() {
  return io::read_json_file(golden_folder() / "train/qwen2/lora/adapter_config.json");
}

LoraConfig parsed(const Json& json) {
  return LoraConfig::from_peft_json(io::JsonReader(json, "adapter_config.json"));
}

LoraConfig with(const std::string& key, const Json& value) {
  Json json = written_by_peft();
  json[key] = value;
  return parsed(json);
}

// Returns the key that the DataError names, or "" if the file is accepted.
std::string refused_key(const std::string& key, const Json& value) {
  try {
    with(key, value);
  } catch (const DataError& error) {
    EXPECT_EQ(error.location().file, "adapter_config.json") << error.sentence();
    return error.location().key;
  }
  return "";
}

TEST(PeftFile, ReadsWhatPeftWrote) {
  const LoraConfig config = parsed(written_by_peft());
  EXPECT_EQ(config.r, 4);
  EXPECT_EQ(config.alpha, 7);
  EXPECT_FALSE(config.all_linear);
  EXPECT_EQ(config.target_names.size(), 14U);
  EXPECT_EQ(config.rank_of("model.layers.0.self_attn.q_proj"), 2);
  EXPECT_EQ(config.rank_of("model.layers.1.mlp.down_proj"), 5);
  EXPECT_EQ(config.rank_of("model.layers.0.mlp.down_proj"), 4);
  EXPECT_EQ(config.scaling_of("model.layers.0.self_attn.v_proj"), 3.0 / 4);
  EXPECT_EQ(config.scaling_of("model.layers.1.mlp.up_proj"), 11.0 / 4);
  EXPECT_EQ(config.scaling_of("model.layers.0.self_attn.q_proj"), 7.0 / 2);
}

TEST(PeftFile, WritesAndReadsBackTheSame) {
  for (const std::string variant : {"lora", "rslora", "dora", "start"}) {
    const Json file =
        io::read_json_file(golden_folder() / "train/qwen2" / variant / "adapter_config.json");
    const LoraConfig config = parsed(file);
    const std::string written = config.to_peft_json(config.target_names);
    EXPECT_EQ(parsed(io::parse_json(written, "written")).to_peft_json(config.target_names),
              written);
    const nlohmann::json ours = nlohmann::json::parse(written), theirs = file;
    for (const auto& [key, value] : theirs.items()) {
      if (key == "peft_version" || key == "target_modules") continue;
      EXPECT_EQ(ours[key], value) << variant << " " << key;
    }
  }
}

// A null has the meaning that PEFT gives it. If PEFT fails at a null, Convoy refuses it or takes it
// as "none".
TEST(PeftFile, NullsAreTakenAsPeftTakesThem) {
  const std::set<std::string> must_be_said = {"peft_type", "r", "lora_alpha", "lora_dropout",
                                              "target_modules"};
  const Json verdicts = io::read_json_file(golden_folder() / "adapters/nulls.json");
  ASSERT_GT(verdicts.size(), 40U);
  for (const auto& [key, verdict] : verdicts.items()) {
    if (must_be_said.contains(key)) {
      EXPECT_NE(verdict, "same") << key;
      EXPECT_EQ(refused_key(key, nullptr), key);
      continue;
    }
    Json without = written_by_peft();
    without.erase(key);
    const LoraConfig absent = parsed(without);
    EXPECT_EQ(with(key, nullptr).to_peft_json(absent.target_names),
              absent.to_peft_json(absent.target_names))
        << key;
  }
}

TEST(PeftFile, AnyTypeInAnyFieldIsTakenOrRefusedByName) {
  const std::vector<Json> values = {nullptr,
                                    true,
                                    false,
                                    0,
                                    -1,
                                    1,
                                    2.5,
                                    1e300,
                                    -1e300,
                                    18446744073709551615U,
                                    "",
                                    "x",
                                    "(",
                                    "all-linear",
                                    Json::array(),
                                    {1},
                                    {"x"},
                                    {nullptr},
                                    {{"x", 1}},
                                    {{"x", "y"}},
                                    {"("},
                                    Json::object(),
                                    {{"x", 1e300}},
                                    {{"(", 3}},
                                    {{"q_proj", nullptr}}};
  const Json good = written_by_peft();
  for (const auto& [key, original] : good.items()) {
    for (const Json& value : values) {
      try {
        const LoraConfig config = with(key, value);
        // The patterns are compiled at the first question.
        config.targets("model.layers.0.self_attn.q_proj");
        EXPECT_GT(config.rank_of("model.layers.0.self_attn.q_proj"), 0);
        EXPECT_TRUE(std::isfinite(config.scaling_of("model.layers.0.self_attn.q_proj")));
        config.to_peft_json(config.target_names);
      } catch (const DataError& error) {
        EXPECT_TRUE(error.location().key.starts_with(key))
            << key << " " << value << error.sentence();
      } catch (const ConfigError& error) {
        EXPECT_EQ(error.location().key, key) << error.sentence();
      } catch (const std::exception& error) {
        ADD_FAILURE() << key << " = " << value.dump() << ": " << error.what();
      }
    }
  }
}

TEST(PeftFile, WrongTypesAreNamed) {
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, Json>>{{"r", "8"},
                                                 {"r", 2.5},
                                                 {"r", 0},
                                                 {"lora_alpha", "16"},
                                                 {"lora_dropout", "0.1"},
                                                 {"lora_dropout", 1.5},
                                                 {"use_dora", "yes"},
                                                 {"use_rslora", 1},
                                                 {"bias", 3},
                                                 {"bias", "all"},
                                                 {"task_type", false},
                                                 {"task_type", "SEQ_CLS"},
                                                 {"revision", 7},
                                                 {"base_model_name_or_path", {"m"}},
                                                 {"modules_to_save", "lm_head"},
                                                 {"layers_to_transform", {-1}},
                                                 {"layers_to_transform", "0"},
                                                 {"layers_pattern", "h"},
                                                 {"target_modules", 3},
                                                 {"target_modules", Json::array()},
                                                 {"target_parameters", {"experts"}},
                                                 {"trainable_token_indices", {3}},
                                                 {"peft_type", "IA3"},
                                                 {"peft_type", 1}})
    EXPECT_EQ(refused_key(key, value), key) << value;
  EXPECT_EQ(refused_key("rank_pattern", {{"q_proj", 2.5}}), "rank_pattern.q_proj");
  EXPECT_EQ(refused_key("alpha_pattern", {{"q_proj", "2"}}), "alpha_pattern.q_proj");
}

// With these starts PEFT moves a part of the base weight into A and B, so A and B fit only the
// changed base.
TEST(PeftFile, StartsThatChangeTheBaseAreRefused) {
  for (const char* start : {"pissa", "pissa_niter_16", "olora", "loftq", "corda", "lora_ga"})
    EXPECT_EQ(refused_key("init_lora_weights", start), "init_lora_weights");
  for (const Json& start : {Json(true), Json(false), Json("gaussian"), Json("orthogonal")})
    EXPECT_EQ(refused_key("init_lora_weights", start), "");
}

TEST(Targets, NamesEndAtADotAndPatternsCoverTheWholeName) {
  const std::string query = "model.layers.0.self_attn.q_proj";
  LoraConfig config = with("target_modules", {"q_proj"});
  EXPECT_TRUE(config.targets(query));
  EXPECT_FALSE(config.targets("model.layers.0.self_attn.eq_proj"));
  EXPECT_FALSE(with("target_modules", {"proj"}).targets(query));
  EXPECT_TRUE(with("target_modules", {"self_attn.q_proj"}).targets(query));
  EXPECT_FALSE(with("target_modules", "q_proj").targets(query));
  EXPECT_TRUE(with("target_modules", ".*[qv]_proj").targets(query));
  EXPECT_TRUE(with("target_modules", "all-linear").targets(query));
}

TEST(Targets, ExclusionIsANameOrAPattern) {
  Json json = written_by_peft();
  json["target_modules"] = "all-linear";
  const auto is_left_out = [&](const Json& excluded) {
    json["exclude_modules"] = excluded;
    return !parsed(json).targets("model.layers.0.self_attn.k_proj");
  };
  EXPECT_FALSE(is_left_out(nullptr));
  EXPECT_TRUE(is_left_out({"k_proj"}));
  EXPECT_TRUE(is_left_out(".*k_proj"));
  EXPECT_FALSE(is_left_out("k_proj"));
  settings::LoraSettings settings;
  settings.exclude_modules.names = {".*\\.layers\\.1\\..*"};
  const LoraConfig config = LoraConfig::from_settings(settings);
  EXPECT_TRUE(config.targets("model.layers.0.mlp.up_proj"));
  EXPECT_FALSE(config.targets("model.layers.1.mlp.up_proj"));
}

TEST(Targets, LayersToTransform) {
  const LoraConfig config = with("layers_to_transform", {1});
  EXPECT_FALSE(config.targets("model.layers.0.self_attn.q_proj"));
  EXPECT_TRUE(config.targets("model.layers.1.self_attn.q_proj"));
  EXPECT_TRUE(with("layers_to_transform", 0).targets("model.layers.0.self_attn.q_proj"));
  settings::LoraSettings settings;
  settings.layers_to_transform = {1};
  EXPECT_FALSE(LoraConfig::from_settings(settings).targets("model.layers.0.self_attn.q_proj"));
}

TEST(Scaling, OfRankAlphaAndVariant) {
  settings::LoraSettings settings;
  settings.r = 16;
  settings.alpha = 8;
  settings.rank_pattern = {{"q_proj", 4}, {"layers.1.mlp.up_proj", 9}};
  settings.alpha_pattern = {{"up_proj", 6}};
  LoraConfig config = LoraConfig::from_settings(settings);
  EXPECT_EQ(config.scaling_of("model.layers.0.self_attn.k_proj"), 0.5);
  EXPECT_EQ(config.scaling_of("model.layers.0.self_attn.q_proj"), 2.0);
  config.use_rslora = true;
  EXPECT_EQ(config.scaling_of("model.layers.0.self_attn.k_proj"), 2.0);
  EXPECT_EQ(config.scaling_of("model.layers.1.mlp.up_proj"), 2.0);
}

TEST(Scaling, ARankThatIsNoneIsRefused) {
  for (const int64_t rank : {0, -3}) {
    settings::LoraSettings settings;
    settings.rank_pattern = {{"q_proj", rank}};
    EXPECT_THROW(LoraConfig::from_settings(settings), ConfigError) << rank;
  }
}

// As in PEFT, the first matching pattern in the order of the file counts.
TEST(Scaling, TheFirstPatternThatMatchesCounts) {
  settings::LoraSettings settings;
  settings.r = 4;
  settings.rank_pattern = {{"q_proj", 2}, {"layers.0.self_attn.q_proj", 8}, {".*_proj", 16}};
  settings.alpha_pattern = {{"self_attn\\..*", 3}, {"k_proj", 5}};
  const LoraConfig config = LoraConfig::from_settings(settings);
  const auto again = [&] { return parsed(Json::parse(config.to_peft_json({"q_proj"}))); };
  for (const LoraConfig& one : {config, again()}) {
    EXPECT_EQ(one.rank_of("model.layers.0.self_attn.q_proj"), 2);
    EXPECT_EQ(one.rank_of("model.layers.0.self_attn.k_proj"), 16);
    EXPECT_EQ(one.scaling_of("model.layers.0.self_attn.k_proj"), 3.0 / 16);
  }
}

// PEFT's _set_trainable takes every module whose name ends so (str.endswith), and all modules in
// it.
TEST(ModulesToSave, AreAllWhoseNamesEndSo) {
  const LoraConfig norms = with("modules_to_save", {"norm"});
  for (const char* module :
       {"model.norm", "model.layers.0.input_layernorm", "model.layers.1.post_attention_layernorm",
        "model.layers.0.self_attn.q_norm"})
    EXPECT_TRUE(norms.saves_whole(module)) << module;
  EXPECT_FALSE(norms.saves_whole("model.layers.0.self_attn.q_proj"));
  EXPECT_FALSE(norms.saves_whole("model.normal"));
  const LoraConfig block = with("modules_to_save", {"layers.1.mlp"});
  EXPECT_TRUE(block.saves_whole("model.layers.1.mlp.up_proj"));
  EXPECT_FALSE(block.targets("model.layers.1.mlp.up_proj"));
  EXPECT_FALSE(block.saves_whole("model.layers.0.mlp.up_proj"));
  EXPECT_FALSE(with("modules_to_save", {""}).saves_whole("model.norm"));
}

TEST(Settings, NothingToTargetIsRefused) {
  settings::LoraSettings settings;
  settings.target_modules.names = {};
  EXPECT_THROW(LoraConfig::from_settings(settings), ConfigError);
}

}  // namespace
}  // namespace convoy::adapters
