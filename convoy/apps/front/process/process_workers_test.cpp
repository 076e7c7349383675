// SPDX-License-Identifier: Apache-2.0
//
// Placement of `convoy process` workers on a host whose GPUs come from tests/fake_nvml.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "convoy/core/base/files.h"
#include "files/run_script.h"
#include "files/temporary_folder.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;

class ProcessWorkersTest : public ::testing::Test {
 protected:
  // Sets up eight GPUs, a driver, the files of a LibTorch with CUDA, and a worker that prints which
  // devices it sees.
  void SetUp() override {
    const fs::path programs = std::getenv("CONVOY_BIN_DIR");
    for (const char* library : {"libfake_nvml.so", "libfake_cuda.so"})
      if (!fs::exists(programs / library)) GTEST_SKIP() << library << " is not built";
    fs::create_directories(folder_ / "driver");
    fs::create_symlink(programs / "libfake_cuda.so", folder_ / "driver/libcuda.so.1");
    write_file_atomic(folder_ / "torch/lib/libtorch_cpu.so", "");
    write_file_atomic(folder_ / "torch/lib/libtorch_cuda.so", "");
    write_file_atomic(folder_ / "torch/build-version", "2.11.0+cu130");
    testing::write_executable(folder_ / "worker",
                              "#!/bin/sh\necho \"sees $CUDA_VISIBLE_DEVICES\" >>seen\n"
                              "echo '{\"code\":2,\"kind\":\"config\",\"rank\":null,\"step\":null,"
                              "\"file\":null,\"hint\":null,\"message\":\"seen enough\"}' >&2\n"
                              "exit 2\n");
    write_file_atomic(folder_ / "rows.jsonl", [] {
      std::string rows;
      for (int row = 0; row < 64; ++row) rows += "{\"question\": \"1 + 1?\"}\n";
      return rows;
    }());
    std::string gpus;
    for (int gpu = 0; gpu < 8; ++gpu)
      gpus += fmt::format("{}GPU-{} H100 0000:{}0:00.0 80000", gpu == 0 ? "" : ";", gpu, gpu + 1);
    surroundings_ = fmt::format(
        "LD_LIBRARY_PATH=$PWD/driver FAKE_CUDA=version=13000 CONVOY_TORCH=$PWD/torch "
        "CONVOY_WORKER=$PWD/worker CONVOY_NVML_LIBRARY={}/libfake_nvml.so FAKE_NVML='{}'",
        programs.string(), gpus);
  }

  testing::ScriptEnd process(const std::string& arguments) {
    return testing::run_script(
        folder_.path(),
        fmt::format("{} {}/convoy process --model {}/examples/tally-3m --dataset rows.jsonl "
                    "--output o.jsonl {} 2>messages; code=$?; cat messages >&2; exit $code",
                    surroundings_, std::getenv("CONVOY_BIN_DIR"), std::getenv("CONVOY_SOURCE_DIR"),
                    arguments));
  }
  std::string planned(const std::string& arguments) {
    const testing::ScriptEnd end = process("--dry-run --json " + arguments);
    EXPECT_EQ(end.code, 0) << end.out;
    const auto plan =
        nlohmann::json::parse(end.out.substr(0, end.out.rfind('}') + 1), nullptr, false);
    return plan.is_object() ? plan.value("workers", "") : end.out;
  }
  // Returns the devices that the workers of a run see, in order.
  std::vector<std::string> seen(const std::string& arguments) {
    const testing::ScriptEnd end = process(arguments);
    EXPECT_EQ(end.code, 2) << end.out;
    EXPECT_NE(end.out.find("seen enough"), std::string::npos) << end.out;
    std::vector<std::string> lines;
    std::istringstream file(fs::exists(folder_ / "seen") ? read_file(folder_ / "seen") : "");
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    std::sort(lines.begin(), lines.end());
    return lines;
  }

  testing::TemporaryFolder folder_;
  std::string surroundings_;
};

TEST_F(ProcessWorkersTest, EachGpuHasAWorkerThatSeesItAlone) {
  EXPECT_EQ(planned(""), "8 workers on cuda");
  std::vector<std::string> each;
  for (int gpu = 0; gpu < 8; ++gpu) each.push_back(fmt::format("sees {}", gpu));
  EXPECT_EQ(seen(""), each);
}

TEST_F(ProcessWorkersTest, AWorldSizeTakesTheFirstGpus) {
  EXPECT_EQ(planned("--world-size 2"), "2 workers on cuda");
  EXPECT_EQ(seen("--world-size 2"), (std::vector<std::string>{"sees 0", "sees 1"}));
}

TEST_F(ProcessWorkersTest, MoreWorkersThanGpusAreRefused) {
  const testing::ScriptEnd end = process("--world-size 9 --dry-run");
  EXPECT_EQ(end.code, 2) << end.out;
  EXPECT_NE(end.out.find("wanted 9 workers on 8 GPUs"), std::string::npos) << end.out;
}

TEST_F(ProcessWorkersTest, VisibleDevicesAreThoseOfTheUser) {
  surroundings_ += " CUDA_VISIBLE_DEVICES=5,3";
  EXPECT_EQ(planned(""), "2 workers on cuda");
  EXPECT_EQ(seen(""), (std::vector<std::string>{"sees 3", "sees 5"}));
}

}  // namespace
}  // namespace convoy::apps
