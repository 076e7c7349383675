// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/reports/open_reports.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convoy/core/base/files.h"
#include "convoy/core/reports/kept_reports.h"
#include "convoy/core/reports/trackio_report.h"
#include "convoy/core/reports/wandb_report.h"
#include "files/temporary_folder.h"

namespace convoy::reports {
namespace {

namespace fs = std::filesystem;

// Sets variables for the length of a test, without the caller's.
class OpenReports : public ::testing::Test {
 protected:
  OpenReports() {
    for (const char* name :
         {"TRACKIO_DIR", "TRACKIO_SPACE_ID", "TRACKIO_SERVER_URL", "TRACKIO_BUCKET_ID", "WANDB_DIR",
          "WANDB_MODE", "WANDB_DISABLED", "WANDB_NAME", "WANDB_ENTITY", "WANDB_RUN_GROUP",
          "WANDB_JOB_TYPE", "WANDB_NOTES", "WANDB_TAGS", "WANDB_RUN_ID", "WANDB_RESUME",
          "WANDB_WATCH", "WANDB_LOG_MODEL"})
      ::unsetenv(name);
    set("TRACKIO_DIR", (folder_ / "trackio").string());
  }
  ~OpenReports() override {
    for (const std::string& name : set_) ::unsetenv(name.c_str());
  }

  void set(const std::string& name, const std::string& value) {
    ::setenv(name.c_str(), value.c_str(), 1);
    set_.push_back(name);
  }

  // Opens reports of the run in `folder_`, and closes them. Returns what was said.
  std::string open(const std::vector<ReportRequest>& wanted, int64_t resume_step = -1,
                   const std::string& name = "night") {
    ::testing::internal::CaptureStderr();
    const auto reports = open_reports(
        wanted, {.folder = folder_ / "run", .name = name, .resume_step = resume_step}, Log());
    num_open_ = reports.size();
    for (const auto& report : reports) report->add_row(resume_step + 1, {{"train/loss", 1}});
    return ::testing::internal::GetCapturedStderr();
  }

  // The run's offline file of wandb.
  std::string wandb_log(const fs::path& parent) const {
    const fs::path file = find_wandb_log(parent, KeptReports(folder_ / "run").id());
    return file.empty() ? "" : read_file(file);
  }

  const testing::TemporaryFolder folder_;
  size_t num_open_ = 0;

 private:
  std::vector<std::string> set_;
};

bool has(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

int64_t count(const std::string& text, const std::string& words) {
  int64_t found = 0;
  for (size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1))
    ++found;
  return found;
}

const std::vector<ReportRequest> kBoth = {{"trackio", "sums"}, {"wandb", "sums"}};

TEST_F(OpenReports, HaveOneIdThatStays) {
  open(kBoth);
  EXPECT_EQ(num_open_, 2u);
  const std::string id = KeptReports(folder_ / "run").id();
  EXPECT_EQ(id.size(), 8u);
  open(kBoth, 3);
  EXPECT_EQ(KeptReports(folder_ / "run").id(), id);
  EXPECT_NE(KeptReports(folder_ / "other").id(), id);
  EXPECT_TRUE(trackio_has_run(folder_ / "trackio/sums.db", id));
  EXPECT_TRUE(has(wandb_log(folder_ / "run/wandb"), "sums"));
  open({{"tensorboard", ""}});
  EXPECT_EQ(num_open_, 0u);
}

TEST_F(OpenReports, OneThatCannotBeOpenedIsLeftOut) {
  write_file_atomic(folder_ / "trackio/sums.db", std::string(5000, 'x'));
  EXPECT_TRUE(has(open(kBoth), "warning: no report to trackio"));
  EXPECT_EQ(num_open_, 1u);
}

TEST_F(OpenReports, AResumedRunGoesOnWhereItBegan) {
  EXPECT_FALSE(has(open(kBoth), "warning"));
  const std::string id = KeptReports(folder_ / "run").id();
  const std::string said = open({{"trackio", "other"}, {"wandb", "other"}}, 3);
  EXPECT_EQ(count(said, "warning"), 2) << said;
  EXPECT_TRUE(has(said, "trackio: the run goes on in " + (folder_ / "trackio/sums.db").string() +
                            ", where its first steps are, not in "))
      << said;
  EXPECT_TRUE(has(said, "wandb: the run goes on in project sums, ")) << said;
  EXPECT_TRUE(has(said, "`trackio show --project sums`")) << said;
  EXPECT_FALSE(fs::exists(folder_ / "trackio/other.db"));
  EXPECT_FALSE(has(wandb_log(folder_ / "run/wandb"), "other"));
  // A run that begins at step 1 again takes the new names, and says what stays.
  const std::string anew = open({{"trackio", "other"}, {"wandb", "other"}});
  EXPECT_TRUE(has(anew, "stay in " + (folder_ / "trackio/sums.db").string())) << anew;
  EXPECT_TRUE(trackio_has_run(folder_ / "trackio/other.db", id));
  EXPECT_TRUE(has(wandb_log(folder_ / "run/wandb"), "other"));
  EXPECT_FALSE(has(open({{"trackio", "other"}, {"wandb", "other"}}, 3), "warning"));
}

TEST_F(OpenReports, AResumedRunGoesOnInTheFoldersWhereItBegan) {
  set("WANDB_DIR", folder_.path().string());
  open(kBoth);
  set("TRACKIO_DIR", (folder_ / "elsewhere").string());
  set("WANDB_DIR", (folder_ / "elsewhere").string());
  const std::string said = open(kBoth, 3);
  EXPECT_EQ(count(said, "warning"), 2) << said;
  EXPECT_TRUE(has(said, "`TRACKIO_DIR=" + (folder_ / "trackio").string() + " trackio show"))
      << said;
  EXPECT_TRUE(has(said, "`wandb sync " + (folder_ / "wandb/offline-run-").string())) << said;
  EXPECT_FALSE(fs::exists(folder_ / "elsewhere"));
  // Its record went away, or moved with its folder.
  fs::remove_all(folder_ / "wandb");
  fs::rename(folder_ / "trackio", folder_ / "elsewhere");
  const std::string later = open(kBoth, 3);
  EXPECT_EQ(count(later, "warning"), 1) << later;
  EXPECT_TRUE(has(
      later, "wandb: " + (folder_ / "wandb").string() + ", with the figures up to step 3, is gone"))
      << later;
}

TEST_F(OpenReports, ARenamedRunIsSaidToBe) {
  EXPECT_FALSE(has(open(kBoth), "night in its reports"));
  const std::string said = open(kBoth, 3, "day");
  EXPECT_EQ(count(said, "the run was night in its reports; it is day there"), 1) << said;
  EXPECT_TRUE(has(said, "trackio: run day (")) << said;
  EXPECT_FALSE(has(open(kBoth, 3, "day"), "in its reports"));
}

TEST_F(OpenReports, WandbIsLeftOutWhereTheEnvironmentTurnsItOff) {
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"WANDB_MODE", "disabled"}, {"WANDB_DISABLED", "true"}}) {
    set(name, value);
    EXPECT_TRUE(has(open(kBoth), "wandb: no run is written: " + name + " is " + value));
    EXPECT_EQ(num_open_, 1u);
    ::unsetenv(name.c_str());
  }
  set("WANDB_MODE", "of");
  EXPECT_TRUE(has(open(kBoth), "wanted offline, online, shared or disabled, found `of`"));
  EXPECT_EQ(num_open_, 1u);
}

