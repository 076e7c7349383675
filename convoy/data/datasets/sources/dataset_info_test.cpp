// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/sources/dataset_info.h"

#include <gtest/gtest.h>

#include "convoy/data/datasets/files_test.h"

namespace convoy::data {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

fs::path golden_info() { return golden_data().parent_path() / "datasets"; }

class EmptyHubCache {
 public:
  EmptyHubCache() { ::setenv("HF_HUB_CACHE", folder_.path().c_str(), 1); }
  ~EmptyHubCache() { ::unsetenv("HF_HUB_CACHE"); }
  const fs::path& path() const { return folder_.path(); }

 private:
  ScratchFolder folder_;
};

TEST(DatasetInfo, TheListNamesEveryKeyOfTheGuide) {
  const EmptyHubCache cache;
  const Json list = dataset_list();
  for (const char* key : {"gsm8k", "math_qa", "math", "asdiv", "aqua", "numina_math"}) {
    const auto found = std::find_if(list.begin(), list.end(),
                                    [&](const Json& entry) { return entry.at("key") == key; });
    ASSERT_NE(found, list.end()) << key;
    EXPECT_FALSE(found->at("is_here").get<bool>());
    EXPECT_NE(dataset_list_text().find(key), std::string::npos);
  }
  for (const char* id :
       {"hendrycks/math", "mawic/asdiv", "allenai/aqua_rat", "AI-MO/NuminaMath-1.5"})
    EXPECT_NE(dataset_list_text().find(id), std::string::npos) << id;
}

TEST(DatasetInfo, AnAbsentOneSaysHowToGetIt) {
  const EmptyHubCache cache;
  const Json info = dataset_info({.name = "numina_math"});
  EXPECT_FALSE(info.at("is_here").get<bool>());
  EXPECT_EQ(info.at("hub_id"), "AI-MO/NuminaMath-1.5");
  EXPECT_NE(dataset_info_text(info).find("convoy data fetch AI-MO/NuminaMath-1.5"),
            std::string::npos);
  EXPECT_FALSE(info.contains("first_row"));
  EXPECT_THROW(dataset_info({.name = "nobody/nothing"}), DataError);
}

TEST(DatasetInfo, CountsRowsOfEverySplit) {
  const Json info = dataset_info({.name = (golden_info() / "numina_cot").string()});
  EXPECT_TRUE(info.at("is_here").get<bool>());
  const Json& splits = info.at("configs").at(0).at("splits");
  EXPECT_EQ(splits.at(0).at("name"), "test");
  EXPECT_EQ(splits.at(0).at("rows"), 2);
  EXPECT_EQ(splits.at(1).at("rows"), 12);
  EXPECT_EQ(splits.at(1).at("files").size(), 3u);
  EXPECT_EQ(info.at("split"), "train");
  EXPECT_EQ(info.at("first_row").at("source"), "synthetic_math");
  EXPECT_NE(dataset_info_text(info).find("train: 12 rows"), std::string::npos);
  for (const char* name : {"lines.jsonl.gz", "list.json.gz", "lines.jsonl.bz2"})
    EXPECT_EQ(dataset_info({.name = (golden_info() / "packed" / name).string()}).at("rows"), 25)
        << name;
}

TEST(DatasetInfo, OneOfSeveralConfigsNeedNotBeChosen) {
  const ScratchFolder folder;
  for (const char* config : {"one", "two"}) {
    fs::create_directory(folder.path() / config);
    folder.write(std::string(config) + "/train.jsonl", "{\"a\":1}\n");
  }
  const Json info = dataset_info({.name = folder.path().string()});
  EXPECT_EQ(info.at("configs").size(), 2u);
  EXPECT_NE(dataset_info_text(info).find("--config: `one`, `two`"), std::string::npos);
}

TEST(DatasetInfo, ACachedOneSaysWhereItLies) {
  const EmptyHubCache cache;
  const fs::path repository = cache.path() / "datasets--AI-MO--NuminaMath-1.5";
  fs::create_directories(repository / "refs");
  std::ofstream(repository / "refs" / "main") << "abc123";
  fs::create_directories(repository / "snapshots");
  fs::copy(golden_info() / "numina_15", repository / "snapshots" / "abc123",
           fs::copy_options::recursive);
  const Json info = dataset_info({.name = "numina_math"});
  EXPECT_EQ(info.at("commit"), "abc123");
  EXPECT_EQ(info.at("configs").at(0).at("splits").at(0).at("rows"), 10);
  EXPECT_EQ(info.at("first_row").at("answer"), "3");
  EXPECT_TRUE(dataset_list().at(5).at("is_here").get<bool>());
}

}  // namespace
}  // namespace convoy::data
