// SPDX-License-Identifier: Apache-2.0
//
// Tests `convoy sweep run` with programs that print, fail, crash, hang, or return a value that is
// no number.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "convoy/core/base/files.h"
#include "sweep/sweep_process.h"

namespace convoy::testing {
namespace {

using nlohmann::json;

class SweepRun : public SweepTest {};

// The program acts by the value of {case}.
const char* const kProgram = R"sh(#!/bin/sh
case "$1" in
  good) echo '{"loss": 1.5, "seed": '$2'}' ;;
  crash) kill -SEGV $$ ;;
  exit) echo 'no such file' >&2; exit 3 ;;
  nan) echo '{"loss": NaN}' ;;
  null) echo '{"loss": null}' ;;
  silent) echo done ;;
  hang) sleep 1000 & wait ;;
esac
)sh";

json row_of(const json& rows, const std::string& what) {
  for (const json& row : rows)
    if (row["case"] == what) return row;
  return {};
}

TEST_F(SweepRun, ItsCellsAreSessionsOfTensorBoard) {
  write("program.sh", kProgram);
  const SweepEnd end =
      run({"run", "--grid", "case=a,b", "--num-seeds", "2", "--result", "loss", "--tensorboard-dir",
           "tb", "--", "sh", "program.sh", "good", "{seed}", "{case}"});
  EXPECT_EQ(end.status, 0) << end.errors;
  EXPECT_NE(end.errors.find("wrote 4 sessions for TensorBoard into tb"), std::string::npos)
      << end.errors;
  int files = 0;
  std::string bytes;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / "tb")) {
    if (!entry.path().filename().string().starts_with("events.out.tfevents.")) continue;
    ++files;
    bytes += read_file(entry.path());
  }
  EXPECT_EQ(files, 5);
  // The result column is stored under the result's own name.
  EXPECT_NE(bytes.find("loss"), std::string::npos);
}

TEST_F(SweepRun, EachFailureIsWhatItIsAndTheRestGoesOn) {
  write("program.sh", kProgram);
  const SweepEnd end = run({"run", "--grid", "case=good,crash,exit,nan,null,silent,hang",
                            "--result", "loss", "--timeout", "3", "--max-attempts", "2", "--json",
                            "--", "sh", "program.sh", "{case}", "{seed}"});
  EXPECT_EQ(end.status, 15) << end.errors;
  EXPECT_NE(end.errors.find("7 cells: 1 value, 6 failed"), std::string::npos) << end.errors;
  const json rows = json::parse(end.output);
  EXPECT_EQ(row_of(rows, "good")["value"], 1.5);
  EXPECT_EQ(row_of(rows, "good")["state"], "value");
  const std::vector<std::pair<std::string, std::string>> wanted = {
      {"crash", "crash"}, {"exit", "exit"},     {"nan", "non_finite"},
      {"null", "output"}, {"silent", "output"}, {"hang", "timeout"}};
  for (const auto& [what, kind] : wanted) {
    const json row = row_of(rows, what);
    EXPECT_EQ(row["state"], "failed") << what;
    EXPECT_TRUE(row["value"].is_null()) << what;
    EXPECT_EQ(row["failure_kind"], kind) << row.dump();
  }
  EXPECT_EQ(row_of(rows, "crash")["failure_signal"], 11);
  EXPECT_NE(row_of(rows, "exit")["failure_stderr"].dump().find("no such file"), std::string::npos)
      << row_of(rows, "exit").dump();
  EXPECT_EQ(row_of(rows, "exit")["attempts"], 2);
  const json last = json::parse(end.last_line());
  EXPECT_EQ(last["code"], 15);
  EXPECT_EQ(last["kind"], "failed_cells");
}

TEST_F(SweepRun, AnAnswerIsFoundBeforeMuchOtherOutput) {
  write("program.sh",
        "echo '{\"loss\": 1}'; echo ' {\"loss\": 2.5}'; yes 'epoch {1}' | head -c 5000000\n"
        "head -c 3000000 /dev/zero; printf '\\n{\"other\": 7}'\n");
  const SweepEnd end = run({"run", "--result", "loss", "--json", "--", "sh", "program.sh"});
  EXPECT_EQ(end.status, 0) << end.errors;
  EXPECT_EQ(json::parse(end.output)[0]["value"], 2.5) << end.output;
}

