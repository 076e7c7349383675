// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/check_preference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace convoy::settings {
namespace {

class PreferenceCheck {
 public:
  PreferenceCheck(const TrainSettings& settings, const config::Resolved& resolved,
                  config::ErrorList& errors)
      : settings_(settings), resolved_(resolved), errors_(errors) {}

  void run() const {
    const PreferenceSettings& preference = settings_.preference;
    const PreferenceSettings usual;
    const TaskFacts& task = settings_.task_facts();
    if (!has_loss_of_task()) return;
    const PairLossFacts* const loss =
        task.chooses_loss ? &pair_loss_named(preference.loss) : nullptr;
    const std::string reader =
        loss != nullptr ? fmt::format("loss {}", loss->name) : fmt::format("task {}", task.name);
    const auto unread = [&](const char* key, bool is_set, bool is_read) {
      if (is_set && !is_read)
        refuse(fmt::format("preference.{}", key), fmt::format("{} does not read it", reader),
               "remove it");
    };
    unread("label_smoothing", preference.label_smoothing > 0,
           loss != nullptr && loss->smooths_labels);
    unread("target_margin", preference.target_margin != usual.target_margin,
           loss != nullptr && loss->has_margin);
    unread("length_normalised", preference.length_normalised != usual.length_normalised,
           task.chooses_loss);
    unread("sft_weight", preference.sft_weight > 0, task.chooses_loss);
    unread("desirable_weight", preference.desirable_weight != usual.desirable_weight, is_judged());
    unread("undesirable_weight", preference.undesirable_weight != usual.undesirable_weight,
           is_judged());
    unread("reference", preference.reference != usual.reference, settings_.has_reference());
    if (preference.reference == "start" && settings_.has_reference() &&
        settings_.tuning.lora.adapter.empty())
      refuse("preference.reference",
             "no adapter is continued (tuning.lora.adapter), so the start is the base",
             "leave it out");
    check_data();
  }

 private:
  bool is_judged() const { return settings_.task_facts().data == TaskData::Judged; }

  void refuse(const std::string& key, const std::string& reason, const std::string& hint) const {
    errors_.add(ConfigError(fmt::format("{}: {}", key, reason), resolved_.location(key, hint)));
  }

  // Empty: the task has one loss, which has no name.
  std::vector<std::string> losses_of_task() const {
    if (is_judged()) return unpaired_loss_words();
    return settings_.task_facts().chooses_loss ? pair_loss_words() : std::vector<std::string>();
  }

  bool has_loss_of_task() const {
    const std::string& loss = settings_.preference.loss;
    const std::vector<std::string> words = losses_of_task();
    if (loss == kLossOfTask || std::find(words.begin(), words.end(), loss) != words.end())
      return true;
    refuse("preference.loss", fmt::format("{} is no loss of task {}", loss, settings_.task),
           words.empty() ? fmt::format("task {} has one loss: remove it, or write {}",
                                       settings_.task, kLossOfTask)
                         : fmt::format("one of {}", fmt::join(words, ", ")));
    return false;
  }

  // Refuses settings of rows that cut or mask completions, because the losses compare whole
  // completions.
  void check_data() const {
    const DataSettings& data = settings_.data;
    const DataSettings usual;
    const std::array<std::pair<const char*, bool>, 4> masks = {
        {{"data.supervise", data.supervise != usual.supervise},
         {"data.roles_to_train", !(data.roles_to_train == usual.roles_to_train)},
         {"data.train_on_eos", data.train_on_eos != usual.train_on_eos},
         {"data.empty_answers", data.empty_answers != usual.empty_answers && !is_judged()}}};
    for (const auto& [key, is_set] : masks)
      if (is_set)
        refuse(key,
               fmt::format("task {} compares whole completions: every token behind the prompt "
                           "counts",
                           settings_.task),
               "remove it");
    if (data.truncation == "split")
      refuse("data.truncation",
             fmt::format("task {} compares whole completions, which are not split", settings_.task),
             "keep_start, keep_end, drop or error");
    if (data.schema != "auto" && data.schema != "preference" &&
        data.schema != (is_judged() ? "unpaired_preference" : "ranked"))
      refuse("data.schema",
             fmt::format("task {} reads preferences, found {}", settings_.task, data.schema),
             "remove it");
  }

  const TrainSettings& settings_;
  const config::Resolved& resolved_;
  config::ErrorList& errors_;
};

}  // namespace

void check_preference(const TrainSettings& settings, const config::Resolved& resolved,
                      config::ErrorList& errors) {
  PreferenceCheck(settings, resolved, errors).run();
}

}  // namespace convoy::settings
