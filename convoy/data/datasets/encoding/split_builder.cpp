// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/encoding/split_builder.h"

#include <array>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <utility>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/base/usable_cpus.h"
#include "convoy/data/datasets/chain/row_split.h"
#include "convoy/data/datasets/encoding/encode_file.h"
#include "convoy/data/datasets/encoding/encode_progress.h"
#include "convoy/data/datasets/encoding/encoded_spool.h"
#include "convoy/data/datasets/encoding/row_parts.h"
#include "convoy/data/datasets/encoding/row_windows.h"
#include "convoy/data/datasets/formats/byte_stream.h"
#include "convoy/data/datasets/schemas/sample_reader.h"
#include "convoy/data/datasets/sources/dataset.h"
#include "convoy/data/datasets/tokens/token_cache.h"

namespace convoy::data {
namespace {

namespace fs = std::filesystem;

// Version of the encoding: raised when equal rows give other tokens than before.
constexpr int kFormatVersion = 9;

enum Part { Train = 0, Val = 1, Test = 2 };
constexpr std::array<const char*, 3> kPartNames = {"train", "val", "test"};

// One file and the splits taken from it: one whole split, or all three by ratio.
struct Source {
  fs::path path;
  std::vector<Part> parts;
  bool by_ratio = false;
  std::string file_hash;
  std::string suffix;  // part of the cache key: how the bytes are read
};

bool is_wanted(Part part, Splits wanted) {
  return wanted == Splits::All || (wanted == Splits::Test) == (part == Part::Test);
}

std::string suffix_of(const Dataset& dataset) {
  return without_compression(dataset.files[0]).extension().string();
}

// The rejected rows of pairs, for a task that learns each side as a row. They follow the chosen
// rows of the same thousand pairs, as in TRL's unpair_preference_dataset(). So neighbouring rows
// answer different prompts.
class RejectedRows {
 public:
  explicit RejectedRows(const std::function<void(const SpooledRow&)>& take) : take_(take) {}

  void keep(const SpooledRow& row) {
    rows_.push_back({row.index,
                     row.record,
                     {row.ids.begin(), row.ids.end()},
                     {row.supervised.begin(), row.supervised.end()}});
  }
  void give_before(int64_t index) {
    if (index % kTogether == 0) give_all();
  }
  void give_all() {
    for (const Row& row : rows_) take_({row.index, row.record, row.ids, row.supervised});
    rows_.clear();
  }

 private:
  static constexpr int64_t kTogether = 1000;
  struct Row {
    int64_t index;
    RowRecord record;
    std::vector<int32_t> ids;
    std::vector<uint8_t> supervised;
  };

  const std::function<void(const SpooledRow&)>& take_;
  std::vector<Row> rows_;
};

// Number of rows in the split. A row that was cut into windows counts as its windows.
int64_t rows_kept(const SplitReport& report) {
  return report.rows_read - report.rows_unreadable - report.rows_unsupervised -
         report.rows_dropped_long - report.rows_split + report.windows;
}

class SplitBuilder {
 public:
  SplitBuilder(const SplitInputs& inputs, Splits wanted)
      : inputs_(inputs), wanted_(wanted), cache_(inputs.data.cache_dir, inputs.log) {}

  EncodedSplits build() {
    for (Source& source : sources()) {
      const Dataset dataset = find_dataset({.name = source.path.string()});
      source.file_hash = dataset_hash(dataset);
      source.suffix = suffix_of(dataset);
      if (!take_from_cache(source)) encode(source);
      if (source.by_ratio && wanted_ != Splits::Test) say_held_out();
    }
    return finish();
  }