TEST_F(SweepRun, AFailedCellIsTriedAgainByTheSameCommand) {
  write("program.sh", "test -e ready || exit 1\necho '{\"loss\": '$1'}'\n");
  const std::vector<std::string> command = {"run", "--grid",   "x=1,2",      "--num-seeds",
                                            "2",   "--result", "loss",       "--json",
                                            "--",  "sh",       "program.sh", "{x}"};
  EXPECT_EQ(run(command).status, 15);
  write("ready", "");
  const SweepEnd again = run(command);
  EXPECT_EQ(again.status, 0) << again.errors;
  EXPECT_EQ(json::parse(again.output).size(), 4u);
}

TEST_F(SweepRun, PlaceholdersAndTheEnvironment) {
  const SweepEnd end =
      run({"run", "--grid", "a=0.5", "--seeds", "7", "--env", "FACTOR={a}", "--result", "value",
           "--json", "--", "sh", "-c", "echo \"{{\\\"value\\\": $FACTOR}}\"; test {seed} = 7"});
  ASSERT_EQ(end.status, 0) << end.errors;
  EXPECT_EQ(json::parse(end.output)[0]["value"], 0.5);
  const SweepEnd told = run({"run", "--grid", "a=0.5", "--name", "told", "--seeds", "7", "--result",
                             "got.seed", "--json", "--", "sh", "-c",
                             "echo \"{{\\\"got\\\": $CONVOY_SWEEP_PARAMETERS}}\"; "
                             "test $CONVOY_SWEEP_SEED = 7 && test -n \"$CONVOY_SWEEP_WORKER\""});
  ASSERT_EQ(told.status, 0) << told.errors;
  EXPECT_EQ(json::parse(told.output)[0]["value"], 7);
  const SweepEnd unknown = run({"run", "--grid", "a=1", "--", "echo", "{b}"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.errors.find("`b` is not a name of the grid"), std::string::npos);
}

TEST_F(SweepRun, AProgramThatIsNotThereIsToldBeforeAnythingStarts) {
  write("good.sh", "#!/bin/sh\necho '{\"loss\": 1}'\n");
  write("closed.sh", "#!/bin/sh\n");
  std::filesystem::permissions(path("good.sh"), std::filesystem::perms::owner_all);
  const std::vector<std::vector<std::string>> refused = {
      {"run", "--", "no-such-program-anywhere"},
      {"run", "--", "/no/such/prog"},
      {"run", "--", "./closed.sh"},
      {"run", "--persistent", "--result", "loss", "--", "./no-such.sh"},
      {"run", "--grid", "x=good,none", "--grid", "y=1,2", "--", "./{x}.sh", "{y}"},
      {"run", "--num-seeds", "2", "--", "./{seed}.sh"}};
  for (const auto& words : refused) {
    const SweepEnd end = run(words);
    EXPECT_EQ(end.status, 2) << words.back() << end.errors;
    EXPECT_NE(end.errors.find("could not be started"), std::string::npos) << end.errors;
    EXPECT_FALSE(std::filesystem::exists(path("results"))) << words.back();
  }
  EXPECT_NE(run(refused[4]).errors.find("`./none.sh`"), std::string::npos);
  const SweepEnd good = run({"run", "--grid", "x=good", "--result", "loss", "--", "./{x}.sh"});
  EXPECT_EQ(good.status, 0) << good.errors;
}

// One later line cannot be read, and another one exceeds the memory for lines.
TEST_F(SweepRun, ALaterLineIsTheResultOrFailsTheCell) {
  write("program.sh", R"sh(
echo '{"epoch": 1, "loss": 2.5}'
case "$1" in
  nan) echo '{"epoch": 2, "loss": nan}' ;;
  dict) echo "{'epoch': 2, 'loss': 0.4}" ;;
  cut) printf '{"epoch": 2, "loss": 0.' ;;
  bar) printf '10%%\r100%%\r{"epoch": 2, "loss": 0.4}\n' ;;
  colour) printf '\033[32mstep 2: {"loss": 0.4}\033[0m\n' ;;
  long) printf '{"history": "'; head -c 3000000 /dev/zero | tr '\0' x; echo '", "loss": 0.4}' ;;
  endless) printf '{"history": "'; head -c 18000000 /dev/zero | tr '\0' x; echo '", "loss": 0.4}' ;;
