// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/posttraining/engine_rollouts.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "convoy/apps/recipes/posttraining/joint_generation.h"
#include "convoy/apps/recipes/posttraining/values_checksum.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/base/seconds_since.h"
#include "convoy/machine/device/seed.h"
#include "convoy/model/sizing/generation_memory.h"
#include "convoy/train/comm/exchange.h"

namespace convoy::recipes {
namespace {

generate::Sampling draw_rule(const settings::RolloutSettings& rollout) {
  return {.temperature = rollout.temperature,
          .top_k = rollout.top_k,
          .top_p = rollout.top_p,
          .min_p = rollout.min_p};
}

// `place`: problem and sample.
train::Rollout rollout_of(const RolloutProblem& problem, train::Rollout place,
                          const generate::Completion& ended) {
  place.ids = problem.prompt.ids;
  place.prompt_tokens = std::ssize(place.ids);
  place.ids.insert(place.ids.end(), ended.token_ids.begin(), ended.token_ids.end());
  place.drawn = ended.logprobs;
  place.is_truncated = ended.finish_reason == generate::FinishReason::Length;
  return place;
}

remote::OwnTokens own_tokens(const LoadedModel& loaded) {
  remote::OwnTokens tokens{.vocab_size = loaded.model->vocab_size()};
  for (int32_t id = 0; id < loaded.tokenizer.vocab_size(); ++id)
    tokens.texts.push_back(loaded.tokenizer.decode({id}, false));
  return tokens;
}

}  // namespace

EngineRollouts::EngineRollouts(EngineRolloutsParts parts)
    : parts_(std::move(parts)),
      rewards_(parts_.settings.reward),
      ledger_(parts_.run.folder.rollouts_folder(), rewards_.names(), parts_.group) {
  if (parts_.settings.policy.kl_beta > 0) reference_.emplace(parts_.run, parts_.base, parts_.group);
  if (parts_.settings.has_served_teacher())
    teacher_.emplace(parts_.settings.distill, own_tokens(parts_.base), parts_.run.log);
}

// Rollouts of other weights, or under other settings of what draws and rewards them, have another
// key.
std::string EngineRollouts::weights_key() const {
  const std::string words =
      fmt::format("{} {:08x}", parts_.identity, values_checksum(parts_.strategy));
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

std::string EngineRollouts::fault_of(const train::Rollout& rollout) const {
  const std::vector<RolloutProblem>& problems = parts_.problems.train;
  if (rollout.problem < 0 || rollout.problem >= std::ssize(problems))
    return fmt::format("problem {} of {}", rollout.problem, problems.size());
  const std::vector<int32_t>& prompt = problems[static_cast<size_t>(rollout.problem)].prompt.ids;
  if (rollout.prompt_tokens != std::ssize(prompt) ||
      !std::equal(prompt.begin(), prompt.end(), rollout.ids.begin()))
    return fmt::format("a prompt that is not problem {}'s", rollout.problem);
  const int64_t vocab = parts_.base.model->vocab_size();
  const auto is_token = [&](int32_t id) { return id >= 0 && id < vocab; };
  if (!std::all_of(rollout.ids.begin(), rollout.ids.end(), is_token) ||
      !std::all_of(rollout.teacher.ids.begin(), rollout.teacher.ids.end(), is_token))
    return fmt::format("a token that is none of the {} of the model", vocab);
  const int64_t tokens = rollout.text_tokens();
  if (reference_ && std::ssize(rollout.reference) != tokens)
    return "a text without log-probabilities under the reference";
  if (teacher_ && std::ssize(rollout.teacher.ids) != tokens * parts_.settings.distill.top_k)
    return fmt::format("{} tokens of the teacher, not {} for each of {}",
                       rollout.teacher.ids.size(), parts_.settings.distill.top_k, tokens);
  return "";
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
  reward_seconds_.clear();
  if (auto found = ledger_.finished(number, key_, places, [this](const train::Rollout& rollout) {
        return fault_of(rollout);
      })) {
    is_recorded_ = true;
    return rollouts_at(places, std::move(*found));
  }
  if (!turn.begins)
    throw CheckpointError(
        "the rollouts that this step goes on with are gone",
        {.file = ledger_.file_of(number).string(),
         .hint = "give the file back, or start from a checkpoint at which new ones are drawn"});
  ledger_.open(number, key_);
  reward_seconds_.resize(rewards_.size());
  for (size_t part = 0; part < rewards_.size(); ++part)
    if (rewards_.asking(part).takes_lists)
      ledger_.forget_torn_rewards(part, parts_.settings.rollout.samples);
  DrawingOverlap overlap(parts_elsewhere(), parts_.settings.rollout.samples,
                         [this](size_t part, const std::vector<Place>& ended,
                                const std::function<bool()>& is_abandoned) {
                           const auto must_stop = [&] { return is_abandoned() || stop_wanted(); };
                           if (part < rewards_.size())
                             ask_reward(part, ended, must_stop);
                           else
                             ask_teacher(ended, must_stop);
                         });
  draw_texts(turn, places, overlap);
  ask_others(places, overlap);
  std::map<Place, RecordedRollout> all = ledger_.texts();
  for (const Place& place : places) {
    train::Rollout& rollout = all.at(place).rollout;
    for (size_t part = 0; part < rewards_.size(); ++part)
      rollout.rewards.push_back(ledger_.reward(place, part).value());
    rollout.reward = rewards_.weighed(rollout.rewards);
    if (teacher_) rollout.teacher = *ledger_.teacher(place);
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
  flags.batch_size = sizing::rows_of_drawing(std::ssize(requests), base.model->device().is_cpu());
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

// Draws the texts that the ledger does not have. A failure of a part of `overlap` ends the drawing.
void EngineRollouts::draw_texts(const train::RolloutTurn& turn, const std::vector<Place>& places,
                                DrawingOverlap& overlap) {
  const uint64_t seed = device::draw_key({.seed = parts_.settings.seed,
                                          .epoch = turn.position.epoch,
                                          .step = turn.position.step,
                                          .micro_batch = 0});
  std::set<Place> kept;
  for (const auto& [place, text] : ledger_.texts()) kept.insert(place);
  std::vector<generate::Request> requests;
  for (size_t at = 0; at < places.size(); ++at) {
    if (kept.contains(places[at])) {
      overlap.add(places[at]);
      continue;
    }
    const auto& [problem, sample] = places[at];
    generate::Request request = request_of(parts_.problems.train[static_cast<size_t>(problem)]);
    request.number = static_cast<int64_t>(at);
    request.sampling = draw_rule(parts_.settings.rollout);
    request.draw = {.seed = seed, .row = problem, .sample = static_cast<uint64_t>(sample)};
    request.wants_logprobs = true;
    request.logprobs_at_temperature = true;
    requests.push_back(std::move(request));
  }
  const bool complete = generate(
      std::move(requests),
      [&] {
        overlap.throw_a_failure();
        return stop_wanted();
      },
      [&](const generate::Completion& ended) {
        const Place& place = places[static_cast<size_t>(ended.number)];
        {
          const std::lock_guard<std::mutex> lock(ledger_mutex_);
          ledger_.add_text(
              {.rollout = rollout_of(parts_.problems.train[static_cast<size_t>(place.first)],
                                     {.problem = place.first, .sample = place.second}, ended),
               .text = ended.text});
        }
        overlap.add(place);
      });
  if (!complete) throw StopRequest("stopped while texts were drawn; those that ended are kept");
}

// Asks one reward for the texts whose value the ledger does not have, and saves each value as it
// comes: a kill or a fault does not cost those before it. Rewards elsewhere are asked on threads of
// their own.
void EngineRollouts::ask_reward(size_t part, const std::vector<Place>& places,
                                const std::function<bool()>& stop_requested) {
  std::vector<Place> missing;
  std::vector<rewards::JudgedText> texts;
  std::unique_lock<std::mutex> lock(ledger_mutex_);
  for (const Place& place : places) {
    if (ledger_.reward(place, part)) continue;
    const RecordedRollout& recorded = ledger_.texts().at(place);
    missing.push_back(place);
    texts.push_back(judged_text(parts_.problems.train[static_cast<size_t>(place.first)],
                                {.text = recorded.text,
                                 .tokens = recorded.rollout.text_tokens(),
                                 .is_truncated = recorded.rollout.is_truncated,
                                 .sample = place.second}));
  }
  lock.unlock();
  const auto start = std::chrono::steady_clock::now();
  try {
    rewards_.ask(part, texts, stop_requested, [&](size_t text, double value) {
      const std::lock_guard<std::mutex> adding(ledger_mutex_);
      ledger_.add_reward(missing[text], part, value);
    });
  } catch (const rewards::MisplacedNumbers&) {
    lock.lock();
    ledger_.forget_rewards(part);
    throw;
  }
  lock.lock();
  reward_seconds_[part] += seconds_since(start);
}

std::vector<DrawingOverlap::Part> EngineRollouts::parts_elsewhere() const {
  std::vector<DrawingOverlap::Part> parts;
  for (size_t part = 0; part < rewards_.size(); ++part)
    if (const rewards::Asking asking = rewards_.asking(part); asking.is_elsewhere)
      parts.push_back({part, asking.takes_lists});
  if (teacher_) parts.push_back({.number = rewards_.size()});
  return parts;
}

remote::TaughtText EngineRollouts::taught_text(const RolloutProblem& problem,
                                               const train::Rollout& rollout) const {
  return {.ids = rollout.ids,
          .first = rollout.prompt_tokens,
          .place = fmt::format("row {}, sample {}", problem.row_number, rollout.sample)};
}

void EngineRollouts::ask_teacher(const std::vector<Place>& places,
                                 const std::function<bool()>& stop_requested) {
  std::vector<Place> missing;
  std::vector<remote::TaughtText> texts;
  std::unique_lock<std::mutex> lock(ledger_mutex_);
  for (const Place& place : places) {
    if (ledger_.teacher(place) != nullptr) continue;
    missing.push_back(place);
    texts.push_back(taught_text(parts_.problems.train[static_cast<size_t>(place.first)],
                                ledger_.texts().at(place).rollout));
  }
  lock.unlock();
  teacher_->ask(texts, stop_requested, [&](size_t text, remote::TaughtTokens tokens) {
    const std::lock_guard<std::mutex> adding(ledger_mutex_);
    ledger_.add_teacher(missing[text], {std::move(tokens.ids), std::move(tokens.logprobs)});
  });
}

void EngineRollouts::ask_others(const std::vector<Place>& places, DrawingOverlap& overlap) {
  parts_.run.flight().set_phase(teacher_ ? "teacher" : "reward");
  bool stopped = false;
  try {
    for (size_t part = 0; part < rewards_.size(); ++part)
      if (!rewards_.asking(part).is_elsewhere)
        ask_reward(part, places, [this] { return stop_wanted(); });
    overlap.finish();
  } catch (const StopRequest&) {
    stopped = true;
  }
  parts_.group.wait_for_all();  // other programs may take longer than a collective waits
  for (const int64_t vote :
       comm::exchange_words(parts_.group, std::vector<int64_t>{stopped ? 1 : 0}))
    stopped = stopped || vote != 0;
  if (stopped)
    throw StopRequest("stopped while rewards or the teacher were asked; the texts are kept");
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
    problems[rollouts[at].problem] = {problem.row_number, problem.text, problem.asked};
  }
  ledger_.finish(turn.first_step + 1, key_, own, problems);
}

// As ask_teacher(), for texts that no ledger keeps.
void EngineRollouts::ask_teacher_of(std::vector<train::Rollout>& rollouts,
                                    const std::vector<RolloutProblem>& problems) {
  std::vector<remote::TaughtText> texts;
  for (const train::Rollout& rollout : rollouts)
    texts.push_back(taught_text(problems[static_cast<size_t>(rollout.problem)], rollout));
  teacher_->ask(
      texts, [this] { return stop_wanted(); },
      [&](size_t text, remote::TaughtTokens tokens) {
        rollouts[text].teacher = {std::move(tokens.ids), std::move(tokens.logprobs)};
      });
  parts_.group.wait_for_all();  // a server may take longer than a collective waits
}

std::optional<train::Evaluation> EngineRollouts::evaluate(
    comm::Group& group, const std::function<bool()>& stop_requested, const TextLosses& losses) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<RolloutProblem>& problems = parts_.problems.val;
  std::vector<generate::Request> requests;
  for (auto at = static_cast<size_t>(group.rank()); at < problems.size();
       at += static_cast<size_t>(group.size())) {
    requests.push_back(request_of(problems[at]));
    requests.back().number = static_cast<int64_t>(at);
  }
  std::map<int64_t, rewards::JudgedText> answered;
  std::map<int64_t, train::Rollout> rollouts;
  const bool complete =
      generate(std::move(requests), stop_requested, [&](const generate::Completion& ended) {
        const RolloutProblem& problem = problems[static_cast<size_t>(ended.number)];
        rollouts.emplace(ended.number, rollout_of(problem, {.problem = ended.number}, ended));
        answered.emplace(ended.number,
                         judged_text(problem, {.text = ended.text,
                                               .tokens = std::ssize(ended.token_ids),
                                               .is_truncated = ended.finish_reason ==
                                                               generate::FinishReason::Length}));
      });
  if (!complete) return std::nullopt;
  std::vector<rewards::JudgedText> texts;
  for (const auto& [problem, text] : answered) texts.push_back(text);
  const std::vector<std::vector<double>> values =
      rewards_.values(texts, [this] { return stop_wanted(); });
  std::vector<double> text_losses(texts.size());
  if (losses) {
    std::vector<train::Rollout> scored;
    for (auto& [problem, rollout] : rollouts) scored.push_back(std::move(rollout));
    if (teacher_) ask_teacher_of(scored, problems);
    text_losses = losses(scored);
  }
  std::vector<RewardedAnswer> own;
  for (const auto& [problem, text] : answered)
    own.push_back({.problem = problem,
                   .tokens = text.tokens,
                   .loss = text_losses[own.size()],
                   .rewards = values[own.size()]});
  train::Evaluation evaluation = rewarded_evaluation(own, std::ssize(problems), rewards_, group,
                                                     /*has_losses=*/losses != nullptr);
  evaluation.seconds = seconds_since(start);
  return evaluation;
}

}  // namespace convoy::recipes
