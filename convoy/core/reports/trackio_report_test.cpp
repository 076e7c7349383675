// SPDX-License-Identifier: Apache-2.0
//
// Reads the rows of a report by SQLite, and by trackio itself where a Python has it.
#include "convoy/core/reports/trackio_report.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "files/run_script.h"
#include "files/temporary_folder.h"

namespace convoy::reports {
namespace {

ReportRun a_run(const std::string& id, int64_t resume_step = -1) {
  return {.id = id,
          .name = "night",
          .project = "sums",
          .config = {{"seed", 1}, {"train", {{"learning_rate", 0.1}}}},
          .resume_step = resume_step};
}

// The first column of each row of a query, as text.
std::vector<std::string> column(const std::filesystem::path& file, const char* sql) {
  sqlite3* database = nullptr;
  EXPECT_EQ(sqlite3_open_v2(file.c_str(), &database, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  std::vector<std::string> values;
  sqlite3_exec(
      database, sql,
      [](void* into, int, char** texts, char**) {
        static_cast<std::vector<std::string>*>(into)->emplace_back(texts[0]);
        return 0;
      },
      &values, nullptr);
  sqlite3_close_v2(database);
  return values;
}

using Texts = std::vector<std::string>;

TEST(TrackioReport, AResumedRunHasEachStepOnce) {
  const testing::TemporaryFolder folder;
  const auto file = folder / "sums.db";
  {
    TrackioReport first(file, a_run("a1"), Log());
    for (int64_t step = 1; step <= 6; ++step)
      first.add_row(step, {{"train/loss", static_cast<double>(step)}});
    first.end(0);
  }
  TrackioReport other(file, a_run("b2"), Log());
  other.add_row(6, {{"train/loss", 0.5}});
  TrackioReport second(file, a_run("a1", 4), Log());
  second.add_row(5, {{"train/loss", 50}});
  second.add_row(5, {{"eval/loss", std::numeric_limits<double>::quiet_NaN()}});
  EXPECT_EQ(
      column(file, "SELECT step || metrics FROM metrics WHERE run_id = 'a1' ORDER BY id"),
      (Texts{R"(1{"train/loss":1.0})", R"(2{"train/loss":2.0})", R"(3{"train/loss":3.0})",
             R"(4{"train/loss":4.0})", R"(5{"train/loss":50.0})", R"(5{"eval/loss":"NaN"})"}));
  EXPECT_EQ(column(file, "SELECT step FROM metrics WHERE run_id = 'b2'"), Texts{"6"});
  EXPECT_EQ(column(file, "SELECT run_name FROM configs ORDER BY id"), (Texts{"night", "night"}));
}

TEST(TrackioReport, AResumedRunHasOneName) {
  const testing::TemporaryFolder folder;
  const auto file = folder / "sums.db";
  TrackioReport(file, a_run("a1"), Log()).add_row(1, {{"train/loss", 1}});
  TrackioReport(file, a_run("b2"), Log()).add_row(1, {{"train/loss", 1}});
  ReportRun renamed = a_run("a1", 1);
  renamed.name = "day";
  TrackioReport(file, renamed, Log()).add_row(2, {{"train/loss", 2}});
  EXPECT_EQ(column(file, "SELECT run_name FROM metrics ORDER BY id"),
            (Texts{"day", "night", "day"}));
}

TEST(TrackioReport, AFileHasARunOrNot) {
  const testing::TemporaryFolder folder;
  const TrackioReport report(folder / "sums.db", a_run("a1"), Log());
  EXPECT_TRUE(trackio_has_run(folder / "sums.db", "a1"));
  EXPECT_FALSE(trackio_has_run(folder / "sums.db", "b2"));
  EXPECT_FALSE(trackio_has_run(folder / "other.db", "a1"));
  EXPECT_FALSE(std::filesystem::exists(folder / "other.db"));
  write_file_atomic(folder / "foreign.db", std::string(5000, 'x'));
  EXPECT_FALSE(trackio_has_run(folder / "foreign.db", "a1"));
}

TEST(TrackioReport, AnotherKindOfFileIsRefused) {
  const testing::TemporaryFolder folder;
  write_file_atomic(folder / "sums.db", std::string(5000, 'x'));
  EXPECT_THROW(TrackioReport(folder / "sums.db", a_run("a1"), Log()), IoError);
}

TEST(TrackioReport, AProjectIsAFileOfItsLetters) {
  ::setenv("TRACKIO_DIR", "/somewhere", 1);
  EXPECT_EQ(trackio_file("my sums/v1.0_b-c"), "/somewhere/mysumsv10_b-c.db");
  EXPECT_EQ(trackio_file("../.."), "/somewhere/default.db");
  EXPECT_EQ(trackio_file("s\u00fcms \u6570\u5024\u2460"),
            "/somewhere/s\u00fcms\u6570\u5024\u2460.db");
  EXPECT_EQ(trackio_file("e\u0301\u2014\U0001F680x\U00010400"), "/somewhere/ex\U00010400.db");
  ::unsetenv("TRACKIO_DIR");
  ::setenv("HF_HOME", "/home/hf", 1);
  EXPECT_EQ(trackio_file("p"), "/home/hf/trackio/p.db");
  ::unsetenv("HF_HOME");
}

// Reads a project by trackio; returns a null value without it.
nlohmann::json read_by_trackio(const std::filesystem::path& folder, const std::string& project) {
  const char* python = std::getenv("CONVOY_PEER_PYTHON");
  const auto [status, text] = testing::run_command(fmt::format(
      "TRACKIO_DIR={} {} {}/tests/golden/reports/read_trackio.py '{}' 2>/dev/null", folder.string(),
      python == nullptr ? "python3" : python, std::getenv("CONVOY_SOURCE_DIR"), project));
  if (status == 77 || status == 127) return nullptr;
  EXPECT_EQ(status, 0) << text;
  return nlohmann::json::parse(text);
}

TEST(TrackioReport, TrackioItselfShowsTheRun) {
  const testing::TemporaryFolder folder;
  {
    TrackioReport report(folder / "sums.db", a_run("a1b2c3d4"), Log());
    for (int64_t step = 1; step <= 3; ++step)
      report.add_row(step, {{"train/loss", 1.0 / static_cast<double>(step)}});
    report.add_row(3, {{"eval/loss", 0.25}});
    report.end(0);
  }
  const nlohmann::json told = read_by_trackio(folder.path(), "sums");
  if (told.is_null()) GTEST_SKIP() << "no Python with trackio (CONVOY_PEER_PYTHON)";
  EXPECT_EQ(told["runs"], nlohmann::json::parse(R"([["night", "a1b2c3d4"]])"));
  EXPECT_EQ(told["config"]["train"]["learning_rate"], 0.1);
  EXPECT_EQ(told["loss"], nlohmann::json::parse("[[1, 1.0], [2, 0.5], [3, 0.3333333333333333]]"));
  EXPECT_EQ(told["eval"], nlohmann::json::parse("[[3, 0.25]]"));
  // A run that trackio has opened is gone on with.
  TrackioReport again(folder / "sums.db", a_run("a1b2c3d4", 3), Log());
  again.add_row(4, {{"train/loss", 0.25}});
  EXPECT_EQ(column(folder / "sums.db", "SELECT MAX(step) FROM metrics"), Texts{"4"});
}

TEST(TrackioReport, TrackioItselfFindsProjectsOfAnyLetters) {
  const testing::TemporaryFolder folder;
  ::setenv("TRACKIO_DIR", folder.path().c_str(), 1);
  bool has_trackio = true;
  for (const std::string project : {"s\u00fcms", "\u6570\u5024 \u4e00/\u4e8c",
                                    "\u0928\u092e\u0938\u094d\u0924\u0947 \u2460\u2167",
                                    "e\u0301\u2014\U0001F680x\U00010400", "\U0001F680"}) {
    TrackioReport(trackio_file(project), a_run("a1"), Log()).add_row(1, {{"train/loss", 0.5}});
    const nlohmann::json told = read_by_trackio(folder.path(), project);
    has_trackio = has_trackio && !told.is_null();
    if (has_trackio) {
      EXPECT_EQ(told["loss"], nlohmann::json::parse("[[1, 0.5]]")) << project;
    }
  }
  ::unsetenv("TRACKIO_DIR");
  if (!has_trackio) GTEST_SKIP() << "no Python with trackio (CONVOY_PEER_PYTHON)";
}

}  // namespace
}  // namespace convoy::reports