esac
)sh");
  const SweepEnd end = run({"run", "--grid", "case=nan,dict,cut,bar,colour,long,endless",
                            "--result", "loss", "--json", "--", "sh", "program.sh", "{case}"});
  EXPECT_EQ(end.status, 15) << end.errors;
  const json rows = json::parse(end.output);
  for (const char* const what : {"bar", "colour", "long"})
    EXPECT_EQ(row_of(rows, what)["value"], 0.4) << row_of(rows, what).dump();
  EXPECT_EQ(row_of(rows, "nan")["failure_kind"], "non_finite");
  for (const char* const what : {"dict", "cut", "endless"}) {
    EXPECT_EQ(row_of(rows, what)["failure_kind"], "output") << row_of(rows, what).dump();
    EXPECT_EQ(row_of(rows, what)["attempts"], 1);
  }
  EXPECT_NE(row_of(rows, "dict")["failure_message"].dump().find("{'epoch': 2, 'loss': 0.4}"),
            std::string::npos);
  EXPECT_NE(row_of(rows, "endless")["failure_message"].dump().find("too long"), std::string::npos);
}

TEST_F(SweepRun, FirstCellsThatFailInOneWayEndTheSweep) {
  const auto num_runs = [&] {
    const std::string runs = file_beginning(".", "runs");
    return std::count(runs.begin(), runs.end(), '\n');
  };
  write("program.sh", "echo $1 >>runs\necho '{\"los\": 1}'\n");
  const auto sweep = [](std::vector<std::string> more) {
    std::vector<std::string> words = {"run", "--num-seeds", "40",       "--workers",
                                      "1",   "--json",      "--result", "loss"};
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {"--", "sh", "program.sh", "{seed}"});
    return words;
  };
  const SweepEnd end = run(sweep({}));
  EXPECT_EQ(end.status, 15) << end.errors;
  EXPECT_NE(end.errors.find("failed in one way"), std::string::npos) << end.errors;
  EXPECT_NE(json::parse(end.last_line())["hint"].dump().find("--keep-going"), std::string::npos);
  // Each cell ran only once, because a program that ends well would give the same result again.
  EXPECT_GE(num_runs(), 3);
  EXPECT_LT(num_runs(), 40);
  const SweepEnd all = run(sweep({"--keep-going"}));
  EXPECT_EQ(all.status, 15);
  EXPECT_NE(all.errors.find("40 cells: 0 values, 40 failed"), std::string::npos) << all.errors;
  EXPECT_GE(num_runs(), 43);
}

TEST_F(SweepRun, GridsKeepCommasWithinBracketsAndNamesAreChecked) {
  const SweepEnd end =
      run({"run", "--grid", "layers=[64,64], [128]", "--result", "n", "--json", "--", "sh", "-c",
           "echo '{{\"n\": '$(printf %s '{layers}' | wc -c)'}}'"});
  ASSERT_EQ(end.status, 0) << end.errors;
  const json rows = json::parse(end.output);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["layers"], "[64,64]");
  EXPECT_EQ(rows[0]["value"], 7);
  EXPECT_EQ(rows[1]["value"], 5);
  EXPECT_EQ(run({"run", "--grid", "layers=[64,64", "--", "true"}).status, 2);
  EXPECT_EQ(run({"run", "--zip", "a=1,2", "--zip", "b={1,2},{3}", "--", "true"}).status, 0);
  EXPECT_EQ(run({"run", "--space", "a=[1,2],[3]", "--samples", "2", "--", "true"}).status, 0);
  for (const std::string& name : {std::string("../outside"), std::string("a/b"), std::string(".."),
                                  std::string("two\nlines"), std::string(300, 'a')}) {
    const SweepEnd refused = run({"run", "--name", name, "--results-dir", "none", "--", "true"});
    EXPECT_EQ(refused.status, 2) << refused.errors;
    EXPECT_NE(refused.errors.find("the sweep cannot be named"), std::string::npos)
        << refused.errors;
  }
  EXPECT_FALSE(std::filesystem::exists(path("none")));
}

