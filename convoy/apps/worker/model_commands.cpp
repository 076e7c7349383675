// SPDX-License-Identifier: Apache-2.0
//
// `convoy eval --per-row`, `generate`, `serve` and `merge` inside the worker.
#include "convoy/apps/recipes/evaluate/score.h"
#include "convoy/apps/recipes/generate/generate_text.h"
#include "convoy/apps/recipes/model_files/merge_adapter.h"
#include "convoy/apps/recipes/serving/serve_model.h"
#include "convoy/apps/serving/front_link.h"
#include "convoy/apps/worker/stop_signals.h"
#include "convoy/apps/worker/worker_command.h"
#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"
#include "convoy/core/settings/worker_calls.h"

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
  settings::ScoreCall call;
  settings::RankFlags ranks;
  refuse_positionals(parse_call(call.lists(), ranks, worker, arguments));
  recipes::score(call.model, call.flags, ranks, worker.log());
  return 0;
}

int generate_command(const Arguments& arguments) {
  CommonFlags worker;
  recipes::GenerateRun run;
  refuse_positionals(parse_call(run.lists(), run.ranks, worker, arguments));
  run.json = worker.json;
  // Without a place for finished answers there is nothing to save.
  if (recipes::keeps_answers(run))
    run.stop_wanted = [&stop = handle_stop_signals()] { return stop.load(); };
  recipes::generate_text(run, worker.log());
  return 0;
}

int serve_command(const Arguments& arguments) {
  CommonFlags worker;
  recipes::ServeRun run;
  refuse_positionals(parse_call(run.lists(), run.ranks, worker, arguments));
  // The front passes its socket to this process as stdin.
  if (const auto number = environment_variable(serving::kEngineVariable))
    run.engine_number = std::atoll(number->c_str());
  recipes::serve_model(run, STDIN_FILENO, handle_stop_signals(), worker.log());
  return 0;
}

int merge_command(const Arguments& arguments) {
  CommonFlags worker;
  settings::MergeCall call;
  settings::RankFlags ranks;
  refuse_positionals(parse_call(call.lists(), ranks, worker, arguments));
  recipes::merge_adapter(call.model, call.flags, ranks, worker.log());
  return 0;
}

}  // namespace convoy::apps
