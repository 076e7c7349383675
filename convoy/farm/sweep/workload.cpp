// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/workload.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"

namespace convoy::sweep {
namespace {

constexpr double kUnitsPerOne = 1099511627776.0;  // = 2^40
constexpr double kLargest = 1099511627776.0;

std::string decimal(__int128 number) {
  if (number == 0) return "0";
  const bool negative = number < 0;
  std::string digits;
  // The most negative number has no positive counterpart, so its digits are computed one by one.
  for (; number != 0; number /= 10) {
    const int digit = static_cast<int>(number % 10);
    digits += static_cast<char>('0' + (digit < 0 ? -digit : digit));
  }
  if (negative) digits += '-';
  std::reverse(digits.begin(), digits.end());
  return digits;
}

}  // namespace

void FixedSum::add(double value) {
  units_ +=
      static_cast<__int128>(std::nearbyint(std::clamp(value, -kLargest, kLargest) * kUnitsPerOne));
}

double FixedSum::value() const { return static_cast<double>(units_) / kUnitsPerOne; }

std::string FixedSum::text() const { return decimal(units_); }

FixedSum FixedSum::parse(const std::string& text) {
  FixedSum sum;
  const bool negative = text.starts_with('-');
  const size_t first = negative ? 1 : 0;
  if (text.size() <= first || text.size() - first > 38)
    throw DataError(fmt::format("wanted a whole number, found `{}`", text),
                    {.hint = "`convoy sweep recover --store STORE` saves the readable results"});
  for (size_t at = first; at < text.size(); ++at) {
    if (text[at] < '0' || text[at] > '9')
      throw DataError(fmt::format("wanted a whole number, found `{}`", text),
                      {.hint = "`convoy sweep recover --store STORE` saves the readable results"});
    sum.units_ = sum.units_ * 10 + (negative ? -(text[at] - '0') : text[at] - '0');
  }
  return sum;
}

void Tally::accept(double value) {
  ++accepted;
  if (!(value < kLargest)) {
    ++non_finite;
    return;
  }
  loss.add(value);
  loss_squared.add(value * value);
}

void Tally::merge(const Tally& other) {
  guesses += other.guesses;
  accepted += other.accepted;
  non_finite += other.non_finite;
  loss.add(other.loss);
  loss_squared.add(other.loss_squared);
}

double Tally::mean() const {
  const int64_t finite = accepted - non_finite;
  return finite > 0 ? loss.value() / static_cast<double>(finite) : std::nan("");
}

double Tally::standard_error() const {
  const auto finite = static_cast<double>(accepted - non_finite);
  if (finite < 2) return std::nan("");
  const double variance = loss_squared.value() / finite - mean() * mean();
  return std::sqrt(std::max(0.0, variance) / (finite - 1));
}

std::string Tally::json() const {
  nlohmann::ordered_json object;
  object["guesses"] = guesses;
  object["accepted"] = accepted;
  object["non_finite"] = non_finite;
  object["loss"] = loss.text();
  object["loss_squared"] = loss_squared.text();
  return object.dump();
}

Tally Tally::parse(const std::string& json) {
  const auto object = nlohmann::json::parse(json, nullptr, false);
  if (!object.is_object())
    throw DataError(fmt::format("wanted a tally, found `{}`", json.substr(0, 80)),
                    {.hint = "`convoy sweep recover --store STORE` saves the readable results"});
  try {
    Tally tally;
    object.at("guesses").get_to(tally.guesses);
    object.at("accepted").get_to(tally.accepted);
    object.at("non_finite").get_to(tally.non_finite);
    tally.loss = FixedSum::parse(object.at("loss").get<std::string>());
    tally.loss_squared = FixedSum::parse(object.at("loss_squared").get<std::string>());
    return tally;
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("a damaged tally: {}", error.what()),
                    {.hint = "`convoy sweep recover --store STORE` saves the readable results"});
  }
}

std::string Pruned::text() const {
  return fmt::format("at step {} it had {:.5g}, the median of the others is {:.5g}", step, value,
                     median);
}

const SharedText& no_parameters() {
  static const SharedText none("{}");
  return none;
}

}  // namespace convoy::sweep