TEST_F(SweepRun, ANumberOutOfRangeIsNoOlderLinesValue) {
  write("program.sh", "echo '{\"loss\": 1}'\necho '{\"loss\": 1e999}'\n");
  const SweepEnd end = run({"run", "--result", "loss", "--json", "--", "sh", "program.sh"});
  EXPECT_EQ(end.status, 15) << end.errors;
  const json row = json::parse(end.output)[0];
  EXPECT_EQ(row["failure_kind"], "non_finite");
  EXPECT_EQ(row["failure_message"], "`loss` is out of the range of a double: 1e999");
}

// The persistent program acts by the value of `case`.
const char* const kServer = R"sh(
echo started >>starts
answer() { printf '{"request": %s, %s}\n' "$line" "$1"; }
while read -r line; do
  case "$line" in
    *good*) answer '"final": {"loss": 2.5}, "note": "NaN \"quoted\""' ;;
    *crash*) kill -SEGV $$ ;;
    *garbage*) echo 'loss is 3' ;;
    *hang*) sleep 1000 ;;
    *leave*) exit 0 ;;
    *refuse*) answer '"error": "no such case"' ;;
    *nan*) answer '"final": {"loss": NaN}' ;;
    *missing*) answer '"loss": 1' ;;
    *silent*) echo '{"final": {"loss": 7}}' ;;
  esac
done
)sh";

TEST_F(SweepRun, AProgramThatStaysCostsACellWhereItFails) {
  write("server.sh", kServer);
  const SweepEnd end =
      run({"run", "--persistent", "--grid",
           "case=good,crash,garbage,hang,leave,refuse,nan,missing,silent", "--num-seeds", "2",
           "--result", "final.loss", "--timeout", "3", "--max-attempts", "1", "--workers", "1",
           "--json", "--", "sh", "server.sh"});
  EXPECT_EQ(end.status, 15) << end.errors;
  const json rows = json::parse(end.output);
  const std::vector<std::pair<std::string, std::string>> wanted = {
      {"crash", "crash"},  {"garbage", "output"}, {"hang", "timeout"},   {"leave", "exit"},
      {"refuse", "error"}, {"nan", "non_finite"}, {"missing", "output"}, {"silent", "output"}};
  EXPECT_EQ(row_of(rows, "good")["value"], 2.5);
  for (const auto& [what, kind] : wanted)
    EXPECT_EQ(row_of(rows, what)["failure_kind"], kind) << row_of(rows, what).dump();
  EXPECT_EQ(row_of(rows, "refuse")["failure_message"], "no such case");
  EXPECT_EQ(
      run({"run", "--persistent", "--result", "x", "--grid", "a=1", "--", "cat", "{a}"}).status, 2);
  EXPECT_EQ(run({"run", "--persistent", "--", "cat"}).status, 2);
}

TEST_F(SweepRun, AProgramThatStaysStartsOncePerWorkerAndReadsEachCell) {
  write("server.sh",
        "echo started >>starts\nwhile read -r line; do echo \"$line\" >>lines; echo \"$line\"; "
        "done\n");
  const SweepEnd end =
      run({"run", "--persistent", "--grid", "rate=0.5", "--grid", "name=a b,c\"d", "--num-seeds",
           "20", "--result", "seed", "--workers", "1", "--json", "--", "sh", "server.sh"});
  ASSERT_EQ(end.status, 0) << end.errors;
  for (const json& row : json::parse(end.output)) EXPECT_EQ(row["value"], row["seed"]);
  EXPECT_EQ(file_beginning(".", "starts"), "started\n");
  EXPECT_NE(file_beginning(".", "lines").find(R"({"cell":1,"name":"a b","rate":0.5,"seed":0})"),
            std::string::npos);
}

// A surplus line, before the answer or after it, is not the value of any cell.
TEST_F(SweepRun, WhatAProgramThatStaysSaysTooMuchIsNoCellsValue) {
  write("early.sh",
        "echo '{\"loss\": 55}'\nwhile read -r line; do echo \"{\\\"request\\\": $line, "
        "\\\"loss\\\": 1}\"; "
        "done\n");
  write("late.sh",
        "while read -r line; do echo \"{\\\"request\\\": $line, \\\"loss\\\": 1}\"; sleep 0.02; "
        "echo \"{\\\"request\\\": $line, \\\"loss\\\": -1}\"; done\n");
  for (const std::string program : {"early.sh", "late.sh"}) {
    const SweepEnd end = run({"run", "--persistent", "--name", program, "--num-seeds", "8",
                              "--result", "loss", "--workers", "1", "--max-attempts", "1",
                              "--keep-going", "--json", "--", "sh", program});
    const json rows = json::parse(end.output);
    EXPECT_EQ(rows.size(), 8u);
    for (const json& row : rows)
      EXPECT_TRUE(row["value"] == 1 || row["state"] == "failed") << program << row.dump();
  }
}

