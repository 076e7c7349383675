// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/data_fetch.h"

#include <fmt/format.h>

#include "convoy/apps/front/hub_fetch.h"
#include "convoy/base/error.h"
#include "convoy/data/dataset_catalog.h"
#include "convoy/data/row_source.h"

namespace convoy::apps {
namespace {

// Rows, and the card that says which files are which split.
bool is_data_file(const std::string& path) { return path == "README.md" || data::names_rows(path); }

}  // namespace

Action data_fetch_action() {
  return {.name = "fetch",
          .summary = "a data set of the Hugging Face hub into the local hub cache",
          .usage = "convoy data fetch ORG/NAME [flags]",
          .flag_table = config::flag_table_of<FetchFlags>,
          .examples = "convoy data fetch openai/gsm8k"};
}

int data_fetch(Context& context, const std::vector<std::string>& arguments) {
  FetchFlags flags;
  const std::vector<std::string> words = context.parse(flags, arguments);
  if (words.size() != 1)
    throw ConfigError(fmt::format("wanted one hub id, found {}", words.size()),
                      {.hint = "convoy data fetch ORG/NAME"});
  const data::KnownDataset* const known = data::find_known_dataset(words[0]);
  const std::string id = known == nullptr ? words[0] : known->hub_ids.front();
  return fetch_from_hub(context, flags,
                        {.repository = {.id = id, .kind = io::HubRepository::Dataset},
                         .is_read = is_data_file,
                         .use = fmt::format("convoy tokens --model M --data {}", id)});
}

}  // namespace convoy::apps
