// SPDX-License-Identifier: Apache-2.0
//
// Runs `convoy sweep mf` as its users do.
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "sweep/sweep_process.h"

namespace convoy::testing {
namespace {

using nlohmann::json;

class SweepMf : public SweepTest {
 protected:
  SweepEnd run_mf(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "mf");
    return run(arguments);
  }
};

std::vector<std::vector<std::string>> table_of(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    rows.emplace_back();
    std::istringstream fields(line);
    for (std::string field; std::getline(fields, field, ',');) rows.back().push_back(field);
    if (line.ends_with(',')) rows.back().emplace_back();
  }
  return rows;
}

// A configuration file of the earlier program, with all its defects.
const char* const kWidthConfig = R"({
  "n_rows": 5, "n_cols": 5, "gt_rank": 1, "gt_norm": 1.0, "num_seeds": 8, "completion": false,
  "num_measurements": 15, "activation": "Leaky ReLU", "negative_slope": 0.2,
  "gnc_num_samples": 100000000,
  "gnc_batch_sizes": [10000000, 10000000, 1000000, 1000000, 200000, 200000, 200000, 200000],
  "gnc_eps_train": 0.02, "gnc_init": "gauss", "gnc_normalize": false, "gnc_softening": 1e-6,
  "gd_lrs": [1e-4], "gd_epochs": 100000, "gd_init_scales": [1e-3], "gd_log_period": 100,
  "gd_print_period": 10000, "gd_momentum": 0.9, "gd_verbose": true,
  "widths": [5, 10, 20, 40, 80, 160], "depth": 2, "results_dir": "./tables",
  "figures_dir": "./figures"})";

TEST_F(SweepMf, AConfigurationOfThePriorProgramRunsAsItIs) {
  write("width.json", kWidthConfig);
  const SweepEnd end = run_mf({"--config", "width.json", "--num_seeds", "2", "--gnc-num-samples",
                               "20000", "--gd_epochs", "200"});
  ASSERT_EQ(end.status, 0) << end.errors;
  EXPECT_NE(end.errors.find("gnc_batch_sizes is ignored"), std::string::npos);
  EXPECT_NE(end.errors.find("8 entries for 6 values"), std::string::npos);
  EXPECT_NE(end.errors.find("gd_verbose and gd_print_period are ignored"), std::string::npos);
  const auto table = table_of(file_beginning(
      "tables", "width_results_gt_rank=1_act=LeakyReLU_gnc_init=gauss_gd_momentum=0.9"));
  ASSERT_EQ(table.size(), 7u);
  EXPECT_EQ(table[0], (std::vector<std::string>{"width", "gnc_gen_seed=0", "prior_gen_seed=0",
                                                "gd_gen_seed=0", "gnc_gen_seed=1",
                                                "prior_gen_seed=1", "gd_gen_seed=1"}));
  const std::set<std::string> widths = {table[1][0], table[2][0], table[6][0]};
  EXPECT_EQ(widths, (std::set<std::string>{"5", "10", "160"}));
  for (const size_t column : {2u, 3u, 5u, 6u})
    EXPECT_GT(std::strtod(table[1][column].c_str(), nullptr), 0) << column;
  std::set<std::string> endings;
  for (const auto& file : std::filesystem::directory_iterator(path("figures")))
    endings.insert(file.path().extension().string());
  EXPECT_EQ(endings, (std::set<std::string>{".pdf", ".png", ".svg"}));
}

