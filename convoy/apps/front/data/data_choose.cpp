// SPDX-License-Identifier: Apache-2.0
//
// `convoy data dedup|split|process`: selects rows for the output files.
#include <fmt/format.h>

#include <atomic>

#include "convoy/apps/front/data/data_rows.h"
#include "convoy/apps/front/train/train_config.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/trimmed.h"
#include "convoy/data/datasets/chain/duplicates.h"
#include "convoy/data/datasets/chain/row_shape.h"
#include "convoy/data/datasets/chain/row_split.h"
#include "convoy/data/datasets/schemas/unread_columns.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;
using data::Row;
using Json = nlohmann::ordered_json;

// Temporary files are written beside the output: they need about as much disk space as the output.
fs::path scratch_beside(const fs::path& output) {
  return output.has_parent_path() ? output.parent_path() : fs::path(".");
}

data::ContentConfig content_of(const settings::DataDedupFlags& flags) {
  return {.column = flags.column,
          .schema = schema_of(flags),
          .roles = !flags.near,
          .normalise = flags.normalise == "text"};
}

data::DuplicateReport find_duplicates(const settings::DataDedupFlags& flags,
                                      const data::RowPass& pass) {
  const fs::path scratch = scratch_beside(flags.output);
  if (!flags.near) return data::find_exact_duplicates(pass, content_of(flags), scratch);
  const data::NearConfig near{
      .threshold = flags.threshold,
      .unit = flags.shingle == "words" ? data::ShingleUnit::Words : data::ShingleUnit::Characters,
      .shingle = flags.shingle_length,
      .seed = static_cast<uint64_t>(flags.seed)};
  return data::find_near_duplicates(pass, content_of(flags), near, scratch);
}

std::vector<data::WrittenFile> write_kept(const settings::DataDedupFlags& flags,
                                          const data::RowPass& pass,
                                          const data::DuplicateReport& found) {
  data::ShardedRowsWriter writer(flags.output, flags.shard_rows);
  auto next = found.duplicates.begin();
  data::for_each_row<Row>(
      pass, [](const Row& row) { return row; },
      [&](const Row& row) {
        while (next != found.duplicates.end() && next->row < row.index) ++next;
        if (next == found.duplicates.end() || next->row != row.index) writer.write(row.value);
      });
  return writer.finish();
}

void write_report(const std::string& path, const data::DuplicateReport& found) {
  const auto writer = data::create_rows(path);
  for (const data::Duplicate& duplicate : found.duplicates)
    writer->write({{"row", duplicate.row}, {"repeats", duplicate.kept}});
  writer->finish();
}

bool is_wanted(const data::PartSize& part) {
  return part.rows < 0 ? part.share > 0 : part.rows > 0;
}

// One file for each part that gets rows. A part without rows is an error; otherwise the user would
// notice only when the empty file is read.
class PartWriters {
 public:
  PartWriters(std::vector<data::PartSize> parts, const std::vector<fs::path>& paths,
              const data::RowPass& pass, bool force)
      : parts_(std::move(parts)), writers_(parts_.size()), rows_(parts_.size(), 0) {
    for (size_t part = 0; part < parts_.size(); ++part) {
      if (!is_wanted(parts_[part])) continue;
      require_output(paths[part], pass, force);
      writers_[part] = data::create_rows(paths[part]);
    }
  }
  // Throws ConfigError when the split leaves a part without rows.
  void refuse_empty(const data::RowParts& dealt, const ErrorLocation& location) const {
    for (size_t part = 0; part < parts_.size(); ++part)
      if (writers_[part] && dealt.rows_of_part.at(part) == 0)
        throw ConfigError(fmt::format("part `{}` would get none of the {}", parts_[part].name,
                                      counted(dealt.pass.rows_read, "row")),
                          location);
  }
  void write(size_t part, const Json& row) {
    CONVOY_INVARIANT(writers_.at(part), "a row for part {}, which is to have none", part);
    writers_[part]->write(row);
    ++rows_[part];
  }
  // Throws DataError when all rows of a part were bad; then no file is published.
  std::vector<data::WrittenFile> finish() {
    for (size_t part = 0; part < parts_.size(); ++part)
      if (writers_[part] && rows_[part] == 0)
        throw DataError(
            fmt::format("part `{}` has no row: all rows dealt to it are bad", parts_[part].name),
            {.hint = "`convoy data validate` lists the bad rows"});
    std::vector<data::WrittenFile> written;
    for (const auto& writer : writers_)
      if (writer) written.push_back(writer->finish());
    return written;
  }

 private:
  std::vector<data::PartSize> parts_;
  std::vector<std::unique_ptr<data::RowWriter>> writers_;  // null: the part gets no rows
  std::vector<int64_t> rows_;
};

std::vector<fs::path> part_paths(const fs::path& folder, const std::vector<std::string>& names,
                                 const std::string& format) {
  if (folder.empty())
    throw ConfigError("no output given", {.key = "--output", .hint = "--output FOLDER"});
  std::vector<fs::path> paths;
  for (const std::string& name : names)
    paths.push_back(folder / fmt::format("{}.{}", name, format));
  return paths;
}

