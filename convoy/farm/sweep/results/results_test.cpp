// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "convoy/farm/sweep/results/example_cell_test.h"
#include "convoy/farm/sweep/results/grid_text.h"
#include "convoy/farm/sweep/results/result_tables.h"
#include "convoy/farm/sweep/results/summary.h"
#include "convoy/farm/sweep/results/tidy_table.h"
#include "convoy/farm/sweep/results/wide_table.h"

namespace convoy::sweep {
namespace {

SweepResults example() {
  SweepResults results = testing::example_results();
  results.cells[2].failure = std::make_shared<jobs::Failure>(
      jobs::Failure{.kind = "crash", .message = "it \"fell\", twice", .attempt = 2});
  return results;
}

TEST(TidyCsv, OneRowPerCellWithItsFailure) {
  const std::string text = tidy_csv(example());
  EXPECT_TRUE(
      text.starts_with("workload,version,method,seed,num_sequences,sequence_length,"
                       "student_dim,teacher_rank,state,value,"));
  EXPECT_NE(text.find("failed,,,,,1000,0,0,"), std::string::npos) << text;
  EXPECT_NE(text.find("crash,\"it \"\"fell\"\", twice\""), std::string::npos) << text;
  const auto rows = tidy_json(example());
  EXPECT_TRUE(rows[1]["value"].is_null());
  EXPECT_EQ(rows[4]["value"], 1e-5);
}

TEST(Summary, MediansAreOfValuesAloneAndCountTheOthers) {
  const SweepResults results = example();
  EXPECT_EQ(axis_name(results), "student_dim");
  const auto rows = summarise(results, "student_dim");
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].median, 0.25);
  EXPECT_EQ(rows[0].counts_text(), "1 of 2, 1 censored");
  EXPECT_TRUE(std::isnan(rows[1].median));
  EXPECT_EQ(rows[1].counts_text(), "0 of 2, 1 failed, 1 unfinished");
  EXPECT_EQ(counts_text(results), "6 cells: 3 values, 1 censored, 1 failed, 1 unfinished");
  const std::string table = table_text(results);
  EXPECT_NE(table.find("crash: it \"fell\", twice (attempt 2)"), std::string::npos) << table;
  EXPECT_NE(table.find("0 of 1000 guesses passed: P < 3.00e-03 at 95 %"), std::string::npos);
}

TEST(Summary, AFailureEndsWithTheLastLineOfItsProgram) {
  jobs::Failure failure{.kind = "exit", .message = "the program ended with 1"};
  EXPECT_EQ(failure_text(failure), "exit: the program ended with 1");
  failure.stderr_tail = "Traceback\nIndexError: no seed\n\n";
  EXPECT_EQ(failure_text(failure),
            "exit: the program ended with 1; stderr ends with `IndexError: no seed`");
}

TEST(Summary, ShowsNoColumnThatIsEmptyInEveryRow) {
  SweepResults results = example();
  EXPECT_NE(table_text(results).find("ACCEPTED"), std::string::npos);
  std::erase_if(results.cells, [](const CellResult& cell) { return cell.cell.method != "gd"; });
  const std::string table = table_text(results, {.every_cell = true});
  for (const char* const heading : {"PRIOR", "ACCEPTED", "GUESSES"})
    EXPECT_EQ(table.find(heading), std::string::npos) << table;
  EXPECT_NE(table.find("THEORY"), std::string::npos) << table;
}

// Returns a sweep over two learning rates, two optimizers and `num_seeds` seeds, with two result
// columns.
SweepResults of_program(int64_t num_seeds) {
  SweepResults results{
      .workload = "run", .version = "1", .axes = {}, .cells = {}, .metrics = {"loss", "accuracy"}};
  for (const std::string rate : {"0.1", "0.01"})
    for (const std::string optimizer : {"adam", "sgd"})
      for (int64_t seed = 0; seed < num_seeds; ++seed) {
        CellResult cell;
        cell.cell = {.method = "run",
                     .seed = seed,
                     .parameters = nlohmann::json{{"command", {"x", "{lr}", "it's"}},
                                                  {"values", {{"lr", rate}, {"opt", optimizer}}}}
                                       .dump()};
        cell.state = CellState::Value;
        cell.value = rate == "0.1" ? 1 : 2;
        cell.outcome.more = {0.5};
        results.cells.push_back(cell);
      }
  return results;
}

