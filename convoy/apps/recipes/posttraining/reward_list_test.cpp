// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/posttraining/reward_list.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "convoy/core/base/error.h"
#include "convoy/core/http/http_server.h"

namespace convoy::recipes {
namespace {

// A server answers the numbers of a problem's texts together: none of them is kept without the
// others.
TEST(RewardList, LooksAtAllNumbersOfAListBeforeItGivesOne) {
  std::string answer = "[0, 1e200, 0.33]";
  http::Server server("127.0.0.1", 0, {}, [&](std::unique_ptr<http::Exchange> exchange) {
    exchange->respond(200, {}, answer);
  });
  config::JsonList list;
  list.json =
      fmt::format(R"([{{"kind": "http", "url": "http://127.0.0.1:{}/score"}}])", server.port());
  RewardList rewards(list);
  std::vector<rewards::JudgedText> texts(3);
  for (size_t at = 0; at < texts.size(); ++at) texts[at].row_number = static_cast<int64_t>(at) + 5;
  std::map<size_t, double> taken;
  const auto ask = [&] {
    rewards.ask(0, texts, {}, [&](size_t text, double value) { taken[text] = value; });
  };
  try {
    ask();
    FAIL() << "a number that is too large";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("row 6, sample 0"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(taken.empty());
  answer = "[0, 0.5, 0.33]";
  ask();
  EXPECT_EQ(taken, (std::map<size_t, double>{{0, 0}, {1, 0.5}, {2, 0.33}}));
}

}  // namespace
}  // namespace convoy::recipes
