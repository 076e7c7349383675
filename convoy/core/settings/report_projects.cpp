// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/report_projects.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/utf8.h"

namespace convoy::settings {
namespace {

// The rules of wandb's Settings.validate_project().
std::string problem_at_wandb(const std::string& project) {
  constexpr int64_t kMostLetters = 128;
  if (project.find_first_of("/\\#?%:") != std::string::npos)
    return "wandb takes no name with / \\ # ? % or :";
  if (count_characters(project) > kMostLetters)
    return fmt::format("wandb takes {} characters at most", kMostLetters);
  return {};
}

// The rules of trackio's SQLiteStorage.validate_project_name(), and the length of a file's name.
std::string problem_at_trackio(const std::string& project) {
  constexpr size_t kMostBytes = 255 - std::string_view(".db-journal").size();
  if (project.size() > kMostBytes)
    return fmt::format("trackio names a file by it, which takes {} bytes at most", kMostBytes);
  constexpr std::string_view kRegistries = "registry-";
  if (project.starts_with(kRegistries))
    return fmt::format("trackio keeps names that begin with {} for its registries", kRegistries);
  for (const std::string_view end :
       {"_system", "_configs", "_traces", "_artifacts", "_artifact_versions", "_artifact_aliases",
        "_run_artifact_links"})
    if (project.size() > end.size() && project.ends_with(end))
      return fmt::format("trackio keeps names that end with {} for its own files", end);
  return {};
}

struct Program {
  const char* name;
  const char* variable;
  std::string (*problem)(const std::string& project);
};

constexpr std::array<Program, 2> kPrograms = {{{"trackio", "TRACKIO_PROJECT", problem_at_trackio},
                                               {"wandb", "WANDB_PROJECT", problem_at_wandb}}};

std::string project_for(const LoggingSettings& logging, const Program& program) {
  if (!logging.project.empty()) return logging.project;
  const std::string named = environment_text(program.variable);
  return named.empty() ? "convoy" : named;
}

bool writes_for(const LoggingSettings& logging, const Program& program) {
  const std::vector<std::string>& names = logging.backend.names;
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return name == program.name || name == "all";
  });
}

}  // namespace

std::string report_project(const LoggingSettings& logging, const std::string& program) {
  const auto found = std::find_if(kPrograms.begin(), kPrograms.end(),
                                  [&](const Program& one) { return one.name == program; });
  return found == kPrograms.end() ? "" : project_for(logging, *found);
}

void check_report_projects(const LoggingSettings& logging, const config::Resolved& resolved,
                           config::ErrorList& errors) {
  if (!resolved.value("logging.backend").readable || !resolved.value("logging.project").readable)
    return;
  for (const Program& program : kPrograms) {
    if (!writes_for(logging, program)) continue;
    const std::string project = project_for(logging, program);
    const std::string problem =
        find_invalid_utf8(project) ? "wanted UTF-8" : program.problem(project);
    if (problem.empty()) continue;
    if (logging.project.empty())
      errors.add(ConfigError(
          fmt::format("{}: `{}` is no project name: {}", program.variable, project, problem),
          {.key = program.variable, .hint = "set it to another name, or set logging.project"}));
    else
      errors.add(
          ConfigError(fmt::format("logging.project: `{}` is no project name: {}", project, problem),
                      resolved.location("logging.project", "choose another name")));
  }
}

}  // namespace convoy::settings