TEST(Tables, HaveAColumnForEachParameterAndEachResult) {
  EXPECT_EQ(table_text(of_program(2)),
            "lr    opt   loss MEDIAN  QUARTILES  accuracy MEDIAN   QUARTILES  CELLS\n"
            "0.1   adam            1     1 .. 1              0.5  0.5 .. 0.5  2\n"
            "0.1   sgd             1     1 .. 1              0.5  0.5 .. 0.5  2\n"
            "0.01  adam            2     2 .. 2              0.5  0.5 .. 0.5  2\n"
            "0.01  sgd             2     2 .. 2              0.5  0.5 .. 0.5  2\n");
  // The table of a single seed shows values and not medians.
  EXPECT_TRUE(table_text(of_program(1)).starts_with("lr    opt   loss  accuracy\n0.1   adam"))
      << table_text(of_program(1));
}

TEST(Tables, ListTheFirstTenOfManyCells) {
  SweepResults results = of_program(100);
  for (CellResult& cell : results.cells) cell.state = CellState::Partial;
  const std::string table = table_text(results);
  EXPECT_NE(table.find("\n400 unfinished; the first 10 of them\n"), std::string::npos) << table;
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 5 + 2 + 11) << table;
  EXPECT_GT(table_text(results, {.every_cell = true}).size(), 10 * table.size());
}

TEST(Tables, FoldTheirLastColumnToTheTerminal) {
  SweepResults results = of_program(1);
  results.cells[0].state = CellState::Failed;
  results.cells[0].failure = std::make_shared<jobs::Failure>(
      jobs::Failure{.kind = "exit", .message = std::string(40, 'a') + " " + std::string(90, 'b')});
  for (const int64_t width : {80, 200}) {
    std::istringstream lines(table_text(results, {.width = width}));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(std::ssize(line), width) << line;
  }
  EXPECT_NE(table_text(results).find(std::string(90, 'b')), std::string::npos);
}

// A built-in experiment has more columns than fit into a terminal.
TEST(Tables, FitTheTerminalAndLoseNothing) {
  SweepResults results = example();
  for (size_t at = 0; at < results.cells.size(); ++at) {
    auto parameters = nlohmann::json::parse(results.cells[at].cell.parameters.str());
    parameters["teacher_rank"] = 1 + at % 2;
    results.cells[at].cell.parameters = parameters.dump();
    results.cells[at].reference.prior_mean = 12345.6;
    if (results.cells[at].planned_guesses > 0)
      results.cells[at].planned_guesses = results.cells[at].tally.guesses = 200'000'000;
  }
  for (const bool every_cell : {false, true}) {
    const std::string whole = table_text(results, {.every_cell = every_cell});
    for (const int64_t width : {80, 200}) {
      const std::string table = table_text(results, {.every_cell = every_cell, .width = width});
      std::istringstream lines(table), words(whole);
      for (std::string line; std::getline(lines, line);) EXPECT_LE(std::ssize(line), width) << line;
      for (std::string word; words >> word;) {
        const size_t sign = word.find('_') + 1;  // a heading may be broken behind its first `_`
        EXPECT_NE(table.find(word.substr(sign)), std::string::npos) << word << "\n" << table;
      }
    }
  }
  const std::string wide = table_text(results, {.width = 200});
  EXPECT_NE(wide.find("student_dim"), std::string::npos) << wide;
}

TEST(Tables, ManyParametersStandInPartsBesideTheNumberOfTheirRow) {
  SweepResults results = of_program(1);
  for (CellResult& cell : results.cells) {
    auto parameters = nlohmann::json::parse(cell.cell.parameters.str());
    for (const std::string name : {"weight_decay", "warmup_steps", "label_smoothing", "dropout"})
      parameters["values"][name] =
          name + " of " + parameters["values"]["lr"].get<std::string>() + " and more";
    cell.cell.parameters = parameters.dump();
  }
  const std::string table = table_text(results, {.width = 80});
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(std::ssize(line), 80) << line;
  EXPECT_TRUE(table.starts_with("ROW  ")) << table;
  EXPECT_NE(table.find("weight_decay of 0.01 and more"), std::string::npos) << table;
}

TEST(Tables, NameTheBestCell) {
  const SweepResults results = of_program(2);
  EXPECT_EQ(best_text(results, *best_cell(results, false)), "loss 1 with lr=0.1 opt=adam, seed 0");
  EXPECT_EQ(best_cell(results, true)->value, 2);
  EXPECT_EQ(best_cell({}, true), nullptr);
}

