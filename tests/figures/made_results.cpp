// SPDX-License-Identifier: Apache-2.0
#include "figures/made_results.h"

namespace convoy::testing {

using nlohmann::json;
using sweep::CellResult;
using sweep::CellState;
using sweep::SweepResults;

namespace {

CellResult made_cell(const Recipe& recipe, const CellPlace& at, size_t group) {
  json parameters = {{"workload_detail", "x"}};
  if (!recipe.axis.empty()) parameters[recipe.axis] = recipe.values[at.place];
  if (recipe.groups > 1) parameters["teacher_rank"] = group;
  if (at.guesses) parameters["gnc_eps_train"] = 0.0035;
  CellResult cell;
  cell.cell = {.method = at.guesses ? "gnc" : "gd",
               .seed = static_cast<int64_t>(at.seed),
               .parameters = parameters.dump()};
  cell.state = recipe.state(at);
  cell.seconds = 1.5;
  if (cell.state == CellState::Value) cell.value = recipe.value(at);
  if (at.guesses) {
    cell.planned_guesses = 1'000'000;
    cell.tally.guesses = cell.state == CellState::Partial ? 10 : 1'000'000;
    cell.tally.accepted =
        cell.state == CellState::Value ? static_cast<int64_t>(10 * (at.place + 1) + at.seed) : 0;
    cell.reference.prior_mean = recipe.theory;
    cell.reference.curve = 0.9 * recipe.theory * static_cast<double>(group + 1);
  } else {
    cell.outcome.train_loss = 1e-9;
  }
  if (cell.state == CellState::Failed)
    cell.failure = std::make_shared<jobs::Failure>(jobs::Failure{.kind = "crash"});
  return cell;
}

}  // namespace

SweepResults made(const Recipe& recipe) {
  SweepResults results{
      .workload = recipe.workload, .version = "1", .axes = {"width", "depth"}, .cells = {}};
  const size_t places = recipe.axis.empty() ? 1 : recipe.values.size();
  size_t line = 0;
  for (const bool guesses : {true, false})
    for (size_t group = 0; group < recipe.groups; ++group, ++line)
      for (size_t place = 0; place < places; ++place)
        for (size_t seed = 0; seed < recipe.seeds; ++seed)
          if (guesses || recipe.descents)
            results.cells.push_back(made_cell(recipe, {line, place, seed, guesses}, group));
  return results;
}

}  // namespace convoy::testing
