// SPDX-License-Identifier: Apache-2.0
//
// `convoy data check`: looks for a benchmark's texts in rows to learn from.
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "convoy/apps/front/data/data_rows.h"
#include "convoy/apps/front/data/reported_rows.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/data/datasets/chain/benchmark_overlap.h"
#include "convoy/data/datasets/chain/row_content.h"

namespace convoy::apps {
namespace {

using Json = nlohmann::ordered_json;

// A benchmark's file and its texts.
struct Benchmark {
  std::string name;
  data::BenchmarkIndex index;
};

Benchmark read_benchmark(const std::string& name, const settings::DataCheckFlags& flags,
                         const Log& log) {
  settings::DataInputFlags input = flags;
  input.data = name;
  Benchmark benchmark{name, data::BenchmarkIndex({flags.ngram_words, flags.share})};
  const data::PassReport read = data::for_each_row<Json>(
      row_pass_of(input), [](const data::Row& row) { return row.value; },
      [&](const Json& row) { benchmark.index.add(row); });
  if (const std::string bad = read.bad.summary(); !bad.empty())
    log.warning(fmt::format("{}: {}", name, bad));
  benchmark.index.finish();
  const int64_t without = benchmark.index.rows_without_text();
  if (without == benchmark.index.rows())
    throw DataError(fmt::format("none of its {} has a text of {} words of its own",
                                counted(without, "row"), flags.ngram_words),
                    {.file = name, .key = "--ngram-words", .hint = "ask for shorter runs"});
  if (without > 0)
    log.warning(fmt::format("{}: {} of {} cannot be looked for: no text of {} words of its own",
                            name, without, counted(benchmark.index.rows(), "row"),
                            flags.ngram_words));
  return benchmark;
}

// Each name is a benchmark of its own: texts that two of them have are no instructions.
std::vector<std::string> benchmark_names(const settings::DataCheckFlags& flags) {
  std::vector<std::string> names;
  for (const std::string& list : flags.against.names)
    for (std::string& name : data::listed_names(list)) {
      if (name.empty())
        throw ConfigError(fmt::format("`{}` has an empty name", list),
                          {.key = "--against", .hint = "write the names with one comma between"});
      names.push_back(std::move(name));
    }
  return names;
}

// Throws ConfigError when an output would take the place of a benchmark or of the other output.
void check_outputs(const settings::DataCheckFlags& flags, const std::vector<std::string>& names) {
  std::error_code ignored;
  if (!flags.report.empty() && !flags.output.empty() &&
      std::filesystem::weakly_canonical(flags.report, ignored) ==
          std::filesystem::weakly_canonical(flags.output, ignored))
    throw ConfigError("the report and the kept rows would be one file",
                      {.file = flags.report, .key = "--report", .hint = "name another file"});
  for (const std::string& name : names) {
    settings::DataInputFlags input = flags;
    input.data = name;
    for (const std::string& output : {flags.output, flags.report})
      if (!output.empty()) require_output(output, row_pass_of(input), flags.force);
  }
}

struct FoundRow {
  data::Row row;
  std::string benchmark = {};
  std::optional<data::Overlap> overlap = {};  // with the benchmark that the row has most of
};

FoundRow look(const data::Row& row, const std::vector<Benchmark>& benchmarks) {
  FoundRow found{.row = row};
  for (const Benchmark& benchmark : benchmarks) {
    std::optional<data::Overlap> overlap = benchmark.index.find(row.value);
    if (!overlap || (found.overlap && found.overlap->share >= overlap->share)) continue;
    found.benchmark = benchmark.name;
    found.overlap = std::move(overlap);
  }
  return found;
}

Json json_of(const FoundRow& found) {
  return {{"row", found.row.index},
          {"file", found.row.file},
          {"line", found.row.line > 0 ? Json(found.row.line) : Json()},
          {"benchmark", found.benchmark},
          {"benchmark_row", found.overlap->benchmark_row},
          {"share", found.overlap->share},
          {"text", found.overlap->text}};
}

std::string text_of(const FoundRow& found) {
  return fmt::format("{}:{}: {:.0f} % of row {} of {}: {}", found.row.file, found.row.line,
                     100 * found.overlap->share, found.overlap->benchmark_row + 1, found.benchmark,
                     data::normalised_text(found.overlap->text));
}

}  // namespace

int data_check(Context& context, const std::vector<std::string>& arguments) {
  settings::DataCheckFlags flags;
  take_words(context.parse(flags, arguments), flags.data, &flags.output);
  config::refuse_without_effect(flags, {"schema", "text_field"},
                                "here: all texts of a row are compared");
  if (flags.against.names.empty())
    throw ConfigError("no benchmark given", {.key = "--against", .hint = "--against test.jsonl"});
  const data::RowPass pass = row_pass_of(flags);
  const std::vector<std::string> names = benchmark_names(flags);
  check_outputs(flags, names);
  std::vector<Benchmark> benchmarks;
  for (const std::string& name : names)
    benchmarks.push_back(read_benchmark(name, flags, context.log()));
  std::optional<data::ShardedRowsWriter> kept;
  if (!flags.output.empty()) {
    require_output(flags.output, pass, flags.force);
    kept.emplace(flags.output, 0);
  }
  ReportedRows found(context, flags, {pass});
  int64_t rows_written = 0;
  const data::PassReport read = data::for_each_row<FoundRow>(
      pass, [&](const data::Row& row) { return look(row, benchmarks); },
      [&](const FoundRow& looked) {
        if (looked.overlap) return found.add(json_of(looked), text_of(looked));
        if (kept) kept->write(looked.row.value);
        ++rows_written;
      });
  if (const std::string bad = read.bad.summary(); !bad.empty()) context.log().warning(bad);
  const int64_t count = found.finish();
  const std::string sentence =
      fmt::format("{} of {} {} a text of {}", count, counted(read.rows_read, "row"),
                  count == 1 ? "has" : "have", fmt::join(names, ", "));
  if (kept) {
    conclude(context,
             {.action = "check",
              .flags = flags_json(flags),
              .rows_read = read.rows_read,
              .rows_bad = read.bad.count(),
              .rows_written = rows_written,
              .more = {{"rows_of_benchmarks", count}}},
             pass, flags.output, kept->finish());
  } else if (count > 0) {
    throw DataError(sentence, {.file = flags.data,
                               .hint = "--output FILE keeps the other rows, --report FILE lists "
                                       "these"});
  }
  context.log().info(sentence);
  return 0;
}

}  // namespace convoy::apps
