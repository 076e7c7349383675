// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/process/process_sampling.h"

namespace convoy::apps {
namespace {

bool is_given(const ProcessConfig& config, const std::string& path) {
  return config.resolved.value(path).origin != "default";
}

}  // namespace

std::string settle_process_sampling(ProcessConfig& config, const settings::ModelSampling& model) {
  settings::DrawSettings& draw = config.settings.generate;
  const settings::DrawSettings defaults;
  settings::SamplingFlags given;
  settings::SamplingSources sources{.model = model, .usual = {}};
  const auto for_each_value = [&](const auto& visit) {
    using Values = settings::SamplingValues;
    visit("temperature", draw.temperature, defaults.temperature, &Values::temperature);
    visit("top_p", draw.top_p, defaults.top_p, &Values::top_p);
    visit("top_k", draw.top_k, defaults.top_k, &Values::top_k);
    visit("min_p", draw.min_p, defaults.min_p, &Values::min_p);
    visit("repetition_penalty", draw.repetition_penalty, defaults.repetition_penalty,
          &Values::repetition_penalty);
    visit("max_tokens", draw.max_tokens, defaults.max_tokens, &Values::max_new_tokens);
  };
  for_each_value([&](const std::string& key, const auto& value, const auto& usual, auto member) {
    sources.usual.*member = usual;
    if (is_given(config, "generate." + key)) given.*member = value;
  });
  const settings::SamplingFlags settled = settings::settle_sampling(given, sources);
  for_each_value([&](const std::string& key, auto& value, const auto&, auto member) {
    if (!(given.*member).is_auto() || (model.values.*member).is_auto()) return;
    value = *(settled.*member).value;
    config.resolved.decided("generate." + key, model.file);
  });
  settings::ImproveSettings& improve = config.settings.improve;
  const auto follow = [&](const std::string& key, double& value, const auto& of_model) {
    if (of_model.is_auto() || is_given(config, "improve." + key)) return;
    value = *of_model.value;
    config.resolved.decided("improve." + key, model.file);
  };
  follow("temperature", improve.temperature, model.values.temperature);
  follow("top_p", improve.top_p, model.values.top_p);
  return config.settings.remote.is_used() ? settings::served_sampling_line(given, sources)
                                          : settings::sampling_line(given, sources);
}

}  // namespace convoy::apps