TEST_F(SweepMf, ADepthExperimentInYamlHasAStepSizeForEachDepth) {
  write("depth.yaml",
        "depths: [2, 3, 4]\nwidth: 5\nactivation: Tanh\ngnc_normalize: true\ncompletion: true\n"
        "gnc_eps_train: 0.02\ngd_lrs: [1e-2]\ngd_init_scales: [0.001, 0.01, 0.1, 0.2]\n"
        "gd_epochs: 101\nnum_seeds: 2\ngnc_num_samples: 200000\n");
  const SweepEnd end = run_mf({"--config", "depth.yaml", "--log-dir", "logs"});
  ASSERT_EQ(end.status, 0) << end.errors;
  EXPECT_NE(end.errors.find("gd_init_scales has 4 entries for 3 values"), std::string::npos);
  EXPECT_NE(read_file(path("logs") / "sweep.log").find("INFO    runner    gd_init_scales has 4"),
            std::string::npos);
  const auto table = table_of(
      file_beginning("results", "depth_results_gt_rank=1_act=Tanh_gnc_init=gauss_completion"));
  ASSERT_EQ(table.size(), 4u);
  EXPECT_EQ(table[0], (std::vector<std::string>{"depth", "gnc_gen_seed=0", "gd_gen_seed=0",
                                                "gnc_gen_seed=1", "gd_gen_seed=1"}));
  // The table has one row per method and depth: parameters that vary with the depth do not divide
  // the rows.
  EXPECT_EQ(end.output.find("gd_init_scale="), std::string::npos) << end.output;
  EXPECT_EQ(run({"export", "--format", "wide"}).output, file_beginning("results", "depth_results"));
}

TEST_F(SweepMf, APlainAndANormalisedDepthRunHaveATableEach) {
  const std::vector<std::string> plain = {
      "--depths", "2",       "--num-seeds",     "1",   "--gnc-num-samples",
      "20000",    "--no-gd", "--gnc-eps-train", "0.05"};
  std::vector<std::string> normalised = plain;
  normalised.emplace_back("--gnc-normalize");
  ASSERT_EQ(run_mf(plain).status, 0);
  ASSERT_EQ(run_mf(normalised).status, 0);
  EXPECT_EQ(files_beginning("results", "depth_results_gt_rank=1_act=Linear_gnc_init=gauss_").size(),
            2u);
}

TEST_F(SweepMf, AConfigurationAloneNamesItsExperiment) {
  write("depth.json", R"({"depths": [2, 3], "gd_lrs": [0.01]})");
  const SweepEnd depth = run({"--config", "depth.json"});
  EXPECT_EQ(depth.status, 2);
  EXPECT_NE(depth.errors.find("these are flags of `convoy sweep mf`: convoy sweep mf --config "
                              "depth.json"),
            std::string::npos)
      << depth.errors;
  write("both.json", R"({"num_seeds": 2, "gd_epochs": 10})");
  EXPECT_NE(run({"--config=both.json"})
                .errors.find("these are flags of `convoy sweep ssm`, `convoy sweep mf`: "),
            std::string::npos);
}

TEST_F(SweepMf, ExamplesAreReadable) {
  const char* const source = std::getenv("CONVOY_SOURCE_DIR");
  ASSERT_NE(source, nullptr);
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(
           std::filesystem::path(source) / "examples" / "sweep")) {
    if (!entry.is_regular_file()) continue;
    ++files;
    const SweepEnd end = run_mf({"--config", entry.path().string(), "--dry-run"});
    EXPECT_EQ(end.status, 0) << end.errors;
    EXPECT_EQ(end.errors.find("ignored"), std::string::npos) << end.errors;
  }
  EXPECT_GE(files, 6);
}

TEST_F(SweepMf, NothingAcceptedIsCensoredAndDivergenceHasFailed) {
  const SweepEnd end =
      run_mf({"--widths", "5", "--num-seeds", "1", "--gnc-num-samples", "3000", "--gnc-eps-train",
              "1e-9", "--gd-lrs", "1e300", "--gd-init-scales", "1e10", "--gd-epochs", "200"});
  EXPECT_EQ(end.status, 15) << end.errors;
  EXPECT_NE(end.output.find("censored"), std::string::npos) << end.output;
  const auto table = table_of(file_beginning("results", "width_results"));
  ASSERT_EQ(table.size(), 2u);
  EXPECT_EQ(table[1][1], "nan");
  EXPECT_EQ(table[1][3], "");
}

