// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/io/model_folder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>

#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/io/hub_cache.h"
#include "files/temporary_folder.h"

namespace convoy::io {
namespace {

namespace fs = std::filesystem;
using convoy::testing::TemporaryFolder;

std::vector<std::byte> numbered_bytes(size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t index = 0; index < count; ++index) bytes[index] = static_cast<std::byte>(index);
  return bytes;
}

void put_model(const fs::path& folder, const std::string& config = R"({"model_type":"llama"})") {
  static const std::vector<std::byte> kBytes = numbered_bytes(16);
  write_file_atomic(folder / "config.json", config);
  write_safetensors(folder / "model.safetensors", {tensor_source("a", Dtype::F32, {4}, kBytes)});
}

std::string refusal(const auto& action) {
  try {
    action();
  } catch (const DataError& error) {
    return error.sentence();
  }
  return "";
}

TEST(ModelFolder, ReadsConfigAndWeights) {
  TemporaryFolder folder;
  put_model(folder.path(), R"({"model_type":"llama","auto_map":{"AutoModel":"code.py"}})");
  write_file_atomic(folder / "generation_config.json", R"({"eos_token_id":[1,2]})");
  const ModelFolder model = ModelFolder::open(folder.path());
  EXPECT_EQ(model.config().require_string("model_type"), "llama");
  EXPECT_EQ(model.generation_config()->ints_or_empty("eos_token_id", 0, 9),
            (std::vector<int64_t>{1, 2}));
  ASSERT_EQ(model.notices().size(), 1u);
  EXPECT_NE(model.notices()[0].find("auto_map"), std::string::npos);
  const ModelWeights weights(model);
  EXPECT_EQ(weights.names(), (std::vector<std::string>{"a"}));
  EXPECT_EQ(weights.total_bytes(), 16);
}

TEST(ModelFolder, AnAddressIsNamedAsOneWithTheIdInIt) {
  try {
    ModelFolder::open("https://huggingface.co/Qwen/Qwen2.5-0.5B");
    ADD_FAILURE() << "an address is no model";
  } catch (const DataError& error) {
    EXPECT_NE(error.sentence().find("this is an address"), std::string::npos) << error.sentence();
    EXPECT_NE(error.sentence().find("name it Qwen/Qwen2.5-0.5B, after `"), std::string::npos)
        << error.sentence();
  }
}

TEST(ModelFolder, PickleOnlyIsRefusedWithTheWayOut) {
  TemporaryFolder folder;
  write_file_atomic(folder / "config.json", "{}");
  write_file_atomic(folder / "pytorch_model.bin", "PK");
  EXPECT_NE(refusal([&] {
              ModelFolder::open(folder.path()).weight_file_names();
            }).find("save_pretrained"),
            std::string::npos);
}

TEST(ModelFolder, ShardsRoundTripAndOtherLayoutsGo) {
  TemporaryFolder folder;
  write_file_atomic(folder / "config.json", "{}");
  const std::vector<std::byte> bytes = numbered_bytes(12);
  std::vector<TensorSource> tensors;
  for (const char* name : {"z", "a", "m", "b", "k"})
    tensors.push_back(tensor_source(name, Dtype::F32, {3}, bytes));
  const std::vector<std::string> written = write_model_weights(folder.path(), tensors, 30);
  EXPECT_EQ(written, (std::vector<std::string>{
                         "model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                         "model-00003-of-00003.safetensors", "model.safetensors.index.json"}));
  EXPECT_EQ(read_file(folder / "model.safetensors.index.json"),
            "{\n  \"metadata\": {\n    \"total_size\": 60\n  },\n  \"weight_map\": {\n"
            "    \"a\": \"model-00001-of-00003.safetensors\",\n    \"b\": "
            "\"model-00002-of-00003.safetensors\",\n"
            "    \"k\": \"model-00003-of-00003.safetensors\",\n    \"m\": "
            "\"model-00002-of-00003.safetensors\",\n"
            "    \"z\": \"model-00001-of-00003.safetensors\"\n  }\n}\n");
  const ModelWeights weights(ModelFolder::open(folder.path()));
  EXPECT_EQ(weights.names(), (std::vector<std::string>{"a", "b", "k", "m", "z"}));
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), weights.require("k").bytes.begin()));

  write_model_weights(folder.path(), tensors, 1000);
  EXPECT_EQ(ModelFolder::open(folder.path()).weight_file_names(),
            (std::vector<std::string>{"model.safetensors"}));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 2);
}

TEST(ModelFolder, LinksMayNotLeaveTheFolder) {
  TemporaryFolder outside;
  put_model(outside.path());
  TemporaryFolder folder;
  write_file_atomic(folder / "config.json", "{}");
  const fs::path link = folder / "model.safetensors";
  for (const fs::path& target :
       {outside / "model.safetensors", fs::path("/etc/passwd"), fs::path("..")}) {
    fs::remove(link);
    fs::create_symlink(target, link);
    EXPECT_NE(refusal([&] { ModelWeights weights(ModelFolder::open(folder.path())); }), "")
        << target;
  }
  fs::remove(link);
  fs::create_symlink("model.safetensors", link);
  EXPECT_NE(refusal([&] { ModelWeights weights(ModelFolder::open(folder.path())); }), "") << "loop";
  fs::remove(link);
  fs::create_symlink("absent", link);
  EXPECT_NE(refusal([&] { ModelWeights weights(ModelFolder::open(folder.path())); }), "")
      << "dangling";
  fs::remove(link);
  fs::create_directory(folder / "inner");
  fs::copy_file(outside / "model.safetensors", folder / "inner/weights");
  fs::create_symlink("inner/weights", link);
  EXPECT_EQ(ModelWeights(ModelFolder::open(folder.path())).names().size(), 1u);
  for (const char* name : {"..", ".", "", "a/b", "a\\b", "/etc/passwd"})
    EXPECT_NE(refusal([&] { ModelFolder::open(folder.path()).find(name); }), "") << name;
}

