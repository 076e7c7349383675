// SPDX-License-Identifier: Apache-2.0
//
// `convoy data convert|system|style|render|mix`: maps each row to one row.
#include <algorithm>
#include <cmath>
#include <functional>

#include "convoy/apps/front/data/data_rows.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/text_as.h"
#include "convoy/core/io/model_folder.h"
#include "convoy/core/settings/template_kwargs.h"
#include "convoy/data/datasets/chain/mixed_rows.h"
#include "convoy/data/datasets/chain/render_row.h"
#include "convoy/data/datasets/chain/row_shape.h"
#include "convoy/data/datasets/chain/system_prompt.h"
#include "convoy/data/datasets/schemas/unread_columns.h"

namespace convoy::apps {
namespace {

using data::Row;
using Json = nlohmann::ordered_json;

// The result for one row.
struct Rewritten {
  Json row;
  std::vector<std::string> left = {};  // columns of the input that are not in `row`
};

using Rewrite = std::function<Rewritten(const Row&)>;

void require_outputs(const settings::DataOutputFlags& flags, const data::RowPass& pass) {
  require_output(flags.output, pass, flags.force);
  refuse_existing(data::first_output(flags.output, flags.shard_rows), flags.force);
}

// Passes every row of `rows` to `rewrite`, on all cores, and writes the results. The rows belong to
// the data set of `pass`. `hint` says how to keep dropped columns. `tell` adds to the closing
// report.
void write_rows(const Context& context, DataWork work, const settings::DataOutputFlags& flags,
                const data::RowPass& pass, data::RowSource& rows, const Rewrite& rewrite,
                const char* hint, const std::function<void(DataWork&)>& tell) {
  data::ShardedRowsWriter writer(flags.output, flags.shard_rows);
  data::UnreadColumns left;
  const data::PassReport report =
      data::for_each_row<Rewritten>(rows, pass.bad_rows, rewrite, [&](const Rewritten& made) {
        writer.write(made.row);
        left.add(made.left);
        ++work.rows_written;
      });
  if (const std::string bad = report.bad.summary(); !bad.empty()) context.log().warning(bad);
  if (!left.empty())
    context.log().warning(
        fmt::format("{}{}{}", left.sentence("not kept"), *hint == '\0' ? "" : "; ", hint));
  work.rows_read = report.rows_read;
  work.rows_bad = report.bad.count();
  if (!left.empty()) work.more["columns_not_kept"] = left.names();
  tell(work);
  conclude(context, work, pass, flags.output, writer.finish());
}

template <class Flags>
int rewrite_rows(const Context& context, const char* action, const Flags& flags,
                 const Rewrite& rewrite, const char* hint = "") {
  const data::RowPass pass = row_pass_of(flags);
  require_outputs(flags, pass);
  const auto rows = data::open_dataset(pass.dataset);
  write_rows(context, {.action = action, .flags = flags_json(flags)}, flags, pass, *rows, rewrite,
             hint, [](DataWork&) {});
  return 0;
}

template <class Flags>
Flags parsed(Context& context, const std::vector<std::string>& arguments) {
  Flags flags;
  take_words(context.parse(flags, arguments), flags.data, &flags.output);
  return flags;
}

data::ConvertedRow converted_row(const Row& row, const data::SchemaConfig& schema) {
  return data::convert_row(row, data::detect_schema(row, schema), schema);
}

// Copies the requested columns of `row`; a missing one becomes null.
void keep_columns(const Row& row, const config::NameList& columns, Rewritten& made) {
  Json& converted = made.row;
  for (const std::string& column : columns.names) {
    if (converted.contains(column))
      throw ConfigError(
          fmt::format("the rows that are written have a column `{}` already", column),
          {.key = "--keep", .hint = "leave it out of --keep, or rename the column in the data"});
    const bool has_it = row.value.is_object() && row.value.contains(column);
    converted[column] = has_it ? row.value[column] : Json();
    std::erase(made.left, column);
  }
}

// Reads "rows.jsonl=0.3" as a file and its weight, unless a file has the whole word as its name.
data::WeighedSet weighed_set(const std::string& word, const settings::DataMixFlags& flags) {
  data::DatasetRequest request{.name = word, .text_rows = data::text_rows_named(flags.text_rows)};
  const size_t sign = word.rfind('=');
  std::error_code ignored;
  if (sign == std::string::npos || std::filesystem::exists(word, ignored))
    return {.dataset = data::find_dataset(request)};
  request.name = word.substr(0, sign);
  const double weight = text_as<double>(word.substr(sign + 1)).value_or(0);
  if (!(weight > 0) || !std::isfinite(weight))
    throw ConfigError(
        fmt::format("`{}` is no weight: wanted a number above 0", word.substr(sign + 1)),
        {.key = word, .hint = "such as rows.jsonl=0.3"});
  return {.dataset = data::find_dataset(request), .weight = weight};
}

std::vector<data::WeighedSet> weighed_sets(const settings::DataMixFlags& flags,
                                           const std::vector<std::string>& words) {
  std::vector<std::string> names = flags.data.names;
  names.insert(names.end(), words.begin(), words.end());
  if (names.size() < 2)
    throw ConfigError(
        fmt::format("{} to mix, wanted two or more", counted(std::ssize(names), "data set")),
        {.key = "--data", .hint = "convoy data mix A.jsonl=0.7 B.jsonl=0.3 --output C.jsonl"});
  std::vector<data::WeighedSet> sets;
  for (const std::string& name : names) sets.push_back(weighed_set(name, flags));
  return sets;
}

// Warns when the data sets have different schemas: a training reads files of only one schema.
void warn_of_schemas(const Context& context, const std::vector<data::WeighedSet>& sets,
                     const data::SchemaConfig& schema) {
  std::vector<std::string> found;
  for (const data::WeighedSet& set : sets) {
    const std::optional<Row> row = data::open_dataset(set.dataset)->next();
    const auto fits = row ? data::matching_schemas(*row, schema) : std::vector<data::Schema>();
    if (fits.size() != 1) return;
    const std::string name(data::schema_name(fits[0]));
    if (std::find(found.begin(), found.end(), name) == found.end()) found.push_back(name);
  }
  if (found.size() > 1)
    context.log().warning(fmt::format(
        "the data sets have the schemas {}, and a training reads files of one; --to messages makes "
        "them one",
        fmt::join(found, ", ")));
}

}  // namespace

int data_mix(Context& context, const std::vector<std::string>& arguments) {
  settings::DataMixFlags flags;
  const std::vector<data::WeighedSet> sets = weighed_sets(flags, context.parse(flags, arguments));
  data::RowPass pass{.bad_rows = data::bad_rows_named(flags.bad_rows)};
  for (const data::WeighedSet& set : sets) {
    pass.dataset.name += (pass.dataset.name.empty() ? "" : ",") + set.dataset.name;
    pass.dataset.files.insert(pass.dataset.files.end(), set.dataset.files.begin(),
                              set.dataset.files.end());
  }
  require_outputs(flags, pass);
  if (!sets.front().weight) config::refuse_without_effect(flags, {"stop"}, "without weights");
  const data::SchemaConfig schema{.schema = flags.schema, .text_field = flags.text_field};
  if (flags.to == "same") {
    config::refuse_without_effect(flags, {"schema", "text_field"},
                                  "without --to: rows stay as they are");
    warn_of_schemas(context, sets, schema);
  }
  const Rewrite rewrite = [&](const Row& row) {
    if (flags.to == "same") return Rewritten{row.value};
    data::ConvertedRow converted = converted_row(row, schema);
    return Rewritten{data::row_of(converted.sample, data::schema_named(flags.to)),
                     std::move(converted.unread)};
  };
  data::MixedRows rows(sets, data::mix_stop_named(flags.stop));
  write_rows(context, {.action = "mix", .flags = flags_json(flags)}, flags, pass, rows, rewrite, "",
             [&](DataWork& work) {
               for (size_t set = 0; set < sets.size(); ++set)
                 work.more[fmt::format("of {}", sets[set].dataset.name)] = rows.drawn()[set];
             });
  return 0;
}

int data_convert(Context& context, const std::vector<std::string>& arguments) {
  const auto flags = parsed<settings::DataConvertFlags>(context, arguments);
  if (flags.to == "same") {
    config::refuse_without_effect(flags, {"keep", "schema", "text_field"},
                                  "without --to: rows stay as they are");
    return rewrite_rows(context, "convert", flags,
                        [](const Row& row) { return Rewritten{row.value}; });
  }
  const data::SchemaConfig schema = schema_of(flags);
  const data::Schema to = data::schema_named(flags.to);
  return rewrite_rows(
      context, "convert", flags,
      [&](const Row& row) {
        data::ConvertedRow converted = converted_row(row, schema);
        Rewritten made{data::row_of(converted.sample, to), std::move(converted.unread)};
        keep_columns(row, flags.keep, made);
        return made;
      },
      "--keep COLUMN writes one too");
}

int data_system(Context& context, const std::vector<std::string>& arguments) {
  const auto flags = parsed<settings::DataSystemFlags>(context, arguments);
  const data::SystemMode mode = data::system_mode_named(flags.mode);
  if (mode == data::SystemMode::Remove)
    config::refuse_without_effect(flags, {"prompt", "prompt_file"}, "with --mode remove");
  const std::string prompt = mode == data::SystemMode::Remove
                                 ? std::string()
                                 : text_or_file(flags.prompt, flags.prompt_file, "prompt");
  const data::SchemaConfig schema = schema_of(flags);
  return rewrite_rows(context, "system", flags, [&](const Row& row) {
    return Rewritten{data::with_system_prompt(row, data::detect_schema(row, schema), prompt, mode)};
  });
}

int data_style(Context& context, const std::vector<std::string>& arguments) {
  const auto flags = parsed<settings::DataStyleFlags>(context, arguments);
  const data::SystemMode mode = data::system_mode_named(flags.mode);
  const std::string style = text_or_file(flags.style, flags.style_file, "style");
  const data::SchemaConfig schema = schema_of(flags);
  return rewrite_rows(context, "style", flags, [&](const Row& row) {
    return Rewritten{data::with_system_prompt(row, data::detect_schema(row, schema), style, mode)};
  });
}

int data_render(Context& context, const std::vector<std::string>& arguments) {
  const auto flags = parsed<settings::DataRenderFlags>(context, arguments);
  if (flags.model.empty() && flags.template_path.empty())
    throw ConfigError("render needs a template", {.key = "--model",
                                                  .hint = "--model D, or "
                                                          "--template F"});
  const auto folder = flags.model.empty()
                          ? std::filesystem::path()
                          : io::ModelFolder::open_without_config(flags.model).path();
  const data::RowRenderer renderer(folder, flags.template_path);
  data::SchemaConfig schema = schema_of(flags);
  schema.system_prompt = flags.system_prompt;
  schema.template_kwargs = settings::template_kwargs(flags.template_kwargs, "--template-kwargs");
  return rewrite_rows(context, "render", flags, [&](const Row& row) {
    data::ConvertedRow converted = converted_row(row, schema);
    const data::Sample& sample = converted.sample;
    return Rewritten{
        flags.to == "text" ? renderer.whole_text(sample) : renderer.input_and_target(sample),
        std::move(converted.unread)};
  });
}

}  // namespace convoy::apps
