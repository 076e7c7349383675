// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/training/reference_scores.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <set>

#include "convoy/apps/recipes/posttraining/without_adapter.h"
#include "convoy/apps/recipes/training/rows_to_score.h"
#include "convoy/apps/recipes/training/score_file.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/io/model_fingerprint.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/data/datasets/tokens/token_cache.h"
#include "convoy/train/loop/evaluation.h"
#include "convoy/train/loop/mismatched_rows.h"

namespace convoy::recipes {
namespace {

// The reference model during the lifetime of this object: the training's own model without its
// adapter, that model with its adapter, or another model.
class Reference {
 public:
  Reference(const TrainingRun& run, LoadedModel& base) : base_(base) {
    const settings::TrainSettings& settings = run.settings;
    const std::string& wish = settings.preference.reference;
    if (wish != "base" && wish != "start") {
      load(run, wish);
      return;
    }
    if (wish == "base" && base.lora) take_adapter_off(run);
    if (!base.values) return;
    reading_.emplace(base.model->units(), *base.values);
    base.model->set_residency(&*reading_);
  }
  ~Reference() {
    if (reading_) base_.model->set_residency(nullptr);
  }
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;

  nn::CausalLm& model() { return other_ ? *other_->model : *base_.model; }
  const io::ModelFolder& folder() const { return other_ ? other_->folder : base_.folder; }

 private:
  void take_adapter_off(const TrainingRun& run) {
    const std::string& adapter = run.settings.tuning.lora.adapter;
    if (!adapter.empty() && !base_.lora->config().modules_to_save.empty())
      throw ConfigError(
          "the adapter that training continues has whole modules (modules_to_save), so the base "
          "without it is not in memory",
          {.key = "preference.reference", .hint = "start, or the base's folder"});
    if (!adapter.empty())
      run.log.warning(
          fmt::format("the reference is the base without the adapter {}, which training continues; "
                      "preference.reference: start takes the model as training starts",
                      adapter));
    bare_.emplace(base_);
  }

  void load(const TrainingRun& run, const std::string& name) {
    require_tokenizer_of(name, base_.tokenizer, run.settings.data.eos_token,
                         run.settings.model.name);
    other_ =
        load_model({.name = name, .dtype = run.dtype, .device = run.rank_device.device}, run.log);
  }

