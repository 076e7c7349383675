// SPDX-License-Identifier: Apache-2.0
//
// Keeps where a run's records at other programs are, so that a resumed run goes on there: in
// RUN/report.json, {"id": ID, "name": NAME, "trackio": FILE, "wandb": FOLDER, "wandb_name": NAME}.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace convoy::reports {

class KeptReports {
 public:
  // Reads the file, or makes it with a new id. Throws IoError.
  explicit KeptReports(const std::filesystem::path& run_folder);

  // The run's id in other programs' records.
  std::string id() const { return text("id"); }
  std::string text(const std::string& key) const;  // empty: none is kept
  // Writes the file if the text is a new one. Throws IoError.
  void keep(const std::string& key, const std::string& text);

 private:
  std::filesystem::path file_;
  nlohmann::ordered_json kept_ = nlohmann::ordered_json::object();
};

}  // namespace convoy::reports
