// SPDX-License-Identifier: Apache-2.0
//
// Runs `convoy sweep ssm|mf --devices` as a user does, on fake GPUs that run the real kernels: GPUs
// that exist, do not exist, break, or run out of memory.
#include <map>
#include <nlohmann/json.hpp>

#include "convoy/farm/experiments/cuda/device.h"
#include "sweep/sweep_process.h"

namespace convoy::testing {
namespace {

class SweepOnGpus : public SweepTest {
 protected:
  SweepOnGpus() {
    const std::string folder = std::getenv("CONVOY_BIN_DIR");
    set("CONVOY_NVML_LIBRARY", folder + "/libfake_nvml.so");
    set("CONVOY_CUDA_LIBRARY", folder + "/libfake_cuda.so");
    set("FAKE_NVML", "GPU-1 A100 0000:3b:00.0 80000;GPU-2 H100 0001:17:00.0 80000");
    set("FAKE_CUDA", "devices=2");
    ::unsetenv("CUDA_VISIBLE_DEVICES");
  }
  ~SweepOnGpus() override {
    for (const std::string& name : set_) ::unsetenv(name.c_str());
  }

  void set(const std::string& name, const std::string& value) {
    ::setenv(name.c_str(), value.c_str(), 1);
    set_.push_back(name);
  }

