// SPDX-License-Identifier: Apache-2.0
//
// docs/reference/environment.md names every variable that the resolver reads, and no variable of
// these launchers that it does not read.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "convoy/core/base/files.h"
#include "convoy/launch/place/environment_resolver.h"

namespace convoy::launch {
namespace {

// Everything in backquotes that looks like a variable.
std::set<std::string> variables_in(const std::string& text) {
  std::set<std::string> names;
  std::string name;
  for (size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    const bool part = (letter >= 'A' && letter <= 'Z') || (letter >= 'a' && letter <= 'z') ||
                      (letter >= '0' && letter <= '9') || letter == '_';
    if (part) {
      name += letter;
      continue;
    }
    if (name.size() > 3 && (name.find('_') != std::string::npos || name == "RANK") &&
        name[0] >= 'A' && name[0] <= 'Z')
      names.insert(name);
    name.clear();
  }
  return names;
}

TEST(EnvironmentPage, NamesWhatIsReadAndNothingElse) {
  const char* const source = std::getenv("CONVOY_SOURCE_DIR");
  if (source == nullptr) GTEST_SKIP() << "CONVOY_SOURCE_DIR is not set";
  std::set<std::string> named =
      variables_in(read_file(std::string(source) + "/docs/reference/environment.md"));
  for (const std::string& name : resolver_variables())
    EXPECT_EQ(named.erase(name), 1U) << name << " is read but not in docs/reference/environment.md";
  const std::set<std::string> others = {"CONVOY_CUDA_KERNELS",
                                        "CONVOY_POSTGRES_PROGRAMS",
                                        "CONVOY_CUDA_LIBRARY",
                                        "CONVOY_HOST_ROOT",
                                        "CONVOY_NVML_LIBRARY",
                                        "CUDA_DEVICE_ORDER",
                                        "GOMP_SPINCOUNT",
                                        "HIP_VISIBLE_DEVICES",
                                        "HSA_",
                                        "NCCL_TIMEOUT",
                                        "ROCR_VISIBLE_DEVICES",
                                        "CUDA_VISIBLE_DEVICES",
                                        "OMP_NUM_THREADS",
                                        "OMP_WAIT_POLICY",
                                        "PCI_BUS_ID",
                                        "PET_NPROC_PER_NODE",
                                        "PMIX_",
                                        "PMI_",
                                        "PYTHONHASHSEED",
                                        "PYTHONUNBUFFERED",
                                        "PYTORCH_ALLOC_CONF",
                                        "PYTORCH_CUDA_ALLOC_CONF",
                                        "PYTORCH_HIP_ALLOC_CONF",
                                        "SLURM_LAUNCH_NODE_IPADDR"};
  for (const std::string& name : named)
    EXPECT_EQ(others.count(name), 1U)
        << name << " is in docs/reference/environment.md but nothing reads it";
}

}  // namespace
}  // namespace convoy::launch
