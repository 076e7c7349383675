// SPDX-License-Identifier: Apache-2.0
//
// `convoy data convert|system|style|render`: one row in, one row out.
#include <functional>

#include "convoy/apps/front/data_rows.h"
#include "convoy/apps/front/left_columns.h"
#include "convoy/base/error.h"
#include "convoy/data/chain/render_row.h"
#include "convoy/data/chain/row_shape.h"
#include "convoy/data/chain/system_prompt.h"
#include "convoy/io/model_folder.h"
#include "convoy/settings/template_kwargs.h"

namespace convoy::apps {
namespace {

using data::Row;
using Json = nlohmann::ordered_json;

// What became of a row.
struct Rewritten {
  Json row;
  std::vector<std::string> left = {};  // columns of which it has nothing
};

// Every row through `rewrite`, which runs on all cores. `hint` says how to keep the columns that are left.
template <class Flags>
int rewrite_rows(const Context& context, const char* action, const Flags& flags,
                 const std::function<Rewritten(const Row&)>& rewrite, const char* hint = "") {
  const data::RowPass pass = row_pass_of(flags);
  require_output(flags.output, pass, flags.force);
  refuse_existing(data::first_output(flags.output, flags.shard_rows), flags.force);
  data::ShardedRowsWriter writer(flags.output, flags.shard_rows);
  DataWork work{.action = action, .flags = flags_json(flags)};
  LeftColumns left;
  const data::PassReport report =
      data::for_each_row<Rewritten>(pass, rewrite, [&](const Rewritten& made) {
        writer.write(made.row);
        left.add(made.left);
        ++work.rows_written;
      });
  if (report.bad.count() > 0) context.log().warning(report.bad.summary());
  left.tell(context, hint);
  work.rows_read = report.rows_read;
  work.rows_bad = report.bad.count();
  if (!left.names().empty()) work.more["columns_not_kept"] = left.names();
  conclude(context, work, pass, flags.output, writer.finish());
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

// The columns of `row` that are asked for; one that it lacks is null.
void keep_columns(const Row& row, const config::NameList& columns, Rewritten& made) {
  Json& converted = made.row;
  for (const std::string& column : columns.names) {
    if (converted.contains(column))
      throw ConfigError(fmt::format("the rows that are written have a column `{}` already", column),
                        {.key = "--keep"});
    const bool has_it = row.value.is_object() && row.value.contains(column);
    converted[column] = has_it ? row.value[column] : Json();
    std::erase(made.left, column);
  }
}

}  // namespace

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
    throw ConfigError("render wants a template", {.key = "--model",
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
