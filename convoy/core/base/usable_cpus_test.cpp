// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/usable_cpus.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <fstream>
#include <thread>

#include "files/temporary_folder.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;

class CpuQuota : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text << '\n';
  }
  int quota() const { return cpu_quota(root_ / "sys", root_ / "proc"); }

  testing::TemporaryFolder root_;
};

TEST_F(CpuQuota, UnifiedHierarchyTakesTheTightestLevel) {
  write("proc/self/cgroup", "0::/system.slice/job.scope");
  write("sys/fs/cgroup/system.slice/cpu.max", "350000 100000");
  write("sys/fs/cgroup/system.slice/job.scope/cpu.max", "max 100000");
  EXPECT_EQ(quota(), 4);
  write("sys/fs/cgroup/system.slice/job.scope/cpu.max", "50000 100000");
  EXPECT_EQ(quota(), 1);
}

TEST_F(CpuQuota, ContainerSeesOnlyItsOwnRoot) {
  write("proc/self/cgroup", "0::/kubepods/pod7/abc");
  write("sys/fs/cgroup/cpu.max", "200000 100000");
  EXPECT_EQ(quota(), 2);
}

TEST_F(CpuQuota, FirstVersionByItsControllerNotByItsNeighbours) {
  write("proc/self/cgroup", "5:cpuset:/a\n4:cpu,cpuacct:/b\n3:cpuacct:/a\n0::/");
  write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "100000");
  write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000");
  write("sys/fs/cgroup/cpu,cpuacct/b/cpu.cfs_quota_us", "300000");
  write("sys/fs/cgroup/cpu,cpuacct/b/cpu.cfs_period_us", "100000");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
  EXPECT_EQ(quota(), 3);
}

TEST_F(CpuQuota, NoneWithoutFilesOrWithNonsense) {
  EXPECT_EQ(quota(), 0);
  write("proc/self/cgroup", "0::/\nbroken");
  write("sys/fs/cgroup/cpu.max", "lots of it");
  EXPECT_EQ(quota(), 0);
}

TEST(UsableCpus, FollowTheAffinityMask) {
  const int all = usable_cpus();
  EXPECT_GE(all, 1);
  EXPECT_LE(all, static_cast<int>(allowed_cpus().size()));
  // The mask is set in a separate thread, so that it ends with that thread.
  std::thread([] {
    const int cpu = allowed_cpus().back();
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(cpu), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_EQ(allowed_cpus(), std::vector<int>{cpu});
    EXPECT_EQ(usable_cpus(), 1);
  }).join();
}

}  // namespace
}  // namespace convoy
