// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/architecture/families/missing_forms.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/model/architecture/families/family.h"
#include "files/source_folder.h"

namespace convoy::families {
namespace {

std::string refusal_of(const std::string& model_type) {
  io::Json config;
  config["model_type"] = model_type;
  try {
    read_decoder_spec(io::JsonReader(std::move(config), "config.json"));
  } catch (const DataError& error) {
    return error.sentence();
  }
  return "";
}

bool is_supported(const std::string& model_type) {
  const std::vector<std::string> types = supported_model_types();
  return std::find(types.begin(), types.end(), model_type) != types.end();
}

TEST(MissingTypes, AreNoFamiliesAndNameOneThatIsThere) {
  std::set<std::string> seen;
  for (const MissingType& type : missing_types()) {
    EXPECT_TRUE(seen.insert(type.model_type).second) << type.model_type;
    EXPECT_FALSE(is_supported(type.model_type)) << type.model_type;
    EXPECT_TRUE(*type.nearest == '\0' || is_supported(type.nearest)) << type.model_type;
  }
}

// The error must not advise another model_type, which would load the weights into another model.
TEST(MissingTypes, AreRefusedWithWhatTheyNeedAndNoOtherName) {
  for (const MissingType& type : missing_types()) {
    const std::string sentence = refusal_of(type.model_type);
    const std::string start = fmt::format("config.json: model_type: `{}` (", type.model_type);
    EXPECT_TRUE(sentence.starts_with(start)) << sentence;
    for (const std::string& said : {std::string(type.needs), std::string("there are llama, "),
                                    fmt::format("`{}`", type.nearest)})
      EXPECT_TRUE(said == "``" || sentence.find(said) != std::string::npos) << sentence;
    for (const char* advice : {"did you mean", "correct the key"})
      EXPECT_EQ(sentence.find(advice), std::string::npos) << sentence;
  }
}

TEST(MissingTypes, AnUnknownTypeIsRefusedWithTheFamiliesThatAreThere) {
  const std::string sentence = refusal_of("granitte");
  for (const std::string& type : supported_model_types())
    EXPECT_NE(sentence.find(type), std::string::npos) << type << ": " << sentence;
  for (const char* advice : {"did you mean", "correct the key"})
    EXPECT_EQ(sentence.find(advice), std::string::npos) << sentence;
}

// Returns the rows of the page's table. Types for the same models share a row.
std::string table() {
  std::string text;
  std::string types;
  const auto all = missing_types();
  for (size_t place = 0; place < all.size(); ++place) {
    const MissingType& type = all[place];
    types += fmt::format("{}`{}`", types.empty() ? "" : ", ", type.model_type);
    const MissingType* const next = place + 1 < all.size() ? &all[place + 1] : nullptr;
    if (next != nullptr && std::string(next->models) == type.models) continue;
    const std::string nearest = *type.nearest == '\0' ? "" : fmt::format("`{}` ", type.nearest);
    text += fmt::format("| {} | {} | {} | {}|\n", types, type.models, type.needs, nearest);
    types.clear();
  }
  return text;
}

TEST(MissingTypes, StandInTheGuideAsTheyAreRefused) {
  const std::string page = read_file(testing::source_folder() / "docs/how-to/models.md");
  const std::string head =
      "| `model_type` | models | what is missing | nearest |\n|---|---|---|---|\n";
  const size_t place = page.find(head);
  ASSERT_NE(place, std::string::npos) << head << table();
  const size_t end = page.find("\n\n", place);
  EXPECT_EQ(page.substr(place, end - place) + "\n", head + table());
}

}  // namespace
}  // namespace convoy::families
