// SPDX-License-Identifier: Apache-2.0
//
// Tests `convoy sweep run` after its program was changed: the message, and the cells that --redo
// computes again.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sweep/sweep_process.h"

namespace convoy::testing {
namespace {

using nlohmann::json;

class SweepRedo : public SweepTest {
 protected:
  // Sweeps x = 1 and 2 over the seeds 0 and 1. The value is the number in `program.sh`, multiplied
  // by x.
  static std::vector<std::string> command(const std::vector<std::string>& flags = {}) {
    std::vector<std::string> words = {"run",      "--grid", "x=1,2",     "--num-seeds", "2",
                                      "--result", "loss",   "--workers", "1",           "--json"};
    words.insert(words.end(), flags.begin(), flags.end());
    const std::vector<std::string> program = {"--", "sh", "program.sh", "{x}", "{seed}"};
    words.insert(words.end(), program.begin(), program.end());
    return words;
  }
  void write_program(int factor) const {
    write("program.sh",
          "echo ran >>runs\necho '{\"loss\": '$(($1 * " + std::to_string(factor) + "))'}'\n");
  }
  std::string values(const SweepEnd& end) const {
    EXPECT_EQ(end.status, 0) << end.errors;
    return values(json::parse(end.output));
  }
  static std::string values(const json& rows) {
    std::string text;
    for (const json& row : rows)
      text += fmt::format(
          "{}{}{}", text.empty() ? "" : " ", row["value"].get<double>(),
          row["state"] == "value" ? "" : fmt::format(" ({})", row["state"].get<std::string>()));
    return text;
  }
  int64_t num_runs() const {
    const std::string runs = file_beginning(".", "runs");
    return std::count(runs.begin(), runs.end(), '\n');
  }
};

TEST_F(SweepRedo, SaysThatNothingWasRunAndWhatHasChangedSince) {
  write_program(10);
  const SweepEnd first = run(command());
  EXPECT_EQ(values(first), "10 10 20 20");
  EXPECT_EQ(first.errors.find("nothing was run"), std::string::npos) << first.errors;
  const SweepEnd again = run(command());
  EXPECT_EQ(values(again), "10 10 20 20");
  EXPECT_NE(again.errors.find("4 cells: 4 values, all from "), std::string::npos) << again.errors;
  EXPECT_NE(again.errors.find("; nothing was run"), std::string::npos) << again.errors;
  EXPECT_EQ(again.errors.find("changed"), std::string::npos) << again.errors;
  EXPECT_EQ(num_runs(), 4);
  write_program(11);
  const SweepEnd edited = run(command());
  EXPECT_EQ(values(edited), "10 10 20 20");
  EXPECT_NE(edited.errors.find(
                "program.sh has changed since 4 of 4 values were computed; --redo computes them"),
            std::string::npos)
      << edited.errors;
}

TEST_F(SweepRedo, ComputesEveryCellAgain) {
  write_program(10);
  run(command());
  write_program(11);
  const SweepEnd redone = run(command({"--redo"}));
  EXPECT_EQ(values(redone), "11 11 22 22");
  EXPECT_NE(redone.errors.find("computing again: 4 cells"), std::string::npos) << redone.errors;
  EXPECT_EQ(redone.errors.find("changed since"), std::string::npos) << redone.errors;
  EXPECT_EQ(num_runs(), 8);
  EXPECT_EQ(values(run(command())), "11 11 22 22");
  EXPECT_EQ(num_runs(), 8);
}

TEST_F(SweepRedo, ComputesTheCellsThatAreNamed) {
  write_program(10);
  run(command());
  write_program(11);
  const SweepEnd some = run(command({"--redo", "x=2.0", "seed=1", "--max-attempts", "2"}));
  EXPECT_EQ(values(some), "10 10 20 22");
  EXPECT_NE(some.errors.find("program.sh has changed since 3 of 4 values"), std::string::npos)
      << some.errors;
  for (const char* const cells : {"x=3", "y=1", "seed=7", "x="}) {
    const SweepEnd end = run(command({"--redo", cells}));
    EXPECT_EQ(end.status, 2) << cells << end.errors;
  }
  EXPECT_EQ(num_runs(), 5);
  EXPECT_EQ(values(run(command({"--redo", "all"}))), "11 11 22 22");
}

// Another sweep of the store has old results of the same cells, which must not be taken for new
// ones.
TEST_F(SweepRedo, AResultOfAnotherSweepIsNoNewOne) {
  write_program(10);
  run(command({"--name", "other"}));
  run(command());
  EXPECT_EQ(num_runs(), 4);
  write_program(11);
  write("stop", "");
  write("program.sh", "test -e stop && exit 1; echo ran >>runs; echo '{\"loss\": 7}'\n");
  EXPECT_EQ(run(command({"--redo", "--max-attempts", "1"})).status, 15);
  std::filesystem::remove(path("stop"));
  EXPECT_EQ(values(run(command())), "7 7 7 7");
  EXPECT_EQ(num_runs(), 8);
  // A third sweep finds the newest results.
  EXPECT_EQ(values(run(command({"--name", "third"}))), "7 7 7 7");
  EXPECT_EQ(num_runs(), 8);
}

TEST_F(SweepRedo, OldResultsAreShownUntilThereAreNewOnes) {
  write_program(10);
  run(command());
  write("program.sh",
        "sleep 0.1; test $1 = 2 && { echo waiting >>waits; sleep 1000 & wait; }\n"
        "echo '{\"loss\": '$(($1 * 11))'}'\n");
  auto sweep = start(command({"--redo"}));
  ASSERT_TRUE(wait_until([&] { return std::filesystem::exists(path("waits")); }));
  const std::vector<pid_t> workers = sweep->workers();
  for (const pid_t worker : workers) ::kill(worker, SIGKILL);
  ::kill(sweep->pid(), SIGKILL);
  sweep->wait();
  const SweepEnd shown = run({"show", "--json"});
  EXPECT_EQ(values(shown), "11 11 20 (former) 20 (former)");
  const SweepEnd table = run({"show"});
  EXPECT_NE(table.output.find("to be computed again; this is its value from "), std::string::npos)
      << table.output;
  EXPECT_NE(table.errors.find("2 values, 2 to be computed again"), std::string::npos)
      << table.errors;
  write_program(12);
  EXPECT_EQ(values(run(command())), "11 11 24 24");
}

TEST_F(SweepRedo, AFailedRedoSaysWhatTheCellHadBefore) {
  write_program(10);
  run(command());
  write("program.sh", "exit 3\n");
  EXPECT_EQ(run(command({"--redo", "x=1", "seed=0", "--max-attempts", "1"})).status, 15);
  const SweepEnd shown = run({"show"});
  EXPECT_NE(shown.output.find("it was 10 before"), std::string::npos) << shown.output;
}

TEST_F(SweepRedo, AProgramThatStaysIsKnownByTheScriptThatItStartedWith) {
  const auto server = [](int value) {
    return "while read -r line; do echo \"{\\\"request\\\": $line, \\\"loss\\\": " +
           std::to_string(value) + "}\"; done\n";
  };
  const std::vector<std::string> words = {"run",  "--persistent", "--num-seeds", "2",  "--result",
                                          "loss", "--json",       "--",          "sh", "server.sh"};
  write("server.sh", server(1));
  EXPECT_EQ(values(run(words)), "1 1");
  EXPECT_EQ(run(words).errors.find("changed"), std::string::npos);
  write("server.sh", server(2));
  EXPECT_NE(run(words).errors.find("server.sh has changed since 2 of 2 values"), std::string::npos);
}

TEST_F(SweepRedo, AModuleOfPythonIsKnownByItsFile) {
  std::filesystem::create_directory(path("package"));
  const std::vector<std::string> words = {"run",  "--num-seeds", "1",  "--result",
                                          "loss", "--json",      "--", "python3",
                                          "-m",   "package.job"};
  write("package/job.py", "print('{\"loss\": 1}')\n");
  EXPECT_EQ(values(run(words)), "1");
  EXPECT_EQ(run(words).errors.find("changed"), std::string::npos);
  write("package/job.py", "print('{\"loss\": 2}')\n");
  EXPECT_NE(run(words).errors.find("package/job.py has changed since 1 of 1 value was computed"),
            std::string::npos);
}

// The other folder has a different program of the same name, or other files beside it.
TEST_F(SweepRedo, ValuesOfAnotherFolderAreSaidToBeSo) {
  const std::string convoy = std::string(std::getenv("CONVOY_BIN_DIR")) + "/convoy";
  const auto run_in = [&](const std::string& folder, int number) {
    std::vector<std::string> words = command({"--store", text("shared.db")});
    words.insert(words.begin(), {convoy, "sweep"});
    return SweepProcess(words, path(folder), number, "elsewhere").wait();
  };
  for (const char* const folder : {"first", "second"}) {
    std::filesystem::create_directory(path(folder));
    write(std::string(folder) + "/program.sh", "echo '{\"loss\": '$(cat data)'}'\n");
  }
  write("first/data", "1");
  write("second/data", "2");
  const SweepEnd first = run_in("first", 901);
  EXPECT_EQ(values(first), "1 1 1 1");
  EXPECT_EQ(first.errors.find("another folder"), std::string::npos) << first.errors;
  EXPECT_EQ(run_in("first", 902).errors.find("another folder"), std::string::npos);
  const SweepEnd second = run_in("second", 903);
  EXPECT_EQ(values(second), "1 1 1 1");
  EXPECT_NE(second.errors.find("4 of 4 values were computed in another folder ("),
            std::string::npos)
      << second.errors;
}

}  // namespace
}  // namespace convoy::testing
