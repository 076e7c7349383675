// SPDX-License-Identifier: Apache-2.0
//
// Runs `convoy bench generate` beside a peer program. A script in the peer's place prints its
// flags.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "files/run_script.h"
#include "files/temporary_folder.h"

namespace convoy {
namespace {

class BenchPeer : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::write_executable(
        folder_ / "python",
        "#!/bin/sh\n"
        "echo '{\"peer\":\"'\"$*\"'\",\"peak_rss_mb\":1,\"points\":[{\"batch\":1,"
        "\"sampling\":\"greedy\",\"tokens_per_s\":1}]}'\n");
  }
  testing::ScriptEnd bench(const std::string& flags) {
    return testing::run_script(
        folder_.path(),
        fmt::format("OMP_NUM_THREADS=1 '{}/convoy-worker' bench-generate "
                    "--geometry tiny --devices cpu --batches 1 --prompts 1 --prompt-tokens 4 "
                    "--new-tokens 4 --repeats 1 --peer-python ./python --json {}",
                    std::getenv("CONVOY_BIN_DIR"), flags));
  }
  // Returns the script and the flags of the peer program that the benchmark ran.
  std::string peer(const std::string& flags) {
    const testing::ScriptEnd end = bench(flags);
    EXPECT_EQ(end.code, 0) << end.out;
    const size_t at = end.out.find("{\"bench\"");
    if (at == std::string::npos) return end.out;
    return nlohmann::json::parse(end.out.substr(at))["peer"][0]["peer"];
  }

  testing::TemporaryFolder folder_;
};

TEST_F(BenchPeer, LlamaCppReadsAFileOfWeightsOfAsManyBits) {
  for (const auto& [weights, type] :
       {std::pair{"model", "bf16"}, {"int8", "q8_0"}, {"int4", "q4_0"}}) {
    const std::string found = peer(fmt::format("--peer llama.cpp --weights {}", weights));
    EXPECT_NE(found.find("llama_cpp_generate.py"), std::string::npos) << found;
    EXPECT_NE(found.find(fmt::format("--file-type {}", type)), std::string::npos) << found;
  }
}

TEST_F(BenchPeer, IsTransformersUnlessNamed) {
  const std::string found = peer("--weights int4");
  EXPECT_NE(found.find("hf_generate.py"), std::string::npos) << found;
  EXPECT_EQ(found.find("--file-type"), std::string::npos) << found;
  EXPECT_NE(found.find("--threads 1"), std::string::npos) << "as many as Convoy: " << found;
}

TEST_F(BenchPeer, LlamaCppRefusesWhatItsFilesLack) {
  for (const char* flags : {"--dtype fp32", "--quantization nf4"}) {
    const testing::ScriptEnd end = bench(fmt::format("--peer llama.cpp {}", flags));
    EXPECT_EQ(end.code, 2) << end.out;
    EXPECT_NE(end.out.find("beside bf16 models alone"), std::string::npos) << end.out;
  }
}

}  // namespace
}  // namespace convoy
