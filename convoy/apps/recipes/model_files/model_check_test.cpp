// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/model_files/model_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/io/json_text.h"
#include "files/temporary_folder.h"

namespace convoy::recipes {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

fs::path source(const std::string& path) {
  const char* root = std::getenv("CONVOY_SOURCE_DIR");
  return fs::path(root ? root : ".") / path;
}

// A copy of the bundled model, which the test damages.
class Copy {
 public:
  Copy() { fs::copy(source("examples/tally-3m"), folder_ / "m", fs::copy_options::recursive); }
  fs::path operator/(const std::string& name) const { return folder_ / "m" / name; }
  std::string path() const { return (folder_ / "m").string(); }
  void edit(const std::string& name, const std::function<void(io::Json&)>& change) const {
    io::Json json = io::read_json_file(*this / name);
    change(json);
    write_file_atomic(*this / name, json.dump());
  }

 private:
  testing::TemporaryFolder folder_;
};

// Returns the error of loading the model, or "" if it loads.
std::string refusal_of_loading(const std::string& folder) {
  try {
    load_model({.name = folder}, Log(LogLevel::Quiet));
  } catch (const Error& error) {
    return error.sentence();
  }
  return "";
}

TEST(ModelCheck, TellsWhatTheBundledModelIs) {
  const ModelCheck check = check_model(source("examples/tally-3m").string(), {});
  EXPECT_TRUE(check.refusals.empty()) << check.refusals.front();
  const ordered_json& facts = check.facts;
  EXPECT_EQ(facts.at("family"), "qwen2");
  EXPECT_EQ(facts.at("architecture"), "Qwen2ForCausalLM");
  EXPECT_EQ(facts.at("forms"), ordered_json::array({"biases of queries, keys and values"}));
  EXPECT_TRUE(facts.at("usable"));
  EXPECT_TRUE(facts.at("weights").at("fit_config"));
  // config.json and the headers give the same number of parameters; a tied head is stored once.
  EXPECT_EQ(facts.at("parameters"), facts.at("weights").at("elements"));
  EXPECT_TRUE(facts.at("chat_template").at("renders"));
  EXPECT_EQ(facts.at("tokenizer").at("eos").at("token"), "<|im_end|>");
  EXPECT_NE(facts.at("chat_template").at("training").get<std::string>().find("EOS"),
            std::string::npos);
  const std::string text = model_check_text(check);
  EXPECT_NE(text.find("it can be trained and used"), std::string::npos) << text;
  EXPECT_NE(text.find("qlora nf4, bf16"), std::string::npos) << text;
}

TEST(ModelCheck, MemoryShrinksWithRanksAndWithWhatIsTrained) {
  const ModelCheck check = check_model(source("examples/tally-3m").string(), {.seq = 64});
  const ordered_json& rows = check.facts.at("memory").at("rows");
  ASSERT_EQ(rows.size(), 6u);
  for (const ordered_json& row : rows) {
    const auto bytes = row.at("bytes_per_rank").get<std::vector<int64_t>>();
    EXPECT_GE(bytes[1], bytes[3]) << row.dump();
    EXPECT_GT(bytes[3], 0);
  }
  EXPECT_GT(rows[0].at("bytes_per_rank")[0], rows[2].at("bytes_per_rank")[0]);
}

TEST(ModelCheck, SaysWhatDoesNotFitHere) {
  const std::string folder = source("examples/tally-3m").string();
  const auto fits = [&](int64_t memory_bytes) {
    return check_model(folder, {.seq = 64, .memory_bytes = memory_bytes})
        .facts.at("memory")
        .at("rows")[0];
  };
  const int64_t one_rank = fits(int64_t{1} << 40).at("bytes_per_rank")[0];
  EXPECT_EQ(fits(int64_t{1} << 40).at("fits_here").dump(), "[true,true,true,true]");
  // The ranks on CPUs share the memory of their machine.
  EXPECT_EQ(fits(one_rank).at("fits_here").dump(), "[true,false,false,false]");
  EXPECT_EQ(fits(one_rank - 1).at("fits_here").dump(), "[false,false,false,false]");
  const auto text = [&](int64_t memory_bytes) {
    return model_check_text(check_model(folder, {.seq = 64, .memory_bytes = memory_bytes}));
  };
  EXPECT_EQ(text(int64_t{1} << 40).find("not fit"), std::string::npos);
  EXPECT_NE(text(one_rank).find("2, 4, 8 ranks do not fit: "), std::string::npos) << text(one_rank);
  EXPECT_NE(text(int64_t{20} << 20).find("does not fit: 20 MiB here"), std::string::npos)
      << text(int64_t{20} << 20);
}

TEST(ModelCheck, APackedFolderHoldsAsManyValuesAsItStandsFor) {
  for (const char* type : {"nf4", "nf4-double", "int8"}) {
    const ordered_json facts =
        check_model(source(std::string("tests/golden/quantization/") + type).string(), {}).facts;
    ASSERT_TRUE(facts.contains("weights")) << type << facts.dump();
    EXPECT_EQ(facts.at("weights").at("elements"), facts.at("parameters")) << type;
  }
}

TEST(ModelCheck, RefusesInTheWordsOfLoading) {
  const std::vector<std::pair<std::string, std::function<void(const Copy&)>>> faults = {
      {"family",
       [](const Copy& m) { m.edit("config.json", [](auto& c) { c["model_type"] = "x"; }); }},
      {"size",
       [](const Copy& m) { m.edit("config.json", [](auto& c) { c["intermediate_size"] = 7; }); }},
      {"rope",
       [](const Copy& m) {
         m.edit("config.json", [](auto& c) {
           c["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", 2.0}};
         });
       }},
      {"cut weights",
       [](const Copy& m) {
         fs::resize_file(m / "model.safetensors", fs::file_size(m / "model.safetensors") - 4);
       }},
      {"no weights", [](const Copy& m) { fs::remove(m / "model.safetensors"); }},
      {"pickle",
       [](const Copy& m) { fs::rename(m / "model.safetensors", m / "pytorch_model.bin"); }},
      {"no tokenizer", [](const Copy& m) { fs::remove(m / "tokenizer.json"); }},
      {"torn tokenizer", [](const Copy& m) { write_file_atomic(m / "tokenizer.json", "{"); }},
      {"template",
       [](const Copy& m) { write_file_atomic(m / "chat_template.jinja", "{% for %}"); }}};
  for (const auto& [name, spoil] : faults) {
    const Copy model;
    spoil(model);
    const std::string wanted = refusal_of_loading(model.path());
    ASSERT_NE(wanted, "") << name;
    const ModelCheck check = check_model(model.path(), {});
    EXPECT_NE(std::count(check.refusals.begin(), check.refusals.end(), wanted), 0)
        << name << ": wanted " << wanted << "\nfound " << ordered_json(check.refusals).dump(1);
    EXPECT_FALSE(check.facts.at("usable")) << name;
    EXPECT_NE(model_check_text(check).find("refused: "), std::string::npos) << name;
  }
}