  LoadedModel& base_;
  std::optional<WithoutAdapter> bare_;
  std::optional<nn::ReadOnUse> reading_;
  std::optional<LoadedModel> other_;
};

// Checksum over every byte of the weights: two models of the same shape have different scores.
std::string checksum_of_files(const io::ModelFolder& folder) {
  uint32_t checksum = 0;
  for (const std::string& name : folder.weight_file_names()) {
    const MappedFile file(folder.require(name));
    checksum =
        crc32c({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, checksum);
  }
  return fmt::format("{:08x}", checksum);
}

// Everything that the scores depend on, except the rows.
nlohmann::json words_of(const TrainingRun& run, Reference& reference) {
  const settings::TrainSettings& settings = run.settings;
  nlohmann::json words = {{"format", 1},
                          {"model", io::model_fingerprint(reference.folder())},
                          {"weights", checksum_of_files(reference.folder())},
                          {"values", coding_text(reference.model())},
                          {"dtype", run.dtype},
                          {"device", run.device_kind()}};
  if (settings.preference.reference == "start" && !settings.tuning.lora.adapter.empty())
    words["adapter"] = io::adapter_fingerprint(settings.tuning.lora.adapter);
  return words;
}

// Collective. Returns rank 0's `own` scores on every rank.
std::vector<double> of_rank_zero(comm::Group& group, const std::vector<double>& own,
                                 int64_t num_rows) {
  const std::string bytes = group.all_gather_bytes(
      {reinterpret_cast<const char*>(own.data()), own.size() * sizeof(double)})[0];
  std::vector<double> theirs(static_cast<size_t>(num_rows));
  CONVOY_INVARIANT(bytes.size() == theirs.size() * sizeof(double), "{} bytes of scores",
                   bytes.size());
  std::memcpy(theirs.data(), bytes.data(), bytes.size());
  return theirs;
}

std::vector<int64_t> rows_without_score(const std::vector<int64_t>& wanted,
                                        const std::vector<double>& scores) {
  std::vector<int64_t> rows;
  std::copy_if(wanted.begin(), wanted.end(), std::back_inserter(rows),
               [&](int64_t row) { return std::isnan(scores[static_cast<size_t>(row)]); });
  return rows;
}

class ScoringPass {
 public:
  struct KnownScores {
    std::optional<ScoreFile> file = {};  // on rank 0 only
    std::vector<double> scores = {};
    std::vector<int64_t> missing = {};  // wanted rows without a score
  };

  ScoringPass(const TrainingRun& run, const settings::TrainSettings& settings, Reference& reference,
              comm::Group& group)
      : run_(run),
        reference_(reference),
        group_(group),
        rows_of_item_(settings::rows_of_item(settings.task_facts())),
        batch_rows_(rows_of_item_ *
                    std::max<int64_t>(1, settings.train.rows_of_evaluation_batch())) {}

  // Collective. Scores `num_sets` sets one after the other, so that only one set is in memory at a
  // time. Passes the scores of each set, by row of its data set, to `keep`. `name` ("train") names
  // the sets for people. Returns false when the run was stopped.
  bool score_sets(const std::string& name, size_t num_sets,
                  const std::function<RowsToScore(size_t)>& set_of,
                  const std::function<void(KnownScores)>& keep) {
    std::optional<telemetry::Progress> progress;
    if (group_.rank() == 0) {
      const int64_t num_missing = announce(name, num_sets, set_of);
      if (num_missing > 0) progress.emplace(progress_options(name, num_missing));
    }
    int64_t done = 0;
    for (size_t set = 0; set < num_sets; ++set) {
      const RowsToScore rows = set_of(set);
      KnownScores known = known_scores(rows);
      const bool finished = compute(rows, known, [&](int64_t rows_done) {
        if (progress) progress->update({.done = done + rows_done});
      });
      if (!finished) return false;
      done += std::ssize(known.missing);
      keep(std::move(known));
    }
    if (progress) progress->finish();
    return true;
  }

  std::optional<std::vector<double>> scores(const std::string& name, const RowsToScore& rows) {
    std::vector<double> found;
    const bool finished = score_sets(
        name, 1, [&](size_t) { return rows; },
        [&](KnownScores known) { found = std::move(known.scores); });
    return finished ? std::optional(std::move(found)) : std::nullopt;
  }

 private:
  // Rank 0 counts the rows of all sets, for people, and returns the number of rows to compute.
  // It reads the files without a warning: known_scores() reads them again, and warns.
  int64_t announce(const std::string& name, size_t num_sets,
                   const std::function<RowsToScore(size_t)>& set_of) {
    int64_t num_wanted = 0;
    int64_t num_missing = 0;
    for (size_t set = 0; set < num_sets; ++set) {
      const RowsToScore rows = set_of(set);
      num_wanted += std::ssize(rows.wanted);
      const std::vector<double> kept = file_of(rows, quiet_).read(rows.dataset.num_rows());
      num_missing += std::ssize(rows_without_score(rows.wanted, kept));
    }
    run_.log.info(fmt::format(
        "reference ({}): log-probabilities of {} of {}, {}", run_.settings.preference.reference,
        counted(num_wanted / rows_of_item_, rows_of_item_ > 1 ? "pair" : "row"), name,
        num_missing == 0 ? "all known"
                         : fmt::format("{} computed now", num_missing / rows_of_item_)));
    return num_missing;
  }

  // Collective. The scores that rank 0's file keeps.
  KnownScores known_scores(const RowsToScore& rows) {
    const int64_t num_rows = rows.dataset.num_rows();
    KnownScores known;
    if (group_.rank() == 0) {
      known.file.emplace(file_of(rows, run_.log));
      known.scores = known.file->read(num_rows);
    }
    group_.wait_for_all();
    known.scores = of_rank_zero(group_, known.scores, num_rows);
    known.missing = rows_without_score(rows.wanted, known.scores);
    return known;
  }

  // `log` receives warnings about damage. It must outlive the result.
  ScoreFile file_of(const RowsToScore& rows, const Log& log) {
    const data::TokenCache cache(run_.settings.data.cache_dir, run_.log);
    return {cache.folder(), key_of(rows), log};
  }

  // The key of a score file: a hash of everything that the scores depend on.
  std::string key_of(const RowsToScore& rows) {
    if (words_.is_null()) words_ = words_of(run_, reference_);
    nlohmann::json words = words_;
    words["rows"] = rows.content_hash();
    if (!rows.mismatches.empty()) words["max_seq_len"] = run_.settings.model.max_seq_len;
    return sha256_hex(words.dump());
  }

  telemetry::ProgressOptions progress_options(const std::string& name, int64_t num_rows) const {
    telemetry::ProgressOptions options{
        .label = fmt::format("reference, {}", name), .unit = "row", .total = num_rows};
    options.color = run_.request.color;
    if (run_.log.level() == LogLevel::Quiet) options.style = telemetry::ProgressStyle::None;
    return options;
  }

  // Computes the missing scores in rounds. After each round rank 0 saves all scores so far. Returns
  // false when the run was stopped.
  bool compute(const RowsToScore& rows, KnownScores& known,
               const std::function<void(int64_t)>& rows_done) {
    const std::vector<int64_t>& missing = known.missing;
    constexpr int64_t kBatchesOfRound = 64;
    const int64_t round = kBatchesOfRound * batch_rows_ * group_.size();
    const std::function<bool()> stop = [this] { return run_.stop_requested.load(); };
    for (int64_t first = 0; first < std::ssize(missing); first += round) {
      const int64_t end = std::min(first + round, std::ssize(missing));
      const std::vector<int64_t> of_round(missing.begin() + first, missing.begin() + end);
      const auto found = losses(rows, of_round, stop, [&](int64_t own) {
        rows_done(std::min(first + own * group_.size(), end));
      });
      if (!found) return false;
      for (size_t row = 0; row < of_round.size(); ++row)
        known.scores[static_cast<size_t>(of_round[row])] = -(*found)[row].nll;
      if (known.file) known.file->write(known.scores);
      group_.wait_for_all();
    }
    return true;
  }

  std::optional<std::vector<train::RowLoss>> losses(const RowsToScore& rows,
                                                    const std::vector<int64_t>& wanted,
                                                    const std::function<bool()>& stop,
                                                    const std::function<void(int64_t)>& rows_done) {
    if (rows.mismatches.empty())
      return train::losses_of_rows(reference_.model(), rows.dataset, wanted, batch_rows_, group_,
                                   stop, rows_done);
    const std::set<int64_t> prompts(wanted.begin(), wanted.end());
    std::vector<train::Mismatch> own;
    std::copy_if(
        rows.mismatches.begin(), rows.mismatches.end(), std::back_inserter(own),
        [&](const train::Mismatch& mismatch) { return prompts.contains(mismatch.prompt); });
    const data::TokenDataset made =
        train::mismatched_rows(rows.dataset, own, run_.settings.model.max_seq_len);
    return train::losses_of_rows(reference_.model(), made, all_rows(made), batch_rows_, group_,
                                 stop, rows_done);
  }

  const TrainingRun& run_;
  Reference& reference_;
  comm::Group& group_;
  int64_t rows_of_item_;
  int64_t batch_rows_;
  nlohmann::json words_;  // words_of(); null until rank 0 needs it
  const Log quiet_{LogLevel::Quiet};
};

// Scores the sets of all epochs. Only rank 0 keeps the scores, in score files if there are any.
bool score_epochs(ScoringPass& pass, const SettledBatch& batch, comm::Group& group,
                  train::ReferenceScores& scores) {
  LentSets sets = lent_sets(batch);
  const auto readers = std::make_shared<std::vector<ScoreFile::Reader>>();  // on rank 0, by set
  const bool finished = pass.score_sets(
      "train with other answers", sets.epoch_of_set.size(),
      [&](size_t set) { return lent_answers(batch, sets.epoch_of_set[set]); },
      [&](ScoringPass::KnownScores known) {
        if (known.file) readers->push_back(known.file->reader(std::move(known.scores)));
      });
  scores.mismatched_of_epoch = [&group, readers, set_of_epoch = std::move(sets.set_of_epoch),
                                num_rows = batch.plan.dataset().num_rows()](int64_t epoch) {
    std::vector<double> own;
    if (group.rank() == 0) own = readers->at(set_of_epoch.at(static_cast<size_t>(epoch)))();
    group.wait_for_all();
    return of_rank_zero(group, own, num_rows);
  };
  return finished;
}

bool score_mismatches(ScoringPass& pass, const SettledBatch& batch,
                      const data::TokenDataset& validation, comm::Group& group,
                      train::ReferenceScores& scores) {
  if (!score_epochs(pass, batch, group, scores)) return false;
  const std::vector<int64_t> all = all_rows(validation);
  scores.mismatched_validation.assign(all.size(), std::numeric_limits<double>::quiet_NaN());
  if (all.size() < 2) return true;
  auto found =
      pass.scores("val with other answers",
                  {.dataset = validation, .wanted = all, .mismatches = train::mismatches_of(all)});
  if (!found) return false;
  scores.mismatched_validation = std::move(*found);
  return true;
}

}  // namespace

void require_tokenizer_of(const std::string& reference, const text::Tokenizer& own,
                          const std::string& eos_token, const std::string& model,
                          const std::string& key) {
  if (reference == "base" || reference == "start") return;
  const io::ModelFolder folder = io::folder_of_weights(reference);
  if (text::Tokenizer::load(folder.path(), eos_token).content_hash() != own.content_hash())
    throw ConfigError(fmt::format("{} has another tokenizer than {}", reference, model),
                      {.key = key, .hint = "name a model of the same tokens"});
}

std::optional<train::ReferenceScores> reference_scores(const TrainingRun& run,
                                                       const LanguageInput& input,
                                                       const SettledBatch& batch,
                                                       comm::Group& group) {
  train::ReferenceScores scores;
  if (!batch.settings.has_reference()) return scores;
  if (run.request.plan_only) {
    require_tokenizer_of(batch.settings.preference.reference, input.base.tokenizer,
                         batch.settings.data.eos_token, batch.settings.model.name);
    return scores;
  }
  run.flight().set_phase("reference");
  Reference reference(run, input.base);
  ScoringPass pass(run, batch.settings, reference, group);
  auto of_train = pass.scores(
      "train", {.dataset = batch.plan.dataset(), .wanted = rows_of_steps(run, input, batch)});
  if (!of_train) return std::nullopt;
  scores.train = std::move(*of_train);
  const data::TokenDataset& validation = input.splits.val;
  if (validation.num_rows() > 0) {
    auto of_validation =
        pass.scores("val", {.dataset = validation, .wanted = all_rows(validation)});
    if (!of_validation) return std::nullopt;
    scores.validation = std::move(*of_validation);
  }
  if (batch.settings.estimates_divergence() &&
      !score_mismatches(pass, batch, validation, group, scores))
    return std::nullopt;
  return scores;
}

}  // namespace convoy::recipes
