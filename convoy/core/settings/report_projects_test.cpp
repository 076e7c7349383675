// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/report_projects.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/settings/assigned_settings_test.h"

namespace convoy::settings {
namespace {

// A variable for as long as the object lives.
class SetVariable {
 public:
  SetVariable(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  ~SetVariable() { ::unsetenv(name_); }
  SetVariable(const SetVariable&) = delete;
  SetVariable& operator=(const SetVariable&) = delete;

 private:
  const char* name_;
};

// The problems with the project of a training that reports to `backend`.
std::string fate_of_project(const std::string& backend, const std::string& project = "") {
  try {
    std::vector<std::string> words = {"logging.backend=" + backend};
    if (!project.empty()) words.push_back("logging.project=" + project);
    testing::with(words);
  } catch (const ConfigError& error) {
    const std::string all = error.sentence();
    return all.find("project name") == std::string::npos ? "" : all;
  }
  return {};
}

bool holds(const std::string& text, const char* words) {
  return text.find(words) != std::string::npos;
}

TEST(ReportProjects, AreNamesThatTheProgramsTake) {
  for (const std::string& project : {std::string("a/b"), std::string("50%"), std::string(129, 'a')})
    EXPECT_TRUE(holds(fate_of_project("wandb", project), "wandb takes")) << project;
  EXPECT_EQ(fate_of_project("wandb", std::string(128, 'a')), "");
  EXPECT_EQ(fate_of_project("trackio", "a/b"), "");
  for (const char* project : {"s\u00fcms", "\u6570\u5024"})
    EXPECT_EQ(fate_of_project("all", project), "");
  EXPECT_EQ(fate_of_project("tensorboard", "50%"), "");
}

TEST(ReportProjects, AreNotTheNamesThatTrackioKeeps) {
  EXPECT_TRUE(holds(fate_of_project("trackio", "registry-a"), "begin with registry-"));
  EXPECT_TRUE(holds(fate_of_project("all", "model_artifacts"), "end with _artifacts"));
  EXPECT_EQ(fate_of_project("trackio", "_system"), "");
  EXPECT_EQ(fate_of_project("wandb", "registry-a"), "");
  EXPECT_EQ(fate_of_project("trackio", std::string(244, 'a')), "");
  EXPECT_TRUE(holds(fate_of_project("trackio", std::string(245, 'a')), "244 bytes at most"));
}

TEST(ReportProjects, OfVariablesHaveTheSameRules) {
  const SetVariable trackio("TRACKIO_PROJECT", "registry-a");
  const SetVariable wandb("WANDB_PROJECT", "a/b");
  EXPECT_TRUE(
      holds(fate_of_project("trackio"), "TRACKIO_PROJECT: `registry-a` is no project name"));
  EXPECT_TRUE(
      holds(fate_of_project("wandb"), "WANDB_PROJECT: `a/b` is no project name: wandb takes"));
  EXPECT_TRUE(holds(fate_of_project("wandb"), "set logging.project"));
  EXPECT_EQ(fate_of_project("tensorboard"), "");
  EXPECT_EQ(fate_of_project("[trackio, wandb]", "sums"), "");  // the key beats them
}

TEST(ReportProjects, AreThoseOfTheKeyThenOfTheVariableThenConvoy) {
  LoggingSettings logging;
  EXPECT_EQ(report_project(logging, "trackio"), "convoy");
  const SetVariable wandb("WANDB_PROJECT", "night");
  EXPECT_EQ(report_project(logging, "wandb"), "night");
  EXPECT_EQ(report_project(logging, "trackio"), "convoy");
  logging.project = "sums";
  EXPECT_EQ(report_project(logging, "wandb"), "sums");
}

}  // namespace
}  // namespace convoy::settings
