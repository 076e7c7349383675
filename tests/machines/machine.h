// SPDX-License-Identifier: Apache-2.0
//
// Sets up a machine of this folder for a test: its files are written into a folder, and the fake
// library reports its GPUs.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "convoy/machine/monitor/gpus/devices.h"
#include "files/temporary_folder.h"

namespace convoy::testing {

class FakeMachine {
 public:
  explicit FakeMachine(const std::string& name) {
    namespace fs = std::filesystem;
    const char* const source = std::getenv("CONVOY_SOURCE_DIR");
    scenario_ = fs::path(source == nullptr ? "." : source) / "tests/machines" / (name + ".json");
    root_ = laid_out(name, scenario_);
    ::setenv("FAKE_NVML_SCENARIO", scenario_.c_str(), 1);
  }
  ~FakeMachine() { ::unsetenv("FAKE_NVML_SCENARIO"); }
  FakeMachine(const FakeMachine&) = delete;
  FakeMachine& operator=(const FakeMachine&) = delete;

  std::filesystem::path root() const { return root_; }
  monitor::DeviceSources sources() const {
    return {.nvml_library = library(), .sys = root_ / "sys", .proc = root_ / "proc"};
  }
  // Returns the environment for a program that shall see this machine.
  std::map<std::string, std::string> environment() const {
    return {{"CONVOY_NVML_LIBRARY", library().string()},
            {"CONVOY_HOST_ROOT", root_.string()},
            {"FAKE_NVML_SCENARIO", scenario_.string()}};
  }

  static std::filesystem::path library() {
    const char* const folder = std::getenv("CONVOY_BIN_DIR");
    return std::filesystem::path(folder == nullptr ? "." : folder) / "libfake_nvml.so";
  }

 private:
  // Writes the files of a machine once for all tests of a process, because a thousand small files
  // take a second.
  static std::filesystem::path laid_out(const std::string& name,
                                        const std::filesystem::path& scenario) {
    namespace fs = std::filesystem;
    static std::map<std::string, TemporaryFolder> machines;
    const auto [found, fresh] = machines.try_emplace(name);
    const fs::path root = found->second.path();
    if (!fresh) return root;
    std::ifstream file(scenario);
    const auto told = nlohmann::json::parse(file);
    for (const auto& [path, text] : told["files"].items()) {
      fs::create_directories((root / path).parent_path());
      std::ofstream(root / path) << text.get<std::string>();
    }
    for (const auto& [path, target] : told["links"].items()) {
      fs::create_directories((root / path).parent_path());
      fs::create_symlink(target.get<std::string>(), root / path);
    }
    return root;
  }

  std::filesystem::path scenario_;
  std::filesystem::path root_;
};

}  // namespace convoy::testing