 private:
  std::vector<Source> sources() const {
    const settings::DataSettings& data = inputs_.data;
    const bool by_ratio = data.val_path.empty() && data.test_path.empty();
    if (data.train_path.empty() && (by_ratio || wanted_ != Splits::Test))
      throw ConfigError("no training data given",
                        {.key = "data.train_path", .hint = "set data.train_path"});
    if (by_ratio) {
      split_bounds(data.split, 0);
      return {{data.train_path, {Train, Val, Test}, true, {}, {}}};
    }
    std::vector<Source> sources;
    const std::array<std::string, 3> paths = {data.train_path, data.val_path, data.test_path};
    for (const Part part : {Train, Val, Test})
      if (!paths[part].empty() && is_wanted(part, wanted_))
        sources.push_back({paths[part], {part}, false, {}, {}});
    return sources;
  }

  // A key over everything that the tokens of a split depend on.
  std::string key(const Source& source, Part part) const {
    const settings::DataSettings& data = inputs_.data;
    nlohmann::json words = {{"format", kFormatVersion},
                            {"version", CONVOY_VERSION},
                            {"file", source.file_hash},
                            {"suffix", source.suffix},
                            {"encoder", inputs_.encoder_hash},
                            {"task", inputs_.task},
                            {"schema", data.schema},
                            {"supervise", data.supervise},
                            {"roles_to_train", data.roles_to_train.names},
                            {"train_on_eos", data.train_on_eos},
                            {"empty_answers", data.empty_answers},
                            {"truncation", data.truncation},
                            {"max_seq_len", inputs_.max_seq_len},
                            {"system_prompt", data.system_prompt},
                            {"template_kwargs", data.template_kwargs.json},
                            {"max_field_chars", data.max_field_chars},
                            {"bad_rows", data.bad_rows},
                            {"unread_columns", data.unread_columns},
                            {"text_field", data.text_field},
                            {"text_rows", data.text_rows},
                            {"ranked_pairs", data.ranked_pairs},
                            {"split", kPartNames[part]}};
    if (source.by_ratio) {
      words["seed"] = inputs_.seed;
      for (const PartSize& size : parts_of_split(data.split))
        words["ratios"].push_back({size.share, size.most_rows});
    }
    return sha256_hex(words.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
  }

  bool take_from_cache(const Source& source) {
    std::array<std::optional<CachedSplit>, 3> found;
    for (const Part part : source.parts) {
      if (!is_wanted(part, wanted_)) continue;
      found[part] = cache_.load(key(source, part));
      if (!found[part]) return false;
      found[part]->report.files = {source.path.string()};
    }
    for (const Part part : source.parts)
      if (found[part]) parts_[part] = std::move(found[part]);
    return true;
  }

  // A cache that cannot be written causes a warning and needs memory, but does not stop the run.
  void encode(const Source& source) {
    try {
      encode_into(source, cache_);
    } catch (const IoError& error) {
      inputs_.log.warning(fmt::format("the token cache is not kept: {}", error.sentence()));
      encode_into(source, TokenCache("none", inputs_.log));
    }
  }

  void encode_into(const Source& source, const TokenCache& cache) {
    SampleReader reader(source.path, SchemaConfig::from(inputs_.data, inputs_.task),
                        bad_rows_named(inputs_.data.bad_rows));
    const TruncationPolicy policy{inputs_.max_seq_len,
                                  truncation_named(inputs_.data.truncation, inputs_.task),
                                  inputs_.bos_id};
    EncodedSpool spool(cache.scratch());
    EncodeProgress progress(inputs_.log, source.path.string());
    const EncodedFile file = encode_file(reader, inputs_.encode, policy, usable_cpus(),
                                         [&](const RowRecord& record, const EncodedRow& row) {
                                           spool.add(record, row);
                                           progress.add_row();
                                         });
    spool.finish();
    reader.require_samples();
    std::string policy_line = inputs_.policy(*file.first_sample);
    if (const std::string ranked = reader.ranked_lists(); !ranked.empty())
      policy_line += "; " + ranked;
    const std::vector<uint8_t> part_of_row = deal(source, spool.num_rows());
    std::array<SplitReport, 3> reports = report(source, part_of_row, spool, reader);
    const std::vector<std::string> warnings =
        warnings_of(reader, row_warnings(file.losses, policy.max_tokens, policy.truncation));
    for (const Part part : source.parts) reports[part].warnings = warnings;
    for (const Part part : source.parts) {
      if (is_wanted(part, wanted_)) refuse_if_empty(reports[part], file, source);
      if (is_wanted(part, wanted_) && part == Train && judges())
        refuse_if_one_sided(reports[part], source);
      const int64_t kept = rows_kept(reports[part]);
      if (!is_wanted(part, wanted_) && kept == 0 && reports[part].rows_read > 0) continue;
      const auto is_of_part = [&](const SpooledRow& row) {
        return row.record.outcome == RowOutcome::Kept &&
               part_of_row[static_cast<size_t>(row.index)] == part;
      };
      const TokenFileRows rows{
          .shape = {.num_rows = kept + reports[part].pairs,
                    .num_tokens = reports[part].tokens,
                    .has_weights = reports[part].weighted_tokens > 0,
                    .has_labels = judges()},
          .for_each = [&](const auto& take) { give_rows(spool, is_of_part, take); }};
      CachedSplit split = cache.store(key(source, part), rows, reports[part], policy_line);
      split.report.files = {source.path.string()};
      if (is_wanted(part, wanted_)) parts_[part] = std::move(split);
    }
  }

  void give_rows(const EncodedSpool& spool,
                 const std::function<bool(const SpooledRow&)>& is_wanted_row,
                 const std::function<void(const SpooledRow&)>& take) const {
    RejectedRows rejected(take);
    spool.for_each([&](const SpooledRow& row) {
      rejected.give_before(row.index);
      if (!is_wanted_row(row)) return;
      for_each_window(row, [&](const SpooledRow& window) {
        const bool is_rejected = window.record.first_of_pair > 0 && !window.record.is_desirable;
        if (is_rejected && judges())
          rejected.keep(window);
        else
          take(window);
      });
    });
    rejected.give_all();
  }

  bool judges() const {
    return settings::task_named(inputs_.task).data == settings::TaskData::Judged;
  }

  void for_each_window(const SpooledRow& row,
                       const std::function<void(const SpooledRow&)>& take) const {
    if (const auto first = static_cast<size_t>(row.record.first_of_pair); first > 0) {
      take({row.index, row.record, row.ids.first(first), row.supervised.first(first)});
      RowRecord rejected = row.record;
      rejected.is_desirable = false;
      take({row.index, rejected, row.ids.subspan(first), row.supervised.subspan(first)});
      return;
    }
    cut_windows(row.ids, row.supervised, row.weights, inputs_.max_seq_len,
                [&](auto ids, auto mask, auto weights) {
                  take({row.index, row.record, ids, mask, weights});
                });
  }

  // The split of each row: the split of the whole file, or by the row's position in a seeded
  // shuffle of all rows. Rows that are dropped later take part in the shuffle, so that the split of
  // a row does not depend on the tokenizer.
  std::vector<uint8_t> deal(const Source& source, int64_t num_rows) const {
    if (!source.by_ratio)
      return std::vector<uint8_t>(static_cast<size_t>(num_rows),
                                  static_cast<uint8_t>(source.parts[0]));
    const SplitBounds bounds = split_bounds(inputs_.data.split, num_rows);
    return parts_of_rows({bounds.first, bounds.second - bounds.first, num_rows - bounds.second},
                         inputs_.seed);
  }

  static std::vector<std::string> warnings_of(const SampleReader& reader,
                                              const std::vector<std::string>& of_rows) {
    std::vector<std::string> warnings;
    if (const std::string bad = reader.bad_rows().summary(); !bad.empty()) warnings.push_back(bad);
    if (const std::string unread = reader.unread_columns(); !unread.empty())
      warnings.push_back(unread);
    warnings.insert(warnings.end(), of_rows.begin(), of_rows.end());
    return warnings;
  }

  std::array<SplitReport, 3> report(const Source& source, const std::vector<uint8_t>& part_of_row,
                                    const EncodedSpool& spool, const SampleReader& reader) const {
    std::array<SplitReport, 3> reports;
    for (const Part part : source.parts) {
      SplitReport& report = reports[part];
      report.name = kPartNames[part];
      report.files = {source.path.string()};
      report.schema = schema_name(*reader.schema());
      report.content_hash = source.file_hash;
    }
    spool.for_each([&](const SpooledRow& row) {
      count(row, reports[part_of_row[static_cast<size_t>(row.index)]]);
    });
    return reports;
  }

  void count(const SpooledRow& row, SplitReport& report) const {
    const RowRecord& record = row.record;
    ++report.rows_read;
    report.rows_unreadable += record.outcome == RowOutcome::Unreadable;
    report.rows_unsupervised += record.outcome == RowOutcome::Unsupervised;
    report.rows_dropped_long += record.outcome == RowOutcome::DroppedLong;
    report.rows_truncated += record.truncated;
    report.rows_own_bos += record.own_bos;
    report.rows_own_weights += record.own_weights;
    report.fields_cut += record.fields_cut;
    const bool is_split = record.first_of_pair == 0 && std::ssize(row.ids) > inputs_.max_seq_len;
    report.rows_split += is_split;
    if (record.outcome != RowOutcome::Kept) return;
    report.pairs += record.first_of_pair > 0;
    for_each_window(row, [&](const SpooledRow& window) {
      report.windows += is_split;
      report.rows_undesirable += judges() && !window.record.is_desirable;
      report.tokens += std::ssize(window.ids);
      report.supervised_tokens +=
          std::accumulate(window.supervised.begin(), window.supervised.end(), int64_t{0});
      for (size_t token = 0; token < window.weights.size(); ++token)
        report.weighted_tokens += window.supervised[token] != 0 && window.weights[token] != 1;
    });
  }

  void refuse_if_empty(const SplitReport& report, const EncodedFile& file,
                       const Source& source) const {
    if (rows_kept(report) > 0 || (report.rows_read == 0 && report.name != "train")) return;
    std::string text = fmt::format(
        "the {} split has nothing to learn from: of {}, {} no token to learn within "
        "model.max_seq_len {}, {} longer and dropped, {} unreadable",
        report.name, counted(report.rows_read, "row"),
        counted(report.rows_unsupervised, "has", "have"), inputs_.max_seq_len,
        counted(report.rows_dropped_long, "is", "are"),
        counted(report.rows_unreadable, "is", "are"));
    for (const std::string& warning : report.warnings) text += "; " + warning;
    ErrorLocation location{
        .file = source.path.string(),
        .hint =
            settings::task_named(inputs_.task).data == settings::TaskData::Pairs
                ? "raise model.max_seq_len, or see both sides with `convoy data tokens --schema "
                  "preference`"
                : "raise model.max_seq_len, look at data.supervise and at weights of messages, or "
                  "see the mask with `convoy data tokens`"};
    if (const auto& first = file.first_unsupervised) {
      location.line = first->line;
      text += fmt::format("; row {} has {}, {} of them supervised, and begins with {}",
                          first->index + 1, counted(first->tokens, "token"),
                          first->supervised_tokens, inputs_.show(first->ids));
    }
    throw DataError(text, location);
  }

  // Throws DataError when all answers are good, or all are bad: the task learns from their
  // difference.
  static void refuse_if_one_sided(const SplitReport& report, const Source& source) {
    const int64_t rows = rows_kept(report) + report.pairs;
    if (rows == 0 || (report.rows_undesirable > 0 && report.rows_undesirable < rows)) return;
    const bool all_good = report.rows_undesirable == 0;
    throw DataError(fmt::format("all {} of the train split are {} answers, and task kto learns "
                                "from good ones and bad ones",
                                counted(rows, "row"), all_good ? "good" : "bad"),
                    {.file = source.path.string(),
                     .hint = all_good ? "add rows with `label: false`, or learn them with task: sft"
                                      : "add rows with `label: true`"});
  }

  // The user named one file for training, so the log states which of its rows are held out.
  void say_held_out() const {
    const int64_t val_rows = parts_[Val] ? parts_[Val]->report.rows_read : 0;
    std::string text;
    if (val_rows > 0)
      text = fmt::format("{} held out for evaluations (data.split.val_ratio=0 trains on them too)",
                         counted(val_rows, "row is", "rows are"));
    if (inputs_.data.split.test_ratio > 0)
      text += fmt::format(
          "{}{:g} % of the rows are kept as a test split that training never reads "
          "(data.split.test_ratio=0)",
          text.empty() ? "" : ", ", 100 * inputs_.data.split.test_ratio);
    if (!text.empty()) inputs_.log.info(text);
  }

  EncodedSplits finish() {
    EncodedSplits splits;
    const std::array<TokenDataset*, 3> targets = {&splits.train, &splits.val, &splits.test};
    for (const Part part : {Train, Val, Test}) {
      if (!parts_[part]) continue;
      *targets[part] = parts_[part]->dataset;
      if (splits.policy.empty()) splits.policy = parts_[part]->policy;
      splits.reports.push_back(std::move(parts_[part]->report));
    }
    tell(splits.reports);
    return splits;
  }

  // Logs each warning of a file once.
  void tell(const std::vector<SplitReport>& reports) const {
    std::set<std::string> told;
    for (const SplitReport& report : reports) {
      for (const std::string& warning : report.warnings) {
        const std::string line = fmt::format("{}: {}", fmt::join(report.files, ", "), warning);
        if (inputs_.warns && told.insert(line).second) inputs_.log.warning(line);
      }
      if (report.rows_read > 0) inputs_.log.info(report_line(report));
    }
  }

  const SplitInputs& inputs_;
  Splits wanted_;
  TokenCache cache_;
  std::array<std::optional<CachedSplit>, 3> parts_;
};

}  // namespace

SplitBounds split_bounds(const settings::SplitSettings& split, int64_t num_rows) {
  const std::vector<int64_t> sizes = part_sizes(parts_of_split(split), num_rows);
  return {sizes[Train], sizes[Train] + sizes[Val]};
}

std::string report_line(const SplitReport& report) {
  const int64_t kept = rows_kept(report);
  const double share = report.tokens > 0 ? 100.0 * static_cast<double>(report.supervised_tokens) /
                                               static_cast<double>(report.tokens)
                                         : 0.0;
  std::string line = fmt::format("{}: {} of {} ({}), {}, {:.1f} % supervised", report.name,
                                 counted(kept, "row"), fmt::join(report.files, ", "), report.schema,
                                 counted(report.tokens, "token"), share);
  const auto mention = [&](int64_t count, const char* noun, const char* what) {
    if (count > 0) line += fmt::format("; {} {}", counted(count, noun), what);
  };
  if (report.rows_split > 0)
    line += fmt::format("; {} longer than model.max_seq_len split into {}", report.rows_split,
                        report.windows);
  mention(report.rows_truncated, "row", "truncated");
  mention(report.rows_unsupervised, "row", "dropped without a supervised token");
  mention(report.rows_dropped_long, "row", "dropped as too long");
  mention(report.rows_unreadable, "unreadable row", "skipped");
  mention(report.rows_own_weights, "row", "with weights of turns");
  mention(report.weighted_tokens, "supervised token", "of another weight than 1");
  if (report.rows_undesirable > 0) mention(report.pairs, "pair", "read as two rows each");
  mention(report.rows_undesirable, "row", "of a bad answer");
  mention(report.fields_cut, "field", "cut to data.max_field_chars");
  if (report.rows_own_bos > 0) line += "; " + own_bos_notice(report.rows_own_bos);
  if (report.from_cache) line += "; from the token cache";
  return line;
}

EncodedSplits build_splits(const SplitInputs& inputs, Splits wanted) {
  return SplitBuilder(inputs, wanted).build();
}

}  // namespace convoy::data
