// SPDX-License-Identifier: Apache-2.0
//
// `convoy sweep plot`: the figure of a sweep, for screens and for papers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "convoy/apps/front/sweep/sweep_command.h"
#include "convoy/core/base/error.h"
#include "convoy/core/pictures/picture.h"
#include "convoy/farm/sweep/results/figure.h"

namespace convoy::apps {
namespace {

using charts::AxisScale;
using sweep::FigureBand;
using sweep::FigureOptions;
using sweep::FigurePanel;
using sweep::FigureStyle;

constexpr double kPixelsOfInch = 96;

struct SweepPlotFlags : SweepReadFlags {
  std::string output;
  std::vector<std::string> panels;
  std::string x;
  std::string y;
  std::string band = "quartiles";
  std::string log_x = "auto";
  std::string log_y = "auto";
  std::string title = "auto";
  std::string size = "auto";
  double font_size = 0;
  std::string style = "screen";
  int64_t width = 0;
  int64_t height = 0;

  template <class Visitor>
  void fields(Visitor& visit) {
    SweepReadFlags::fields(visit);
    visit("output", output, "figure to write, as .svg, .png or .pdf; empty = SVG on stdout")
        .alias("o");
    visit("style", style,
          "paper: medians alone, 8 points, a column wide, PNG with 300 pixels an inch")
        .one_of({"screen", "paper"});
    visit("panels", panels,
          "of median, seeds and acceptance, divided by commas; default all that apply on screens, "
          "median on paper");
    visit("x", x, "parameter along the x axis; empty = that of the tables");
    visit("y", y,
          "number along the y axis of medians and seeds: a result by its name, train_loss, "
          "accepted_share or seconds; empty = each result in a panel of its own");
    visit("band", band,
          "around medians: quartiles, or interval, in which the median lies with 95 %")
        .one_of({"quartiles", "interval", "none"});
    visit("log_x", log_x,
          "logarithmic x axis; auto: where values span more than two decades or grow by a factor; "
          "--log-x alone is yes")
        .one_of({"auto", "yes", "no"});
    visit("log_y", log_y,
          "logarithmic y axis; auto: where values span more than two decades; --log-y alone is yes")
        .one_of({"auto", "yes", "no"});
    visit("title", title, "auto: workload and axis on screens, none on paper; empty = none");
    visit(
        "size", size,
        "WIDTHxHEIGHT in pixels of 1/96 inch, or with in or mm: 5.5x2.5in; a long legend makes it "
        "taller");
    visit("font_size", font_size, "points; 0 = 8 on paper, 10 on screens").at_least(0).at_most(72);
    visit("width", width, "of the figure in pixels").at_least(0).at_most(10000).hidden();
    visit("height", height, "of the figure in pixels").at_least(0).at_most(10000).hidden();
  }
};

AxisScale scale_of(const std::string& word) {
  return word == "auto" ? AxisScale::Auto : word == "yes" ? AxisScale::Log : AxisScale::Linear;
}

FigurePanel panel_of(const std::string& word) {
  if (word == "median") return FigurePanel::Median;
  if (word == "seeds") return FigurePanel::Seeds;
  if (word == "acceptance") return FigurePanel::Acceptance;
  throw ConfigError(fmt::format("--panels: wanted median, seeds or acceptance, found `{}`", word),
                    {.hint = "such as --panels median,seeds"});
}

// Sets width and height from "1200x500", "5.5x2.5in", "140x60mm".
void read_size(const std::string& text, FigureOptions& options) {
  constexpr double kLeast = 1, kMost = 100;  // inches
  double width = 0, height = 0;
  const char* const end = text.data() + text.size();
  const auto after_width = std::from_chars(text.data(), end, width);
  const bool has_width =
      after_width.ec == std::errc() && after_width.ptr != end && *after_width.ptr == 'x';
  const auto after_height = std::from_chars(has_width ? after_width.ptr + 1 : end, end, height);
  const bool has_both = has_width && after_height.ec == std::errc();
  const std::string unit(has_both ? after_height.ptr : text.data(), end);
  const double factor = unit == "in" ? kPixelsOfInch : unit == "mm" ? kPixelsOfInch / 25.4 : 1;
  const bool known = has_both && (unit.empty() || unit == "px" || factor != 1);
  const auto fits = [&](double length) {
    return length * factor >= kLeast * kPixelsOfInch && length * factor <= kMost * kPixelsOfInch;
  };
  if (!known || !fits(width) || !fits(height))
    throw ConfigError(
        fmt::format("--size: wanted WIDTHxHEIGHT between {} and {} inches, found `{}`", kLeast,
                    kMost, text),
        {.hint = "such as 1200x500, 5.5x2.5in or 140x60mm"});
  options.width = width * factor;
  options.height = height * factor;
}

FigureOptions options_of(const SweepPlotFlags& flags) {
  FigureOptions options{.x = flags.x,
                        .y = flags.y,
                        .x_scale = scale_of(flags.log_x),
                        .y_scale = scale_of(flags.log_y),
                        .band = flags.band == "none"       ? FigureBand::None
                                : flags.band == "interval" ? FigureBand::Interval
                                                           : FigureBand::Quartiles,
                        .title = flags.title,
                        .width = static_cast<double>(flags.width),
                        .height = static_cast<double>(flags.height),
                        .font_size = flags.font_size,
                        .style = flags.style == "paper" ? FigureStyle::Paper : FigureStyle::Screen};
  for (const std::string& word : flags.panels) options.panels.push_back(panel_of(word));
  if (flags.size != "auto") read_size(flags.size, options);
  constexpr double kPixelsOfPrintedInch = 300;
  if (options.style == FigureStyle::Paper && flags.output.ends_with(".png"))
    options.scale = kPixelsOfPrintedInch / kPixelsOfInch;
  return options;
}

// Warns when the figure is higher than requested: a long legend or caption enlarges the figure, so
// that the axes keep their space.
void tell_height(const Log& log, const std::string& svg, const FigureOptions& options) {
  constexpr std::string_view kHeight = " height=\"";
  double pixels = 0;
  std::from_chars(svg.data() + svg.find(kHeight) + kHeight.size(), svg.data() + svg.size(), pixels);
  const double height = pixels / options.scale;
  if (options.height == 0 || height < options.height + 1) return;
  log.warning(fmt::format(
      "axes, legend and caption need more than the height that was asked for: the figure is {:.2f} "
      "inches high, not {:.2f}; a smaller --font-size or fewer --panels need less",
      height / kPixelsOfInch, options.height / kPixelsOfInch));
}

// `--log-y` without a value means yes, `--no-log-y` means no.
Words with_answers(Words words) {
  constexpr std::array<std::string_view, 3> kAnswers = {"auto", "yes", "no"};
  for (size_t at = 0; at < words.size(); ++at) {
    std::string name = words[at];
    std::replace(name.begin(), name.end(), '_', '-');
    for (const std::string flag : {"log-x", "log-y"}) {
      const bool answered = at + 1 < words.size() && std::find(kAnswers.begin(), kAnswers.end(),
                                                               words[at + 1]) != kAnswers.end();
      if (name == "--no-" + flag) words[at] = "--" + flag + "=no";
      if (name == "--" + flag && !answered) words[at] += "=yes";
    }
  }
  return words;
}

int plot_sweep(const Context& context, const SweepPlotFlags& flags, const Words& words) {
  if (!flags.output.empty()) pictures::require_picture_name("--output", flags.output);
  const FigureOptions options = options_of(flags);
  const sweep::SweepResults results = read_chosen_sweep(context, flags, words);
  const std::string svg = sweep::figure_svg(results, options);
  if (sweep::lacks_intervals(results, options))
    context.log().warning(
        "no interval is drawn: that of a median needs six values at a place (--band quartiles does "
        "with fewer)");
  tell_height(context.log(), svg, options);
  write_or_print(context, flags.output,
                 flags.output.empty() ? svg : pictures::picture_for(flags.output, svg));
  if (!flags.output.empty()) pictures::warn_of_boxes(context.log(), flags.output, svg);
  return 0;
}

}  // namespace

Command sweep_plot_action() {
  return {.name = "plot",
          .summary = "Draw the results as SVG, PNG or PDF",
          .usage = "convoy sweep plot [STORE] [flags]",
          .examples =
              "convoy sweep plot --output sweep.svg\n"
              "convoy sweep plot --style paper --size 3.25x2.5in --title Linear --output width.pdf",
          .flags = {flags_of<SweepPlotFlags>()},
          .first_flags = {"output", "style", "panels", "x", "y", "band", "log-x", "log-y", "title",
                          "size", "font-size", "results-dir"},
          .run = [](Context& context, const Words& words) {
            return with_flags_of<SweepPlotFlags, plot_sweep>(context, with_answers(words));
          }};
}

}  // namespace convoy::apps
