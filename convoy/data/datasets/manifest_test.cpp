// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/manifest.h"

#include <gtest/gtest.h>

#include "convoy/core/base/files.h"
#include "convoy/core/base/hash.h"
#include "convoy/data/datasets/files_test.h"

namespace convoy::data {
namespace {

namespace fs = std::filesystem;

TEST(Manifest, SaysWhichFilesARunReadAndWrote) {
  const ScratchFolder folder;
  const auto input = folder.write("input.jsonl", "{\"a\":1}\n{\"a\":2}\n");
  fs::create_directory(folder.path() / "out");
  const auto writer = create_rows(folder.path() / "out" / "final.jsonl");
  writer->write({{"a", 1}});
  const WrittenFile written = writer->finish();
  const fs::path path =
      publish_manifest(written.path, {.inputs = {record_of_file(input, 2)},
                                      .outputs = {record_of(written)},
                                      .rows_by_state = {{"ok", 1}, {"rejected", 1}},
                                      .configuration = {{"model", "m"}},
                                      .cost = {{"new_tokens", 17}}});
  EXPECT_EQ(path.filename(), "final.jsonl.manifest.json");

  const auto manifest = nlohmann::ordered_json::parse(read_file(path));
  EXPECT_EQ(manifest["format"], "convoy-manifest");
  EXPECT_EQ(manifest["outputs"][0]["path"], "final.jsonl") << "the folder may move";
  EXPECT_EQ(manifest["outputs"][0]["rows"], 1);
  EXPECT_EQ(manifest["outputs"][0]["bytes"], 8);
  EXPECT_EQ(manifest["outputs"][0]["sha256"], sha256_hex_of_file(written.path));
  EXPECT_EQ(manifest["inputs"][0]["rows"], 2);
  EXPECT_EQ(manifest["inputs"][0]["path"], fs::canonical(input).string());
  EXPECT_EQ(manifest["inputs"][0]["sha256"], sha256_hex_of_file(input));
  EXPECT_EQ(manifest["rows_by_state"].dump(), "{\"ok\":1,\"rejected\":1}");
  EXPECT_EQ(manifest["cost"]["new_tokens"], 17);
}

}  // namespace
}  // namespace convoy::data
