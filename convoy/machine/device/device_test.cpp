// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/base/usable_cpus.h"
#include "convoy/machine/device/dtype.h"
#include "convoy/machine/device/memory.h"
#include "convoy/machine/device/seed.h"
#include "convoy/machine/device/tensor_memory.h"
#include "convoy/machine/device/threads.h"
#include "convoy/machine/device/transfer.h"

namespace convoy::device {
namespace {

TEST(Dtype, RoundTripAndRefusal) {
  EXPECT_EQ(parse_dtype("fp32"), at::kFloat);
  EXPECT_EQ(parse_dtype("bf16"), at::kBFloat16);
  EXPECT_EQ(dtype_name(parse_dtype("bf16")), "bf16");
  EXPECT_EQ(dtype_name(parse_dtype("fp16")), "fp16");
  EXPECT_EQ(dtype_name(at::kLong), "Long");
  EXPECT_THROW(parse_dtype("fp64"), ConfigError);
}

TEST(Seed, SamePointSameNumbersAndEachCounterMatters) {
  const SeedPoint point{.seed = 7, .epoch = 1, .step = 2, .micro_batch = 3};
  const uint64_t first = draw_key(point);
  EXPECT_EQ(draw_key(point), first);
  for (int64_t SeedPoint::*counter :
       {&SeedPoint::seed, &SeedPoint::epoch, &SeedPoint::step, &SeedPoint::micro_batch}) {
    SeedPoint other = point;
    other.*counter += 1;
    EXPECT_NE(draw_key(other), first);
  }
}

TEST(Upload, TablesOfAnyTypeAndNumberKeepTheirValues) {
  Upload upload(at::kCPU);
  std::vector<at::Tensor> added;
  for (int32_t round = 0; round < 40; ++round) {
    const std::vector<int32_t> narrow(static_cast<size_t>(round), round);
    added.push_back(upload.add(narrow));
    added.push_back(upload.add(std::vector<int64_t>{round, -1}));
    added.push_back(upload.add(std::vector<double>{0.5 * round}));
  }
  const at::Tensor last = upload.add(std::vector<float>{2.5F});
  upload.send();
  for (int32_t round = 0; round < 40; ++round) {
    const auto place = static_cast<size_t>(3 * round);
    EXPECT_TRUE(at::equal(added[place], at::full({round}, round, at::kInt)));
    EXPECT_TRUE(at::equal(added[place + 1], at::tensor({round, -1}, at::kLong)));
    EXPECT_EQ(added[place + 2].item<double>(), 0.5 * round);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(added[place + 1].const_data_ptr()) % 16, 0U);
  }
  EXPECT_EQ(last.item<float>(), 2.5F);
  Upload(at::kCPU).send();
}

TEST(Memory, GrowsWithTouchedPagesAndPeakCanStartAnew) {
  const ProcessMemory before = process_memory();
  {
    const std::vector<char> big(128 << 20, 1);  // not a tensor: its memory might be kept
    EXPECT_GE(process_memory().resident_bytes, before.resident_bytes + (100 << 20));
  }
  EXPECT_GE(process_memory().peak_resident_bytes, before.resident_bytes + (100 << 20));
  if (!reset_peak_memory()) GTEST_SKIP() << "the kernel does not allow resetting the peak";
  EXPECT_LT(process_memory().peak_resident_bytes, before.resident_bytes + (100 << 20));
}

TEST(TensorMemory, GivesTheHeapBackBetweenBlocksThatAreInUse) {
  keep_tensor_memory();
  std::vector<at::Tensor> kept;
  std::vector<at::Tensor> freed;
  for (int block = 0; block < 128; ++block) {
    freed.push_back(at::ones({512 << 10}, at::kByte));
    kept.push_back(at::ones({68 << 10}, at::kByte));
  }
  const int64_t before = process_memory().resident_bytes;
  freed.clear();
  forget_kept_tensor_memory();
  EXPECT_LT(process_memory().resident_bytes, before - (48 << 20));
  EXPECT_EQ(kept.back().sum().item<int64_t>(), 68 << 10);
}

TEST(Threads, SharesCpusAmongRanksUnlessTheUserDecided) {
  unsetenv("OMP_NUM_THREADS");
  EXPECT_EQ(share_cpu_threads(1), usable_cpus());
  EXPECT_EQ(share_cpu_threads(100'000), 1);
  setenv("OMP_NUM_THREADS", "3", 1);
  EXPECT_EQ(share_cpu_threads(1), 3);
  EXPECT_EQ(at::get_num_threads(), 3);
  EXPECT_EQ(share_cpu_threads(3, 3), 1);
  unsetenv("OMP_NUM_THREADS");
}

// Child processes that keep every CPU of this process busy.
class BusyProcesses {
 public:
  BusyProcesses() {
    for (int number = 0; number < usable_cpus(); ++number) {
      const pid_t process = ::fork();
      if (process == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
        }
      }
      processes_.push_back(process);
    }
  }
  ~BusyProcesses() {
    for (const pid_t process : processes_) {
      ::kill(process, SIGKILL);
      ::waitpid(process, nullptr, 0);
    }
  }

 private:
  std::vector<pid_t> processes_;
};

TEST(Threads, FollowTheCoresThatOtherWorkLeaves) {
  unsetenv("OMP_NUM_THREADS");
  const int all = share_cpu_threads(1);
  if (all < 2) GTEST_SKIP() << "one CPU has one thread";
  const BusyProcesses others;
  FreeCoreThreads threads(1);
  EXPECT_NE(threads.keep().find("are busy with other work"), std::string::npos) << threads.keep();
  EXPECT_EQ(at::get_num_threads(), all) << "keep() only tells";
  const std::string told = threads.take();
  EXPECT_LT(at::get_num_threads(), all);
  EXPECT_NE(told.find("are busy with other work): --threads"), std::string::npos) << told;
  EXPECT_EQ(threads.take(), "") << "once";
}

TEST(Threads, StayWhereTheUserChoseThemOrOtherRanksShareTheHost) {
  const BusyProcesses others;
  setenv("OMP_NUM_THREADS", "2", 1);
  EXPECT_EQ(share_cpu_threads(1), 2);
  EXPECT_EQ(FreeCoreThreads(1).take(), "");
  EXPECT_EQ(FreeCoreThreads(1).keep(), "");
  unsetenv("OMP_NUM_THREADS");
  EXPECT_EQ(FreeCoreThreads(2).take(), "");
  EXPECT_EQ(at::get_num_threads(), 2);
}

}  // namespace
}  // namespace convoy::device