TEST_F(OpenReports, SayWhichVariablesHaveNoEffect) {
  set("WANDB_DISABLED", "false");
  set("WANDB_WATCH", "false");
  set("WANDB_MODE", "offline");
  EXPECT_FALSE(has(open(kBoth), "warning"));
  set("WANDB_MODE", "online");
  set("WANDB_WATCH", "all");
  set("WANDB_RUN_ID", "x");
  set("TRACKIO_SPACE_ID", "me/space");
  const std::string said = open(kBoth);
  EXPECT_EQ(num_open_, 2u);
  EXPECT_EQ(count(said, "warning"), 3) << said;
  EXPECT_TRUE(has(said, "WANDB_MODE is online, and the run is offline")) << said;
  EXPECT_TRUE(has(said, "wandb: no effect here: WANDB_RUN_ID, WANDB_WATCH;")) << said;
  EXPECT_TRUE(has(said, "trackio: no effect here: TRACKIO_SPACE_ID; `trackio sync --project sums"))
      << said;
}

TEST_F(OpenReports, WandbTakesItsNamesFromTheEnvironment) {
  set("WANDB_NAME", "moonlit");
  for (const char* name : {"WANDB_ENTITY", "WANDB_RUN_GROUP", "WANDB_JOB_TYPE", "WANDB_NOTES"})
    set(name, std::string("of-") + name);
  set("WANDB_TAGS", "one-tag,two-tag");
  EXPECT_TRUE(has(open(kBoth), "offline run moonlit of project sums"));
  const std::string log = wandb_log(folder_ / "run/wandb");
  for (const char* text : {"moonlit", "of-WANDB_ENTITY", "of-WANDB_RUN_GROUP", "of-WANDB_JOB_TYPE",
                           "of-WANDB_NOTES", "one-tag", "two-tag"})
    EXPECT_TRUE(has(log, text)) << text;
  EXPECT_FALSE(has(log, "one-tag,"));
  ::unsetenv("WANDB_NAME");  // another shell resumes the run
  EXPECT_TRUE(has(open(kBoth, 3), "offline run moonlit of project sums"));
  set("WANDB_NOTES", "\xff");
  EXPECT_TRUE(has(open(kBoth), "no report to wandb: WANDB_NOTES is not UTF-8"));
}

TEST_F(OpenReports, AHomeInTheirFolderIsExpanded) {
  const char* home = std::getenv("HOME");
  const std::string before = home == nullptr ? "" : home;
  ::setenv("HOME", "/home/me", 1);
  set("WANDB_DIR", "~/runs");
  EXPECT_EQ(wandb_folder("/run"), "/home/me/runs/wandb");
  set("WANDB_DIR", "~you");
  EXPECT_EQ(wandb_folder("/run"), "~you/wandb");
  ::setenv("HOME", before.c_str(), 1);
}

}  // namespace
}  // namespace convoy::reports
