// SPDX-License-Identifier: Apache-2.0
//
// `convoy data stats`: statistics of a data set.
#include <fmt/format.h>

#include "convoy/apps/front/data/data_rows.h"
#include "convoy/apps/front/data/row_tokens.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/pictures/picture.h"
#include "convoy/data/datasets/chain/row_check.h"

namespace convoy::apps {
namespace {

using Json = nlohmann::ordered_json;
using data::LengthFigures;

Json figures_json(const LengthFigures& figures) {
  return {{"total", figures.total()},      {"mean", figures.mean()},
          {"min", figures.smallest()},     {"p50", figures.percentile(50)},
          {"p90", figures.percentile(90)}, {"p95", figures.percentile(95)},
          {"p99", figures.percentile(99)}, {"max", figures.largest()}};
}

std::string figures_line(const char* name, const LengthFigures& figures) {
  return fmt::format("{:<11} {:>12} {:>10.1f} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}\n", name,
                     figures.total(), figures.mean(), figures.smallest(), figures.percentile(50),
                     figures.percentile(90), figures.percentile(95), figures.percentile(99),
                     figures.largest());
}

// Lengths of the chosen and rejected answers of pairs, and of the tokens that both sides share.
std::vector<std::pair<const char*, const LengthFigures*>> of_pairs(const data::RowFigures& rows) {
  if (rows.chosen.count() == 0) return {};
  std::vector<std::pair<const char*, const LengthFigures*>> named = {{"chosen", &rows.chosen},
                                                                     {"rejected", &rows.rejected}};
  if (rows.shared.count() > 0) named.emplace_back("shared", &rows.shared);
  return named;
}

std::string lines_of_pairs(const data::RowFigures& rows) {
  std::string text;
  for (const auto& [name, figures] : of_pairs(rows)) text += figures_line(name, *figures);
  return text;
}

double supervised_percent(const data::RowFigures& rows) {
  return rows.tokens.total() == 0 ? 0
                                  : 100.0 * static_cast<double>(rows.supervised.total()) /
                                        static_cast<double>(rows.tokens.total());
}

Json stats_json(const data::RowFigures& rows, const settings::DataStatsFlags& flags) {
  Json json = {{"rows", rows.characters.count()},
               {"rows_bad", rows.pass.bad.count()},
               {"schemas", rows.rows_by_schema},
               {"turns", figures_json(rows.turns)},
               {"characters", figures_json(rows.characters)}};
  for (const auto& [name, figures] : of_pairs(rows)) json[name] = figures_json(*figures);
  if (flags.model.empty()) return json;
  json["tokens"] = figures_json(rows.tokens);
  json["supervised"] = figures_json(rows.supervised);
  json["supervised_percent"] = supervised_percent(rows);
  json["rows_without_supervised"] = rows.supervised.count() - rows.supervised.count_above(0);
  if (flags.max_seq_len > 0)
    json["rows_above_max_seq_len"] = rows.longest.count_above(flags.max_seq_len);
  return json;
}

std::string stats_text(const data::RowFigures& rows, const settings::DataStatsFlags& flags) {
  std::vector<std::string> schemas;
  for (const auto& [schema, count] : rows.rows_by_schema)
    schemas.push_back(fmt::format("{} {}", count, schema));
  std::string text =
      fmt::format("rows        {}: {}\n", rows.characters.count(), fmt::join(schemas, ", "));
  text += fmt::format("{:<11} {:>12} {:>10} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}\n", "", "total",
                      "mean", "min", "p50", "p90", "p95", "p99", "max");
  text += figures_line("turns", rows.turns) + figures_line("characters", rows.characters);
  if (flags.model.empty()) text += lines_of_pairs(rows);
  if (!flags.model.empty()) {
    text += figures_line("tokens", rows.tokens) + figures_line("supervised", rows.supervised);
    text += lines_of_pairs(rows);
    text += fmt::format("supervised  {:.1f} % of the tokens; {} without any\n",
                        supervised_percent(rows),
                        counted(rows.supervised.count() - rows.supervised.count_above(0), "row"));
    if (flags.max_seq_len > 0)
      text += fmt::format("longer      {} above {} tokens\n",
                          counted(rows.longest.count_above(flags.max_seq_len), "row"),
                          flags.max_seq_len);
  }
  const bool by_tokens = !flags.model.empty();
  text += fmt::format("\n{}\n", by_tokens ? "tokens of a row" : "characters of a row");
  return text + data::histogram_text(by_tokens ? rows.tokens : rows.characters, 100);
}

}  // namespace

int data_stats(Context& context, const std::vector<std::string>& arguments) {
  settings::DataStatsFlags flags;
  take_words(context.parse(flags, arguments), flags.data, nullptr);
  if (!flags.histogram.empty()) {
    pictures::require_picture_name("--histogram", flags.histogram);
    refuse_existing(flags.histogram, flags.force);
  }
  const RowTokens tokens = row_tokens_of(flags, data::Supervision::named(flags.supervise));
  const data::RowPass pass = row_pass_of(flags);
  const data::RowFigures rows =
      data::measure_rows(pass, schema_with_template(flags), tokens.encoder());
  if (const std::string bad = rows.pass.bad.summary(); !bad.empty()) context.log().warning(bad);
  if (!rows.ranked.empty()) context.log().info(rows.ranked);
  if (rows.own_bos > 0) context.log().info(data::own_bos_notice(rows.own_bos));
  if (context.common.json)
    fmt::print("{}\n", stats_json(rows, flags).dump());
  else
    fmt::print("{}", stats_text(rows, flags));
  if (flags.histogram.empty()) return 0;
  const bool by_tokens = tokens.encoder() != nullptr;
  const std::string svg =
      data::histogram_svg(by_tokens ? rows.tokens : rows.characters, flags.data,
                          by_tokens ? "tokens of a row" : "characters of a row", flags.max_seq_len);
  write_file_atomic(flags.histogram, pictures::picture_for(flags.histogram, svg));
  context.log().info(fmt::format("wrote {}", flags.histogram));
  pictures::warn_of_boxes(context.log(), flags.histogram, svg);
  return 0;
}

}  // namespace convoy::apps
