// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/evaluate/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "convoy/core/base/error.h"
#include "convoy/data/evaluate/unicode_text.h"

namespace convoy::evaluate {
namespace {

constexpr size_t kBins = 20;
constexpr size_t kMostCharacters = 20'000;  // maximum shown of one text

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --ink: #1d2430; --faint: #667085; --line: #d7dce3; --paper: #ffffff; --panel: #f4f6f9;
  --bar: #3b6fb6; --low: #b3403a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --faint: #98a2b3; --line: #3a4250; --paper: #14181f;
  --panel: #1d232d; --bar: #6ea3e8; --low: #f08a80; } }
body { margin: 2rem auto; max-width: 78rem; padding: 0 1rem; font: 15px/1.5 system-ui, sans-serif; color: var(--ink);
  background: var(--paper); }
h1 { font-size: 1.4rem; margin: 0 0 .3rem; overflow-wrap: anywhere; } h2 { font-size: 1.1rem; margin: 2rem 0 .6rem; }
.faint { color: var(--faint); }
table.figures { border-collapse: collapse; } table.figures td { padding: .15rem 1.2rem .15rem 0; border-bottom: 1px solid var(--line); }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
svg { width: 100%; max-width: 44rem; height: auto; } svg text { fill: var(--faint); font-size: 11px; } svg rect { fill: var(--bar); }
svg line { stroke: var(--line); }
.row { border: 1px solid var(--line); border-radius: 6px; margin: 0 0 1rem; overflow: hidden; }
.row header { background: var(--panel); padding: .3rem .7rem; } .row header b { color: var(--low); }
.texts { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); }
.texts > div { padding: .4rem .7rem; border-left: 1px solid var(--line); } .texts > div:first-child { border-left: 0; }
.texts h3 { margin: 0; font-size: .8rem; font-weight: 600; color: var(--faint); }
pre { margin: 0 0 .4rem; white-space: pre-wrap; overflow-wrap: anywhere; max-height: 22rem; overflow-y: auto;
  font: 13px/1.45 ui-monospace, monospace; }
@media (max-width: 50rem) { .texts { grid-template-columns: 1fr; } .texts > div { border-left: 0; border-top: 1px solid var(--line); } }
)";

// Escapes any text for the page. Control characters that HTML forbids are shown as the symbols for
// them.
std::string escaped(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const CharacterAt next = character_at(text, at);
    const std::string_view bytes = text.substr(at, next.length);
    at += next.length;
    if (bytes == "&")
      result += "&amp;";
    else if (bytes == "<")
      result += "&lt;";
    else if (bytes == ">")
      result += "&gt;";
    else if (bytes == "\"")
      result += "&quot;";
    else if (bytes == "'")
      result += "&#39;";
    else if (next.code < 0x20 && bytes != "\n" && bytes != "\t")
      result += fmt::format("&#x{:x};", 0x2400 + static_cast<uint32_t>(next.code));
    else if (next.code > 0x10FFFF || next.code == 0x7F || next.code == 0xFFFE ||
             next.code == 0xFFFF)
      result += "\ufffd";
    else
      result += bytes;
  }
  return result;
}

std::string shown_text(std::string_view text) {
  size_t end = 0;
  for (size_t count = 0; end < text.size() && count < kMostCharacters; ++count)
    end += character_at(text, end).length;
  const std::string cut =
      end < text.size() ? fmt::format("<p class=\"faint\">{} further bytes</p>", text.size() - end)
                        : "";
  return fmt::format("<pre dir=\"auto\">{}</pre>{}", escaped(text.substr(0, end)), cut);
}

std::string number_text(double value) {
  return std::isnan(value) ? "–" : fmt::format("{:.4f}", value);
}

std::string figures_table(const nlohmann::json& figures) {
  std::string rows;
  for (const auto& [name, value] : figures.items()) {
    const std::string text = value.is_null()           ? "–"
                             : value.is_number_float() ? number_text(value)
                                                       : value.dump();
    rows += fmt::format("<tr><td>{}</td><td class=\"number\">{}</td></tr>\n", escaped(name), text);
  }
  return fmt::format("<table class=\"figures\">\n{}</table>\n", rows);
}

