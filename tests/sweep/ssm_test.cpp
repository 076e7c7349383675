// SPDX-License-Identifier: Apache-2.0
//
// Runs `convoy sweep ssm` as its users do.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "sweep/sweep_process.h"

namespace convoy::testing {
namespace {

using nlohmann::json;

class SweepSsm : public SweepTest {};

const char* const kData =
    R"([{"alpha": 0.5, "w": [1, 0, 0, 0]}, {"alpha": 0.5, "w": [1, 1, 1, 1]}])";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> with(std::vector<std::string> words,
                              const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// The second command line of the earlier program's guide, with fewer guesses and steps.
std::vector<std::string> published() {
  return {"ssm",
          "--seeds",
          "0",
          "1",
          "2",
          "3",
          "--sequence_length",
          "5",
          "--student_dims",
          "150",
          "175",
          "200",
          "--eps_train",
          "1e-5",
          "--data_file",
          "alpha_w_pairs.json",
          "--gnc",
          "--gnc_num_samples",
          "100000",
          "--gnc_batch_size",
          "1000000",
          "--gd",
          "--gd_epochs",
          "20"};
}

TEST_F(SweepSsm, ThePublishedCommandLineRunsAsWritten) {
  write("alpha_w_pairs.json", kData);
  const SweepEnd end = run(published());
  ASSERT_EQ(end.status, 0) << end.errors;
  EXPECT_NE(end.errors.find("--gnc-batch-size is ignored"), std::string::npos);
  const auto lines = lines_of(file_beginning("results", "results__seq_len=5_seeds=0..3_"));
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0],
            "student_dim,gnc_gen_seed=0,gnc_gen_seed=0_theoretical,gnc_gen_seed=0_asymptotic,"
            "gnc_gen_seed=1,gnc_gen_seed=1_theoretical,gnc_gen_seed=1_asymptotic,"
            "gnc_gen_seed=2,gnc_gen_seed=2_theoretical,gnc_gen_seed=2_asymptotic,"
            "gnc_gen_seed=3,gnc_gen_seed=3_theoretical,gnc_gen_seed=3_asymptotic,"
            "gd_gen_seed=0,gd_gen_seed=1,gd_gen_seed=2,gd_gen_seed=3");
  EXPECT_TRUE(lines[1].starts_with("150,"));
  EXPECT_TRUE(lines[3].starts_with("200,"));
  EXPECT_EQ(end.output.find("0.0,"), std::string::npos);
}

TEST_F(SweepSsm, TheGuidesCommandLineRunsAsWritten) {
  const SweepEnd end = run({"ssm",   "--num_seeds",
                            "3",     "--teacher_ranks",
                            "2",     "4",
                            "8",     "--student_dims",
                            "4",     "8",
                            "16",    "--max_gpus",
                            "2",     "--gnc",
                            "--gd",  "--checkpoint_interval",
                            "1800",  "--gnc-num-samples",
                            "20000", "--gd-epochs",
                            "20"});
  ASSERT_EQ(end.status, 0) << end.errors;
  EXPECT_NE(end.errors.find("--checkpoint-interval is ignored"), std::string::npos);
  for (const char* rank : {"2", "4", "8"})
    EXPECT_EQ(lines_of(file_beginning("results", std::string("results__seq_len=5_teacher_rank=") +
                                                     rank + "_seeds=0-1-2_"))
                  .size(),
              4u);
}

TEST_F(SweepSsm, AnAxisValueMoreRunsTheNewCellsOnly) {
  write("pairs.json", kData);
  const std::vector<std::string> base = {"ssm",        "--num-seeds",       "2",     "--data-file",
                                         "pairs.json", "--gnc-num-samples", "50000", "--json"};
  const SweepEnd first = run(with(base, {"--student-dims", "150"}));
  ASSERT_EQ(first.status, 0) << first.errors;
  const SweepEnd second = run(with(base, {"--student-dims", "150", "200", "-v"}));
  ASSERT_EQ(second.status, 0) << second.errors;
  EXPECT_NE(second.errors.find("already computed in other sweeps: 2 cells"), std::string::npos)
      << second.errors;
  EXPECT_EQ(second.errors.find("\"student_dim\":150"), std::string::npos) << second.errors;
  EXPECT_NE(second.errors.find("[worker 0] process "), std::string::npos) << second.errors;
  std::set<double> values;
  for (const json& row : json::parse(first.output)) values.insert(row["value"].get<double>());
  for (const json& row : json::parse(second.output)) {
    const bool known = values.contains(row["value"].get<double>());
    EXPECT_EQ(known, row["student_dim"] == 150) << row.dump();
  }
}

// The tables of both sweeps are in one folder, and a list tells them apart.
TEST_F(SweepSsm, SweepsOfOtherSettingsHaveFilesOfTheirOwn) {
  const std::vector<std::string> base = {"ssm", "--num-seeds",   "1",      "--student-dims", "20",
                                         "30",  "--figures-dir", "figures"};
  const std::vector<std::vector<std::string>> others = {
      {"--gnc-num-samples", "1000"},
      {"--gnc-num-samples", "2000"},
      {"--gnc-num-samples", "2000", "--eps-train", "0.02"},
      {"--gnc-num-samples", "2000", "--eps-train", "0.02", "--mode", "fast"},
      {"--gnc-num-samples", "2000", "--target-accepted", "10"}};
  for (const auto& words : others) ASSERT_EQ(run(with(base, words)).status, 0);
  const auto tables = files_beginning("results", "results_gnc_seq_len=5_seeds=0_");
  EXPECT_EQ(tables.size(), others.size());
  EXPECT_EQ(files_beginning("figures", "ssm-").size(), 3 * others.size());
  for (const std::string& name : tables) EXPECT_LT(name.size(), 60u) << name;
  const SweepEnd again = run(with(base, others.back()));
  EXPECT_EQ(again.errors.find("wrote"), std::string::npos) << again.errors;
  const std::string list = run({"show", "--list"}).output;
  for (const char* const line :
       {"    convoy sweep ssm; eps_train 1e-05; guesses 1000\n", "eps_train 1e-05; guesses 2000\n",
        "eps_train 0.02; guesses 2000\n", "guesses 2000; target_accepted 10\n",
        "    student_dim 20, 30; seed 0; gnc\n"})
    EXPECT_NE(list.find(line), std::string::npos) << line << list;
  EXPECT_NE(list.find("2-fast-"), std::string::npos) << list;
  const json rows = json::parse(run({"show", "--list", "--json"}).output);
  EXPECT_EQ(rows[2]["settings"]["eps_train"], json::array({0.02}));
}

TEST_F(SweepSsm, SaysWhoComputesBeforeItStarts) {
  const std::vector<std::string> words = {"ssm", "--num-seeds",       "1",    "--student-dims",
                                          "20",  "--gnc-num-samples", "1000", "--workers",
                                          "2"};
  const SweepEnd first = run(words);
  EXPECT_NE(first.errors.find("1 cell, 1.0k guesses; 2 workers on CPUs ("), std::string::npos)
      << first.errors;
  EXPECT_EQ(run(words).errors.find("workers on"), std::string::npos);
}

TEST_F(SweepSsm, TheNumbersDoNotDependOnTheWorkers) {
  std::set<std::string> tables;
  for (const char* workers : {"1", "2", "4"}) {
    const std::string folder = std::string("results-") + workers;
    const SweepEnd end =
        run({"ssm", "--num-seeds", "2", "--student-dims", "20", "33", "--gnc-num-samples",
             "3000000", "--target-accepted", "900", "--workers", workers, "--results-dir", folder});
    ASSERT_EQ(end.status, 0) << end.errors;
    tables.insert(file_beginning(folder, "results_gnc_seq_len=5_seeds=0-1_"));
  }
  EXPECT_EQ(tables.size(), 1u);
}

TEST_F(SweepSsm, EarlyStopCountsWhatItUsed) {
  const SweepEnd end = run({"ssm", "--num-seeds", "1", "--student-dims", "20", "--gnc-num-samples",
                            "1000000000", "--target-accepted", "500", "--json"});
  ASSERT_EQ(end.status, 0) << end.errors;
  const json row = json::parse(end.output)[0];
  EXPECT_GE(row["accepted"].get<int64_t>(), 500);
  EXPECT_LT(row["guesses"].get<int64_t>(), 10'000'000);
}

TEST_F(SweepSsm, NothingAcceptedIsCensoredAndNan) {
  const SweepEnd end = run({"ssm", "--num-seeds", "1", "--student-dims", "20", "--gnc-num-samples",
                            "2000", "--eps-train", "1e-12"});
  ASSERT_EQ(end.status, 0) << end.errors;
  EXPECT_NE(end.output.find("censored"), std::string::npos) << end.output;
  EXPECT_NE(end.errors.find("1 cell: 0 values, 1 censored"), std::string::npos) << end.errors;
  const auto lines = lines_of(file_beginning("results", "results_gnc_seq_len=5_seeds=0_"));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[1].starts_with("20,nan,")) << lines[1];
}

