// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/results/cell_result.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "convoy/core/base/text_as.h"

namespace convoy::sweep {
namespace {

constexpr double kNormalQuantile975 = 1.959963984540054;

}  // namespace

std::string cell_state_word(CellState state) {
  switch (state) {
    case CellState::Partial:
      return "partial";
    case CellState::Value:
      return "value";
    case CellState::Censored:
      return "censored";
    case CellState::Former:
      return "former";
    case CellState::Failed:
      break;
  }
  return "failed";
}

double CellResult::metric(size_t place) const {
  if (place == 0) return value;
  return place <= outcome.more.size() ? outcome.more[place - 1] : std::nan("");
}

double CellResult::standard_error() const {
  return planned_guesses > 0 && state == CellState::Value ? tally.standard_error() : std::nan("");
}

double CellResult::low() const { return value - kNormalQuantile975 * standard_error(); }

double CellResult::high() const { return value + kNormalQuantile975 * standard_error(); }

double CellResult::accepted_share() const {
  return tally.guesses > 0
             ? static_cast<double>(tally.accepted) / static_cast<double>(tally.guesses)
             : std::nan("");
}

double CellResult::share_bound() const {
  return tally.guesses > 0 ? 3.0 / static_cast<double>(tally.guesses) : std::nan("");
}

int64_t SweepResults::count(CellState state) const {
  return std::count_if(cells.begin(), cells.end(),
                       [&](const CellResult& cell) { return cell.state == state; });
}

std::map<CellState, int64_t> SweepResults::counts() const {
  std::array<int64_t, 5> counts{};
  for (const CellResult& cell : cells) ++counts[static_cast<size_t>(cell.state)];
  std::map<CellState, int64_t> by_state;
  for (size_t state = 0; state < counts.size(); ++state)
    by_state[static_cast<CellState>(state)] = counts[state];
  return by_state;
}

bool is_of_programs(const SweepResults& results) {
  return results.workload == "run" || results.workload.starts_with("function:");
}

std::string parameter_text(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::optional<double> number_in(const std::string& text) {
  const auto number = text_as<double>(text);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

std::optional<nlohmann::json> number_json(const std::string& text) {
  if (const auto whole = text_as<int64_t>(text)) return *whole;
  const std::optional<double> number = number_in(text);
  if (!number) return std::nullopt;
  if (std::trunc(*number) == *number && std::fabs(*number) < 9007199254740992.0)
    return static_cast<int64_t>(*number);
  return *number;
}

std::map<std::string, nlohmann::json> axes_of(const Cell& cell) {
  std::map<std::string, nlohmann::json> axes;
  const auto object = nlohmann::json::parse(cell.parameters.str(), nullptr, false);
  if (!object.is_object()) return axes;
  const bool of_command = object.contains("values") && object["values"].is_object();
  for (const auto& [name, value] : (of_command ? object["values"] : object).items()) {
    axes[name] = value;
    if (value.is_string())
      if (const auto number = number_json(value.get_ref<const std::string&>()))
        axes[name] = *number;
  }
  return axes;
}

const std::map<std::string, nlohmann::json>& AxesOfCells::of(const Cell& cell) {
  constexpr size_t kMost = 1 << 16;
  const auto found = known_.find(cell.parameters);
  if (found != known_.end()) return found->second;
  if (known_.size() >= kMost) known_.clear();
  return known_.emplace(cell.parameters, axes_of(cell)).first->second;
}

double number_parameter(const Cell& cell, const std::string& name) {
  const auto axes = axes_of(cell);
  const auto found = axes.find(name);
  return found != axes.end() && found->second.is_number() ? found->second.get<double>()
                                                          : std::nan("");
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return quantile_of_sorted(values, share);
}

double quantile_of_sorted(const std::vector<double>& values, double share) {
  if (values.empty()) return std::nan("");
  const double position = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (position - static_cast<double>(below)) * (values[above] - values[below]);
}

}  // namespace convoy::sweep
