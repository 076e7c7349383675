// SPDX-License-Identifier: Apache-2.0
//
// Runs `convoy eval --samples` as a user does.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "convoy/core/base/files.h"
#include "convoy/core/settings/metric_settings.h"
#include "files/run_script.h"
#include "files/temporary_folder.h"

namespace convoy::apps {
namespace {

using nlohmann::json;

class SavedSamples : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file_atomic(folder_.path() / "s.jsonl",
                      R"({"input": "1+1", "pred": "two <b>", "ref": ["2", "two b"]})"
                      "\n"
                      R"({"input": "x\u0007\"</script>", "pred": "", "ref": "{\"a\": 1}"})"
                      "\n"
                      R"({"input": "json", "pred": "{\"a\": 1}", "ref": "{\"a\": 1}"})"
                      "\n");
    write_file_atomic(folder_.path() / "shape.json", R"({"type": "object", "required": ["a"]})");
  }
  convoy::testing::ScriptEnd eval(const std::string& arguments) const {
    return convoy::testing::run_script(folder_.path(),
                                       fmt::format("'{}/convoy' eval --samples s.jsonl {}",
                                                   std::getenv("CONVOY_BIN_DIR"), arguments));
  }

  convoy::testing::TemporaryFolder folder_;
};

TEST_F(SavedSamples, AreMeasuredWithoutAModel) {
  const auto all = eval("--json --output-dir results");
  ASSERT_EQ(all.code, 0) << all.out;
  const json figures = json::parse(all.out);
  EXPECT_EQ(figures.size(), settings::text_metric_names().size() + 1);
  EXPECT_EQ(figures["count"], 3);
  EXPECT_EQ(figures["rougeL"], 2.0 / 3);
  EXPECT_EQ(figures["exact_match"], 1.0 / 3);
  EXPECT_TRUE(figures["schema_compliance"].is_null());
  EXPECT_EQ(json::parse(read_file(folder_.path() / "results/metrics.json")), figures);

  const auto some = eval("--json --metrics schema_compliance,token_f1 --json-schema shape.json");
  EXPECT_EQ(json::parse(some.out), json({{"count", 3},
                                         {"schema_compliance", 1.0 / 3},
                                         {"token_f1", json::parse(some.out)["token_f1"]}}));
}

TEST_F(SavedSamples, TheReportHoldsTheWorstRowsAsTextAndNothingElse) {
  ASSERT_EQ(eval("--report r.html --report-metric exact_match --report-rows 2").code, 0);
  const std::string page = read_file(folder_.path() / "r.html");
  EXPECT_NE(page.find("two &lt;b&gt;"), std::string::npos);
  EXPECT_NE(page.find("&quot;&lt;/script&gt;"), std::string::npos);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("http:"), std::string::npos);
  EXPECT_EQ(page.find("https:"), std::string::npos);
  EXPECT_EQ(page.find('\a'), std::string::npos);
  EXPECT_EQ(page.find("row 3 "), std::string::npos) << "the best row is not among the two worst";
  EXPECT_LT(page.find("row 1 "), page.find("row 2 "));
  EXPECT_NE(page.find("prefers-color-scheme: dark"), std::string::npos);
}

TEST_F(SavedSamples, ABadRowIsNamedByItsLine) {
  for (const auto& [row, reason] :
       {std::pair{R"({"input": "a", "prediction": "b", "ref": "c"})", "the keys input, prediction"},
        std::pair{R"({"pred": null, "ref": "c"})",
                  "\"pred\" as text in each row of samples, found null"},
        std::pair{R"({"pred": "b"})", "\"ref\" as text"},
        std::pair{R"({"pred": "b", "ref": []})", "found an empty list"},
        std::pair{"[1]", "one JSON object"}}) {
    write_file_atomic(folder_.path() / "s.jsonl",
                      fmt::format("{}\n\n{}\n", R"({"pred": "b", "ref": "c"})", row));
    const auto refused = eval("");
    EXPECT_EQ(refused.code, 10) << refused.out;
    EXPECT_NE(refused.out.find("s.jsonl:3"), std::string::npos) << refused.out;
    EXPECT_NE(refused.out.find(reason), std::string::npos) << refused.out;
  }
}

TEST_F(SavedSamples, RefusesWhatItCanNotDo) {
  for (const auto& [arguments, part] :
       {std::pair{"--metrics rougel", "did you mean `rougeL`"},
        std::pair{"--limit 3", "--limit has no effect"},
        std::pair{"--temperature 1", "--temperature has no effect"},
        std::pair{"run.yaml", "`run.yaml` has no effect"},
        std::pair{"--metrics sari --report r.html --report-metric rougeL", "is not measured"},
        std::pair{"--json-schema s.jsonl", "wanted a JSON schema"},
        std::pair{"--report-metric bleu --report r.html", "bleu"}}) {
    const auto refused = eval(arguments);
    EXPECT_EQ(refused.code, 2) << arguments << refused.out;
    EXPECT_NE(refused.out.find(part), std::string::npos) << arguments << ": " << refused.out;
  }
}

}  // namespace
}  // namespace convoy::apps