// Imitates a program with many imports, whose start takes longer than a cell may take.
TEST_F(SweepRun, TheStartOfAProgramThatStaysIsNoPartOfItsFirstCell) {
  write(
      "slow.sh",
      "sleep 4\nwhile read -r line; do echo \"{\\\"request\\\": $line, \\\"loss\\\": 1}\"; done\n");
  const SweepEnd end =
      run({"run", "--persistent", "--num-seeds", "2", "--result", "loss", "--workers", "1",
           "--max-attempts", "1", "--timeout", "3", "--json", "--", "sh", "slow.sh"});
  EXPECT_EQ(end.status, 0) << end.errors;
  for (const json& row : json::parse(end.output)) EXPECT_EQ(row["value"], 1) << row.dump();
}

TEST_F(SweepRun, AFunctionOfAnotherProgramRunsInWorkersOfItsOwn) {
  const std::string program =
      std::string(std::getenv("CONVOY_BIN_DIR")) + "/function_sweep_example";
  const auto run_example = [&] {
    return SweepProcess({program}, folder_.path(), 900, "example").wait();
  };
  const SweepEnd first = run_example();
  ASSERT_EQ(first.status, 0) << first.errors;
  const SweepEnd again = run_example();
  EXPECT_EQ(again.output, first.output);
  const SweepEnd shown = run({"show", "--json", "--store", "walks.db"});
  ASSERT_EQ(shown.status, 0) << shown.errors;
  const json rows = json::parse(shown.output);
  ASSERT_EQ(rows.size(), 72u);
  // The expected distance in one dimension is sqrt(2 n / pi).
  for (const json& row : rows) {
    if (row["dimensions"] != 1 || row["steps"] != 400) continue;
    EXPECT_NEAR(row["value"].get<double>(), 15.96, 4);
  }
}

TEST_F(SweepRun, AFunctionThatThrowsFailsItsCellAndSaysWhy) {
  const std::string program = std::string(std::getenv("CONVOY_BIN_DIR")) + "/failing_function";
  const SweepEnd end = SweepProcess({program}, folder_.path(), 900, "failing").wait();
  EXPECT_EQ(end.status, 1) << end.errors;
  EXPECT_NE(end.output.find("{\"x\":1} seed 7: 0.5 \n"), std::string::npos) << end.output;
  EXPECT_NE(end.output.find("{\"x\":2} seed 7: nan "), std::string::npos) << end.output;
  EXPECT_NE(end.output.find("only one has a half here"), std::string::npos) << end.output;
}

TEST_F(SweepRun, ALineBreakInAValueBreaksNoTable) {
  const std::string value = "a\nb\tc";
  const std::vector<std::string> words = {
      "run",      "--grid", "x=" + value + ",d",
      "--result", "loss",   "--",
      "sh",       "-c",     "test {x} = d && echo '{{\"loss\": 1}}'"};
  const SweepEnd end = run(words);
  EXPECT_EQ(end.status, 15) << end.errors;
  EXPECT_NE(end.output.find("a\\nb\\tc"), std::string::npos) << end.output;
  EXPECT_EQ(end.output.find("a\n"), std::string::npos) << end.output;
  // JSON and CSV have the value unchanged.
  EXPECT_EQ(json::parse(run({"export", "--json"}).output)[0]["x"], value);
  EXPECT_NE(run({"export"}).output.find("\"" + value + "\""), std::string::npos);
}

TEST_F(SweepRun, AStopEndsThePrograms) {
  auto sweep = start({"run", "--num-seeds", "4", "--", "sh", "-c", "sleep 1000 & wait"});
  ASSERT_TRUE(wait_until([&] { return !processes("sleep 1000").empty(); }));
  ::kill(sweep->pid(), SIGTERM);
  EXPECT_EQ(sweep->wait().status, 75);
  EXPECT_TRUE(nothing_left());
}

