// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/telemetry/environment.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "convoy/core/base/error.h"
#include "convoy/core/base/text_as.h"
#include "convoy/core/telemetry/flight_record_page.h"

namespace convoy::telemetry {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

TelemetryEnvironment read_environment() {
  TelemetryEnvironment environment;
  environment.tensorboard_folder = variable("TENSORBOARD_LOGGING_DIR");
  environment.no_color = !variable("NO_COLOR").empty() || !variable("CONVOY_NO_COLOR").empty() ||
                         variable("TERM") == "dumb";
  environment.force_color = !variable("FORCE_COLOR").empty();
  environment.progress = variable("CONVOY_PROGRESS");
  environment.flight_descriptor =
      std::max(-1, text_as<int>(variable(kFlightVariable)).value_or(-1));
  return environment;
}

std::filesystem::path tensorboard_folder(const std::vector<std::string>& backends,
                                         const std::filesystem::path& of_run) {
  if (std::find(backends.begin(), backends.end(), "tensorboard") == backends.end()) return {};
  const TelemetryEnvironment environment = read_environment();
  return environment.tensorboard_folder.empty() ? of_run : environment.tensorboard_folder;
}

ColorChoice color_choice(const std::string& word) {
  if (word == "auto") return ColorChoice::Auto;
  if (word == "always") return ColorChoice::Always;
  if (word == "never") return ColorChoice::Never;
  throw ConfigError(fmt::format("wanted auto, always or never, found `{}`", word),
                    {.key = "color", .hint = "--color never writes plain text"});
}

bool use_color(ColorChoice choice, int descriptor, const TelemetryEnvironment& environment) {
  if (choice != ColorChoice::Auto) return choice == ColorChoice::Always;
  if (environment.no_color) return false;
  return environment.force_color || ::isatty(descriptor) == 1;
}

}  // namespace convoy::telemetry
