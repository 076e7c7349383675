// SPDX-License-Identifier: Apache-2.0
//
// Runs `convoy launch` with odd values, programs and arguments. Each launch ends with the right
// exit code and leaves nothing behind.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>

#include "launch/launch_process.h"

namespace convoy::testing {
namespace {

using HostileUse = LaunchTest;

TEST_F(HostileUse, BadValuesNameTheFlag) {
  const std::vector<std::vector<std::string>> bad = {
      {"--nproc-per-node", "0"},
      {"--nproc-per-node", "-1"},
      {"--nproc-per-node", "two"},
      {"--nproc-per-node", "2.5"},
      {"--nproc-per-node", "99999999999999999999"},
      {"--nproc-per-node", "gpu"},
      {"--nnodes", "0"},
      {"--nnodes", "2:1"},
      {"--nnodes", "1:2:3"},
      {"--nnodes", ":"},
      {"--max-restarts", "-1"},
      {"--max-restarts", "x"},
      {"--node-rank", "x"},
      {"--node-rank", "2", "--nnodes", "2", "--rdzv-endpoint", "127.0.0.1:29999"},
      {"--master-port", "65536"},
      {"--redirects", "4"},
      {"--redirects", "0:4"},
      {"--redirects", "a:1"},
      {"--tee", "0:"},
      {"--local-ranks-filter", "1,,2"},
      {"--signals-to-handle", "SIGKILL"},
      {"--signals-to-handle", "SIGNOPE"},
      {"--rdzv-backend", "zookeeper"},
      {"--rdzv-backend", "etcd"},
      {"--logs-specs", "mine"},
      {"--numa-binding", "moon"},
      {"--shutdown-timeout", "-5"},
      {"--shutdown-timeout", "nan"},
      {"--early-exit-timeout", "soon"},
      {"--env-source", "nobody"},
      {"--start-method", "teleport"},
      {"--rdzv-conf", "keep_alive_interval=soon"},
  };
  for (std::vector<std::string> arguments : bad) {
    SCOPED_TRACE(arguments[0] + " " + arguments[1]);
    const std::string name = arguments[0].substr(2);  // the spelling that the user typed
    arguments.insert(arguments.end(), {"touch", path("started")});
    const LaunchEnd end = run(arguments);
    EXPECT_EQ(end.status, 2) << end.errors;
    std::string dashed = end.errors;
    for (char& letter : dashed) letter = letter == '_' ? '-' : letter;
    EXPECT_NE(dashed.find(name), std::string::npos) << end.errors;
    EXPECT_FALSE(std::filesystem::exists(path("started")));
  }
}

TEST_F(HostileUse, BadVariableIsNamed) {
  LaunchStart what = shell(1, "true");
  what.arguments.erase(what.arguments.begin(), what.arguments.begin() + 2);
  what.environment = {{"PET_NPROC_PER_NODE", "many"}};
  const LaunchEnd end = run(what);
  EXPECT_EQ(end.status, 2);
  EXPECT_NE(end.errors.find("many"), std::string::npos) << end.errors;
}

TEST_F(HostileUse, UnknownFlagGetsASuggestion) {
  expect_refused({"--nproc-per-nod", "2", "true"}, {"nproc"});
  expect_refused({"--standalon", "true"}, {"standalone"});
}

TEST_F(HostileUse, HelpIsFoundAmongTheFlagsButNotAmongTheProgramsWords) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"--help"}, {"-h"}, {"--nproc-per-node", "2", "--help"}, {"-t", "3", "-h", "true"}}) {
    const LaunchEnd end = run(words);
    EXPECT_EQ(end.status, 0) << end.errors;
    EXPECT_NE(end.output.find("--nproc-per-node"), std::string::npos);
  }
  EXPECT_NE(run({"sh", "-c", "echo $0", "--help"}).output.find("--help\n"), std::string::npos);
}

TEST_F(HostileUse, NoProgram) {
  expect_refused({}, {"program"});
  expect_refused({"--nproc-per-node", "2"}, {"program"});
  expect_refused({"--nproc-per-node", "2", "--"}, {"program"});
}

