// SPDX-License-Identifier: Apache-2.0
//
// One pod is one node of the job. Pods of an Indexed Job have stable names behind a headless
// service, so the first one is reached as NAME-0.NAME. The kubelet replaces $(X) in commands and
// variables; a doubled dollar is one.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"
#include "convoy/launch/submit/job_text.h"
#include "convoy/launch/submit/quoting.h"

namespace convoy::launch {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMeetingPort = 29400;          // torchrun's c10d port
constexpr int64_t kKeptAfterEnd_s = 7 * 86'400;  // logs of pods can be read that long
constexpr int64_t kShortestGrace_s = 30;         // Kubernetes' default
constexpr std::string_view kTokenKey = "job-token";

std::string literal(const std::string& text) {
  std::string doubled;
  for (const char letter : text) doubled += letter == '$' ? "$$" : std::string(1, letter);
  return doubled;
}

Json metadata(const SubmitSettings& settings) {
  Json data = {{"name", settings.name}};
  if (!settings.name_space.empty()) data["namespace"] = settings.name_space;
  data["labels"] = {{"app.kubernetes.io/name", "convoy"},
                    {"app.kubernetes.io/instance", settings.name}};
  return data;
}

// Holds the token, and the variables whose values come from the submitter's environment, which are
// often secrets too.
Json secret(const SubmitSettings& settings, const std::string& token) {
  Json values = {{kTokenKey, token}};
  for (const TravellingVariable& variable : travelling_variables(settings)) {
    if (variable.has_value) continue;
    const auto value = environment_variable(variable.name);
    if (!value)
      throw ConfigError(fmt::format("--env names {}, which is not set here", variable.name),
                        {.key = "env", .hint = "set it, or give NAME=VALUE"});
    values[variable.name] = *value;
  }
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata", metadata(settings)},
          {"type", "Opaque"},
          {"stringData", values}};
}

Json service(const SubmitSettings& settings) {
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", metadata(settings)},
          {"spec",
           {{"clusterIP", "None"},
            // Launchers look for the first pod before any pod is ready.
            {"publishNotReadyAddresses", true},
            {"selector", {{"app.kubernetes.io/instance", settings.name}}}}}};
}

Json variable(const std::string& name, const std::string& value) {
  return {{"name", name}, {"value", literal(value)}};
}

Json secret_variable(const SubmitSettings& settings, const std::string& name,
                     std::string_view key) {
  return {{"name", name},
          {"valueFrom", {{"secretKeyRef", {{"name", settings.name}, {"key", key}}}}}};
}

