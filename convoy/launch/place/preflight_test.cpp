// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/place/preflight.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "convoy/core/base/descriptor.h"
#include "files/temporary_folder.h"

namespace convoy::launch {
namespace {

namespace fs = std::filesystem;

Finding find(const PreflightRequest& request, const std::string& check) {
  for (const Finding& finding : preflight(request))
    if (finding.check == check) return finding;
  ADD_FAILURE() << "no finding about " << check;
  return {};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A listener on loopback at a port of the kernel's choice.
struct Listener {
  Listener() : socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(::listen(socket.get(), 1), 0);
    ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length);
    port = ntohs(address.sin_port);
  }
  Descriptor socket;
  int port = 0;
};

TEST(Preflight, TakenPortNamesItsHolder) {
  Listener listener;
  const Finding taken =
      find({.endpoint_addr = "127.0.0.1", .endpoint_port = listener.port}, "port");
  EXPECT_EQ(taken.severity, Severity::Error);
  EXPECT_TRUE(has(taken.found, "is taken by process " + std::to_string(::getpid()))) << taken.found;
  EXPECT_TRUE(has(taken.to_do, "another port"));
  listener.socket.reset();
  EXPECT_EQ(find({.endpoint_addr = "127.0.0.1", .endpoint_port = listener.port}, "port").severity,
            Severity::Ok);
}

TEST(Preflight, PortAloneIsTriedOnEveryAddress) {
  Listener listener;
  const Finding taken = find({.endpoint_port = listener.port}, "port");
  EXPECT_EQ(taken.severity, Severity::Error);
  EXPECT_TRUE(has(taken.found, fmt::format("port {} is taken by process", listener.port)))
      << taken.found;
  listener.socket.reset();
  EXPECT_EQ(find({.endpoint_port = listener.port}, "port").severity, Severity::Ok);
}

TEST(Preflight, ProgramsThatCanNotStartAreErrors) {
  const testing::TemporaryFolder root;
  std::ofstream(root / "plain") << "#!/bin/sh\n";
  std::ofstream(root / "lost") << "#! /nowhere/sh -e\n";
  fs::permissions(root / "lost", fs::perms::owner_all);
  for (const std::string& program :
       {std::string("./nothing_there"), std::string("no-such-program-in-path"),
        (root / "plain").string(), (root / "lost").string(), root.path().string(),
        std::string(5'000, 'x')}) {
    const Finding finding = find({.program = program}, "program");
    EXPECT_EQ(finding.severity, Severity::Error) << finding.found;
    EXPECT_TRUE(has(finding.found, "could not be started")) << finding.found;
  }
  EXPECT_EQ(find({.program = "true"}, "program").severity, Severity::Ok);
  EXPECT_EQ(find({.program = "sh", .script = "/nowhere/x.py"}, "program").severity,
            Severity::Error);
  EXPECT_EQ(find({.program = "sh", .script = root / "plain"}, "program").severity, Severity::Ok);
}

// Returns the path of an executable script with this first line.
std::string script(const testing::TemporaryFolder& root, const std::string& first_line) {
  const fs::path file = root / "script";
  std::ofstream(file) << first_line << "\necho done\n";
  fs::permissions(file, fs::perms::owner_all);
  return file;
}

TEST(Preflight, FirstLineOfAScriptIsReadAsTheKernelDoes) {
  const testing::TemporaryFolder root;
  for (const char* const line :
       {"#!/bin/sh", "#! /bin/sh -e", "#!/usr/bin/env sh", "#!/usr/bin/env -S sh -e", "#!",
        "# a comment", "#!/usr/bin/env NAME=1 nothing-there", "#!/bin/sh -e\r"})
    EXPECT_EQ(find({.program = script(root, line)}, "program").severity, Severity::Ok) << line;
  const Finding lost = find({.program = script(root, "#!/nowhere/python3 -u")}, "program");
  EXPECT_TRUE(has(lost.found, "its first line names the interpreter /nowhere/python3: No such"))
      << lost.found;
  const Finding by_env =
      find({.program = script(root, "#!/usr/bin/env no-such-python")}, "program");
  EXPECT_TRUE(has(by_env.found, "the interpreter no-such-python: no folder of PATH has it"))
      << by_env.found;
  for (const char* const line : {"#!/bin/sh\r", "#!/usr/bin/env sh\r"}) {
    const Finding windows = find({.program = script(root, line)}, "program");
    EXPECT_EQ(windows.severity, Severity::Error);
    EXPECT_TRUE(has(windows.found, "Windows line ends")) << windows.found;
    EXPECT_TRUE(has(windows.to_do, "sed -i 's/\\r$//'")) << windows.to_do;
  }
}

TEST(Preflight, WhatIsNoProgramIsToldWithWhatMayBeMeant) {
  const testing::TemporaryFolder root;
  const fs::path before = fs::current_path();
  fs::current_path(root.path());
  const Finding folder = find({.program = root.path()}, "program");
  EXPECT_TRUE(has(folder.found, "it is a folder")) << folder.found;
  std::ofstream(root / "trainer") << "#!/bin/sh\n";
  EXPECT_TRUE(has(find({.program = "trainer"}, "program").to_do, "./trainer after chmod +x"));
  EXPECT_TRUE(has(find({.program = "./trainer"}, "program").to_do, "chmod +x ./trainer"));
  fs::permissions(root / "trainer", fs::perms::owner_all);
  const Finding here = find({.program = "trainer"}, "program");
  EXPECT_TRUE(has(here.found, "no folder of PATH has it")) << here.found;
  EXPECT_TRUE(has(here.to_do, "type ./trainer")) << here.to_do;
  fs::create_directory(root / "package");
  EXPECT_TRUE(has(find({.program = "package"}, "program").found, "it is a folder"));
  std::ofstream(root / "package" / "__main__.py") << "print(1)\n";
  EXPECT_TRUE(has(find({.program = "package"}, "program").to_do, "--run-path"));
  fs::current_path(before);
}

TEST(Preflight, ForeignAddressIsAWarning) {
  // TEST-NET-2 is never an address of this host.
  const Finding foreign = find({.endpoint_addr = "198.51.100.7", .endpoint_port = 29400}, "port");
  EXPECT_EQ(foreign.severity, Severity::Warning);
  EXPECT_TRUE(has(foreign.found, "not an address of this host"));
  EXPECT_EQ(find({.endpoint_addr = "not a host", .endpoint_port = 29400}, "port").severity,
            Severity::Warning);
  Listener listener;
  EXPECT_EQ(
      find({.endpoint_addr = "198.51.100.7", .endpoint_port = listener.port}, "port").severity,
      Severity::Error);
}

TEST(Preflight, NoEndpointNoPortFinding) {
  for (const Finding& finding : preflight({})) EXPECT_NE(finding.check, "port");
}

TEST(Preflight, FewOpenFilesAreAWarning) {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  rlimit low = before;
  low.rlim_cur = 150;
  ::setrlimit(RLIMIT_NOFILE, &low);
  const Finding few = find({.num_ranks = 64}, "open_files");
  const Finding enough = find({.num_ranks = 2}, "open_files");
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(few.severity, Severity::Warning);
  EXPECT_TRUE(has(few.found, "at most 150, about 192 are needed")) << few.found;
  EXPECT_EQ(enough.severity, Severity::Ok);
}

TEST(Preflight, MoreRanksThanTheLauncherCanServeAreAnError) {
  const Finding far_too_many = find({.num_ranks = 100'000'000}, "open_files");
  EXPECT_EQ(far_too_many.severity, Severity::Error);
  EXPECT_TRUE(has(far_too_many.found, "needs 600000032")) << far_too_many.found;
}

TEST(Preflight, CgroupLimitOnProcesses) {
  const testing::TemporaryFolder root;
  fs::create_directories(root / "proc/self");
  fs::create_directories(root / "sys/fs/cgroup/pod");
  std::ofstream(root / "proc/self/cgroup") << "0::/pod\n";
  std::ofstream(root / "sys/fs/cgroup/pod/pids.max") << "200\n";
  std::ofstream(root / "sys/fs/cgroup/pod/pids.current") << "50\n";
  PreflightRequest request = {.num_ranks = 4, .proc = root / "proc", .sys = root / "sys"};
  const Finding tight = find(request, "cgroup_processes");
  EXPECT_EQ(tight.severity, Severity::Warning);
  EXPECT_TRUE(has(tight.found, "allows 200 processes and threads, 50 are in use")) << tight.found;
  std::ofstream(root / "sys/fs/cgroup/pod/pids.max") << "max\n";
  EXPECT_EQ(find(request, "cgroup_processes").severity, Severity::Ok);
}

TEST(Preflight, CgroupLimitAboveTheOwnGroup) {
  const testing::TemporaryFolder root;
  const fs::path slice = root / "sys/fs/cgroup/slice";
  fs::create_directories(root / "proc/self");
  fs::create_directories(slice / "pod");
  std::ofstream(root / "proc/self/cgroup") << "0::/slice/pod\n";
  std::ofstream(slice / "pod/pids.max") << "max\n";
  std::ofstream(slice / "pids.max") << "1000\n";
  std::ofstream(slice / "pids.current") << "900\n";
  const PreflightRequest request = {.num_ranks = 4, .proc = root / "proc", .sys = root / "sys"};
  const Finding above = find(request, "cgroup_processes");
  EXPECT_EQ(above.severity, Severity::Warning);
  EXPECT_TRUE(has(above.found, "allows 1000 processes and threads, 900 are in use")) << above.found;
  // The pod's own limit is lower, but leaves room for more processes than the slice's limit.
  std::ofstream(slice / "pod/pids.max") << "600\n";
  std::ofstream(slice / "pod/pids.current") << "10\n";
  const Finding both = find(request, "cgroup_processes");
  EXPECT_EQ(both.severity, Severity::Warning);
  EXPECT_TRUE(has(both.found, "allows 1000")) << both.found;
  std::ofstream(slice / "pids.max") << "max\n";
  EXPECT_EQ(find(request, "cgroup_processes").severity, Severity::Ok);
}

TEST(Preflight, SharedMemory) {
  EXPECT_EQ(find({.num_ranks = 2, .shared_memory = "/nowhere/shm"}, "shared_memory").severity,
            Severity::Warning);
  const Finding small = find({.num_ranks = 100'000'000}, "shared_memory");
  EXPECT_EQ(small.severity, Severity::Warning);
  EXPECT_TRUE(has(small.to_do, "--shm-size"));
  EXPECT_EQ(find({.num_ranks = 1, .shared_memory = "/"}, "shared_memory").severity, Severity::Ok);
  // The file system of /proc has no free space.
  EXPECT_EQ(find({.num_ranks = 1, .shared_memory = "/proc"}, "shared_memory").severity,
            Severity::Warning);
}

TEST(Preflight, FoldersAreWrittenForAMomentAndLeftClean) {
  const testing::TemporaryFolder root;
  const PreflightRequest good = {.scratch_folder = root.path(), .log_folder = root / "made/later"};
  EXPECT_EQ(find(good, "scratch").severity, Severity::Ok);
  EXPECT_NE(find(good, "logs").severity, Severity::Error);
  EXPECT_TRUE(fs::is_empty(root.path()));
  // /proc refuses new files to root as well.
  const PreflightRequest bad = {.scratch_folder = "/proc", .log_folder = "/proc"};
  EXPECT_EQ(find(bad, "scratch").severity, Severity::Error);
  EXPECT_EQ(find(bad, "logs").severity, Severity::Warning);
}

TEST(PreflightText, TableAndJson) {
  const std::vector<Finding> findings = {{Severity::Ok, "port", "free", ""},
                                         {Severity::Error, "scratch", "full", "make room"}};
  EXPECT_EQ(worst(findings), Severity::Error);
  EXPECT_EQ(worst({}), Severity::Ok);
  EXPECT_EQ(preflight_table(findings),
            "result  check    found\nok      port     free\nerror   scratch  full\n                "
            " -> make room\n");
  EXPECT_EQ(nlohmann::json::parse(preflight_json(findings))[1]["to_do"], "make room");
}

}  // namespace
}  // namespace convoy::launch
