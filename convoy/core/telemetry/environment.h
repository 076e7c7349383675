// SPDX-License-Identifier: Apache-2.0
//
// The environment variables that telemetry uses, read in this one place.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace convoy::telemetry {

struct TelemetryEnvironment {
  std::filesystem::path tensorboard_folder{};  // TENSORBOARD_LOGGING_DIR; empty = <run folder>/tb
  bool no_color = false;  // NO_COLOR or CONVOY_NO_COLOR non-empty, or TERM=dumb
  // CONVOY_PROGRESS: bar, lines, none. A launcher sets it for rank 0, whose output it passes on;
  // empty = decide by the descriptor.
  std::string progress{};
  bool force_color = false;    // FORCE_COLOR non-empty
  int flight_descriptor = -1;  // CONVOY_FLIGHT_FD: shared pages from the launcher; -1 = none
};

TelemetryEnvironment read_environment();

// The folder for TensorBoard files of a training with these logging backends: `of_run`, unless the
// environment names another folder. Empty when the training writes no TensorBoard files.
std::filesystem::path tensorboard_folder(const std::vector<std::string>& backends,
                                         const std::filesystem::path& of_run);

enum class ColorChoice { Auto, Always, Never };

ColorChoice color_choice(const std::string& word);  // auto, always, never. Throws ConfigError

// True when text on `descriptor` is coloured.
bool use_color(ColorChoice choice, int descriptor, const TelemetryEnvironment& environment);

}  // namespace convoy::telemetry
