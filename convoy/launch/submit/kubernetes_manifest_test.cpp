// SPDX-License-Identifier: Apache-2.0
//
// Reads the manifest with a YAML parser; tests/kubernetes compares it with the published schemas.
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <cstdlib>

#include "convoy/core/base/error.h"
#include "convoy/launch/submit/job_text.h"

namespace convoy::launch {
namespace {

SubmitSettings kubernetes_settings() {
  SubmitSettings settings;
  settings.engine = "kubernetes";
  settings.name = "demo";
  settings.image = "registry/convoy:1";
  settings.nodes = 2;
  return settings;
}

struct Manifest {
  explicit Manifest(const SubmitSettings& settings,
                    const std::vector<std::string>& command = {"convoy", "train", "run.yaml"}) {
    const std::vector<YAML::Node> parts =
        YAML::LoadAll(kubernetes_manifest(settings, command, "secret-token"));
    EXPECT_EQ(parts.size(), 3u);
    secret = parts.at(0);
    service = parts.at(1);
    job = parts.at(2);
  }
  YAML::Node pod() const { return job["spec"]["template"]["spec"]; }
  YAML::Node container() const { return pod()["containers"][0]; }
  YAML::Node variable(const std::string& name) const {
    for (const YAML::Node& one : container()["env"])
      if (one["name"].as<std::string>() == name) return one;
    return YAML::Node();
  }