TEST_F(HostileUse, ProgramsThatCanNotRun) {
  write("plain", "#!/bin/sh\ntrue\n");
  write("lost", "#!/nowhere/sh\ntrue\n", /*executable=*/true);
  std::filesystem::create_symlink("loop", path("loop"));
  for (const std::string& program :
       {std::string("/nowhere/program"), std::string("no-such-program-in-path"),
        path("plain").string(), folder_.path().string(), path("text.bin").string(),
        path("lost").string(), path("loop").string(), std::string(""), std::string(5'000, 'x')}) {
    SCOPED_TRACE(program.substr(0, 80));
    const LaunchEnd end = run({"--nproc-per-node", "2", program});
    EXPECT_EQ(end.status, 2) << end.errors;
    EXPECT_NE(end.errors.find("could not be started"), std::string::npos) << end.errors;
    EXPECT_TRUE(nothing_left());
  }
}

TEST_F(HostileUse, ProgramsThatCanNotRunAreToldApart) {
  write("lost", "#!/nowhere/sh\ntrue\n", /*executable=*/true);
  write("windows", "#!/bin/sh\r\ntrue\r\n", /*executable=*/true);
  write("by-env", "#!/usr/bin/env sh\r\ntrue\r\n", /*executable=*/true);
  write("here", "#!/bin/sh\ntrue\n", /*executable=*/true);
  std::filesystem::create_directory(path("folder"));
  LaunchStart what;
  what.before = {"sh", "-c", "cd $HERE && exec \"$@\"", "sh"};
  for (const auto& [program, words] :
       {std::pair("./lost", "its first line names the interpreter /nowhere/sh"),
        std::pair("./windows", "Windows line ends"), std::pair("./by-env", "Windows line ends"),
        std::pair("./folder", "it is a folder"), std::pair("folder", "it is a folder"),
        std::pair("here", "type ./here")}) {
    what.arguments = {"--nproc-per-node", "2", program};
    const LaunchEnd end = run(what);
    EXPECT_EQ(end.status, 2) << program;
    EXPECT_NE(end.errors.find(words), std::string::npos) << program << "\n" << end.errors;
    EXPECT_TRUE(nothing_left());
  }
}

TEST_F(HostileUse, ScriptWithoutAnInterpreterLineRunsAsAShellWouldRunIt) {
  write("bare", "echo bare $RANK >> $HERE/out\n", /*executable=*/true);
  const LaunchEnd end = run({"--nproc-per-node", "2", path("bare")});
  EXPECT_EQ(end.status, 0) << end.errors;
  EXPECT_EQ(numbers("out").size(), 0U);
  EXPECT_TRUE(wait_for_lines("out", 2));
}

TEST_F(HostileUse, MissingPythonScriptIsPythonsError) {
  const LaunchEnd end = run({"--nproc-per-node", "2", "/nowhere/train.py"});
  EXPECT_EQ(end.status, 2) << end.errors;
  EXPECT_NE(end.errors.find("/nowhere/train.py"), std::string::npos);
}

// torchrun also replaces $local_rank and reduces $$ to $, which damages the words of a shell
// script.
TEST_F(HostileUse, ArgumentsArriveAsTheyAre) {
  write("show", "#!/bin/sh\nfor word; do printf '<%s>' \"$word\"; done > $HERE/words\n", true);
  const std::vector<std::string> odd = {"",   " ",     "a b", "'",           "\"", "\\",
                                        "\n", "$HOME", "$$",  "$local_rank", "*",  "--help",
                                        "-t", "3",     "--",  "-m",          "=",  "\xff\xfe"};
  std::vector<std::string> arguments = {path("show")};
  arguments.insert(arguments.end(), odd.begin(), odd.end());
  EXPECT_EQ(run(arguments).status, 0);
  std::string wanted;
  for (const std::string& word : odd) wanted += "<" + word + ">";
  EXPECT_EQ(file("words"), wanted);
}

TEST_F(HostileUse, TenThousandArguments) {
  std::vector<std::string> arguments = {
      "--nproc-per-node", "2", "sh", "-c", "echo $# > $HERE/count.$RANK", "sh"};
  for (int word = 0; word < 10'000; ++word) arguments.push_back(fmt::format("argument-{}", word));
  EXPECT_EQ(run(arguments).status, 0);
  EXPECT_EQ(file("count.1"), "10000\n");
}

TEST_F(HostileUse, WordsOfTheRendezvousThatMeanNothingAreRefusedOnOneNodeToo) {
  for (const char* const nodes : {"1", "2"}) {
    const LaunchEnd end = run(shell(1, "echo started > $HERE/started",
                                    {"--nnodes", nodes, "--node-rank", "0", "--rdzv-endpoint",
                                     "127.0.0.1:0", "--rdzv-conf", "join_timout=5"}));
    EXPECT_EQ(end.status, 2) << end.errors;
    EXPECT_NE(end.errors.find("did you mean `join_timeout`"), std::string::npos) << end.errors;
    EXPECT_NE(end.errors.find("last_call_timeout, keep_alive_interval"), std::string::npos)
        << end.errors;
    EXPECT_EQ(file("started"), "");
  }
}

TEST_F(HostileUse, LocalRanksThatAreNowhereAreRefused) {
  for (const std::vector<std::string>& flag : std::vector<std::vector<std::string>>{
           {"--local-ranks-filter", "7"}, {"--tee", "9:3"}, {"--redirects", "0:1,2:3"}}) {
    const LaunchEnd end = run(shell(2, "echo started > $HERE/started", flag));
    EXPECT_EQ(end.status, 2) << end.errors;
    EXPECT_NE(end.errors.find(flag[0] + " names local rank"), std::string::npos) << end.errors;
    EXPECT_NE(end.errors.find("local ranks 0 to 1"), std::string::npos) << end.errors;
    EXPECT_EQ(file("started"), "");
  }
}

TEST_F(HostileUse, MisspeltVariableIsSaid) {
  LaunchStart what = shell(1, "true");
  what.environment = {{"PET_NPROC_PER_NOD", "2"}, {"PET_SHOP", "dogs"}};
  const LaunchEnd end = run(what);
  EXPECT_EQ(end.status, 0);
  EXPECT_NE(end.errors.find("did you mean `PET_NPROC_PER_NODE`"), std::string::npos) << end.errors;
  EXPECT_EQ(end.errors.find("PET_SHOP"), std::string::npos) << end.errors;
}

TEST_F(HostileUse, DryRunSaysWhatTheStartWouldRefuse) {
  const LaunchEnd program = run({"--dry-run", "./nothing_there"});
  EXPECT_EQ(program.status, 2);
  EXPECT_NE(program.output.find("`./nothing_there` could not be started"), std::string::npos);
  EXPECT_EQ(run({"--dry-run", "nothing_there.py"}).status, 2);
  LaunchStart few = shell(40, "true", {"--dry-run"});
  few.before = {"sh", "-c", "ulimit -n 200; exec \"$@\"", "sh"};
  const LaunchEnd files = run(few);
  EXPECT_EQ(files.status, 2) << files.output;
  EXPECT_NE(files.output.find("at most 200, the launcher of 40 ranks needs 272"), std::string::npos)
      << files.output;
  few.arguments.erase(std::find(few.arguments.begin(), few.arguments.end(), "--dry-run"));
  EXPECT_EQ(run(few).status, 12) << "the real start";
}

}  // namespace
}  // namespace convoy::testing