TEST_F(SweepMf, ThePriorHasCellsWhereItHasNoClosedForm) {
  const SweepEnd end =
      run_mf({"--widths", "5", "8", "--depth", "3", "--activation", "Tanh", "--num-seeds", "1",
              "--gnc-num-samples", "1000", "--no-gd", "--json"});
  ASSERT_EQ(end.status, 0) << end.errors;
  int priors = 0;
  for (const json& row : json::parse(end.output)) {
    if (row["method"] != "prior") continue;
    ++priors;
    EXPECT_EQ(row["accepted"], 1'000'000);
    EXPECT_GT(row["standard_error"].get<double>(), 0);
  }
  EXPECT_EQ(priors, 2);
  for (const auto& row : table_of(file_beginning("results", "width_results"))) {
    ASSERT_EQ(row.size(), 3u);
    if (row[0] == "width") continue;
    EXPECT_GT(std::strtod(row[2].c_str(), nullptr), 0.01);
  }
}

TEST_F(SweepMf, TheNumbersDoNotDependOnTheWorkers) {
  std::set<std::string> tables;
  for (const char* workers : {"1", "2", "3"}) {
    const std::string folder = std::string("results-") + workers;
    const SweepEnd end = run_mf({"--widths", "5", "7", "--num-seeds", "3", "--gnc-num-samples",
                                 "1000000", "--gnc-eps-train", "0.05", "--gd-epochs", "201",
                                 "--workers", workers, "--results-dir", folder});
    ASSERT_EQ(end.status, 0) << end.errors;
    tables.insert(file_beginning(folder, "width_results"));
  }
  EXPECT_EQ(tables.size(), 1u);
}

TEST_F(SweepMf, ShortcutsSayTheirNamesAndAreRefusedWhereTheyDoNotHold) {
  const SweepEnd end =
      run_mf({"--widths", "3", "8", "--activation", "Tanh", "--num-seeds", "1", "--gnc-num-samples",
              "1000", "--no-gd", "--shortcut", "auto", "--json"});
  ASSERT_EQ(end.status, 0) << end.errors;
  std::map<int64_t, std::string> names;
  for (const json& row : json::parse(end.output))
    names[row["width"].get<int64_t>()] = row["shortcut"].get<std::string>();
  EXPECT_EQ(names, (std::map<int64_t, std::string>{{3, "none"}, {8, "gram"}}));
  const SweepEnd refused = run_mf({"--widths", "8", "--gnc-init", "unif", "--shortcut", "gram"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.errors.find("needs Gaussian weights"), std::string::npos);
}

TEST_F(SweepMf, WrongFilesAreRefusedByFileAndKey) {
  const std::pair<const char*, const char*> wrong[] = {
      {R"({"widths": []})", "widths"},
      {R"({"gnc_eps_train": NaN})", "gnc_eps_train"},
      {R"({"wdths": [5]})", "did you mean `widths`"},
      {R"({"num_measurements": 25})", "num_measurements"},
      {R"({"completion": true, "num_measurements": 26})", "num_measurements"},
      {R"({"n_rows": 1, "n_cols": 1, "num_measurements": 1})", "n_rows"},
      {R"({"activation": "ReLU"})", "activation"},
      {R"({"widths": ["a"]})", "widths"},
      {R"({"gd_lrs": [1e-4, 1e-3]})", "gd_lrs"},
      {R"({"widths": [5, 5]})", "widths"},
      {R"({"widths": [5], "depths": [2]})", "depths"},
      {R"({"gnc_normalize": "yes"})", "gnc_normalize"},
      {R"([1, 2])", "key: value"}};
  for (const auto& [text, named] : wrong) {
    write("wrong.json", text);
    const SweepEnd end = run_mf({"--config", "wrong.json", "--dry-run"});
    EXPECT_EQ(end.status, 2) << text;
    EXPECT_NE(end.errors.find("wrong.json"), std::string::npos) << end.errors;
    EXPECT_NE(end.errors.find(named), std::string::npos) << end.errors;
  }
  const SweepEnd given = run_mf({"--num-measurements", "30", "--dry-run"});
  EXPECT_EQ(given.status, 2);
  EXPECT_NE(given.errors.find("num_measurements"), std::string::npos) << given.errors;
}

}  // namespace
}  // namespace convoy::testing
