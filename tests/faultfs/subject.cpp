// SPDX-License-Identifier: Apache-2.0
//
// The program that runs under the shim. `save ROOT STEP KEEP` loads the newest snapshot, as
// training does, and saves one. `open FOLDER` opens a model folder and its weights. `hold FOLDER`
// creates a run folder (exit code 3: without a lock). `write FILE` writes a file atomically. The
// exit codes are Convoy's.
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/io/model_folder.h"
#include "convoy/core/io/snapshot_store.h"
#include "convoy/core/telemetry/runs/run_folder.h"

namespace {

namespace fs = std::filesystem;

void save(const fs::path& root, int64_t step, int64_t keep) {
  convoy::io::SnapshotStore store(root, keep);
  store.prepare();
  std::vector<std::string> notices;
  store.newest_valid(notices);
  store.save({step, {{"number", step}}, step % 2 == 0}, [&](convoy::io::SnapshotWriter& writer) {
    const std::string text(3000, static_cast<char>('a' + step % 26));
    writer.write_tensors("parameters.safetensors",
                         {convoy::io::tensor_source("weight", convoy::io::Dtype::U8, {3000},
                                                    std::as_bytes(std::span(text)))});
    writer.write("adapter/adapter_config.json", "{}");
  });
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string mode = argc > 1 ? argv[1] : "";
    if (mode == "save" && argc == 5) save(argv[2], std::stoll(argv[3]), std::stoll(argv[4]));
    if (mode == "open" && argc == 3)
      convoy::io::ModelWeights weights(convoy::io::ModelFolder::open(argv[2]));
    if (mode == "write" && argc == 3) convoy::write_file_atomic(argv[2], "whole");
    if (mode == "hold" && argc == 3)
      return convoy::telemetry::RunFolder::create(argv[2], "run").is_locked() ? 0 : 3;
  } catch (const convoy::Error& error) {
    std::fprintf(stderr, "%s\n", error.sentence().c_str());
    return static_cast<int>(error.code());
  }
  return 0;
}
