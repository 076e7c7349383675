// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "convoy/apps/front/runs/runs_actions.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/terminal_size.h"
#include "convoy/core/pictures/picture.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;

charts::TextPlotOptions terminal_options(const Context& context, const RunsDrawingFlags& flags) {
  charts::TextPlotOptions options;
  const TerminalSize size = terminal_size(STDOUT_FILENO);
  if (size.columns > 0) options.columns = std::min<int64_t>(size.columns, 140);
  if (size.rows > 0) options.rows = std::clamp<int64_t>(size.rows - 2, 12, 32);
  options.color = context.use_color(STDOUT_FILENO);
  options.log_y = flags.log_y;
  return options;
}

}  // namespace

std::vector<telemetry::RunHistory> readable_runs(const std::string& folder, const Log& log) {
  std::vector<telemetry::RunHistory> runs;
  for (const fs::path& path : telemetry::find_runs(folder)) {
    try {
      runs.push_back(telemetry::read_run(path));
      runs.back().name = telemetry::run_name(path, folder);
    } catch (const Error& error) {
      log.warning(error.sentence());
    }
  }
  return runs;
}

int draw_series(const Context& context, const RunsDrawingFlags& flags, const std::string& metric,
                const std::vector<charts::PlotSeries>& series, const std::string& title) {
  if (!flags.output.empty()) pictures::require_picture_name("--output", flags.output);
  const bool any = std::any_of(series.begin(), series.end(),
                               [](const auto& one) { return !one.points.empty(); });
  if (!any)
    throw DataError(fmt::format("the run has no {} figures yet", metric),
                    {.hint = "wait for the first step that is logged, or name another figure"});
  if (flags.ascii || (flags.output.empty() && ::isatty(STDOUT_FILENO) == 1)) {
    fmt::print("{}", charts::plot_text(series, terminal_options(context, flags)));
    return 0;
  }
  charts::PlotOptions options{
      .title = title,
      .y_label = metric,
      .width = static_cast<double>(flags.width),
      .height = static_cast<double>(flags.height),
      .y_scale = flags.log_y ? charts::AxisScale::Log : charts::AxisScale::Linear,
      .smoothing = flags.smoothing};
  std::replace(options.y_label.begin(), options.y_label.end(), '_', ' ');
  const std::string svg = charts::plot_svg(series, options);
  if (flags.output.empty()) {
    fmt::print("{}", svg);
    return 0;
  }
  write_file_atomic(flags.output, pictures::picture_for(flags.output, svg));
  context.log().info(fmt::format("wrote {}", flags.output));
  pictures::warn_of_boxes(context.log(), flags.output, svg);
  return 0;
}

}  // namespace convoy::apps