// The check does not compare the weights, because this model's configuration is unknown.
TEST(ModelCheck, SaysWhatAModelThatIsNotThereNeeds) {
  const Copy model;
  model.edit("config.json", [](auto& config) { config["model_type"] = "qwen3_moe"; });
  const ModelCheck check = check_model(model.path(), {});
  EXPECT_EQ(check.facts.at("missing").at("nearest"), "qwen3");
  EXPECT_TRUE(check.facts.at("weights").at("fit_config").is_null());
  EXPECT_FALSE(check.facts.at("usable"));
  const std::string text = model_check_text(check);
  for (const char* said :
       {"qwen3_moe, refused: see below",
        "a mixture of experts; the nearest family that runs: qwen3",
        "not compared with config.json", "refused: ", "take the nearest that runs, `qwen3`"})
    EXPECT_NE(text.find(said), std::string::npos) << said << "\n" << text;
  for (const char* unsaid : {"not fit", "did you mean", "correct the key"})
    EXPECT_EQ(text.find(unsaid), std::string::npos) << unsaid << "\n" << text;
}

TEST(ModelCheck, SaysWhichTensorsAreLeftAside) {
  const ModelCheck check = check_model(source("tests/golden/models/gemma3-nested").string(), {});
  EXPECT_EQ(check.facts.at("weights").at("left_aside"), 2);
  const std::string text = model_check_text(check);
  EXPECT_NE(text.find("2 tensors of other parts, such as "), std::string::npos) << text;
  const ModelCheck whole = check_model(source("examples/tally-3m").string(), {});
  EXPECT_EQ(whole.facts.at("weights").at("left_aside"), 0);
  EXPECT_EQ(model_check_text(whole).find("of other parts"), std::string::npos);
}