TEST_F(SweepRun, AKilledRunnerLeavesNoProgram) {
  auto sweep = start({"run", "--num-seeds", "4", "--", "sh", "-c", "setsid sleep 1000 & wait"});
  ASSERT_TRUE(wait_until([&] { return !processes("sleep 1000").empty(); }));
  ::kill(sweep->pid(), SIGKILL);
  EXPECT_EQ(sweep->wait().status, 137);
  EXPECT_TRUE(nothing_left());
}

// The processes that could have ended the programs were killed too. The next run finds the programs
// by a variable of their environment.
TEST_F(SweepRun, WhatIsLeftWhenAllIsKilledIsEndedByTheNextRun) {
  write("program.sh",
        "test -e quick || { sleep 1000 & setsid sleep 1001 & wait; }\necho '{\"loss\": 1}'\n");
  const std::vector<std::string> command = {
      "run", "--num-seeds", "4", "--result", "loss", "--workers", "2", "--", "sh", "program.sh"};
  auto sweep = start(command);
  ASSERT_TRUE(wait_until(
      [&] { return processes("sleep 1000").size() == 2 && processes("sleep 1001").size() == 2; }));
  std::vector<pid_t> convoys = sweep->guards();
  ASSERT_EQ(convoys.size(), 1u);
  convoys.push_back(sweep->pid());
  for (const pid_t worker : sweep->workers()) convoys.push_back(worker);
  for (const pid_t pid : convoys) ::kill(pid, SIGSTOP);
  for (const pid_t pid : convoys) ::kill(pid, SIGKILL);
  sweep->wait();
  EXPECT_FALSE(processes("sleep 100").empty());
  write("quick", "");
  const SweepEnd again = run(command);
  EXPECT_EQ(again.status, 0) << again.errors;
  EXPECT_NE(again.errors.find("a sweep was killed with all its workers"), std::string::npos)
      << again.errors;
  EXPECT_TRUE(processes("sleep 100").empty());
}

// A sweep must not end the programs of another sweep that is running.
TEST_F(SweepRun, ASweepBesideAnotherEndsNothingOfIt) {
  auto other = start({"run", "--name", "other", "--num-seeds", "2", "--workers", "1", "--", "sh",
                      "-c", "until test -e done; do sleep 0.05; done"});
  ASSERT_TRUE(wait_until([&] { return !processes("sh -c until test").empty(); }));
  EXPECT_EQ(run({"run", "--results-dir", "elsewhere", "--", "true"}).status, 0);
  write("done", "");
  const SweepEnd end = other->wait();
  EXPECT_EQ(end.status, 0) << end.errors;
}

TEST_F(SweepRun, AGuardThatIsKilledHasASuccessorWhichEndsWhatIsLeft) {
  write("program.sh", "sleep 1000 & setsid sleep 1001 & wait\n");
  auto sweep = start({"run", "--num-seeds", "1", "--workers", "1", "--", "sh", "program.sh"});
  ASSERT_TRUE(wait_until([&] { return !processes("sleep 1001").empty(); }));
  const std::vector<pid_t> before = sweep->guards();
  ASSERT_EQ(before.size(), 1u);
  ::kill(before[0], SIGKILL);
  ASSERT_TRUE(wait_until([&] {
    const std::vector<pid_t> now = sweep->guards();
    return now.size() == 1 && now != before;
  }));
  ::kill(sweep->pid(), SIGKILL);
  sweep->wait();
  EXPECT_TRUE(nothing_left());
}

TEST_F(SweepRun, AGuardThatIsStoppedHoldsNobody) {
  auto sweep = start(
      {"run", "--num-seeds", "2", "--", "sh", "-c", "until test -e done; do sleep 0.05; done"});
  ASSERT_TRUE(wait_until([&] { return !sweep->guards().empty(); }));
  for (const pid_t guard : sweep->guards()) ::kill(guard, SIGSTOP);
  write("done", "");
  const SweepEnd end = sweep->wait();
  EXPECT_EQ(end.status, 0) << end.errors;
}

}  // namespace
}  // namespace convoy::testing
