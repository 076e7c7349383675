// SPDX-License-Identifier: Apache-2.0
//
// `convoy score`, `generate` and `merge` inside the worker.
#include "convoy/apps/worker/worker_command.h"
#include "convoy/base/error.h"
#include "convoy/recipes/generate_text.h"
#include "convoy/recipes/merge_adapter.h"
#include "convoy/recipes/score.h"

namespace convoy::apps {
namespace {

void refuse_positionals(const Arguments& positionals) {
  if (!positionals.empty())
    throw ConfigError(fmt::format("unexpected argument `{}`", positionals[0]),
                      {.hint = "every value has a flag"});
}

}  // namespace

int score_command(const Arguments& arguments) {
  CommonFlags worker;
  settings::ModelFlags model;
  settings::ScoreFlags flags;
  settings::RankFlags ranks;
  refuse_positionals(config::parse_flags({config::list_fields(flags), config::list_fields(model),
                                          config::list_fields(ranks), config::list_fields(worker)},
                                         arguments));
  recipes::score(model, flags, ranks, worker.log());
  return 0;
}

int generate_command(const Arguments& arguments) {
  CommonFlags worker;
  settings::ModelFlags model;
  settings::GenerateFlags flags;
  settings::SamplingFlags sampling;
  settings::RankFlags ranks;
  refuse_positionals(config::parse_flags(
      {config::list_fields(flags), config::list_fields(model), config::list_fields(sampling),
       config::list_fields(ranks), config::list_fields(worker)},
      arguments));
  recipes::generate_text(model, flags, sampling, ranks, worker.json, worker.log());
  return 0;
}

int merge_command(const Arguments& arguments) {
  CommonFlags worker;
  settings::ModelSourceFlags model;
  settings::MergeFlags flags;
  settings::RankFlags ranks;
  refuse_positionals(config::parse_flags({config::list_fields(flags), config::list_fields(model),
                                          config::list_fields(ranks), config::list_fields(worker)},
                                         arguments));
  recipes::merge_adapter(model, flags, ranks, worker.log());
  return 0;
}

}  // namespace convoy::apps
