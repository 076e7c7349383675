// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/check_preference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "convoy/core/config/describe.h"

namespace convoy::settings {
namespace {

constexpr std::string_view kSection = "preference.";

bool judges(const TrainSettings& settings) {
  return settings.task_facts().data == TaskData::Judged;
}

// Null: the task has one loss, which has no name, or learns from no preferences.
const PairLossFacts* chosen_loss(const TrainSettings& settings) {
  return settings.task_facts().chooses_loss ? &pair_loss_named(settings.preference.loss) : nullptr;
}

std::string reader_of_preferences(const TrainSettings& settings) {
  const PairLossFacts* const loss = chosen_loss(settings);
  return loss != nullptr ? fmt::format("loss {}", loss->name)
                         : fmt::format("task {}", settings.task_facts().name);
}

// The settings of the section `preference` that neither the task nor its loss reads. The loss must
// be one of the task.
std::vector<std::string> unread_preferences(const TrainSettings& settings) {
  std::vector<std::string> unread;
  if (!learns_preferences(settings.task_facts())) {
    TrainSettings usual;
    for (const auto& [key, value] : config::assigned_values(config::list_fields(usual)))
      if (key.starts_with(kSection)) unread.push_back(key);
    return unread;
  }
  const PairLossFacts* const loss = chosen_loss(settings);
  const bool chooses_loss = loss != nullptr;
  const std::array<std::pair<const char*, bool>, 7> reads = {
      {{"label_smoothing", chooses_loss && loss->smooths_labels},
       {"target_margin", chooses_loss && loss->has_margin},
       {"length_normalised", chooses_loss},
       {"sft_weight", chooses_loss},
       {"desirable_weight", judges(settings)},
       {"undesirable_weight", judges(settings)},
       {"reference", settings.has_reference()}}};
  for (const auto& [key, is_read] : reads)
    if (!is_read) unread.push_back(fmt::format("{}{}", kSection, key));
  return unread;
}

class PreferenceCheck {
 public:
  PreferenceCheck(const TrainSettings& settings, const config::Resolved& resolved,
                  config::ErrorList& errors)
      : settings_(settings), resolved_(resolved), errors_(errors) {}

  void run() const {
    const PreferenceSettings& preference = settings_.preference;
    if (!has_loss_of_task()) return;
    TrainSettings given = settings_;
    TrainSettings usual;
    const auto changed =
        config::changed_values(config::list_fields(given), config::list_fields(usual));
    for (const std::string& key : unread_preferences(settings_))
      if (changed.contains(key))
        refuse(key, fmt::format("{} does not read it", reader_of_preferences(settings_)),
               "remove it");
    if (preference.reference == "start" && settings_.has_reference() &&
        settings_.tuning.lora.adapter.empty())
      refuse("preference.reference",
             "no adapter is continued (tuning.lora.adapter), so the start is the base",
             "leave it out");
    if (is_judged() && preference.desirable_weight == 0 && preference.undesirable_weight == 0)
      refuse("preference.desirable_weight",
             "both weights of answers are 0, so nothing would be learnt", "raise one of them");
    check_data();
  }

 private:
  bool is_judged() const { return judges(settings_); }

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

void warn_of_unread_preferences(const TrainSettings& settings, config::Resolved& resolved) {
  const auto is_written = [](const config::ResolvedValue& value) {
    return value.origin != "default" && !value.origin.starts_with("preset ");
  };
  const std::vector<config::ResolvedValue>& values = resolved.values();
  if (2 * std::count_if(values.begin(), values.end(), is_written) > std::ssize(values)) return;
  for (const std::string& key : unread_preferences(settings))
    if (is_written(resolved.value(key)))
      resolved.warn(fmt::format("{}: {} has no effect: {} does not read it",
                                resolved.value(key).origin, key, reader_of_preferences(settings)));
}

}  // namespace convoy::settings
