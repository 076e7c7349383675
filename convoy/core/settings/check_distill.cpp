// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/check_distill.h"

#include <fmt/format.h>

#include "convoy/core/settings/check_policy.h"

namespace convoy::settings {

void check_distill(const TrainSettings& settings, const config::Resolved& resolved,
                   config::ErrorList& errors) {
  check_rollouts(settings, resolved, errors);
  const DistillSettings& distill = settings.distill;
  const auto refuse = [&](const std::string& key, const std::string& reason,
                          const std::string& hint) {
    errors.add(ConfigError(fmt::format("{}: task {}: {}", key, settings.task, reason),
                           resolved.location(key, hint)));
  };
  if (distill.teacher.empty())
    refuse("distill.teacher", "no teacher is named",
           distill.is_served()
               ? "distill.teacher=NAME, as the server calls it"
               : "distill.teacher=FOLDER, a model of the same tokens that is better at the task");
  if (distill.is_served()) {
    if (distill.top_k == 0)
      refuse("distill.top_k", "a server gives its likeliest tokens, not the whole vocabulary",
             "distill.top_k=20, the most that `convoy serve` and vLLM's default give");
    if (distill.temperature != 1)
      refuse("distill.temperature",
             fmt::format("a server gives probabilities at temperature 1, found {:g}",
                         distill.temperature),
             "remove it, or name the teacher's folder instead of distill.engine");
  } else if (distill.engine_timeout != DistillSettings().engine_timeout) {
    refuse("distill.engine_timeout", "no server is asked", "name it: distill.engine, or remove it");
  }
  const bool mixes = distill.divergence == kJensenShannon;
  if (mixes && distill.beta >= 1)
    refuse("distill.beta", fmt::format("wanted above 0 and below 1, found {:g}", distill.beta),
           "0.5, or distill.divergence: reverse_kl");
  if (!mixes && distill.beta != DistillSettings().beta)
    refuse("distill.beta", fmt::format("divergence {} has no mixture", distill.divergence),
           "remove it, or write distill.divergence: js");
}

}  // namespace convoy::settings
