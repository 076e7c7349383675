// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/manifest.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/data/datasets/test_files.h"

namespace convoy::data {
namespace {

namespace fs = std::filesystem;

TEST(Manifest, SaysWhetherFilesAreThoseOfTheRun) {
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
  EXPECT_TRUE(verify_manifest(path).empty());

  const Manifest manifest = read_manifest(path);
  EXPECT_EQ(manifest.outputs[0].path, "final.jsonl");
  EXPECT_EQ(manifest.outputs[0].rows, 1);
  EXPECT_EQ(manifest.outputs[0].sha256, written.sha256);
  EXPECT_EQ(manifest.inputs[0].rows, 2);
  EXPECT_EQ(manifest.inputs[0].path, fs::canonical(input).string());
  EXPECT_EQ(manifest.rows_by_state.dump(), "{\"ok\":1,\"rejected\":1}");
  EXPECT_EQ(manifest.cost["new_tokens"], 17);

  fs::rename(folder.path() / "out", folder.path() / "moved");
  const fs::path moved = folder.path() / "moved" / path.filename();
  EXPECT_TRUE(verify_manifest(moved).empty());
  std::ofstream(folder.path() / "moved" / "final.jsonl") << "{\"a\":2}\n";
  ASSERT_EQ(verify_manifest(moved).size(), 1u);
  EXPECT_NE(verify_manifest(moved)[0].find("SHA-256"), std::string::npos);
  std::ofstream(folder.path() / "moved" / "final.jsonl", std::ios::app) << "{\"a\":2}\n";
  EXPECT_NE(verify_manifest(moved)[0].find("has 16 bytes, wanted 8"), std::string::npos);
  fs::remove(input);
  EXPECT_EQ(verify_manifest(moved).size(), 2u);
}

TEST(Manifest, WhatIsNoManifestIsRefused) {
  const ScratchFolder folder;
  for (const char* text : {"{}", "[]", "{\"format\": \"convoy-manifest\"}", "{\"format\": 1}", "{",
                           "{\"format\": \"convoy-manifest\", \"version\": 2}"})
    EXPECT_THROW(verify_manifest(folder.write("a.manifest.json", text)), DataError) << text;
  EXPECT_THROW(verify_manifest(folder.path() / "absent.manifest.json"), DataError);
}

}  // namespace
}  // namespace convoy::data