  YAML::Node secret, service, job;
};

TEST(KubernetesManifest, IsAnIndexedJobBehindAHeadlessService) {
  const Manifest manifest(kubernetes_settings());
  EXPECT_EQ(manifest.job["kind"].as<std::string>(), "Job");
  EXPECT_EQ(manifest.job["spec"]["completionMode"].as<std::string>(), "Indexed");
  EXPECT_EQ(manifest.job["spec"]["completions"].as<int>(), 2);
  EXPECT_EQ(manifest.job["spec"]["parallelism"].as<int>(), 2);
  EXPECT_EQ(manifest.service["spec"]["clusterIP"].as<std::string>(), "None");
  EXPECT_TRUE(manifest.service["spec"]["publishNotReadyAddresses"].as<bool>());
  EXPECT_EQ(manifest.pod()["subdomain"].as<std::string>(),
            manifest.service["metadata"]["name"].as<std::string>());
  const YAML::Node labels = manifest.job["spec"]["template"]["metadata"]["labels"];
  for (const auto& part : manifest.service["spec"]["selector"])
    EXPECT_EQ(labels[part.first.as<std::string>()].as<std::string>(),
              part.second.as<std::string>());
  EXPECT_EQ(manifest.pod()["restartPolicy"].as<std::string>(), "Never");
}

TEST(KubernetesManifest, PodsKnowTheirPlaceByTorchrunsVariables) {
  SubmitSettings settings = kubernetes_settings();
  settings.nproc_per_node = "gpu";
  const Manifest manifest(settings);
  EXPECT_EQ(manifest.variable("PET_NNODES")["value"].as<std::string>(), "2");
  EXPECT_EQ(manifest.variable("PET_NNODES")["value"].Tag(), "!") << "a number would be refused";
  EXPECT_EQ(manifest.variable("PET_NPROC_PER_NODE")["value"].as<std::string>(), "gpu");
  EXPECT_EQ(manifest.variable("PET_MASTER_ADDR")["value"].as<std::string>(), "demo-0.demo");
  EXPECT_EQ(manifest.variable("PET_MASTER_PORT")["value"].as<std::string>(), "29400");
  EXPECT_EQ(
      manifest.variable("PET_NODE_RANK")["valueFrom"]["fieldRef"]["fieldPath"].as<std::string>(),
      "metadata.annotations['batch.kubernetes.io/job-completion-index']");
}

TEST(KubernetesManifest, SecretsStandInTheSecretAlone) {
  ::setenv("SUBMIT_TEST_SECRET", "s3cr3t \"value\"", 1);
  SubmitSettings settings = kubernetes_settings();
  settings.env.names = {"SUBMIT_TEST_SECRET", "PLAIN=$(HOME) costs $5"};
  const Manifest manifest(settings);
  EXPECT_EQ(manifest.secret["stringData"]["job-token"].as<std::string>(), "secret-token");
  EXPECT_EQ(manifest.secret["stringData"]["SUBMIT_TEST_SECRET"].as<std::string>(),
            "s3cr3t \"value\"");
  for (const std::string name : {"CONVOY_JOB_TOKEN", "SUBMIT_TEST_SECRET"}) {
    const YAML::Node key = manifest.variable(name)["valueFrom"]["secretKeyRef"];
    EXPECT_EQ(key["name"].as<std::string>(), "demo");
    EXPECT_TRUE(manifest.secret["stringData"][key["key"].as<std::string>()]);
  }
  EXPECT_EQ(YAML::Dump(manifest.job).find("s3cr3t"), std::string::npos);
  EXPECT_EQ(manifest.variable("PLAIN")["value"].as<std::string>(), "$$(HOME) costs $$5")
      << "the kubelet halves dollars";
  ::unsetenv("SUBMIT_TEST_SECRET");
  EXPECT_THROW(Manifest{settings}, ConfigError);
}

TEST(KubernetesManifest, ArgumentsArriveAsTheyWere) {
  const std::vector<std::string> command = {
      "prog", "yes", "3", "a: b", "- c", "it's \"x\"\n", "", "\xe6\xbc\xa2", "# d", "$(PATH)"};
  const Manifest manifest(kubernetes_settings(), command);
  std::vector<std::string> wanted = command;
  wanted.back() = "$$(PATH)";
  EXPECT_EQ(manifest.container()["command"].as<std::vector<std::string>>(), wanted);
}

TEST(KubernetesManifest, ResourcesVolumesAndTimes) {
  SubmitSettings settings = kubernetes_settings();
  settings.gpus_per_node = 8;
  settings.cpus_per_task = 32;
  settings.mem = "64G";
  settings.time = "1:00:00";
  settings.signal_before = 120;
  settings.volume.names = {"datasets:/data", "runs:/runs"};
  const Manifest manifest(settings);
  const YAML::Node limits = manifest.container()["resources"]["limits"];
  EXPECT_EQ(limits["nvidia.com/gpu"].as<std::string>(), "8");
  EXPECT_EQ(limits["cpu"].as<std::string>(), "32");
  EXPECT_EQ(limits["memory"].as<std::string>(), "64Gi");
  EXPECT_EQ(manifest.job["spec"]["activeDeadlineSeconds"].as<int>(), 3600 - 120);
  EXPECT_EQ(manifest.pod()["terminationGracePeriodSeconds"].as<int>(), 120);
  ASSERT_EQ(manifest.pod()["volumes"].size(), 3u);
  EXPECT_EQ(manifest.pod()["volumes"][0]["emptyDir"]["medium"].as<std::string>(), "Memory");
  EXPECT_EQ(manifest.container()["volumeMounts"][0]["mountPath"].as<std::string>(), "/dev/shm");
  EXPECT_EQ(manifest.pod()["volumes"][2]["persistentVolumeClaim"]["claimName"].as<std::string>(),
            "runs");
  EXPECT_EQ(manifest.container()["volumeMounts"][2]["mountPath"].as<std::string>(), "/runs");
}

std::string action_for(const Manifest& manifest, int code) {
  for (const YAML::Node& rule : manifest.job["spec"]["podFailurePolicy"]["rules"]) {
    if (!rule["onExitCodes"]) continue;
    for (const YAML::Node& value : rule["onExitCodes"]["values"])
      if (value.as<int>() == code) return rule["action"].as<std::string>();
  }
  return "Count";
}

TEST(KubernetesManifest, ExitCodesDecideWhetherAPodStartsAgain) {
  SubmitSettings settings = kubernetes_settings();
  const Manifest manifest(settings);
  for (const int code : {75, 13, 1, 14, 137})
    EXPECT_EQ(action_for(manifest, code), "Count") << code;
  for (const int code : {2, 10, 11, 15, 16, 70})
    EXPECT_EQ(action_for(manifest, code), "FailJob") << code;
  EXPECT_EQ(manifest.job["spec"]["podFailurePolicy"]["rules"][0]["action"].as<std::string>(),
            "Ignore");
  EXPECT_EQ(manifest.job["spec"]["backoffLimit"].as<int>(), 6) << "3 starts of 2 pods";
  settings.no_requeue = true;
  EXPECT_EQ(Manifest(settings).job["spec"]["backoffLimit"].as<int>(), 0);
}

}  // namespace
}  // namespace convoy::launch
