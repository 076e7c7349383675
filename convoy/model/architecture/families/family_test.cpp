// SPDX-License-Identifier: Apache-2.0
//
// Makes the guide's table of families from the list of families, the names in GGUF and the golden
// files of transformers' values.
#include "convoy/model/architecture/families/family.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "convoy/core/base/files.h"
#include "convoy/core/io/gguf/gguf_family.h"
#include "convoy/core/io/json_text.h"
#include "files/source_folder.h"

namespace convoy::families {
namespace {

namespace fs = std::filesystem;

fs::path golden_path(const char* name) { return testing::source_folder() / "tests/golden" / name; }

// Returns the golden models by model_type, in the order of their names.
std::map<std::string, std::vector<fs::path>> golden_models(const char* folder) {
  std::map<std::string, std::vector<fs::path>> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(golden_path(folder)))
    if (fs::exists(entry.path() / "config.json"))
      found[io::read_json_file(entry.path() / "config.json").at("model_type").get<std::string>()]
          .push_back(entry.path());
  for (auto& [type, paths] : found) std::sort(paths.begin(), paths.end());
  return found;
}

std::string compared_in(const std::vector<fs::path>& models, bool trains) {
  std::vector<std::string> compared;
  if (!models.empty()) compared.emplace_back("logits, gradients, bf16, cache");
  const auto generates = [](const fs::path& model) {
    return fs::exists(golden_path("generation") / (model.filename().string() + ".json"));
  };
  if (std::any_of(models.begin(), models.end(), generates)) compared.emplace_back("engine");
  if (trains) compared.emplace_back("training, LoRA");
  return fmt::format("{}", fmt::join(compared, "; "));
}

std::vector<std::string> fused_maps(const architecture::DecoderSpec& spec) {
  std::vector<std::string> maps;
  if (spec.fused_qkv) maps.emplace_back("`qkv_proj`");
  if (spec.fused_gate_up) maps.emplace_back("`gate_up_proj`");
  return maps;
}

std::string table_of_families() {
  const auto models = golden_models("models");
  const auto trained = golden_models("train");
  std::string text;
  for (const Family& family : all_families()) {
    const std::string type = family.model_type;
    const std::vector<fs::path>& own = models.at(type);
    const architecture::DecoderSpec spec =
        read_decoder_spec(io::ModelFolder::open(own.front().string()));
    const gguf::Family* const in_gguf = gguf::family_of_model_type(spec.family);
    std::string maps = fmt::format("{}", fmt::join(fused_maps(spec), ", "));
    if (!maps.empty()) maps += " ";
    text += fmt::format("| `{}` | {} | {}| {} | {} |\n", type, family.models, maps,
                        in_gguf ? fmt::format("`{}`", in_gguf->architecture) : "no",
                        compared_in(own, trained.contains(type)));
  }
  return text;
}

TEST(Families, StandInTheGuideWithWhatIsComparedOfThem) {
  const std::string page = read_file(testing::source_folder() / "docs/how-to/models.md");
  const std::string head =
      "| `model_type` | models | fused maps | GGUF | compared with transformers |\n"
      "|---|---|---|---|---|\n";
  const size_t place = page.find(head);
  ASSERT_NE(place, std::string::npos) << head << table_of_families();
  const size_t end = page.find("\n\n", place);
  EXPECT_EQ(page.substr(place, end - place) + "\n", head + table_of_families());
}

}  // namespace
}  // namespace convoy::families