std::string histogram(const std::vector<double>& values, double most) {
  std::array<size_t, kBins> counts{};
  for (const double value : values) {
    if (std::isnan(value)) continue;
    const double share = std::clamp(value / most, 0.0, 1.0);
    ++counts[std::min(static_cast<size_t>(share * kBins), kBins - 1)];
  }
  const size_t highest = std::max<size_t>(*std::max_element(counts.begin(), counts.end()), 1);
  constexpr double kWidth = 30;
  constexpr double kHeight = 140;
  std::string bars;
  for (size_t bin = 0; bin < kBins; ++bin) {
    if (counts[bin] == 0) continue;
    const double height =
        std::max(1.0, kHeight * static_cast<double>(counts[bin]) / static_cast<double>(highest));
    const double left = kWidth * static_cast<double>(bin);
    bars += fmt::format(
        "<rect x=\"{:.0f}\" y=\"{:.1f}\" width=\"{:.0f}\" height=\"{:.1f}\"/>"
        "<text x=\"{:.0f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
        left + 1, 20 + kHeight - height, kWidth - 2, height, left + kWidth / 2,
        16 + kHeight - height, counts[bin]);
  }
  return fmt::format(
      "<svg viewBox=\"0 0 600 180\" role=\"img\" aria-label=\"rows by value\">\n{}"
      "<line x1=\"0\" y1=\"160\" x2=\"600\" y2=\"160\"/>"
      "<text x=\"0\" y=\"175\">0</text><text x=\"300\" y=\"175\" text-anchor=\"middle\">{}</text>"
      "<text x=\"600\" y=\"175\" text-anchor=\"end\">{}</text></svg>\n",
      bars, most / 2, most);
}

std::string column(std::string_view name, const std::vector<std::string>& texts) {
  std::string content;
  for (const std::string& text : texts)
    content += text.empty() ? "<pre class=\"faint\">(empty)</pre>" : shown_text(text);
  return fmt::format("<div><h3>{}</h3>{}</div>\n", name, content);
}

std::string row_text(size_t row, const ReportOptions& options, const ScoredAnswer& sample,
                     double value, const AnswerScores& scored) {
  std::string others;
  for (size_t metric = 0; metric < scored.metrics.size(); ++metric)
    if (scored.metrics[metric] != options.metric &&
        !scored.figures.at(scored.metrics[metric]).is_null())
      others += fmt::format(" · {} {}", scored.metrics[metric],
                            number_text(scored.rows[row].values[metric]));
  return fmt::format(
      "<section class=\"row\"><header>row {} · <b>{} {}</b><span class=\"faint\">{}</span>"
      "</header>\n<div class=\"texts\">\n{}{}{}</div></section>\n",
      row + 1, options.metric, number_text(value), others,
      column("input", {sample.input.value_or("")}), column("prediction", {sample.pred}),
      column(sample.refs.size() == 1 ? "reference" : "references", sample.refs));
}

}  // namespace

std::string metric_of_report(const std::string& wanted, const std::vector<std::string>& measured) {
  const auto is_measured = [&](const std::string& name) {
    return std::find(measured.begin(), measured.end(), name) != measured.end();
  };
  if (wanted.empty()) return is_measured("rougeL") ? "rougeL" : measured.at(0);
  if (is_measured(wanted)) return wanted;
  throw ConfigError(fmt::format("the report is to be ordered by {}, which is not measured: {}",
                                wanted, fmt::join(measured, ", ")),
                    {.key = "--report-metric", .hint = "add it to --metrics"});
}

std::string html_report(const ReportOptions& options, const std::vector<ScoredAnswer>& samples,
                        const AnswerScores& scored) {
  const auto found = std::find(scored.metrics.begin(), scored.metrics.end(), options.metric);
  CONVOY_INVARIANT(found != scored.metrics.end(), "{} was not measured", options.metric);
  const auto metric = static_cast<size_t>(found - scored.metrics.begin());
  std::vector<double> values;
  for (const RowScores& row : scored.rows) values.push_back(row.values[metric]);
  std::vector<size_t> order(samples.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto place = [&](size_t row) {
    return std::isnan(values[row]) ? std::numeric_limits<double>::infinity() : values[row];
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t first, size_t second) { return place(first) < place(second); });
  order.resize(std::min(order.size(), options.rows));
  std::string rows;
  for (const size_t row : order) rows += row_text(row, options, samples[row], values[row], scored);
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n<meta name=\"viewport\" content=\"width=device-width\">\n"
      "<title>{0}</title>\n<style>{1}</style></head>\n<body>\n<h1>{0}</h1>\n"
      "<p class=\"faint\">{2} rows</p>\n{3}<h2>Rows by {4}</h2>\n{5}"
      "<h2>The {6} worst by {4}</h2>\n{7}</body></html>\n",
      escaped(options.title), kStyle, samples.size(), figures_table(scored.figures), options.metric,
      histogram(values, most_of_metric(options.metric)), order.size(), rows);
}

}  // namespace convoy::evaluate
