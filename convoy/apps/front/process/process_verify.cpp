// SPDX-License-Identifier: Apache-2.0
//
// `convoy process verify`: runs only the answer checker, over the rows of a file.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "convoy/apps/front/command.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/settings/command_flags.h"
#include "convoy/data/datasets/formats/row_writer.h"
#include "convoy/data/datasets/sources/output_check.h"
#include "convoy/farm/process/results/verify_rows.h"

namespace convoy::apps {
namespace {

using nlohmann::ordered_json;

struct ProcessVerifyFlags {
  std::string data;
  std::string output;
  process::VerifyFields fields_of_rows = {};
  std::string bad_rows = "error";

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("data", data, "the rows: JSONL, JSON, CSV or Parquet").alias("dataset");
    visit("output", output, "the same rows with their verdicts: .jsonl, .json, .csv, .parquet")
        .alias("o");
    visit("gold_field", fields_of_rows.gold,
          "field with the reference, or with a solution that contains it; any element of a list is "
          "accepted");
    visit("prediction_field", fields_of_rows.prediction, "field with the predicted text");
    visit("bad_rows", bad_rows, "unreadable rows: stop, or count and list them")
        .one_of({"error", "skip"});
  }
};

ordered_json summary(const process::VerifyCounts& counts, const std::string& output) {
  return {{"rows", counts.rows},
          {"yes", counts.yes},
          {"no", counts.no},
          {"unknown", counts.unknown},
          {"skipped", counts.bad_rows.count()},
          {"output", output}};
}

int verify(const Context& context, const ProcessVerifyFlags& flags, const Words& rest) {
  if (!rest.empty())
    throw ConfigError(
        fmt::format("`convoy process verify` takes flags only, found `{}`", rest.front()),
        {.hint = "--data FILE --output FILE; `convoy process verify --help` lists the others"});
  if (flags.data.empty())
    throw ConfigError("no rows given", {.key = "--data", .hint = "name their file with --data"});
  if (flags.output.empty())
    throw ConfigError(
        "no output given",
        {.key = "--output", .hint = "name the file of the verified rows with --output"});
  if (flags.output == "-")
    throw ConfigError("the verified rows go into a file, not to standard output",
                      {.key = "--output", .hint = "name one with --output rows.jsonl"});
  data::refuse_outputs_among_inputs({flags.output}, flags.data, {flags.data});
  const std::unique_ptr<data::RowWriter> writer = data::create_rows(flags.output);
  const process::VerifyCounts counts =
      process::verify_rows(flags.data, flags.fields_of_rows, data::bad_rows_named(flags.bad_rows),
                           [&](const ordered_json& row) { writer->write(row); });
  writer->finish();
  if (const std::string bad = counts.bad_rows.summary(); !bad.empty()) context.log().warning(bad);
  context.log().info(fmt::format("{}: {} yes, {} no, {} unknown; {}", counted(counts.rows, "row"),
                                 counts.yes, counts.no, counts.unknown, flags.output));
  if (context.common.json) fmt::print("{}\n", summary(counts, flags.output).dump());
  return 0;
}

}  // namespace

Command process_verify_action() {
  return {.name = "verify",
          .summary = "Compare answers with references, without a model",
          .usage =
              "convoy process verify --data F --output O [--gold-field gold] [--prediction-field "
              "prediction]",
          .examples =
              "convoy process verify --data answers.jsonl --output verified.jsonl --gold-field "
              "answer --prediction-field generated",
          .flags = {flags_of<ProcessVerifyFlags>()},
          .run = with_flags_of<ProcessVerifyFlags, verify>};
}

}  // namespace convoy::apps