  // Runs a small sweep whose results go to a folder of their own.
  SweepEnd sweep(const std::string& device, const std::string& folder,
                 const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {
        "ssm",  "--seeds",           "0",          "1",           "--student-dims", "5",
        "9",    "--gnc-num-samples", "40000",      "--eps-train", "0.01",           "--device",
        device, "--results-dir",     text(folder), "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }

  // Like sweep(), for matrix factorisation, with one width for each kind of kernel.
  SweepEnd sweep_mf(const std::string& device, const std::string& folder,
                    const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"mf",
                                          "--num-seeds",
                                          "1",
                                          "--widths",
                                          "5",
                                          "8",
                                          "9",
                                          "--gd-epochs",
                                          "20",
                                          "--gnc-num-samples",
                                          "8000",
                                          "--activation",
                                          "LeakyReLU",
                                          "--devices",
                                          device,
                                          "--results-dir",
                                          text(folder),
                                          "--json",
                                          "--gnc-eps-train",
                                          "0.05"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }

  // Returns those numbers of each cell that are the same on every device.
  static nlohmann::json numbers(const SweepEnd& end) {
    nlohmann::json all = nlohmann::json::array();
    for (nlohmann::json cell : nlohmann::json::parse(end.output)) {
      for (const char* name : {"device", "seconds", "guesses_per_second", "attempts"})
        cell.erase(name);
      all.push_back(std::move(cell));
    }
    return all;
  }

  static std::string devices(const SweepEnd& end) {
    std::string all;
    for (const auto& cell : nlohmann::json::parse(end.output)) all += cell["device"].dump();
    return all;
  }

 private:
  std::vector<std::string> set_;
};

TEST_F(SweepOnGpus, GivesTheResultsOfTheCpu) {
  const SweepEnd wanted = sweep("cpu", "cpu", {"--gd", "--gd-epochs", "20"});
  ASSERT_EQ(wanted.status, 0) << wanted.errors;
  EXPECT_EQ(devices(wanted).find("cuda"), std::string::npos);
  for (const char* device : {"cuda", "auto"}) {
    const SweepEnd end = sweep(device, device, {"--gd", "--gd-epochs", "20", "--workers", "1"});
    ASSERT_EQ(end.status, 0) << end.errors;
    EXPECT_EQ(numbers(end), numbers(wanted)) << device;
    // With `auto`, the CPU may have computed everything before a fake GPU began.
    const bool by_gpu = devices(end).find("Fake GPU") != std::string::npos;
    EXPECT_TRUE(by_gpu || device == std::string("auto")) << end.output;
  }
  const SweepEnd fast = sweep("cuda", "fast", {"--mode", "fast"});
  const SweepEnd wanted_fast = sweep("cpu", "fast_cpu", {"--mode", "fast"});
  ASSERT_EQ(fast.status, 0) << fast.errors;
  EXPECT_EQ(numbers(fast), numbers(wanted_fast));
}

TEST_F(SweepOnGpus, FactorisesAsTheCpu) {
  const SweepEnd wanted = sweep_mf("cpu", "cpu");
  ASSERT_EQ(wanted.status, 0) << wanted.errors;
  EXPECT_EQ(devices(wanted).find("cuda"), std::string::npos);
  const SweepEnd end = sweep_mf("cuda", "cuda", {"--max-gpus", "1"});
  ASSERT_EQ(end.status, 0) << end.errors;
  EXPECT_NE(end.errors.find("1 worker: GPU 0 ("), std::string::npos) << end.errors;
  EXPECT_EQ(numbers(end), numbers(wanted));
  for (const auto& cell : nlohmann::json::parse(end.output))
    EXPECT_NE(cell["device"].dump().find("Fake GPU"), std::string::npos) << cell;
  // The GPU has too little memory for the matrices of all threads that it could run at once.
  set("FAKE_CUDA", "memory=200000");
  const SweepEnd little = sweep_mf("cuda", "little", {"--max-gpus", "1"});
  ASSERT_EQ(little.status, 0) << little.errors;
  EXPECT_EQ(numbers(little), numbers(wanted));
}

TEST_F(SweepOnGpus, LeavesShortcutsToTheCpu) {
  const std::vector<std::string> shortcut = {"--shortcut", "bartlett", "--activation", "Linear",
                                             "--widths",   "8",        "--no-gd"};
  const SweepEnd wanted = sweep_mf("cpu", "cpu", shortcut);
  const SweepEnd end = sweep_mf("cuda", "cuda", shortcut);
  ASSERT_EQ(end.status, 0) << end.errors;
  EXPECT_EQ(numbers(end), numbers(wanted));
  EXPECT_EQ(devices(end).find("cuda"), std::string::npos) << devices(end);
}

TEST_F(SweepOnGpus, UsesThoseThatAreVisibleAndWanted) {
  const SweepEnd both = sweep("cuda", "both");
  ASSERT_EQ(both.status, 0) << both.errors;
  EXPECT_NE(both.errors.find("2 workers: GPU 0, GPU 1 ("), std::string::npos) << both.errors;
  const SweepEnd one = sweep("cuda", "one", {"--max-gpus", "1"});
  EXPECT_NE(devices(one).find("cuda:0 "), std::string::npos) << devices(one);
  EXPECT_EQ(devices(one).find("cuda:1 "), std::string::npos) << devices(one);
  set("CUDA_VISIBLE_DEVICES", "1");
  const SweepEnd visible = sweep("cuda", "visible");
  ASSERT_EQ(visible.status, 0) << visible.errors;
  EXPECT_EQ(devices(visible).find("cuda:0 "), std::string::npos) << devices(visible);
  EXPECT_NE(devices(visible).find("cuda:1 "), std::string::npos) << devices(visible);
  EXPECT_EQ(numbers(visible), numbers(both));
}

TEST_F(SweepOnGpus, SaysWhatIsMissing) {
  set("FAKE_NVML", "");
  const SweepEnd none = sweep("cuda", "none");
  EXPECT_EQ(none.status, 2);
  EXPECT_NE(none.errors.find("wanted GPUs, found none"), std::string::npos) << none.errors;
  EXPECT_NE(none.errors.find("use --device cpu"), std::string::npos) << none.errors;
  const SweepEnd without = sweep("auto", "without", {"--max-gpus", "2"});
  EXPECT_EQ(without.status, 0) << without.errors;
  EXPECT_NE(without.errors.find("--max-gpus 2: no usable GPU ("), std::string::npos)
      << without.errors;

  set("FAKE_NVML", "GPU-1 A100 0000:3b:00.0 80000");
  set("FAKE_CUDA", "version=9020");
  const SweepEnd old = sweep("cuda", "old");
  EXPECT_EQ(old.status, 2);
  EXPECT_NE(old.errors.find("CUDA 9.2; wanted 11.0 or newer"), std::string::npos) << old.errors;

  set("FAKE_CUDA", "fail=cuModuleLoadDataEx:222");
  const SweepEnd text = sweep("cuda", "text");
  EXPECT_EQ(text.status, 2);
  EXPECT_NE(text.errors.find("compute capability 7.5 or newer"), std::string::npos) << text.errors;

  set("CONVOY_CUDA_LIBRARY", "/nowhere/libcuda.so.1");
  const SweepEnd driver = sweep("cuda", "driver");
  EXPECT_EQ(driver.status, 2);
  EXPECT_NE(driver.errors.find("there is no NVIDIA driver"), std::string::npos) << driver.errors;
  // The first line names the devices that compute.
  const SweepEnd alone = sweep("auto", "alone");
  EXPECT_EQ(alone.status, 0) << alone.errors;
  EXPECT_NE(alone.errors.find("GPUs cannot be used: there is no NVIDIA driver"), std::string::npos)
      << alone.errors;
  EXPECT_NE(alone.errors.find(" on CPUs ("), std::string::npos) << alone.errors;
  EXPECT_EQ(alone.errors.find("GPU 0"), std::string::npos) << alone.errors;
}

// The driver compiles kernels for longer than a range may take. No guess is lost.
TEST_F(SweepOnGpus, WaitsForASlowDriver) {
  set("FAKE_CUDA", "slow_load=2200");
  const SweepEnd slow = sweep("cuda", "slow", {"--max-gpus", "1"});
  ASSERT_EQ(slow.status, 0) << slow.errors;
  EXPECT_EQ(numbers(slow), numbers(sweep("cpu", "cpu")));
}

// The CPU computes the work of a GPU that cannot be opened.
TEST_F(SweepOnGpus, GoesOnWithTheCpuWhereThatIsAllowed) {
  set("FAKE_CUDA", "fail=cuDevicePrimaryCtxRetain:46");
  const SweepEnd end = sweep("auto", "broken");
  ASSERT_EQ(end.status, 0) << end.errors;
  const std::string said = "its GPU cannot be used";
  const size_t place = end.errors.find(said);
  ASSERT_NE(place, std::string::npos) << end.errors;
  EXPECT_EQ(end.errors.find(said, place + 1), std::string::npos) << "once, not by each worker";
  EXPECT_EQ(devices(end).find("cuda"), std::string::npos);
  EXPECT_EQ(numbers(end), numbers(sweep("cpu", "cpu")));
}

// The worker ends, and another worker computes its range.
TEST_F(SweepOnGpus, ComputesTheRangeOfALostGpuAgain) {
  set("FAKE_CUDA", "fail=cuLaunchKernel:719:5 once=" + text("lost"));
  const SweepEnd end = sweep("cuda", "again", {"--max-gpus", "1"});
  ASSERT_EQ(end.status, 0) << end.errors;
  EXPECT_TRUE(std::filesystem::exists(path("lost")));
  EXPECT_EQ(numbers(end), numbers(sweep("cpu", "cpu")));
}

// The watched kernels have no race with all barriers, and have a race without any one of them.
TEST_F(SweepOnGpus, DescendsWithoutRaces) {
  const std::map<std::string, std::vector<std::string>> sweeps = {
      {"mf_descend",
       {"mf", "--depths", "3", "--num-seeds", "1", "--gd-epochs", "3", "--gd-log-period", "2",
        "--activation", "Tanh"}},
      {"ssm_descend",
       {"ssm", "--student-dims", "9", "--num-seeds", "1", "--gd-epochs", "11", "--gd",
        "--gd-scheduler", "adaptive"}}};
  for (const auto& [kernel, flags] : sweeps) {
    const std::string text = nvidia::kernel_text_of(experiments::cuda::kernel_texts(), kernel);
    int barriers = 0;
    for (size_t at = text.find("bar.sync"); at != std::string::npos;
         at = text.find("bar.sync", at + 1))
      ++barriers;
    ASSERT_GT(barriers, 4);
    for (int missing = -1; missing < barriers; ++missing) {
      set("FAKE_CUDA", fmt::format("races=watched without_barrier={}", missing));
      std::vector<std::string> arguments = flags;
      arguments.insert(arguments.end(), {"--no-gnc", "--devices", "cuda", "--max-attempts", "1",
                                         "--results-dir", this->text(kernel), "--json"});
      const SweepEnd end = run(arguments);
      EXPECT_EQ(end.status, missing < 0 ? 0 : 15) << kernel << missing << end.errors;
      std::filesystem::remove_all(path(kernel));
    }
  }
}

// All cells of a claim are descended together, and another worker descends all of them again.
TEST_F(SweepOnGpus, DescendsAgainAfterALostGpu) {
  set("FAKE_CUDA", "fail=cuLaunchKernel:719 once=" + text("lost"));
  const SweepEnd end = sweep_mf("cuda", "again", {"--max-gpus", "1", "--no-gnc"});
  ASSERT_EQ(end.status, 0) << end.errors;
  EXPECT_TRUE(std::filesystem::exists(path("lost")));
  EXPECT_EQ(numbers(end), numbers(sweep_mf("cpu", "cpu", {"--no-gnc"})));
}

TEST_F(SweepOnGpus, FailsCellsThatLoseEveryGpu) {
  set("FAKE_CUDA", "fail=cuLaunchKernel:719");
  const SweepEnd end = sweep("cuda", "lost", {"--keep-going"});
  EXPECT_EQ(end.status, 15) << end.errors;
  for (const auto& cell : nlohmann::json::parse(end.output)) {
    EXPECT_EQ(cell["state"], "failed");
    EXPECT_EQ(cell["failure_kind"], "device") << cell.dump();
  }
}

// The memory has room for fewer guesses than a launch would take, so there are more launches.
TEST_F(SweepOnGpus, NeedsLittleMemory) {
  const SweepEnd wanted = sweep("cpu", "cpu", {"--gnc-num-samples", "150000"});
  set("FAKE_CUDA", "memory=400000");
  const SweepEnd little = sweep("cuda", "little", {"--gnc-num-samples", "150000"});
  ASSERT_EQ(little.status, 0) << little.errors;
  EXPECT_EQ(numbers(little), numbers(wanted));
  set("FAKE_CUDA", "memory=200000");
  const SweepEnd none = sweep("cuda", "no_room", {"--keep-going"});
  EXPECT_EQ(none.status, 15) << none.errors;
  for (const auto& cell : nlohmann::json::parse(none.output))
    EXPECT_EQ(cell["failure_kind"], "memory") << cell.dump();
}

}  // namespace
}  // namespace convoy::testing