data::SplitPlan plan_of(const settings::DataSplitFlags& flags,
                        const std::vector<std::string>& names) {
  data::SplitPlan plan{.seed = static_cast<uint64_t>(flags.seed)};
  const size_t sizes = flags.counts.empty() ? flags.ratios.size() : flags.counts.size();
  if (sizes != names.size())
    throw ConfigError(fmt::format("{} parts are named, {} have a size", names.size(), sizes),
                      {.key = "--names", .hint = "--names train,val --ratios 0.9 0.1"});
  if (!flags.counts.empty()) config::refuse_without_effect(flags, {"ratios"}, "with --counts");
  if (!flags.stratify.empty() && !flags.group.empty())
    throw ConfigError("wanted one of --stratify and --group",
                      {.key = "--group", .hint = "leave one of them out"});
  size_t left = 0;
  for (size_t part = 0; part < sizes; ++part) {
    data::PartSize size{.name = names[part]};
    if (flags.counts.empty()) {
      size.share = flags.ratios[part];
    } else if (flags.counts[part] >= 0) {
      size.rows = flags.counts[part];
    } else {
      size.share = 1;
      ++left;
    }
    plan.parts.push_back(size);
  }
  if (left > 1)
    throw ConfigError("-1 means all remaining rows, and only one part may have it",
                      {.key = "--counts", .hint = "give the other parts their number of rows"});
  if (!flags.stratify.empty()) plan.by = data::SplitBy::Strata;
  if (!flags.group.empty()) plan.by = data::SplitBy::Groups;
  plan.column = flags.stratify.empty() ? flags.group : flags.stratify;
  return plan;
}

ErrorLocation empty_part_location(const settings::DataSplitFlags& flags,
                                  const data::SplitPlan& plan, const data::RowParts& parts) {
  const char* const key = flags.counts.empty() ? "--ratios" : "--counts";
  if (plan.by == data::SplitBy::Groups)
    return {.key = key,
            .hint = fmt::format("column `{}` has {}, of which each goes to one part: ask for fewer "
                                "parts, or for more even ones",
                                plan.column, counted(parts.num_values, "value"))};
  return {.key = key,
          .hint = flags.counts.empty() ? "give it a larger share, or a number of rows by --counts; "
                                         "a share of 0 writes no file"
                                       : "leave rows for it; 0 writes no file"};
}

struct ProcessPlan {
  uint64_t seed = 42;
  std::vector<fs::path> paths = {};  // outputs for train, val and test
  std::vector<data::PartSize> parts = {};
};

ProcessPlan plan_of(Context& context, const settings::DataPrepareFlags& flags) {
  ProcessPlan plan{.seed = static_cast<uint64_t>(flags.seed)};
  if (!flags.config.empty()) {
    config::refuse_without_effect(flags, {"seed", "ratios"},
                                  "with --config, which has seed and data.split");
    settings::TrainSettings train;
    read_train_config(train, {flags.config}, "", context.log());
    plan.seed = static_cast<uint64_t>(train.seed);
    plan.parts = data::parts_of_split(train.data.split);
    plan.paths = {train.data.train_path, train.data.val_path, train.data.test_path};
  }
  const std::vector<std::string> names = {"train", "val", "test"};
  if (!flags.output.empty() || flags.config.empty())
    plan.paths = part_paths(flags.output, names, flags.format);
  if (flags.config.empty()) {
    if (flags.ratios.size() != names.size())
      throw ConfigError(fmt::format("wanted three shares, found {}", flags.ratios.size()),
                        {.key = "--ratios", .hint = "such as --ratios 0.8 0.1 0.1"});
    for (size_t part = 0; part < names.size(); ++part)
      plan.parts.push_back({.name = names[part], .share = flags.ratios[part]});
  }
  for (size_t part = 0; part < names.size(); ++part)
    if (plan.paths[part].empty() && (part == 0 || plan.parts[part].share > 0))
      throw ConfigError(
          "the configuration has no paths for the parts",
          {.file = flags.config,
           .key = std::vector{"data.train_path", "data.val_path", "data.test_path"}[part],
           .hint = "set data.train_path, val_path and test_path, or give --output"});
  return plan;
}

// White space around the texts of a conversation is not part of them.
void trim_turns(Json& messages) {
  if (!messages.is_array()) return;
  for (Json& message : messages)
    if (message.contains("content") && message["content"].is_string())
      message["content"] = trimmed(message["content"].get<std::string>(), " \t\r\n");
}

struct ProcessedRow {
  int64_t index = 0;
  int64_t fields_cut = 0;
  Json row;
  std::vector<std::string> left = {};  // columns of the input that are not in `row`
};

ProcessedRow process_row(const Row& row, const data::SchemaConfig& config, data::Schema to) {
  data::ConvertedRow converted = data::convert_row(row, data::detect_schema(row, config), config);
  trim_turns(converted.sample.messages);
  trim_turns(converted.sample.completion_messages);
  return {row.index, converted.fields_cut, data::row_of(converted.sample, to),
          std::move(converted.unread)};
}

}  // namespace

