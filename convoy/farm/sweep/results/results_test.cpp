// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "convoy/farm/sweep/results/example_cell_test.h"
#include "convoy/farm/sweep/results/summary.h"
#include "convoy/farm/sweep/results/tidy_table.h"

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
  const std::string table = table_text(results, false);
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
  EXPECT_NE(table_text(results, false).find("ACCEPTED"), std::string::npos);
  std::erase_if(results.cells, [](const CellResult& cell) { return cell.cell.method != "gd"; });
  const std::string table = table_text(results, true);
  for (const char* const heading : {"PRIOR", "ACCEPTED", "GUESSES"})
    EXPECT_EQ(table.find(heading), std::string::npos) << table;
  EXPECT_NE(table.find("THEORY"), std::string::npos) << table;
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
