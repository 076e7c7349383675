// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/telemetry/logs/trainer_state.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "convoy/core/base/error.h"

namespace convoy::telemetry {
namespace {

using nlohmann::json;

// repr(float) of Python: shortest digits, fixed notation while the point lies in (-4, 16], else an
// exponent of at least two digits.
std::string python_float(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  std::array<char, 40> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::scientific)
                       .ptr;
  const std::string text(buffer.data(), end);
  const size_t mark = text.find('e');
  const bool negative = text.front() == '-';
  std::string digits = text.substr(negative, mark - negative);
  if (digits.size() > 1) digits.erase(1, 1);  // the point after the first digit
  const int exponent = std::atoi(text.c_str() + mark + 1);
  std::string body;
  if (exponent < -4 || exponent >= 16) {
    body = digits.substr(0, 1);
    if (digits.size() > 1) body += "." + digits.substr(1);
    body += fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  } else if (exponent < 0) {
    body = "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  } else {
    const auto point = static_cast<size_t>(exponent) + 1;
    if (digits.size() < point) digits.append(point - digits.size(), '0');
    body = digits.substr(0, point) + "." + (digits.size() > point ? digits.substr(point) : "0");
  }
  return negative ? "-" + body : body;
}

void put_value(std::string& out, const json& value, int depth);

template <class Items, class PutItem>
void put_items(std::string& out, const Items& items, const char* brackets, int depth,
               PutItem put_item) {
  if (items.empty()) {
    out.append(brackets, 2);
    return;
  }
  const std::string indent(static_cast<size_t>(2 * depth + 2), ' ');
  out += brackets[0];
  const char* separator = "\n";
  for (const auto& item : items) {
    out += separator + indent;
    put_item(item);
    separator = ",\n";
  }
  out += "\n" + std::string(static_cast<size_t>(2 * depth), ' ') + brackets[1];
}

void put_string(std::string& out, const std::string& text) {
  out += json(text).dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
}

void put_value(std::string& out, const json& value, int depth) {
  if (value.is_object()) {
    put_items(out, value.get_ref<const json::object_t&>(), "{}", depth, [&](const auto& item) {
      put_string(out, item.first);
      out += ": ";
      put_value(out, item.second, depth + 1);
    });
  } else if (value.is_array()) {
    put_items(out, value.get_ref<const json::array_t&>(), "[]", depth,
              [&](const json& item) { put_value(out, item, depth + 1); });
  } else if (value.is_number_float()) {
    out += python_float(value.get<double>());
  } else if (value.is_string()) {
    put_string(out, value.get_ref<const std::string&>());
  } else {
    out += value.dump();
  }
}

template <class T>
json value_or_null(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

template <class T>
void take(const json& object, const char* key, T& value) {
  const auto found = object.find(key);
  if (found != object.end() && !found->is_null()) value = found->get<T>();
}

template <class T>
void take(const json& object, const char* key, std::optional<T>& value) {
  const auto found = object.find(key);
  if (found != object.end() && !found->is_null()) value = found->get<T>();
}

}  // namespace

std::string python_json(const json& value) {
  std::string out;
  put_value(out, value, 0);
  return out;
}

std::string trainer_state_json(const TrainerState& state) {
  // Whole numbers stay integers where the Hugging Face trainer keeps an int, and floats where it
  // keeps a float.
  const json fields = {{"best_global_step", value_or_null(state.best_global_step)},
                       {"best_metric", value_or_null(state.best_metric)},
                       {"best_model_checkpoint", value_or_null(state.best_model_checkpoint)},
                       {"epoch", state.epoch},
                       {"eval_steps", state.eval_steps},
                       {"global_step", state.global_step},
                       {"is_hyper_param_search", false},
                       {"is_local_process_zero", true},
                       {"is_world_process_zero", true},
                       {"log_history", state.log_history},
                       {"logging_steps", state.logging_steps},
                       {"max_steps", state.max_steps},
                       {"num_input_tokens_seen", state.num_input_tokens_seen},
                       {"num_train_epochs", state.num_train_epochs},
                       {"save_steps", state.save_steps},
                       {"stateful_callbacks", json::object()},
                       {"total_flos", state.total_flos},
                       {"train_batch_size", nullptr},
                       {"trial_name", nullptr},
                       {"trial_params", nullptr}};
  return python_json(fields) + "\n";
}

TrainerState parse_trainer_state(std::string_view text) {
  TrainerState state;
  try {
    const json fields = json::parse(text);
    take(fields, "best_global_step", state.best_global_step);
    take(fields, "best_metric", state.best_metric);
    take(fields, "best_model_checkpoint", state.best_model_checkpoint);
    take(fields, "epoch", state.epoch);
    take(fields, "eval_steps", state.eval_steps);
    take(fields, "global_step", state.global_step);
    take(fields, "log_history", state.log_history);
    take(fields, "logging_steps", state.logging_steps);
    take(fields, "max_steps", state.max_steps);
    take(fields, "num_input_tokens_seen", state.num_input_tokens_seen);
    take(fields, "num_train_epochs", state.num_train_epochs);
    take(fields, "save_steps", state.save_steps);
    take(fields, "total_flos", state.total_flos);
  } catch (const json::exception& error) {
    throw CheckpointError(fmt::format("wanted a trainer_state.json, found: {}", error.what()),
                          {.hint = "the file is damaged: resume from another checkpoint"});
  }
  if (!state.log_history.is_array())
    throw CheckpointError("wanted a list as log_history in trainer_state.json",
                          {.hint = "the file is damaged: resume from another checkpoint"});
  return state;
}

}  // namespace convoy::telemetry
