// SPDX-License-Identifier: Apache-2.0
//
// The newer families as GGUF: files that generate as their folders do, also in few bits, and
// adapters as LoRA files.
#include <gtest/gtest.h>

#include <tuple>

#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/apps/recipes/model_files/export_model_file.h"
#include "convoy/apps/recipes/model_test.h"
#include "convoy/core/base/error.h"
#include "convoy/generate/engine/engine.h"
#include "convoy/model/architecture/families/family.h"
#include "files/temporary_folder.h"

namespace convoy::recipes {
namespace {

namespace fs = std::filesystem;
using io::Json;
using testing::golden_folder;
using testing::read_tensors;
using testing::Tensors;

class ExportFamily : public ::testing::Test {
 protected:
  // The golden model of tests/golden/train with changed settings.
  fs::path model(const std::string& name, const Json& changes) const {
    const fs::path folder = folder_ / name;
    fs::create_directories(folder);
    for (const fs::path& source :
         {golden_folder() / "train/tokenizer", golden_folder() / "train" / name})
      for (const fs::directory_entry& entry : fs::directory_iterator(source))
        if (entry.is_regular_file())
          fs::copy_file(entry.path(), folder / entry.path().filename(),
                        fs::copy_options::skip_existing);
    Json config = io::read_json_file(folder / "config.json");
    config.update(changes);
    write_file_atomic(folder / "config.json", config.dump());
    return folder;
  }
  // llama.cpp needs values as wide as keys, and the golden model has them narrower.
  fs::path qwen35() const {
    const fs::path folder = model("qwen3_5", {{"linear_key_head_dim", 7}});
    at::manual_seed(3);
    Tensors tensors;
    for (const auto& parameter : architecture::declare_parameters(
             families::read_decoder_spec(io::ModelFolder::open(folder.string()))))
      tensors[parameter.name] = at::randn(parameter.shape) * 0.3;
    testing::write_tensors(folder / "model.safetensors", tensors);
    return folder;
  }

  std::string export_as(const fs::path& model, const std::string& type,
                        const fs::path& adapter = {}) const {
    settings::ModelExportFlags flags;
    flags.model = model.string();
    flags.type = type;
    flags.adapter = adapter.string();
    flags.adapter_only = !adapter.empty();
    flags.output = (folder_ / (model.filename().string() + "-" + type + ".gguf")).string();
    fs::remove(flags.output);
    export_model_file(flags, Log(LogLevel::Quiet));
    return flags.output;
  }

  static std::vector<std::vector<int32_t>> answers(const std::string& model,
                                                   const std::string& weights) {
    LoadedModel loaded = load_model({.name = model,
                                     .dtype = "fp32",
                                     .device = at::kCPU,
                                     .joins_projections = true,
                                     .weights = weights},
                                    Log(LogLevel::Quiet));
    std::vector<generate::Request> requests;
    for (int32_t row = 0; row < 6; ++row) {
      std::vector<int32_t> prompt;
      for (int32_t token = 0; token < 5 + 9 * row; ++token)
        prompt.push_back(3 + (token * 37 + row * 11) % 300);
      requests.push_back({.prompt = prompt, .sampling = {.temperature = 0}, .max_new_tokens = 24});
    }
    generate::Engine engine(*loaded.model, loaded.tokenizer, {.max_rows = 4});
    std::vector<std::vector<int32_t>> ids;
    for (generate::Completion& answer : generate::answer_all(engine, std::move(requests)))
      ids.push_back(std::move(answer.token_ids));
    return ids;
  }

  convoy::testing::TemporaryFolder folder_;
};

TEST_F(ExportFamily, Qwen35AnswersAsItsFolderAlsoInFewBits) {
  const fs::path source = qwen35();
  const std::string wide = export_as(source, "f32"), half = export_as(source, "f16");
  // A folder of the halves, which the file holds with heads in another order.
  const std::string halves = (folder_ / "halves").string();
  convert_model_file(half, halves, {}, Log(LogLevel::Quiet));
  for (const char* weights : {"model", "int8", "int4"}) {
    SCOPED_TRACE(weights);
    EXPECT_EQ(answers(wide, weights), answers(source.string(), weights));
    EXPECT_EQ(answers(half, weights), answers(halves, weights));
  }
  EXPECT_NE(answers(wide, "int4"), answers(wide, "model"));
}

TEST_F(ExportFamily, LaterFamiliesAnswerAsTheirFolders) {
  const Json none = Json::object();
  for (const auto& [name, changes] :
       std::vector<std::pair<const char*, Json>>{{"gemma", none},
                                                 {"gemma4", none},
                                                 {"gemma4-unified", none},
                                                 {"muse_glimmer", {{"post_norm_eps", 1e-8}}}}) {
    SCOPED_TRACE(name);
    const fs::path source = model(name, changes);
    EXPECT_EQ(answers(export_as(source, "f32"), "model"), answers(source.string(), "model"));
  }
}

// Adapters go to llama.cpp's names and order of rows and back.
TEST_F(ExportFamily, AdaptersAreLoraFiles) {
  const Json none = Json::object();
  for (const auto& [name, changes] :
       std::vector<std::pair<const char*, Json>>{{"gemma", none},
                                                 {"gemma4-unified", none},
                                                 {"muse_glimmer", {{"post_norm_eps", 1e-8}}}}) {
    SCOPED_TRACE(name);
    const fs::path source = model(name, changes);
    const fs::path adapter = golden_folder() / "train" / name / "start";
    const fs::path back = folder_ / "back";
    fs::remove_all(back);
    convert_model_file(export_as(source, "f32", adapter), back.string(), {.base = source.string()},
                       Log(LogLevel::Quiet));
    const Tensors wanted = read_tensors(adapter / "adapter_model.safetensors");
    const Tensors found = read_tensors(back / "adapter_model.safetensors");
    ASSERT_EQ(found.size(), wanted.size());
    for (const auto& [tensor, value] : wanted)
      EXPECT_TRUE(found.at(tensor).equal(value.to(at::kFloat))) << tensor;
  }
}

// llama.cpp multiplies by this map without its adapters.
TEST_F(ExportFamily, AnAdapterOfTheInputsOfAllLayersIsRefused) {
  try {
    export_as(model("gemma4", Json::object()), "f32", golden_folder() / "train/gemma4/start");
    FAIL() << "llama.cpp would leave the adapter of per_layer_model_projection out";
  } catch (const DataError& error) {
    EXPECT_NE(error.sentence().find("model.per_layer_model_projection"), std::string::npos)
        << error.sentence();
  }
}

}  // namespace
}  // namespace convoy::recipes