Json variables(const SubmitSettings& settings) {
  Json list = Json::array();
  list.push_back(variable("PET_NNODES", std::to_string(settings.nodes)));
  list.push_back(variable("PET_NPROC_PER_NODE", settings.nproc_per_node));
  Json index = {
      {"name", "PET_NODE_RANK"},
      {"valueFrom",
       {{"fieldRef",
         {{"fieldPath", "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}}}}};
  list.push_back(std::move(index));
  if (settings.nodes > 1) {
    list.push_back(variable("PET_MASTER_ADDR", fmt::format("{0}-0.{0}", settings.name)));
    list.push_back(
        variable("PET_MASTER_PORT", std::to_string(settings.port.value.value_or(kMeetingPort))));
  }
  list.push_back(secret_variable(settings, "CONVOY_JOB_TOKEN", kTokenKey));
  for (const TravellingVariable& own : travelling_variables(settings))
    list.push_back(own.has_value ? variable(own.name, own.value)
                                 : secret_variable(settings, own.name, own.name));
  return list;
}

Json limits(const SubmitSettings& settings) {
  Json list = Json::object();
  if (settings.cpus_per_task > 0) list["cpu"] = std::to_string(settings.cpus_per_task);
  if (!settings.mem.empty()) {
    const bool has_unit = std::isdigit(static_cast<unsigned char>(settings.mem.back())) == 0;
    list["memory"] = settings.mem + (has_unit ? "i" : "Mi");
  }
  if (settings.gpus_per_node > 0) list["nvidia.com/gpu"] = std::to_string(settings.gpus_per_node);
  return list;
}

Json container(const SubmitSettings& settings, const std::vector<std::string>& command) {
  Json words = Json::array();
  for (const std::string& word : command) words.push_back(literal(word));
  // Frameworks pass tensors between processes in /dev/shm; the default is 64 MB.
  Json mounts = Json::array({{{"name", "shared-memory"}, {"mountPath", "/dev/shm"}}});
  const std::vector<ClaimedVolume> claims = claimed_volumes(settings);
  for (size_t at = 0; at < claims.size(); ++at)
    mounts.push_back({{"name", fmt::format("volume-{}", at)}, {"mountPath", claims[at].path}});
  Json node = {{"name", "node"}, {"image", settings.image}, {"command", words}};
  node["env"] = variables(settings);
  const Json bounds = limits(settings);
  if (!bounds.empty()) node["resources"] = {{"requests", bounds}, {"limits", bounds}};
  node["volumeMounts"] = mounts;
  return node;
}

Json volumes(const SubmitSettings& settings) {
  Json list = Json::array({{{"name", "shared-memory"}, {"emptyDir", {{"medium", "Memory"}}}}});
  const std::vector<ClaimedVolume> claims = claimed_volumes(settings);
  for (size_t at = 0; at < claims.size(); ++at)
    list.push_back({{"name", fmt::format("volume-{}", at)},
                    {"persistentVolumeClaim", {{"claimName", claims[at].claim}}}});
  return list;
}

// The first rule that fits counts. A pod that the cluster removes costs no restart. The exit codes
// 75 and 13, and codes without a rule, count against backoffLimit. Exit codes of errors that a
// restart cannot mend fail the job at once.
Json failure_policy() {
  Json taken_away = {
      {"action", "Ignore"},
      {"onPodConditions", Json::array({{{"type", "DisruptionTarget"}, {"status", "True"}}})}};
  Json again = {
      {"action", "Count"},
      {"onExitCodes", {{"containerName", "node"}, {"operator", "In"}, {"values", {13, 75}}}}};
  Json hopeless = {
      {"action", "FailJob"},
      {"onExitCodes",
       {{"containerName", "node"}, {"operator", "In"}, {"values", {2, 10, 11, 15, 16, 70}}}}};
  return {{"rules", Json::array({taken_away, again, hopeless})}};
}

Json job(const SubmitSettings& settings, const std::vector<std::string>& command) {
  Json pod = {{"subdomain", settings.name},
              {"restartPolicy", "Never"},
              {"terminationGracePeriodSeconds",
               std::max(signal_before_seconds(settings), kShortestGrace_s)},
              {"automountServiceAccountToken", false},
              {"enableServiceLinks", false}};
  pod["containers"] = Json::array({container(settings, command)});
  pod["volumes"] = volumes(settings);
  Json spec = {{"completionMode", "Indexed"},
               {"completions", settings.nodes},
               {"parallelism", settings.nodes},
               // backoffLimit counts pods, and a stop of the job ends all of its pods.
               {"backoffLimit", max_requeues(settings) * settings.nodes}};
  if (!settings.time.empty())
    spec["activeDeadlineSeconds"] =
        time_limit_seconds(settings.time) - signal_before_seconds(settings);
  spec["ttlSecondsAfterFinished"] = kKeptAfterEnd_s;
  spec["podFailurePolicy"] = failure_policy();
  spec["template"] = {
      {"metadata",
       {{"labels",
         {{"app.kubernetes.io/name", "convoy"}, {"app.kubernetes.io/instance", settings.name}}}}},
      {"spec", pod}};
  return {{"apiVersion", "batch/v1"},
          {"kind", "Job"},
          {"metadata", metadata(settings)},
          {"spec", spec}};
}

}  // namespace

std::string kubernetes_manifest(const SubmitSettings& settings,
                                const std::vector<std::string>& command, const std::string& token) {
  return "# Written by `convoy submit`; for kubectl. The Secret below is one: keep this text "
         "private.\n" +
         yaml_text(secret(settings, token)) + "---\n" + yaml_text(service(settings)) + "---\n" +
         yaml_text(job(settings, command));
}

}  // namespace convoy::launch
