// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/usable_memory.h"

#include <gtest/gtest.h>

#include <fstream>

#include "files/temporary_folder.h"

namespace convoy {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

class UsableMemory : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = folder_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  int64_t usable() const {
    return usable_memory_bytes({.sys = folder_ / "sys", .proc = folder_ / "proc"});
  }

  testing::TemporaryFolder folder_;
};

TEST_F(UsableMemory, IsWhatTheMachineHasAvailable) {
  EXPECT_EQ(usable(), 0) << "unknown";
  write("proc/meminfo", "MemTotal:       16777216 kB\nMemAvailable:    8388608 kB\n");
  EXPECT_EQ(usable(), 8 * kGiB);
}

TEST_F(UsableMemory, OrWhatTheGroupsAroundLeave) {
  write("proc/meminfo", "MemAvailable:    8388608 kB\n");
  write("proc/self/cgroup", "0::/jobs/one\n");
  write("sys/fs/cgroup/jobs/one/memory.max", "max\n");
  write("sys/fs/cgroup/jobs/memory.max", std::to_string(4 * kGiB));
  write("sys/fs/cgroup/jobs/memory.current", std::to_string(3 * kGiB));
  write("sys/fs/cgroup/jobs/memory.stat",
        "anon 5\ninactive_file " + std::to_string(kGiB) + "\nactive_file 7\n");
  EXPECT_EQ(usable(), 2 * kGiB);
}

TEST_F(UsableMemory, OfTheFirstVersionToo) {
  write("proc/meminfo", "MemAvailable:    8388608 kB\n");
  write("proc/self/cgroup", "4:memory:/job\n3:cpuset:/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", std::to_string(kGiB));
  write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", std::to_string(kGiB / 4));
  EXPECT_EQ(usable(), kGiB / 4 * 3);
}

}  // namespace
}  // namespace convoy
