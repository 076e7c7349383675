// SPDX-License-Identifier: Apache-2.0
#include "parity/convoy_program.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include "convoy/core/base/files.h"
#include "files/run_script.h"

namespace convoy::testing {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

// Computes in the dtype of the compared values. CONVOY_TEST_DEVICES runs the same on other devices.
std::string flags_of_all(const std::string& arguments) {
  const bool takes_dtype = arguments.starts_with("score") || arguments.starts_with("eval") ||
                           arguments.starts_with("generate");
  const bool computes_with_a_model = takes_dtype || arguments.starts_with("train");
  const char* const devices = std::getenv("CONVOY_TEST_DEVICES");
  return fmt::format("{}{}", takes_dtype ? " --dtype fp32" : "",
                     devices && computes_with_a_model ? fmt::format(" --devices {}", devices) : "");
}

}  // namespace

Outcome ConvoyProgram::run(const std::string& arguments) const {
  const std::string command =
      fmt::format("OMP_NUM_THREADS=1 '{}/convoy' {}{} 2>&1", std::getenv("CONVOY_BIN_DIR"),
                  arguments, flags_of_all(arguments));
  const ScriptEnd end = run_command(command);
  return {end.code, end.out};
}

std::string ConvoyProgram::require(const std::string& arguments) const {
  const Outcome outcome = run(arguments);
  if (outcome.status != 0)
    throw std::runtime_error(
        fmt::format("convoy {} ended with {}:\n{}", arguments, outcome.status, outcome.output));
  return outcome.output;
}

json ConvoyProgram::figures(const std::string& arguments) const {
  return json::parse(require(arguments + " --json --quiet"));
}

fs::path ConvoyProgram::model(const std::string& family) const {
  const fs::path folder = folder_ / family;
  fs::create_directories(folder);
  for (const fs::path& source : {golden_folder() / "tokenizer", golden_folder() / family})
    for (const fs::directory_entry& entry : fs::directory_iterator(source))
      if (entry.is_regular_file())
        fs::copy_file(entry.path(), folder / entry.path().filename(),
                      fs::copy_options::skip_existing);
  return folder;
}

std::vector<json> ConvoyProgram::train(const std::string& name, json config,
                                       const std::string& arguments) const {
  const fs::path output = folder_ / name;
  config["train"]["output_dir"] = output.string();
  config["train"].update({{"bf16", false}, {"eval_strategy", "no"}, {"save_strategy", "no"}});
  config["data"].update({{"shuffle", false},
                         {"cache_dir", "none"},
                         {"split", {{"train_ratio", 1}, {"val_ratio", 0}, {"test_ratio", 0}}}});
  config["logging"]["backend"] = "none";
  const fs::path file = folder_ / (name + ".yaml");
  write_file_atomic(file, config.dump());  // JSON is also YAML
  require(fmt::format("train {} {}", file.string(), arguments));
  std::vector<json> steps;
  for (json& row : read_json_lines(output / "events.jsonl"))
    if (row["event"] == "step") steps.push_back(std::move(row));
  return steps;
}

std::vector<json> ConvoyProgram::score(const std::string& arguments) const {
  const fs::path output = folder_ / "scores.jsonl";
  require(fmt::format("score {} --output {}", arguments, output.string()));
  return read_json_lines(output);
}

fs::path golden_folder() {
  return fs::path(std::getenv("CONVOY_SOURCE_DIR")) / "tests/golden/train";
}

std::vector<json> read_json_lines(const fs::path& file) {
  std::vector<json> rows;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) rows.push_back(json::parse(line));
  return rows;
}

}  // namespace convoy::testing
