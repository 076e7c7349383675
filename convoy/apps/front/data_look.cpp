// SPDX-License-Identifier: Apache-2.0
//
// `convoy data stats|validate`: what a data set holds, and what is wrong with it.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "convoy/apps/front/data_rows.h"
#include "convoy/base/counted.h"
#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/data/chain/row_check.h"
#include "convoy/data/supervision.h"
#include "convoy/io/model_folder.h"
#include "convoy/settings/template_kwargs.h"
#include "convoy/text/chat_template.h"
#include "convoy/text/tokenizer.h"

namespace convoy::apps {
namespace {

using Json = nlohmann::ordered_json;
using data::LengthFigures;

// Tokenizer and template of --model; nothing without one.
class RowTokens {
 public:
  explicit RowTokens(const settings::DataTokenFlags& flags) {
    if (flags.model.empty()) return;
    const auto folder = io::ModelFolder::open_without_config(flags.model).path();
    tokenizer_.emplace(text::Tokenizer::load(folder));
    template_ = text::ChatTemplate::load(folder, flags.template_path);
    encoder_.emplace(*tokenizer_, template_ ? &*template_ : nullptr,
                     data::Supervision::named(flags.supervise));
  }
  const data::SampleEncoder* encoder() const { return encoder_ ? &*encoder_ : nullptr; }

 private:
  std::optional<text::Tokenizer> tokenizer_;
  std::optional<text::ChatTemplate> template_;
  std::optional<data::SampleEncoder> encoder_;
};

template <class Flags>
data::SchemaConfig schema_with_template(const Flags& flags) {
  if (flags.model.empty())
    config::refuse_without_effect(
        flags, {"template_path", "template_kwargs", "system_prompt", "supervise", "max_seq_len"},
        "without --model");
  data::SchemaConfig schema = schema_of(flags);
  schema.system_prompt = flags.system_prompt;
  schema.template_kwargs = settings::template_kwargs(flags.template_kwargs, "--template-kwargs");
  return schema;
}

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
  if (flags.model.empty()) return json;
  json["tokens"] = figures_json(rows.tokens);
  json["supervised"] = figures_json(rows.supervised);
  json["supervised_percent"] = supervised_percent(rows);
  json["rows_without_supervised"] = rows.supervised.count() - rows.supervised.count_above(0);
  if (flags.max_seq_len > 0)
    json["rows_above_max_seq_len"] = rows.tokens.count_above(flags.max_seq_len);
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
  if (!flags.model.empty()) {
    text += figures_line("tokens", rows.tokens) + figures_line("supervised", rows.supervised);
    text += fmt::format("supervised  {:.1f} % of the tokens; {} without any\n",
                        supervised_percent(rows),
                        counted(rows.supervised.count() - rows.supervised.count_above(0), "row"));
    if (flags.max_seq_len > 0)
      text += fmt::format("longer      {} above {} tokens\n",
                          counted(rows.tokens.count_above(flags.max_seq_len), "row"),
                          flags.max_seq_len);
  }
  const bool by_tokens = !flags.model.empty();
  text += fmt::format("\n{}\n", by_tokens ? "tokens of a row" : "characters of a row");
  return text + data::histogram_text(by_tokens ? rows.tokens : rows.characters, 100);
}

std::string place_text(const data::RowFault& fault) {
  std::string text = fault.file;
  if (fault.line > 0) text += fmt::format(":{}", fault.line);
  if (fault.column > 0) text += fmt::format(":{}", fault.column);
  return text;
}

Json fault_json(const data::RowFault& fault) {
  return {{"row", fault.index},
          {"file", fault.file},
          {"line", fault.line > 0 ? Json(fault.line) : Json()},
          {"column", fault.column > 0 ? Json(fault.column) : Json()},
          {"reason", fault.reason}};
}

}  // namespace

int data_stats(Context& context, const std::vector<std::string>& arguments) {
  settings::DataStatsFlags flags;
  take_words(context.parse(flags, arguments), flags.data, nullptr);
  if (!flags.histogram.empty()) refuse_existing(flags.histogram, flags.force);
  const RowTokens tokens(flags);
  const data::RowPass pass = row_pass_of(flags);
  const data::RowFigures rows =
      data::measure_rows(pass, schema_with_template(flags), tokens.encoder());
  if (rows.pass.bad.count() > 0) context.log().warning(rows.pass.bad.summary());
  if (rows.own_bos > 0) context.log().info(data::own_bos_notice(rows.own_bos));
  if (context.common.json)
    fmt::print("{}\n", stats_json(rows, flags).dump());
  else
    fmt::print("{}", stats_text(rows, flags));
  if (flags.histogram.empty()) return 0;
  const bool by_tokens = tokens.encoder() != nullptr;
  write_file_atomic(flags.histogram,
                    data::histogram_svg(by_tokens ? rows.tokens : rows.characters, flags.data,
                                        by_tokens ? "tokens of a row" : "characters of a row",
                                        flags.max_seq_len));
  context.log().info(fmt::format("wrote {}", flags.histogram));
  return 0;
}

int data_validate(Context& context, const std::vector<std::string>& arguments) {
  settings::DataValidateFlags flags;
  take_words(context.parse(flags, arguments), flags.data, nullptr);
  config::refuse_without_effect(flags, {"bad_rows"}, "here: every row is looked at");
  const RowTokens tokens(flags);
  const data::RowPass pass = row_pass_of(flags);
  std::unique_ptr<data::RowWriter> writer;
  if (!flags.report.empty()) {
    require_output(flags.report, pass, flags.force);
    writer = data::create_rows(flags.report);
  }
  int64_t shown = 0;
  const data::RowCheck check{.schema = schema_with_template(flags),
                             .encoder = tokens.encoder(),
                             .max_tokens = flags.max_seq_len};
  const data::RowCheckReport report =
      data::check_rows(pass.dataset, check, [&](const data::RowFault& fault) {
        if (writer) writer->write(fault_json(fault));
        if (shown++ >= flags.show) return;
        if (context.common.json)
          fmt::print("{}\n",
                     fault_json(fault).dump(-1, ' ', false, Json::error_handler_t::replace));
        else
          fmt::print("{}: {}{}\n", place_text(fault), fault.reason,
                     fault.hint.empty() ? "" : fmt::format(" ({})", fault.hint));
      });
  if (writer) writer->finish();
  if (context.common.json)
    fmt::print("{}\n", Json({{"rows", report.rows},
                             {"rows_bad", report.faults},
                             {"schema", report.schema},
                             {"rows_above_max_seq_len", report.rows_cut}})
                           .dump());
  const std::string cut = report.rows_cut > 0
                              ? fmt::format("; {} longer than {} tokens, which training would cut",
                                            counted(report.rows_cut, "row"), flags.max_seq_len)
                              : "";
  if (report.rows == 0)
    throw DataError("the data set has no rows", {.file = pass.dataset.files[0].string()});
  if (report.faults > 0) {
    std::fflush(stdout);
    throw DataError(fmt::format("{} of {} bad{}", report.faults, counted(report.rows, "row"), cut),
                    {.file = pass.dataset.name,
                     .hint = flags.report.empty() ? "--report FILE lists them all"
                                                  : fmt::format("listed in {}", flags.report)});
  }
  context.log().info(
      fmt::format("{} good, all {}{}", counted(report.rows, "row"), report.schema, cut));
  return 0;
}

}  // namespace convoy::apps
