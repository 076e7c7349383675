// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/telemetry/environment.h"

#include <unistd.h>

#include <algorithm>

#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/text_as.h"
#include "convoy/core/telemetry/ranks/flight_record_page.h"

namespace convoy::telemetry {

TelemetryEnvironment read_environment() {
  TelemetryEnvironment environment;
  environment.tensorboard_folder = environment_text("TENSORBOARD_LOGGING_DIR");
  environment.no_color = !environment_text("NO_COLOR").empty() ||
                         !environment_text("CONVOY_NO_COLOR").empty() ||
                         environment_text("TERM") == "dumb";
  environment.force_color = !environment_text("FORCE_COLOR").empty();
  environment.progress = environment_text("CONVOY_PROGRESS");
  environment.flight_descriptor =
      std::max(-1, text_as<int>(environment_text(kFlightVariable)).value_or(-1));
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