TEST(ModelCheck, SaysWhichFormAFamilyLacks) {
  const Copy model;
  model.edit("config.json", [](auto& config) { config["final_logit_softcapping"] = 30.0; });
  const ModelCheck check = check_model(model.path(), {});
  ASSERT_EQ(check.refusals.size(), 1U) << ordered_json(check.refusals).dump(1);
  EXPECT_NE(check.refusals[0].find("final_logit_softcapping: `qwen2` with soft caps on logits"),
            std::string::npos)
      << check.refusals[0];
  EXPECT_EQ(check.refusals[0].find("correct the key"), std::string::npos) << check.refusals[0];
  EXPECT_NE(model_check_text(check).find("qwen2, refused: see below"), std::string::npos);
}

TEST(ModelCheck, AModelTypeThatIsNoTextIsRefusedInTheReport) {
  const Copy model;
  model.edit("config.json", [](auto& config) { config["model_type"] = 5; });
  const ModelCheck check = check_model(model.path(), {});
  ASSERT_FALSE(check.refusals.empty());
  EXPECT_NE(check.refusals[0].find("model_type"), std::string::npos);
  EXPECT_TRUE(check.facts.contains("files"));
}

TEST(ModelCheck, ShowsEveryFileThatIsReadAndItsState) {
  const Copy model;
  fs::resize_file(model / "model.safetensors", 100);
  write_file_atomic(model / "optimizer.pt", "x");
  const ModelCheck check = check_model(model.path(), {});
  std::map<std::string, std::string> states;
  for (const ordered_json& file : check.facts.at("files"))
    states[file.at("name").get<std::string>()] = file.at("state").get<std::string>();
  EXPECT_EQ(states["config.json"], "good");
  EXPECT_EQ(states["model.safetensors"], "damaged");
  EXPECT_EQ(std::count(check.facts.at("files_not_read").begin(),
                       check.facts.at("files_not_read").end(), "optimizer.pt"),
            1);
}

TEST(ModelCheck, MissingShardsAreNamed) {
  const testing::TemporaryFolder folder;
  for (const auto& entry : fs::directory_iterator(source("tests/golden/models/llama-biased")))
    fs::copy(entry.path(), folder / entry.path().filename());
  std::string removed;
  for (const auto& entry : fs::directory_iterator(folder.path()))
    if (entry.path().filename().string().starts_with("model-00002")) removed = entry.path();
  ASSERT_NE(removed, "");
  fs::remove(removed);
  const ModelCheck check = check_model(folder.path().string(), {});
  bool is_named = false;
  for (const std::string& refusal : check.refusals)
    is_named = is_named || refusal.find("model-00002") != std::string::npos;
  EXPECT_TRUE(is_named) << ordered_json(check.refusals).dump(1);
}

TEST(ModelCheck, TemplatesWithoutSystemTurnsAreSaid) {
  const Copy model;
  write_file_atomic(model / "chat_template.jinja",
                    "{% for m in messages %}{% if m.role == 'system' %}"
                    "{{ raise_exception('no system') }}{% endif %}"
                    "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
                    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}");
  const ModelCheck check = check_model(model.path(), {});
  EXPECT_TRUE(check.refusals.empty()) << ordered_json(check.refusals).dump(1);
  EXPECT_FALSE(check.facts.at("chat_template").at("takes_system_turns"));
  EXPECT_NE(model_check_text(check).find("takes no system turns"), std::string::npos);
}

TEST(ModelCheck, AFolderWithoutConfigIsNoModel) {
  const testing::TemporaryFolder folder;
  EXPECT_THROW(check_model(folder.path().string(), {}), DataError);
  EXPECT_THROW(check_model("org/not-there", {}), DataError);
}

}  // namespace
}  // namespace convoy::recipes
