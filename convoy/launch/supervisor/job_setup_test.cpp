// SPDX-License-Identifier: Apache-2.0
//
// Tests the devices of convoy-workers by flags, by the GPUs that NVML shows, and by the abilities
// of their LibTorch.
#include "convoy/launch/supervisor/job_setup.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "files/temporary_folder.h"

namespace convoy::launch {
namespace {

// Needs the library of tests/fake_nvml.
class WorkerDevices : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const folder = std::getenv("CONVOY_BIN_DIR");
    const std::filesystem::path library =
        std::filesystem::path(folder == nullptr ? "." : folder) / "libfake_nvml.so";
    if (!std::filesystem::exists(library)) GTEST_SKIP() << library << " is not built";
    environment_ = {{"CONVOY_NVML_LIBRARY", library.string()}};
    request_.members.env_source = "none";
    request_.own_program.emplace();
    show_gpus("GPU-aa11 A100 0000:3b:00.0 80000;GPU-bb22 A100 0000:5e:00.0 80000");
  }
  void TearDown() override { ::unsetenv("FAKE_NVML"); }

  static void show_gpus(const char* gpus) { ::setenv("FAKE_NVML", gpus, 1); }
  JobSetup set_up() const { return set_up_job(request_, environment_); }
  template <class Wanted>
  void expect_refused(const std::string& words) const {
    try {
      set_up();
      ADD_FAILURE() << "not refused: " << words;
    } catch (const Wanted& error) {
      EXPECT_NE(error.sentence().find(words), std::string::npos) << error.sentence();
    }
  }
  static bool says(const JobSetup& setup, const std::string& words) {
    for (const std::string& note : setup.notes)
      if (note.find(words) != std::string::npos) return true;
    for (const std::string& note : setup.placement.notes)
      if (note.find(words) != std::string::npos) return true;
    return false;
  }

  SetupRequest request_;
  Environment environment_;
};

TEST_F(WorkerDevices, AreTheGpusWhereThereAreSome) {
  const JobSetup one = set_up();
  EXPECT_TRUE(one.on_gpus);
  EXPECT_EQ(one.num_local_ranks, 1);
  EXPECT_TRUE(says(one, "2 GPUs are visible and 1 rank is planned"));
  for (const char* const all : {"auto", "gpu", "2"}) {
    request_.members.nproc_per_node = all;
    EXPECT_EQ(set_up().num_local_ranks, 2) << all;
  }
  EXPECT_EQ(set_up().placement.ranks.at(1).device, "gpu 1");
  request_.members.nproc_per_node = "3";
  expect_refused<ConfigError>("3 ranks need a GPU each, found 2 visible");
}

TEST_F(WorkerDevices, AreThoseThatGpuIdsNames) {
  request_.members.gpu_ids = "1";
  request_.members.nproc_per_node = "auto";
  const JobSetup setup = set_up();
  EXPECT_EQ(setup.num_local_ranks, 1);
  EXPECT_EQ(setup.visible_devices, "1");
}

TEST_F(WorkerDevices, AreTheCpusWhenAskedFor) {
  request_.own_program->devices = "cpu";
  request_.members.nproc_per_node = "auto";
  const JobSetup setup = set_up();
  EXPECT_FALSE(setup.on_gpus);
  EXPECT_EQ(setup.num_local_ranks, 1);
  EXPECT_FALSE(says(setup, "GPU"));
  request_.members.nproc_per_node = "gpu";
  expect_refused<ConfigError>("--devices cpu and a request for GPUs exclude each other");
}

TEST_F(WorkerDevices, AreTheCpusOfAHostWithoutGpus) {
  show_gpus("");
  EXPECT_FALSE(set_up().on_gpus);
  request_.own_program->devices = "cuda";
  expect_refused<DeviceError>("wanted GPUs to compute on, found none: ");
  request_.own_program->devices = "auto";
  request_.members.nproc_per_node = "gpu";
  expect_refused<DeviceError>("wanted GPUs to compute on, found none: ");
}

TEST_F(WorkerDevices, AreTheCpusOfAHostWithAmdsGpusAndThatIsSaid) {
  show_gpus("");
  const testing::TemporaryFolder host;
  const std::filesystem::path node = host / "sys/class/kfd/kfd/topology/nodes/1";
  write_file_atomic(node / "properties",
                    "simd_count 1216\nvendor_id 4098\ngfx_target_version 90402\n");
  write_file_atomic(node / "gpu_id", "7777\n");
  environment_["CONVOY_HOST_ROOT"] = host.path().string();
  const JobSetup setup = set_up();
  EXPECT_FALSE(setup.on_gpus);
  EXPECT_TRUE(says(setup, "computing on CPUs although this host has AMD gfx942: "))
      << setup.notes.size();
  request_.own_program->devices = "cuda";
  expect_refused<DeviceError>("Convoy's own commands compute on NVIDIA's GPUs alone");
}

TEST_F(WorkerDevices, AreTheCpusOfALibtorchWithoutCudaAndThatIsSaid) {
  request_.own_program->why_no_cuda = [] { return "the LibTorch in /here is without CUDA"; };
  const JobSetup setup = set_up();
  EXPECT_FALSE(setup.on_gpus);
  EXPECT_TRUE(says(setup, "computing on CPUs although this host has A100: the LibTorch in /here"));
  request_.own_program->devices = "cuda";
  expect_refused<DeviceError>("the LibTorch in /here is without CUDA");
}

TEST_F(WorkerDevices, HiddenGpusAreNone) {
  environment_["CUDA_VISIBLE_DEVICES"] = "";
  EXPECT_FALSE(set_up().on_gpus);
  request_.own_program->devices = "cuda";
  expect_refused<DeviceError>("CUDA_VISIBLE_DEVICES is ``, which hides every GPU");
}

TEST_F(WorkerDevices, ChosenByNumberWhereThereIsNoneSayWhy) {
  show_gpus("");
  request_.members.gpu_ids = "0";
  expect_refused<DeviceError>("wanted GPUs to compute on, found none: ");
}

TEST_F(WorkerDevices, WithoutARankAreAnnouncedOnlyWhereTheyCouldHaveOne) {
  request_.own_program->one_rank = true;
  EXPECT_FALSE(says(set_up(), "are visible and"));
}

// The question whether CUDA works loads the driver's library, so it is asked only if a GPU may be
// used.
TEST_F(WorkerDevices, CudaIsAskedForOnlyWhereItMatters) {
  int times_asked = 0;
  request_.own_program->why_no_cuda = [&] {
    ++times_asked;
    return "";
  };
  request_.own_program->devices = "cpu";
  set_up();
  request_.own_program->devices = "auto";
  show_gpus("");
  set_up();
  EXPECT_EQ(times_asked, 0);
}

}  // namespace
}  // namespace convoy::launch
