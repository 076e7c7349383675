// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/sources/dataset.h"

#include <gtest/gtest.h>

#include "convoy/core/base/files.h"
#include "convoy/data/datasets/files_test.h"
#include "convoy/data/datasets/sources/dataset_layout.h"
#include "convoy/data/datasets/sources/natural_order.h"

namespace convoy::data {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

fs::path golden() { return golden_data().parent_path() / "datasets"; }

std::vector<Row> rows_of(const DatasetRequest& request, RowRange range = {}) {
  const auto source = open_dataset(find_dataset(request), range);
  std::vector<Row> rows;
  while (auto row = source->next()) rows.push_back(std::move(*row));
  return rows;
}

Json values_of(const DatasetRequest& request, RowRange range = {}) {
  Json values = Json::array();
  for (const Row& row : rows_of(request, range)) values.push_back(row.value);
  return values;
}

Json golden_rows(const char* member) {
  return Json::parse(read_file(golden() / "rows.json")).at(member);
}

std::string refusal(const DatasetRequest& request) {
  try {
    rows_of(request);
  } catch (const DataError& error) {
    return error.sentence();
  }
  ADD_FAILURE() << request.name << " was read without an error";
  return {};
}

void expect_mention(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks: " << part;
}

// Writes a file at a path below `folder` and creates the folders of that path.
fs::path put(const ScratchFolder& folder, const fs::path& name, std::string_view bytes) {
  fs::create_directories((folder.path() / name).parent_path());
  return folder.write(name.string(), bytes);
}

// A hub cache in a temporary folder, which HF_HUB_CACHE names while this object exists.
class HubCache {
 public:
  HubCache() { ::setenv("HF_HUB_CACHE", folder_.path().c_str(), 1); }
  ~HubCache() { ::unsetenv("HF_HUB_CACHE"); }

  // Adds a file as `hf download` does: a blob, and a link to the blob in a snapshot.
  void add(const std::string& repository, const std::string& commit, const fs::path& name,
           std::string_view bytes) const {
    const fs::path root = folder_.path() / repository;
    const fs::path link = root / "snapshots" / commit / name;
    fs::create_directories(root / "blobs");
    fs::create_directories(link.parent_path());
    const std::string blob = std::to_string(std::hash<std::string>()(commit + name.string()));
    std::ofstream(root / "blobs" / blob, std::ios::binary) << bytes;
    fs::create_symlink(fs::relative(root / "blobs" / blob, link.parent_path()), link);
  }
  void set_ref(const std::string& repository, const fs::path& ref,
               const std::string& commit) const {
    const fs::path file = folder_.path() / repository / "refs" / ref;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << commit;
  }
  const fs::path& path() const { return folder_.path(); }

