// SPDX-License-Identifier: Apache-2.0
//
// Messages are HParamsPluginData and its parts (tensorboard/plugins/hparams/plugin_data.proto,
// api.proto), and google.protobuf.Value; field numbers stand beside each use.
#include "convoy/core/telemetry/logs/hparams.h"

#include "convoy/core/base/protobuf_fields.h"
#include "convoy/core/base/wall_clock.h"

namespace convoy::telemetry {
namespace {

constexpr const char* kPlugin = "hparams";
enum DataType : int64_t { kText = 1, kBool = 2, kNumber = 3 };
enum Status : int64_t { kSuccess = 1, kFailure = 2 };

// Value{number_value=2, string_value=3, bool_value=4}.
std::string value_message(const HparamValue& value) {
  std::string message;
  if (const auto* truth = std::get_if<bool>(&value)) put_integer(message, 4, *truth ? 1 : 0);
  if (const auto* number = std::get_if<double>(&value)) put_double(message, 2, *number);
  if (const auto* text = std::get_if<std::string>(&value)) put_bytes(message, 3, *text);
  return message;
}

DataType type_of(const HparamValue& value) {
  if (std::holds_alternative<bool>(value)) return kBool;
  return std::holds_alternative<double>(value) ? kNumber : kText;
}

// HParamInfo{name=1, type=4, domain_discrete=5 ListValue{values=1}}.
std::string parameter_message(const HparamsExperiment::Parameter& parameter) {
  std::string message;
  put_bytes(message, 1, parameter.name);
  put_integer(message, 4, type_of(parameter.values.empty() ? parameter.kind : parameter.values[0]));
  if (parameter.values.empty()) return message;
  std::string list;
  for (const HparamValue& value : parameter.values) put_bytes(list, 1, value_message(value));
  put_bytes(message, 5, list);
  return message;
}

// MetricInfo{name=1 MetricName{tag=2}}.
std::string metric_message(const std::string& tag) {
  std::string name;
  put_bytes(name, 2, tag);
  std::string message;
  put_bytes(message, 1, name);
  return message;
}

// HParamsPluginData{version=1: 0, `field`}.
void add_plugin_message(EventWriter& writer, const char* tag, uint64_t field,
                        const std::string& message, double seconds) {
  std::string data;
  put_bytes(data, field, message);
  writer.add_plugin_data(tag, kPlugin, data, seconds);
}

}  // namespace

// Experiment=2{description=1, time_created_secs=3, hparam_infos=4, metric_infos=5}.
void add_experiment(EventWriter& writer, const HparamsExperiment& experiment) {
  const double now = wall_clock_seconds();
  std::string message;
  if (!experiment.description.empty()) put_bytes(message, 1, experiment.description);
  put_double(message, 3, now);
  for (const HparamsExperiment::Parameter& parameter : experiment.parameters)
    put_bytes(message, 4, parameter_message(parameter));
  for (const std::string& tag : experiment.metric_tags) put_bytes(message, 5, metric_message(tag));
  add_plugin_message(writer, "_hparams_/experiment", 2, message, now);
}

// SessionStartInfo=3{hparams=1 map{key=1, value=2}, group_name=4, start_time_secs=5}.
void add_session(EventWriter& writer, const HparamsSession& session) {
  const double begin = session.begin_seconds < 0 ? wall_clock_seconds() : session.begin_seconds;
  std::string message;
  for (const auto& [name, value] : session.values) {
    std::string entry;
    put_bytes(entry, 1, name);
    put_bytes(entry, 2, value_message(value));
    put_bytes(message, 1, entry);
  }
  if (!session.group.empty()) put_bytes(message, 4, session.group);
  put_double(message, 5, begin);
  add_plugin_message(writer, "_hparams_/session_start_info", 3, message, begin);
}

// SessionEndInfo=4{status=1, end_time_secs=2}.
void add_session_end(EventWriter& writer, bool succeeded, double end_seconds) {
  const double end = end_seconds < 0 ? wall_clock_seconds() : end_seconds;
  std::string message;
  put_integer(message, 1, succeeded ? kSuccess : kFailure);
  put_double(message, 2, end);
  add_plugin_message(writer, "_hparams_/session_end_info", 4, message, end);
}

}  // namespace convoy::telemetry
