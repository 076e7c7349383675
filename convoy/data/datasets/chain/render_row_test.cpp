// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/chain/render_row.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/data/datasets/schemas/schema.h"
#include "files/temporary_folder.h"

namespace convoy::data {
namespace {

using Json = nlohmann::ordered_json;

Json rendered(const Json& messages) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path path = folder / "t.jinja";
  write_file_atomic(path,
                    "{% for m in messages %}{% if m.role == 'system' %}[{{ m.content }}]{% elif "
                    "m.role == 'user' %}<{{ m.content }}>{% elif m.role == 'assistant' %}"
                    "{{ m | tojson }}{% endif %}{% endfor %}");
  const Row row{{{"messages", messages}}, "rows.jsonl", 7, 6};
  return RowRenderer({}, path).input_and_target(
      convert_row(row, detect_schema(row, {}), {}).sample);
}

Json turns(const Json& answer) {
  return {{{"role", "developer"}, {"content", "Be brief."}},
          {{"role", "user"}, {"content", "Hi"}, {"weight", 0}},
          answer};
}

TEST(RenderRow, ReadsARowAsTrainingDoes) {
  const Json answer = {{"role", "assistant"}, {"content", "Ho"}, {"train", true}};
  EXPECT_EQ(rendered(turns(answer))["input"], "[Be brief.]<Hi>");
  EXPECT_EQ(rendered(turns(answer))["target"], R"({"role": "assistant", "content": "Ho"})");
}

TEST(RenderRow, RefusesAnAnswerThatIsNotLearntWhole) {
  EXPECT_THROW(rendered(turns({{"role", "assistant"}, {"content", "Ho"}, {"weight", 0}})),
               DataError);
}

TEST(RenderRow, AnErrorNamesItsRowOnce) {
  try {
    rendered(turns({{"role", "user"}, {"content", "Ho"}}));
    ADD_FAILURE();
  } catch (const DataError& error) {
    const std::string said = error.what();
    EXPECT_NE(said.find("row 7: wanted a conversation that ends"), std::string::npos) << said;
    EXPECT_EQ(said.find("row 7: row"), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace convoy::data
