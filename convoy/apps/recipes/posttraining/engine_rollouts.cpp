// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/posttraining/engine_rollouts.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "convoy/apps/recipes/posttraining/joint_generation.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/base/seconds_since.h"
#include "convoy/machine/device/seed.h"
#include "convoy/train/comm/exchange.h"

namespace convoy::recipes {
namespace {

std::vector<std::unique_ptr<rewards::Reward>> make_rewards(
    const std::vector<settings::RewardSettings>& settings) {
  std::vector<std::unique_ptr<rewards::Reward>> made;
  for (const settings::RewardSettings& reward : settings)
    made.push_back(rewards::make_reward(reward));
  return made;
}

std::vector<std::string> names_of(const std::vector<settings::RewardSettings>& settings) {
  std::vector<std::string> names;
  for (const settings::RewardSettings& reward : settings) names.push_back(reward.name);
  return names;
}

rewards::JudgedText judged(const RolloutProblem& problem, const std::string& text, int64_t tokens,
                           bool is_truncated, int64_t sample) {
  return {.prompt = problem.text,
          .text = text,
          .answers = problem.answers,
          .tokens = tokens,
          .is_truncated = is_truncated,
          .begins_in_think = problem.begins_in_think,
          .row = problem.row,
          .row_number = problem.row_number,
          .sample = sample};
}

// Squares of rewards, and their sums over a step, are finite within this.
constexpr double kLargestReward = 1e100;

void require_usable(const settings::RewardSettings& reward, const rewards::JudgedText& text,
                    double value) {
  if (std::abs(value) <= kLargestReward && std::abs(reward.weight * value) <= kLargestReward)
    return;
  throw DataError(fmt::format("reward `{}`: row {}, sample {}: {:g} times the weight {:g} is too "
                              "large for a mean",
                              reward.name, text.row_number, text.sample, value, reward.weight),
                  {.hint = "give numbers and weights within 1e100"});
}

}  // namespace

// More rows together fill the products of a step; each needs keys and values.
int64_t rows_of_rollout_engine(at::Device device, int64_t texts) {
  return std::clamp<int64_t>(texts, 1, device.is_cpu() ? 64 : 256);
}

// The figures of one answer to a validation problem.
struct EngineRollouts::Answer {
  double problem = 0;
  double reward = 0;
  double is_right = 0;
  double tokens = 0;
};

EngineRollouts::EngineRollouts(EngineRolloutsParts parts)
    : parts_(std::move(parts)),
      reward_settings_(settings::rewards_of(parts_.settings.reward)),
      rewards_(make_rewards(reward_settings_)),
      reward_names_(names_of(reward_settings_)),
      ledger_(parts_.run.folder.rollouts_folder(), reward_names_, parts_.group) {
  if (parts_.settings.policy.kl_beta > 0) reference_.emplace(parts_.run, parts_.base, parts_.group);
}

// Rollouts of other weights, or under other settings of what draws and rewards them, have another
// key.
std::string EngineRollouts::weights_key() const {
  uint32_t checksum = 0;
  for (const parallel::ParameterShard& shard : parts_.strategy.shards()) {
    const at::Tensor value = shard.value.detach().cpu().contiguous();
    checksum = crc32c({static_cast<const char*>(value.const_data_ptr()), value.nbytes()}, checksum);
  }
  std::string words = parts_.identity;
  if (parts_.strategy.shares_state()) {
    for (const int64_t of_rank :
         comm::exchange_words(parts_.group, std::vector<int64_t>{int64_t{checksum}}))
      words += fmt::format(" {:08x}", of_rank);
  } else {
    words += fmt::format(" {:08x}", checksum);
  }
  return sha256_hex(words).substr(0, 16);
}

std::vector<EngineRollouts::Place> EngineRollouts::places_of(
    const std::vector<int64_t>& problems) const {
  std::vector<Place> places;
  for (const int64_t problem : problems)
    for (int64_t sample = 0; sample < parts_.settings.rollout.samples; ++sample)
      places.emplace_back(problem, sample);
  return places;
}

std::vector<train::Rollout> EngineRollouts::rollouts_at(const std::vector<Place>& places,
                                                        std::map<Place, RecordedRollout> found) {
  std::vector<train::Rollout> rollouts;
  texts_.clear();
  for (const Place& place : places) {
    RecordedRollout& recorded = found.at(place);
    rollouts.push_back(std::move(recorded.rollout));
    texts_.push_back(std::move(recorded.text));
  }
  return rollouts;
}

std::vector<train::Rollout> EngineRollouts::draw(const train::RolloutTurn& turn,
                                                 const std::vector<int64_t>& problems) {
  telemetry::FlightWriter& flight = parts_.run.flight();
  parts_.strategy.settle();
  flight.set_phase("generate");
  const std::vector<Place> places = places_of(problems);
  const int64_t number = turn.first_step + 1;
  key_ = turn.begins ? weights_key() : "";
  is_recorded_ = false;
  if (auto found = ledger_.finished(number, key_)) {
    is_recorded_ = true;
    return rollouts_at(places, std::move(*found));
  }
  if (!turn.begins)
    throw CheckpointError(
        "the rollouts that this step goes on with are gone",
        {.file = ledger_.file_of(number).string(),
         .hint = "give the file back, or start from a checkpoint at which new ones are drawn"});
  ledger_.open(number, key_);
  draw_texts(turn, places);
  flight.set_phase("reward");
  ask_rewards(places);
  std::map<Place, RecordedRollout> all = ledger_.texts();
  for (const Place& place : places) {
    train::Rollout& rollout = all.at(place).rollout;
    for (size_t part = 0; part < rewards_.size(); ++part)
      rollout.rewards.push_back(ledger_.reward(place, part).value());
    rollout.reward = weighed(rollout.rewards);
  }
  std::vector<train::Rollout> rollouts = rollouts_at(places, std::move(all));
  if (reference_) {
    flight.set_phase("reference");
    std::vector<train::Rollout*> scored;
    for (train::Rollout& rollout : rollouts) scored.push_back(&rollout);
    reference_->score(scored, parts_.settings.rollout.samples);
  }
  return rollouts;
}

generate::Request EngineRollouts::request_of(const RolloutProblem& problem) const {
  return {.prompt = problem.prompt.ids,
          .sampling = {.temperature = 0},
          .max_new_tokens = parts_.settings.rollout.max_new_tokens,
          .stop = parts_.settings.rollout.stop.names,
          .stop_ids = problem.prompt.is_chat ? parts_.base.turn_end_ids : std::vector<int32_t>()};
}

bool EngineRollouts::generate(std::vector<generate::Request> requests,
                              const std::function<bool()>& stop_requested,
                              const std::function<void(const generate::Completion&)>& take) {
  const at::NoGradGuard no_grad;
  const LoadedModel& base = parts_.base;
  settings::EngineFlags flags;
  flags.batch_size = rows_of_rollout_engine(base.model->device(), std::ssize(requests));
  const int64_t longest =
      parts_.problems.longest_prompt_tokens() + parts_.settings.rollout.max_new_tokens;
  generate::Engine engine(
      *base.model, base.tokenizer,
      engine_config(flags, base,
                    {.longest_row_tokens = std::min(longest, base.model->max_positions()),
                     .engines_on_host = parts_.run.environment.local_world,
                     .is_beside_training = true},
                    Log(LogLevel::Quiet)));
  for (generate::Request& request : requests) engine.submit(std::move(request));
  const nn::Residency* const residency = base.model->residency();
  return generate_jointly(
             {.engine = engine,
              .group = parts_.group,
              .steps_together = residency != nullptr && residency->is_collective(),
              .stop_requested = stop_requested},
             [](int64_t text) { return fmt::format("text {} of the step", text); },
             take) != GenerationEnd::Stopped;
}

// Draws the texts that the ledger does not have.
void EngineRollouts::draw_texts(const train::RolloutTurn& turn, const std::vector<Place>& places) {
  const uint64_t seed = device::draw_key({.seed = parts_.settings.seed,
                                          .epoch = turn.position.epoch,
                                          .step = turn.position.step,
                                          .micro_batch = 0});
  std::vector<generate::Request> requests;
  for (size_t at = 0; at < places.size(); ++at) {
    if (ledger_.texts().contains(places[at])) continue;
    const auto& [problem, sample] = places[at];
    generate::Request request = request_of(parts_.problems.train[static_cast<size_t>(problem)]);
    request.number = static_cast<int64_t>(at);
    request.sampling = {.temperature = parts_.settings.rollout.temperature};
    request.draw = {.seed = seed, .row = problem, .sample = static_cast<uint64_t>(sample)};
    request.wants_logprobs = true;
    requests.push_back(std::move(request));
  }
  const bool complete = generate(
      std::move(requests), [this] { return stop_wanted(); },
      [&](const generate::Completion& ended) {
        const auto& [problem, sample] = places[static_cast<size_t>(ended.number)];
        const std::vector<int32_t>& prompt =
            parts_.problems.train[static_cast<size_t>(problem)].prompt.ids;
        RecordedRollout recorded{
            .rollout = {.problem = problem,
                        .sample = sample,
                        .ids = prompt,
                        .prompt_tokens = std::ssize(prompt),
                        .drawn = ended.logprobs,
                        .is_truncated = ended.finish_reason == generate::FinishReason::Length},
            .text = ended.text};
        recorded.rollout.ids.insert(recorded.rollout.ids.end(), ended.token_ids.begin(),
                                    ended.token_ids.end());
        ledger_.add_text(recorded);
      });
  if (!complete) throw StopRequest("stopped while texts were drawn; those that ended are kept");
}

double EngineRollouts::weighed(const std::vector<double>& rewards) const {
  double sum = 0;
  for (size_t part = 0; part < rewards.size(); ++part)
    sum += reward_settings_[part].weight * rewards[part];
  return sum;
}

// One reward's values of the texts. Without texts nothing is asked.
std::vector<double> EngineRollouts::values_of(size_t part,
                                              const std::vector<rewards::JudgedText>& texts) {
  if (texts.empty()) return {};
  std::vector<double> values = rewards_[part]->values(texts, [this] { return stop_wanted(); });
  CONVOY_INVARIANT(values.size() == texts.size(), "{} rewards of {} texts", values.size(),
                   texts.size());
  for (size_t text = 0; text < texts.size(); ++text)
    require_usable(reward_settings_[part], texts[text], values[text]);
  return values;
}

// All rewards of each text.
std::vector<std::vector<double>> EngineRollouts::rewards_of(
    const std::vector<rewards::JudgedText>& texts) {
  std::vector<std::vector<double>> rewards(texts.size());
  for (size_t part = 0; part < rewards_.size(); ++part) {
    const std::vector<double> values = values_of(part, texts);
    for (size_t text = 0; text < texts.size(); ++text) rewards[text].push_back(values[text]);
  }
  return rewards;
}

// Asks one reward for the texts whose value the ledger does not have, and saves the values at once:
// the failure of a later reward does not cost them.
void EngineRollouts::ask_reward(size_t part, const std::vector<Place>& places) {
  std::vector<Place> missing;
  std::vector<rewards::JudgedText> texts;
  for (const Place& place : places) {
    if (ledger_.reward(place, part)) continue;
    const RecordedRollout& recorded = ledger_.texts().at(place);
    missing.push_back(place);
    texts.push_back(judged(parts_.problems.train[static_cast<size_t>(place.first)], recorded.text,
                           recorded.rollout.text_tokens(), recorded.rollout.is_truncated,
                           place.second));
  }
  const std::vector<double> values = values_of(part, texts);
  for (size_t at = 0; at < missing.size(); ++at) ledger_.add_reward(missing[at], part, values[at]);
}

// Asks the rewards that the ledger does not have. Throws StopRequest on every rank if one stopped.
void EngineRollouts::ask_rewards(const std::vector<Place>& places) {
  bool stopped = false;
  try {
    for (size_t part = 0; part < rewards_.size(); ++part) ask_reward(part, places);
  } catch (const StopRequest&) {
    stopped = true;
  }
  parts_.group.wait_for_all();  // a rank's rewards may take longer than a collective waits
  for (const int64_t vote :
       comm::exchange_words(parts_.group, std::vector<int64_t>{stopped ? 1 : 0}))
    stopped = stopped || vote != 0;
  if (stopped) throw StopRequest("stopped while rewards were asked; the texts are kept");
}

void EngineRollouts::record(const train::RolloutTurn& turn,
                            const std::vector<train::Rollout>& rollouts, bool teaches) {
  if (!teaches && taught_ && parts_.log != nullptr)
    parts_.log->warning(
        fmt::format("step {} teaches nothing: the rewards of each group are alike, so no weight "
                    "changes (figure frac_reward_zero_std)",
                    turn.first_step + 1));
  taught_ = teaches;
  if (is_recorded_) return;
  std::vector<RecordedRollout> own;
  std::map<int64_t, RolloutLedger::ProblemFacts> problems;
  for (size_t at = 0; at < rollouts.size(); ++at) {
    own.push_back({rollouts[at], texts_[at]});
    const RolloutProblem& problem =
        parts_.problems.train[static_cast<size_t>(rollouts[at].problem)];
    problems[rollouts[at].problem] = {problem.row_number, problem.text};
  }
  ledger_.finish(turn.first_step + 1, key_, own, problems);
}

std::optional<train::Evaluation> EngineRollouts::evaluate(
    comm::Group& group, const std::function<bool()>& stop_requested) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<RolloutProblem>& problems = parts_.problems.val;
  std::vector<generate::Request> requests;
  for (auto at = static_cast<size_t>(group.rank()); at < problems.size();
       at += static_cast<size_t>(group.size())) {
    requests.push_back(request_of(problems[at]));
    requests.back().number = static_cast<int64_t>(at);
  }
  std::map<int64_t, rewards::JudgedText> answered;
  const bool complete =
      generate(std::move(requests), stop_requested, [&](const generate::Completion& ended) {
        answered.emplace(ended.number,
                         judged(problems[static_cast<size_t>(ended.number)], ended.text,
                                std::ssize(ended.token_ids),
                                ended.finish_reason == generate::FinishReason::Length, 0));
      });
  if (!complete) return std::nullopt;
  std::vector<rewards::JudgedText> texts;
  for (const auto& [problem, text] : answered) texts.push_back(text);
  const std::vector<std::vector<double>> values = rewards_of(texts);
  const auto compares =
      std::find_if(reward_settings_.begin(), reward_settings_.end(),
                   [](const settings::RewardSettings& reward) { return reward.kind == "answer"; });
  std::vector<Answer> own;
  size_t at = 0;
  for (const auto& [problem, text] : answered) {
    Answer answer{.problem = static_cast<double>(problem),
                  .reward = weighed(values[at]),
                  .tokens = static_cast<double>(text.tokens)};
    if (compares != reward_settings_.end())
      answer.is_right = values[at][static_cast<size_t>(compares - reward_settings_.begin())];
    own.push_back(answer);
    ++at;
  }
  group.wait_for_all();
  std::vector<Answer> all(problems.size());
  for (const std::string& bytes : group.all_gather_bytes(
           {reinterpret_cast<const char*>(own.data()), own.size() * sizeof(Answer)})) {
    std::vector<Answer> theirs(bytes.size() / sizeof(Answer));
    std::memcpy(theirs.data(), bytes.data(), bytes.size());
    for (const Answer& answer : theirs) all.at(static_cast<size_t>(answer.problem)) = answer;
  }
  train::Evaluation evaluation{.rows = std::ssize(all), .batches = 1};
  double reward = 0;
  double right = 0;
  double tokens = 0;
  for (const Answer& answer : all) {
    reward += answer.reward;
    right += answer.is_right;
    tokens += answer.tokens;
  }
  const auto count = static_cast<double>(all.size());
  evaluation.supervised_tokens = static_cast<int64_t>(tokens);
  evaluation.others["reward"] = reward / count;
  evaluation.others["completions/mean_length"] = tokens / count;
  if (compares != reward_settings_.end()) evaluation.others["accuracy"] = right / count;
  evaluation.loss = -reward / count;
  evaluation.seconds = seconds_since(start);
  return evaluation;
}

}  // namespace convoy::recipes