 private:
  ScratchFolder folder_;
};

TEST(Dataset, ShardsAreOneSetInNaturalOrder) {
  const std::string folder = (golden() / "numina_cot").string();
  EXPECT_EQ(values_of({.name = folder}), golden_rows("cot"));
  const std::vector<Row> rows = rows_of({.name = folder});
  for (size_t row = 0; row < rows.size(); ++row)
    EXPECT_EQ(rows[row].index, static_cast<int64_t>(row));
  EXPECT_TRUE(rows[5].file.ends_with("train-00001-of-00003.parquet"));
  EXPECT_EQ(values_of({.name = folder, .split = "test"}).size(), 2u);
  expect_mention(refusal({.name = folder, .split = "validation"}), "it has `test`, `train`");
  expect_mention(refusal({.name = folder, .config = "main"}), "no config `main`");
}

TEST(Dataset, NuminaMathIsReadAsPythonReadsIt) {
  EXPECT_EQ(values_of({.name = (golden() / "numina_15").string()}), golden_rows("numina_15"));
}

TEST(Dataset, ShardsMayHaveOtherColumns) {
  const ScratchFolder folder;
  put(folder, "set/part-0.csv", "a,b\n1,2\n");
  put(folder, "set/part-2.csv", "c\n3\n");
  EXPECT_EQ(values_of({.name = (folder.path() / "set").string()}),
            Json::parse(R"([{"a":"1","b":"2"},{"c":"3"}])"));
}

TEST(Dataset, ARangeCountsOverTheWholeSet) {
  const std::string folder = (golden() / "numina_cot").string();
  const Json all = golden_rows("cot");
  for (int64_t first = 0; first <= 12; ++first)
    for (const int64_t count : {-1, 0, 1, 5, 100}) {
      SCOPED_TRACE(fmt::format("{} rows from {}", count, first));
      const std::vector<Row> rows = rows_of({.name = folder}, {first, count});
      const int64_t wanted = count < 0 ? 12 - first : std::min(count, 12 - first);
      ASSERT_EQ(static_cast<int64_t>(rows.size()), wanted);
      for (int64_t row = 0; row < wanted; ++row) {
        EXPECT_EQ(rows[row].index, first + row);
        EXPECT_EQ(rows[row].value, all[first + row]);
      }
    }
  EXPECT_EQ(rows_of({.name = folder}, {11, INT64_MAX}).size(), 1u);
  const auto source = open_dataset(find_dataset({.name = folder}), {13, 1});
  EXPECT_THROW(source->next(), DataError);
  EXPECT_EQ(open_dataset(find_dataset({.name = folder}))->skip(INT64_MAX), 12);
}

TEST(Dataset, PackedFilesAreReadAsPlainOnes) {
  for (const char* name : {"lines.jsonl.gz", "members.jsonl.gz", "lines.jsonl.zst",
                           "lines.jsonl.bz2", "list.json.gz"}) {
    SCOPED_TRACE(name);
    EXPECT_EQ(values_of({.name = (golden() / "packed" / name).string()}), golden_rows("lines"));
    EXPECT_EQ(values_of({.name = (golden() / "packed" / name).string()}, {20, 5})[4],
              golden_rows("lines")[24]);
  }
  const ScratchFolder folder;
  const std::string packed = read_file(golden() / "packed" / "lines.jsonl.zst");
  EXPECT_EQ(values_of({.name = folder.write("no_suffix", packed).string()}), golden_rows("lines"));
}

TEST(Dataset, CutAndDamagedPackedFilesAreErrorsWithTheirPlace) {
  const ScratchFolder folder;
  for (const char* name : {"lines.jsonl.gz", "lines.jsonl.zst", "lines.jsonl.bz2"}) {
    SCOPED_TRACE(name);
    const std::string whole = read_file(golden() / "packed" / name);
    for (const size_t keep : {whole.size() - 1, whole.size() / 2}) {
      const auto path = folder.write(name, whole.substr(0, keep));
      expect_mention(refusal({.name = path.string()}), "cannot be unpacked");
      expect_mention(refusal({.name = path.string()}), name);
    }
    const auto empty = folder.write(name, "");
    expect_mention(refusal({.name = empty.string()}), "but the file is not");
    std::string damaged = whole;
    damaged[whole.size() / 2] = static_cast<char>(damaged[whole.size() / 2] ^ 0x55);
    const auto path = folder.write(name, damaged);
    EXPECT_FALSE(refusal({.name = path.string()}).empty());
  }
  // Skipping bad rows must not turn the lost rest of a file into rows.
  const std::string whole = read_file(golden() / "packed" / "lines.jsonl.gz");
  const auto cut = folder.write("cut.jsonl.gz", whole.substr(0, whole.size() - 8));
  const auto source = open_dataset(find_dataset({.name = cut.string()}));
  try {
    while (source->next()) continue;
    FAIL() << "wanted an error";
  } catch (const DataError&) {
    EXPECT_FALSE(source->row_is_lost());
  }
}

TEST(Dataset, WhatIsNotReadIsNamed) {
  const ScratchFolder folder;
  const auto put_file = [&](const char* name, std::string_view bytes) {
    return DatasetRequest{.name = folder.write(name, bytes).string()};
  };
  expect_mention(refusal(put_file("a.jsonl.xz", std::string_view("\xfd"
                                                                 "7zXZ\0\0",
                                                                 7))),
                 "`xz -d`");
  expect_mention(refusal(put_file("a.zip", "PK\x03\x04....")), "zip archive");
  expect_mention(
      refusal(put_file("a.parquet", "version https://git-lfs.github.com/spec/v1\noid sha256:00\n")),
      "`git lfs pull`");
  expect_mention(refusal(put_file("a.jsonl.gz", "{\"a\":1}\n")), "but the file is not gzip");
  expect_mention(refusal({.name = "https://example.com/rows.jsonl"}), "this is an address");
  expect_mention(refusal({.name = (folder.path() / "absent.jsonl").string()}), "No such file");
  expect_mention(refusal({.name = (folder.path() / "*.csv").string()}), "no file fits");
  expect_mention(refusal({.name = ""}), "no data set given");
}

TEST(Dataset, ADamagedShardIsNamedWithItsRow) {
  const ScratchFolder folder;
  put(folder, "set/part-9.jsonl", "{\"a\":1}\n{\"a\":2}\n");
  put(folder, "set/part-10.jsonl", "{\"a\":3}\n{bad\n{\"a\":5}\n");
  put(folder, "set/part-11.jsonl", "{\"a\":6}\n");
  const std::string name = (folder.path() / "set").string();
  expect_mention(refusal({.name = name}), "part-10.jsonl:2:");
  const auto source = open_dataset(find_dataset({.name = name}));
  Json seen = Json::array();
  for (int step = 0; step < 6; ++step) {
    try {
      const auto row = source->next();
      ASSERT_TRUE(row);
      seen.push_back({row->index, row->value["a"]});
    } catch (const DataError&) {
      ASSERT_TRUE(source->row_is_lost());
    }
  }
  EXPECT_EQ(seen, Json::parse("[[0,1],[1,2],[2,3],[4,5],[5,6]]"));
  EXPECT_FALSE(source->next());

  std::string parquet = read_file(golden() / "numina_cot/data/train-00001-of-00003.parquet");
  for (size_t at = 200; at < 260; ++at) parquet[at] = static_cast<char>(parquet[at] ^ 0x5a);
  put(folder, "columns/train-0.parquet",
      read_file(golden() / "numina_cot/data/train-00000-of-00003.parquet"));
  put(folder, "columns/train-1.parquet", parquet);
  expect_mention(refusal({.name = (folder.path() / "columns").string()}), "train-1.parquet");
}

TEST(Dataset, FilesMayBeAPatternOrAList) {
  const ScratchFolder folder;
  for (const int part : {2, 10, 1})
    put(folder, fmt::format("p-{}.jsonl", part), fmt::format("{{\"a\":{}}}\n", part));
  const std::string base = folder.path().string();
  EXPECT_EQ(values_of({.name = base + "/p-*.jsonl"}), Json::parse(R"([{"a":1},{"a":2},{"a":10}])"));
  EXPECT_EQ(values_of({.name = base + "/p-{1,2}.jsonl"}).size(), 2u);
  EXPECT_EQ(values_of({.name = base + "/p-10.jsonl," + base + "/p-1.jsonl"}),
            Json::parse(R"([{"a":10},{"a":1}])"));
  expect_mention(refusal({.name = base + "/p-1.jsonl," + base + "/p-3.jsonl"}), "p-3.jsonl");
  EXPECT_EQ(values_of({.name = base + "/p-1.jsonl", .split = "train"}).size(), 1u);
  expect_mention(refusal({.name = base + "/p-1.jsonl", .split = "test"}), "no split `test`");
}

TEST(DatasetLayout, SplitsAndConfigsFollowNames) {
  const ScratchFolder folder;
  for (const char* name :
       {"main/train-00000-of-00001.jsonl", "main/test-00000-of-00001.jsonl", "socratic/train.jsonl",
        "socratic/dev.jsonl", "other/train/0001.jsonl", "other/train/0000.jsonl", "README.md",
        "dataset_infos.json", ".cache/train.jsonl"})
    put(folder, name, "{\"a\":1}\n");
  const auto layout = dataset_layout(folder.path());
  ASSERT_EQ(layout.size(), 3u);
  EXPECT_EQ(layout[0].name, "main");
  EXPECT_EQ(layout[1].name, "other");
  EXPECT_EQ(layout[1].splits[0].files[0].filename(), "0000.jsonl");
  EXPECT_EQ(layout[2].splits[0].name, "validation");
  const std::string name = folder.path().string();
  expect_mention(refusal({.name = name}), "--config: `main`, `other`, `socratic`");
  EXPECT_EQ(values_of({.name = name, .config = "other"}).size(), 2u);
  EXPECT_EQ(values_of({.name = name, .config = "socratic", .split = "val"}).size(), 1u);
}

TEST(DatasetLayout, TheCardComesBeforeTheNames) {
  const ScratchFolder folder;
  put(folder, "README.md",
      "---\nlicense: mit\nlicense: twice\nconfigs:\n- config_name: main\n  default: true\n"
      "  data_files:\n  - split: train\n    path: \"a/*.jsonl\"\n  - split: hard\n    path:\n"
      "    - b/x.jsonl\n    - b/y.jsonl\n- config_name: all\n  data_files: \"**/*.jsonl\"\n"
      "- config_name: gone\n  data_files: none/train-*\nlanguage:\n- en\n---\n# Card\n");
  for (const char* name : {"a/one.jsonl", "a/two.jsonl", "b/x.jsonl", "b/y.jsonl", "c.jsonl"})
    put(folder, name, "{\"a\":1}\n");
  const std::string name = folder.path().string();
  EXPECT_EQ(values_of({.name = name}).size(), 2u);
  EXPECT_EQ(values_of({.name = name, .split = "hard"}).size(), 2u);
  EXPECT_EQ(values_of({.name = name, .config = "all"}).size(), 5u);
  expect_mention(refusal({.name = name, .config = "gone"}), "the download is not whole");
  put(folder, "README.md", "---\npretty: x\nconfigs:\n- config_name: [\n---\n");
  expect_mention(refusal({.name = name}), "README.md:");
}

TEST(DatasetLayout, TextsBesideRowsAreNoRows) {
  const ScratchFolder folder;
  folder.write("notes.txt", "not a row");
  EXPECT_EQ(find_dataset({.name = folder.path().string()}).files.size(), 1u);
  folder.write("rows.jsonl", "{\"a\":1}\n");
  const Dataset dataset = find_dataset({.name = folder.path().string()});
  ASSERT_EQ(dataset.files.size(), 1u);
  EXPECT_EQ(dataset.files[0].filename(), "rows.jsonl");
}

TEST(DatasetLayout, AFolderWithoutRowsOrOfTwoFormatsIsRefused) {
  const ScratchFolder folder;
  fs::create_directory(folder.path() / "empty");
  expect_mention(refusal({.name = (folder.path() / "empty").string()}), "no file of rows");
  put(folder, "two/final.json", "[]");
  put(folder, "two/final.csv", "a\n1\n");
  expect_mention(refusal({.name = (folder.path() / "two").string()}), "final.csv and final.json");
}

TEST(HubCache, DataSetsAreFoundByIdKeyAndRevision) {
  const HubCache cache;
  const std::string gsm8k = "datasets--openai--gsm8k";
  cache.set_ref(gsm8k, "main", "c0ffee");
  cache.set_ref(gsm8k, "refs/convert/parquet", "beef");
  cache.add(gsm8k, "c0ffee", "main/train-00000-of-00001.jsonl",
            "{\"question\":\"q\",\"answer\":\"1\"}\n");
  cache.add(gsm8k, "c0ffee", "main/test-00000-of-00001.jsonl",
            "{\"question\":\"t\",\"answer\":\"2\"}\n");
  cache.add(gsm8k, "c0ffee", "socratic/train-00000-of-00001.jsonl", "{\"question\":\"s\"}\n");
  cache.add(gsm8k, "beef", "main/train/0000.jsonl", "{\"question\":\"r\"}\n");
  for (const char* name : {"gsm8k", "openai/gsm8k"}) {
    SCOPED_TRACE(name);
    const Dataset dataset = find_dataset({.name = name});
    EXPECT_STREQ(dataset.known->key, "gsm8k");
    EXPECT_EQ(dataset.hub_id, "openai/gsm8k");
    EXPECT_EQ(dataset.commit, "c0ffee");
    EXPECT_EQ(dataset.config, "main");
    EXPECT_EQ(dataset.split, "train");
    EXPECT_EQ(values_of({.name = name})[0]["question"], "q");
    EXPECT_EQ(values_of({.name = name, .split = "test"})[0]["question"], "t");
    EXPECT_EQ(values_of({.name = name, .config = "socratic"})[0]["question"], "s");
    EXPECT_EQ(values_of({.name = name, .revision = "beef"})[0]["question"], "r");
    EXPECT_EQ(values_of({.name = name, .revision = "refs/convert/parquet"})[0]["question"], "r");
    expect_mention(refusal({.name = name, .revision = "v2"}), "--revision v2");
  }
}

TEST(HubCache, WhatIsNotThereIsNeverReplaced) {
  const HubCache cache;
  const std::string absent = refusal({.name = "AI-MO/NuminaMath-1.5"});
  expect_mention(absent, "`convoy data fetch AI-MO/NuminaMath-1.5`");
  expect_mention(absent, cache.path().string());
  expect_mention(refusal({.name = "numina_math"}), "convoy data fetch AI-MO/NuminaMath-1.5");
  EXPECT_EQ(refusal({.name = "gsm8k"}).find("did you mean"), std::string::npos);
  expect_mention(refusal({.name = "gsm9k"}), "did you mean `gsm8k`?");
  EXPECT_EQ(refusal({.name = "gsm9k"}).find("data fetch"), std::string::npos);

  cache.set_ref("datasets--a--b", "main", "abc");
  cache.add("datasets--a--b", "abc", "train.jsonl", "{\"a\":1}\n");
  const fs::path link = cache.path() / "datasets--a--b" / "snapshots" / "abc" / "train.jsonl";
  EXPECT_EQ(values_of({.name = "a/b"}).size(), 1u);
  fs::remove(fs::canonical(link));
  expect_mention(refusal({.name = "a/b"}), "its download is not whole");
  fs::remove(link);
  const ScratchFolder outside;
  fs::create_symlink(outside.write("secret", "{\"a\":1}\n"), link);
  expect_mention(refusal({.name = "a/b"}), "leaves the folder");
  fs::remove(link);
  expect_mention(refusal({.name = "a/b"}), "no file of rows");
}

TEST(NaturalOrder, NumbersCountAsNumbers) {
  for (const auto& [left, right] : std::vector<std::pair<const char*, const char*>>{
           {"a2", "a10"},
           {"a", "b"},
           {"a", "a1"},
           {"a1b2", "a1b10"},
           {"a007", "a8"},
           {"a01", "a1"},
           {"train-00009-of-10", "train-00010-of-10"}}) {
    EXPECT_TRUE(comes_before(left, right)) << left << " " << right;
    EXPECT_FALSE(comes_before(right, left)) << left << " " << right;
  }
  EXPECT_FALSE(comes_before("a1", "a1"));
}

}  // namespace
}  // namespace convoy::data