class HubCache : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("HF_HUB_CACHE", cache_.path().c_str(), 1);
    const fs::path repo = cache_ / "models--org--tiny";
    fs::create_directories(repo / "blobs");
    fs::create_directories(repo / "refs");
    fs::create_directories(repo / "snapshots" / "abc123");
    TemporaryFolder plain;
    put_model(plain.path());
    for (const char* name : {"config.json", "model.safetensors"}) {
      fs::copy_file(plain / name, repo / "blobs" / (std::string("blob-") + name));
      fs::create_symlink(fs::path("../../blobs") / (std::string("blob-") + name),
                         repo / "snapshots/abc123" / name);
    }
    write_file_atomic(repo / "refs" / "main", "abc123\n");
  }
  void TearDown() override { ::unsetenv("HF_HUB_CACHE"); }

  TemporaryFolder cache_;
};

TEST_F(HubCache, ResolvesBranchesCommitsAndSnapshotPaths) {
  for (const std::string revision : {"main", "abc123"}) {
    const ModelFolder model = ModelFolder::open("org/tiny", revision);
    EXPECT_EQ(model.commit(), "abc123");
    EXPECT_EQ(ModelWeights(model).names().size(), 1u);
  }
  const ModelFolder by_path = ModelFolder::open(cache_ / "models--org--tiny/snapshots/abc123");
  EXPECT_EQ(by_path.commit(), "abc123");
  EXPECT_EQ(ModelWeights(by_path).names().size(), 1u);
}

TEST_F(HubCache, MissingModelsComeWithTheCommand) {
  EXPECT_NE(refusal([] { ModelFolder::open("org/other"); }).find("`convoy models fetch org/other`"),
            std::string::npos);
  EXPECT_NE(refusal([] {
              ModelFolder::open("org/tiny", "v2");
            }).find("`convoy models fetch org/tiny --revision v2`"),
            std::string::npos);
  EXPECT_EQ(download_command("org/rows", HubRepository::Dataset), "convoy data fetch org/rows");
  for (const char* name : {"/absent/folder", "./absent", "a/b/c", "../x", ""})
    EXPECT_NE(refusal([&] { ModelFolder::open(name); }), "") << name;
}

TEST_F(HubCache, AMissingFolderNamesThoseThatHoldAModel) {
  const TemporaryFolder models;
  for (const char* const name : {"tally-3m", "tally-9m", "smol"}) put_model(models / name);
  write_file_atomic(models / "tally-notes/readme.txt", "none\n");
  EXPECT_NE(refusal([&] {
              ModelFolder::open(models / "taly-9m");
            }).find(models.path().string() + " holds tally-9m, tally-3m, smol)"),
            std::string::npos);
  // A name of the form OWNER/NAME may also mean a model of the hub, and the error says so.
  const fs::path before = fs::current_path();
  fs::current_path(models.path().parent_path());
  const std::string relative = models.path().filename().string() + "/taly-3m";
  const std::string refused = refusal([&] { ModelFolder::open(relative); });
  fs::current_path(before);
  EXPECT_NE(refused.find(" holds tally-3m, tally-9m, smol; or download it with `convoy models"),
            std::string::npos)
      << refused;
}

TEST_F(HubCache, RefsAndLinksMayNotLeaveTheRepository) {
  const fs::path repo = cache_ / "models--org--tiny";
  EXPECT_FALSE(find_in_hub_cache("org/tiny", "../../x", cache_.path()).has_value());
  EXPECT_FALSE(find_in_hub_cache("../org", "main", cache_.path()).has_value());
  write_file_atomic(repo / "refs" / "evil", "../../../outside");
  EXPECT_NE(refusal([] { ModelFolder::open("org/tiny", "evil"); }), "");
  fs::remove(repo / "snapshots/abc123/model.safetensors");
  fs::create_symlink("/etc/passwd", repo / "snapshots/abc123/model.safetensors");
  EXPECT_NE(
      refusal([] { ModelWeights weights(ModelFolder::open("org/tiny")); }).find("points outside"),
      std::string::npos);
}

TEST(HubCacheFolder, FollowsTheEnvironmentOfTheHub) {
  ::unsetenv("HF_HUB_CACHE");
  ::setenv("HF_HOME", "/somewhere", 1);
  EXPECT_EQ(hub_cache_folder(), "/somewhere/hub");
  ::setenv("HF_HUB_CACHE", "/else", 1);
  EXPECT_EQ(hub_cache_folder(), "/else");
  ::unsetenv("HF_HUB_CACHE");
  ::unsetenv("HF_HOME");
}

}  // namespace
}  // namespace convoy::io