int data_dedup(Context& context, const std::vector<std::string>& arguments) {
  settings::DataDedupFlags flags;
  take_words(context.parse(flags, arguments), flags.data, &flags.output);
  if (!flags.near)
    config::refuse_without_effect(flags, {"threshold", "shingle", "shingle_length", "seed"},
                                  "without --near");
  const data::RowPass pass = row_pass_of(flags);
  require_output(flags.output, pass, flags.force);
  refuse_existing(data::first_output(flags.output, flags.shard_rows), flags.force);
  if (!flags.report.empty()) require_output(flags.report, pass, flags.force);
  const data::DuplicateReport found = find_duplicates(flags, pass);
  if (const std::string bad = found.pass.bad.summary(); !bad.empty()) context.log().warning(bad);
  const std::vector<data::WrittenFile> written = write_kept(flags, pass, found);
  if (!flags.report.empty()) write_report(flags.report, found);
  DataWork work{
      .action = "dedup",
      .flags = flags_json(flags),
      .rows_read = found.pass.rows_read,
      .rows_bad = found.pass.bad.count(),
      .more = {{"duplicates", std::ssize(found.duplicates)}, {"clusters", found.clusters}}};
  for (const data::WrittenFile& file : written) work.rows_written += file.rows;
  conclude(context, work, pass, flags.output, written);
  return 0;
}

int data_split(Context& context, const std::vector<std::string>& arguments) {
  settings::DataSplitFlags flags;
  take_words(context.parse(flags, arguments), flags.data, &flags.output);
  const data::RowPass pass = row_pass_of(flags);
  const std::vector<std::string> names = data::listed_names(flags.names);
  const data::SplitPlan plan = plan_of(flags, names);
  const std::vector<fs::path> paths = part_paths(flags.output, names, flags.format);
  PartWriters writers(plan.parts, paths, pass, flags.force);
  const data::RowParts parts = data::split_rows(pass, plan, flags.output);
  writers.refuse_empty(parts, empty_part_location(flags, plan, parts));
  DataWork work{.action = "split", .flags = flags_json(flags)};
  const data::PassReport report = data::for_each_row<Row>(
      pass, [](const Row& row) { return row; },
      [&](const Row& row) {
        writers.write(parts.part_of_row.at(static_cast<size_t>(row.index)), row.value);
        ++work.rows_written;
      });
  if (const std::string bad = report.bad.summary(); !bad.empty()) context.log().warning(bad);
  work.rows_read = report.rows_read;
  work.rows_bad = report.bad.count();
  if (!plan.column.empty()) work.more["values"] = parts.num_values;
  conclude(context, work, pass, fs::path(flags.output) / "split", writers.finish());
  return 0;
}

int data_prepare(Context& context, const std::vector<std::string>& arguments) {
  settings::DataPrepareFlags flags;
  take_words(context.parse(flags, arguments), flags.data, &flags.output);
  const data::RowPass pass = row_pass_of(flags);
  const ProcessPlan plan = plan_of(context, flags);
  PartWriters writers(plan.parts, plan.paths, pass, flags.force);
  const data::RowParts parts =
      data::split_rows(pass, {.parts = plan.parts, .column = {}, .seed = plan.seed}, ".");
  writers.refuse_empty(parts, {.file = flags.config,
                               .key = flags.config.empty() ? "--ratios" : "data.split",
                               .hint = "give it a larger share, or 0, which writes no file"});
  data::SchemaConfig schema = schema_of(flags);
  schema.system_prompt = flags.system_prompt;
  schema.max_field_chars = flags.max_field_chars;
  const data::Schema to = data::schema_named(flags.to);
  DataWork work{.action = "process", .flags = flags_json(flags)};
  int64_t fields_cut = 0;
  data::UnreadColumns left;
  const data::PassReport report = data::for_each_row<ProcessedRow>(
      pass, [&](const Row& row) { return process_row(row, schema, to); },
      [&](const ProcessedRow& row) {
        writers.write(parts.part_of_row.at(static_cast<size_t>(row.index)), row.row);
        fields_cut += row.fields_cut;
        left.add(row.left);
        ++work.rows_written;
      });
  if (const std::string bad = report.bad.summary(); !bad.empty()) context.log().warning(bad);
  if (fields_cut > 0)
    context.log().warning(fmt::format("{} cut to {} characters", counted(fields_cut, "field"),
                                      flags.max_field_chars));
  work.rows_read = report.rows_read;
  work.rows_bad = report.bad.count();
  if (!left.empty())
    context.log().warning(left.sentence("not kept") +
                          "; `convoy data convert --keep COLUMN` writes one too");
  work.more["fields_cut"] = fields_cut;
  if (!left.empty()) work.more["columns_not_kept"] = left.names();
  conclude(context, work, pass, plan.paths[0].parent_path() / "process", writers.finish());
  return 0;
}

}  // namespace convoy::apps