TEST(WideCsv, HasAColumnForEachResultAndSeed) {
  SweepResults results = of_program(2);
  results.cells[1].state = CellState::Failed;
  results.cells[2].state = CellState::Censored;
  EXPECT_EQ(wide_csv(results),
            "lr,opt,loss_seed=0,loss_seed=1,accuracy_seed=0,accuracy_seed=1\n"
            "0.1,adam,1,,0.5,\n"
            "0.1,sgd,nan,1,nan,0.5\n"
            "0.01,adam,2,2,0.5,0.5\n"
            "0.01,sgd,2,2,0.5,0.5\n");
}

TEST(TidyCsv, OfProgramsNamesResultsAndLeavesGuessesOut) {
  const std::string text = tidy_csv(of_program(1));
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "workload,version,method,seed,lr,opt,state,value,loss,accuracy,attempts,failure_kind,"
            "failure_message,failure_signal,failure_stderr,seconds,device,folder,environment");
}

TEST(TidyCsv, ResultsNamedAsColumnsStandBesideThem) {
  SweepResults results = of_program(1);
  results.metrics = {"loss", "value", "seconds"};
  for (CellResult& cell : results.cells) {
    cell.seconds = 3;
    cell.outcome.more = {7, 99};
  }
  const auto row = tidy_json(results)[0];
  EXPECT_EQ(row.at("value"), 1);
  EXPECT_EQ(row.at("result_value"), 7);
  EXPECT_EQ(row.at("seconds"), 3);
  EXPECT_EQ(row.at("result_seconds"), 99);
}

// A grid may use any name. A parameter with the name of one of Convoy's columns stands beside that
// column.
TEST(TidyCsv, ParametersNamedAsColumnsStandBesideThem) {
  SweepResults results = of_program(1);
  for (CellResult& cell : results.cells)
    cell.cell.parameters =
        R"({"command":["x"],"values":{"seconds":33,"state":"ok","value":7,"loss":8,"seed":9}})";
  const auto row = tidy_json(results)[0];
  for (const auto& [name, value] : {std::pair{"parameter_seconds", "33"},
                                    {"parameter_state", "\"ok\""},
                                    {"parameter_value", "7"},
                                    {"parameter_seed", "9"},
                                    {"loss", "8"}})
    EXPECT_EQ(row.at(name).dump(), value) << name;
  EXPECT_EQ(row.at("state"), "value");
  EXPECT_EQ(row.at("value"), 1);
  EXPECT_EQ(row.at("result_loss"), 1);
}

// Cells of --zip, --cells and --space vary several parameters at once, so one parameter would be
// enough to tell the rows apart.
TEST(Tables, OfProgramsShowAllParametersThatVary) {
  SweepResults results = of_program(1);
  results.cells.resize(2);
  results.cells[0].cell.parameters =
      R"({"command":["x"],"values":{"act":"relu","layers":1,"lr":0.1}})";
  results.cells[1].cell.parameters =
      R"({"command":["x"],"values":{"act":"tanh","layers":2,"lr":0.2}})";
  const std::string table = table_text(results);
  for (const char* const name : {"act", "layers", "lr"})
    EXPECT_NE(table.substr(0, table.find('\n')).find(name), std::string::npos) << table;
  EXPECT_NE(grid_text(results).find("lr 0.1, 0.2"), std::string::npos) << grid_text(results);
}

TEST(GridTexts, NameValuesSeedsAndCommands) {
  EXPECT_EQ(grid_text(of_program(3)), "lr 0.1, 0.01; opt adam, sgd; seeds 0 .. 2");
  EXPECT_EQ(grid_text(example()), "student_dim 150, 300; seeds 1, 3; gnc, gd");
  EXPECT_EQ(shell_text({"./train", "--lr", "{lr}", "it's", ""}), "./train --lr {lr} 'it'\\''s' ''");
}

TEST(Quantiles, AsNumpyHasThem) {
  EXPECT_EQ(quantile({4, 1, 3, 2}, 0.25), 1.75);
  EXPECT_EQ(quantile({1, 2, 3}, 0.5), 2);
  EXPECT_TRUE(std::isnan(quantile({}, 0.5)));
}

TEST(Axes, OfACommandAreTheValuesOfItsGrid) {
  const Cell cell{.method = "run",
                  .seed = 0,
                  .parameters = R"({"command":["x"],"values":{"lr":"1e-3","name":"x","n":"5"}})"};
  const auto axes = axes_of(cell);
  EXPECT_EQ(axes.size(), 3u);
  EXPECT_EQ(axes.at("lr"), 1e-3);
  EXPECT_TRUE(axes.at("n").is_number_integer());
  EXPECT_EQ(axes.at("name"), "x");
}

}  // namespace
}  // namespace convoy::sweep