TEST_F(SweepSsm, AConfigFileIsBelowTheCommandLine) {
  write("sweep.json", R"({"num_seeds": 2, "student_dims": [20, 30], "gnc_num_samples": 1000})");
  const SweepEnd end = run({"ssm", "--config", "sweep.json", "--num-seeds", "1", "--dry-run"});
  ASSERT_EQ(end.status, 0) << end.errors;
  EXPECT_EQ(lines_of(end.output).size(), 2u) << end.output;
  EXPECT_EQ(run({"ssm", "--num-seed", "1"}).status, 2);
}

TEST_F(SweepSsm, AConfigFileHoldsObjectsAndDashes) {
  const std::string begin =
      R"({"num-seeds": 1, "student-dims": [20], "gnc": false, "gd": true, "gd-scheduler": "step", )";
  write("object.json", begin + R"("gd_scheduler_params": {"step_size":50,"gamma":0.25}})");
  write("text.json", begin + R"("gd_scheduler_params": "{\"step_size\": 50, \"gamma\": 0.25}"})");
  write("wrong.json", begin + R"("gd_scheduler_params": {"gama": 0.25}})");
  const SweepEnd object = run({"ssm", "--config", "object.json", "--dry-run", "--json"});
  ASSERT_EQ(object.status, 0) << object.errors;
  const json cell = json::parse(object.output)[0];
  EXPECT_NE(cell.dump().find("\"step_size\":50"), std::string::npos) << cell.dump();
  EXPECT_NE(cell.dump().find("\"step_gamma\":0.25"), std::string::npos) << cell.dump();
  EXPECT_EQ(run({"ssm", "--config", "text.json", "--dry-run", "--json"}).output, object.output);
  EXPECT_EQ(run({"ssm", "--num-seeds", "1", "--student-dims", "20", "--no-gnc", "--gd",
                 "--gd-scheduler", "step", "--gd-scheduler-params",
                 R"({"step_size":50,"gamma":0.25})", "--dry-run", "--json"})
                .output,
            object.output);
  const SweepEnd wrong = run({"ssm", "--config", "wrong.json", "--dry-run"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_NE(wrong.errors.find("unknown name `gama`"), std::string::npos) << wrong.errors;
  EXPECT_NE(wrong.errors.find("wrong.json"), std::string::npos) << wrong.errors;
}

TEST_F(SweepSsm, ADataFileThatIsNoneIsToldWhere) {
  write("pairs.json", "[{\"alpha\": 0.5,\n  \"w\": [1, NaN]}]");
  const SweepEnd end = run({"ssm", "--data-file", "pairs.json", "--dry-run"});
  EXPECT_EQ(end.status, 10);
  EXPECT_NE(end.errors.find("not valid JSON at line 2, column 12"), std::string::npos)
      << end.errors;
  write("pairs.json", kData);
  const SweepEnd ranks =
      run({"ssm", "--data-file", "pairs.json", "--teacher-ranks", "1", "2", "--dry-run"});
  EXPECT_EQ(ranks.status, 0) << ranks.errors;
  EXPECT_NE(ranks.errors.find("describes a teacher of rank 1"), std::string::npos) << ranks.errors;
}

TEST_F(SweepSsm, AStopKeepsWhatIsDoneAndTheSameCommandGoesOn) {
  const std::vector<std::string> command = {
      "ssm",      "--num-seeds", "2", "--student-dims", "50", "--gnc-num-samples",
      "30000000", "--workers",   "2", "--json"};
  auto sweep = start(command);
  while (sweep->workers().size() < 2 && sweep->running()) {
  }
  ::usleep(700'000);
  ::kill(sweep->pid(), SIGINT);
  const SweepEnd stopped = sweep->wait();
  ASSERT_EQ(stopped.status, 75) << stopped.errors;
  EXPECT_NE(stopped.errors.find("the same command goes on"), std::string::npos);
  const SweepEnd whole = run(command);
  ASSERT_EQ(whole.status, 0) << whole.errors;
  for (const json& row : json::parse(whole.output)) EXPECT_EQ(row["guesses"], 30'000'000);
}

TEST_F(SweepSsm, ShowPlotAndExportReadTheStore) {
  ASSERT_EQ(run({"ssm", "--num-seeds", "2", "--student-dims", "20", "30", "--gnc-num-samples",
                 "100000", "--gd", "--gd-epochs", "20"})
                .status,
            0);
  const SweepEnd table = run({"show", "--cells"});
  EXPECT_EQ(table.status, 0) << table.errors;
  EXPECT_NE(table.output.find("95 % INTERVAL"), std::string::npos);
  EXPECT_NE(run({"show", "--list"}).output.find("ssm-"), std::string::npos);
  const SweepEnd tidy = run({"export"});
  EXPECT_EQ(lines_of(tidy.output).size(), 9u) << tidy.output;
  const SweepEnd wide = run({"export", "--format", "wide"});
  EXPECT_EQ(wide.output, file_beginning("results", "results__seq_len=5_seeds=0-1_"));
  for (const std::string format : {"wide", "parquet"})
    EXPECT_EQ(run({"export", "--format", format, "--output", "a.json"}).status, 2);
  const SweepEnd rows = run({"export", "--json"});
  ASSERT_EQ(rows.status, 0) << rows.errors;
  EXPECT_EQ(rows.output, run({"show", "--json"}).output);
  EXPECT_EQ(json::parse(rows.output).size(), 8u);
  EXPECT_EQ(run({"export", "--json", "--output", "a.txt"}).status, 0);
  EXPECT_EQ(run({"export", "--output", "a.json"}).status, 0);
  EXPECT_EQ(file_beginning(".", "a.txt"), rows.output);
  EXPECT_EQ(file_beginning(".", "a.json"), rows.output);
  EXPECT_EQ(run({"export", "--format", "parquet"}).status, 2);
  EXPECT_EQ(run({"export", "--format", "parquet", "--output", "a.csv"}).status, 2);
  EXPECT_EQ(run({"export", "--output", "a.xlsx"}).status, 2);
  ASSERT_EQ(run({"export", "--output", "b.parquet"}).status, 0);
  EXPECT_TRUE(read_file(path("b.parquet")).starts_with("PAR1"));
  ASSERT_EQ(run({"export", "--format", "parquet", "--output", "a.parquet"}).status, 0);
  ASSERT_EQ(run({"plot", "--output", "a.svg"}).status, 0);
  ASSERT_EQ(run({"plot", "--output", "a.png"}).status, 0);
  ASSERT_EQ(run({"plot", "--output", "a.pdf"}).status, 0);
  EXPECT_EQ(run({"plot", "--output", "a.gif"}).status, 2);
  EXPECT_TRUE(std::filesystem::exists(path("a.svg")));
  EXPECT_GT(std::filesystem::file_size(path("a.png")), 5000u);
  EXPECT_GT(std::filesystem::file_size(path("a.pdf")), 5000u);
}

// Reads the file with pyarrow, which must find the same types and nulls.
const char* const kReadParquet = R"py(
import csv, sys
import pyarrow.parquet as parquet
table = parquet.read_table("a.parquet")
types = {field.name: str(field.type) for field in table.schema}
wanted = {"seed": "int64", "student_dim": "int64", "value": "double", "standard_error": "double",
          "guesses": "int64", "failure_kind": "string", "failure_signal": "int64", "eps_train": "double"}
for name, kind in wanted.items():
    assert types[name] == kind, (name, types[name])
rows = table.to_pylist()
lines = list(csv.DictReader(open("a.csv")))
assert len(rows) == len(lines) == 4 and list(lines[0]) == table.column_names
for row, line in zip(rows, lines):
    for name, value in row.items():
        text = line[name]
        same = text == "" if value is None else \
            float(text) == value if isinstance(value, (int, float)) else text == value
        assert same, (name, value, text)
assert [row["state"] for row in rows].count("censored") == 2, rows
)py";

TEST_F(SweepSsm, ParquetHoldsTheTidyTable) {
  // Some cells accept no guess.
  const SweepEnd end = run({"ssm", "--num-seeds", "2", "--student-dims", "20", "--gnc-num-samples",
                            "2000", "--eps-train", "1e-9", "--gd", "--gd-epochs", "20"});
  ASSERT_EQ(end.status, 0) << end.errors;
  ASSERT_EQ(run({"export", "--output", "a.csv"}).status, 0);
  ASSERT_EQ(run({"export", "--format", "parquet", "--output", "a.parquet"}).status, 0);
  write("read.py", kReadParquet);
  const char* const peer = std::getenv("CONVOY_PEER_PYTHON");
  const std::string python = peer == nullptr ? "python3" : peer;
  if (std::system(fmt::format("{} -c 'import pyarrow' >/dev/null 2>&1", python).c_str()) != 0)
    GTEST_SKIP() << "no Python with pyarrow (CONVOY_PEER_PYTHON)";
  EXPECT_EQ(
      std::system(fmt::format("cd {} && {} read.py", folder_.path().string(), python).c_str()), 0);
}

}  // namespace
}  // namespace convoy::testing
