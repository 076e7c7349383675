// SPDX-License-Identifier: Apache-2.0
//
// The model that a training left in its folder, as `convoy-worker serve` takes it.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace convoy::page {

// The model names that questions use for the base model and the trained one.
inline constexpr const char* kBaseName = "base";
inline constexpr const char* kTrainedName = "trained";

struct ChatModel {
  std::vector<std::string> flags;
  std::vector<std::string> names;  // the trained model; with an adapter, after the base
};

// `record`: content of run.json. Returns nothing when the folder holds neither adapter nor model.
std::optional<ChatModel> chat_model(const std::filesystem::path& folder,
                                    const nlohmann::json& record);

}  // namespace convoy::page
