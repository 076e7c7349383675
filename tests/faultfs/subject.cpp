// SPDX-License-Identifier: Apache-2.0
//
// The small program that runs under the shim: `save ROOT STEP KEEP` saves one snapshot, `open FOLDER` opens a model folder and
// its weights. Ends with the exit codes of the public contract.
#include <cstdio>
#include <string>

#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/io/model_folder.h"
#include "convoy/io/snapshot_store.h"

namespace {

namespace fs = std::filesystem;

void save(const fs::path& root, int64_t step, int64_t keep) {
  convoy::io::SnapshotStore store(root, keep);
  store.prepare();
  store.save({step, {{"number", step}}, step % 2 == 0}, [&](const fs::path& folder) {
    const std::string text(3000, static_cast<char>('a' + step % 26));
    convoy::io::write_safetensors(
        folder / "parameters.safetensors",
        {convoy::io::tensor_source("weight", convoy::io::Dtype::U8, {3000},
                                   std::as_bytes(std::span(text)))});
    convoy::write_file_atomic(folder / "adapter" / "adapter_config.json", "{}");
  });
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string mode = argc > 1 ? argv[1] : "";
    if (mode == "save" && argc == 5) save(argv[2], std::stoll(argv[3]), std::stoll(argv[4]));
    if (mode == "open" && argc == 3)
      convoy::io::ModelWeights weights(convoy::io::ModelFolder::open(argv[2]));
  } catch (const convoy::Error& error) {
    std::fprintf(stderr, "%s\n", error.sentence().c_str());
    return static_cast<int>(error.code());
  }
  return 0;
}
