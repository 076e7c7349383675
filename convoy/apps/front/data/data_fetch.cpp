// SPDX-License-Identifier: Apache-2.0
//
// `convoy data fetch`: a data set of the hub into the local hub cache.
#include <fmt/format.h>

#include "convoy/apps/front/command.h"
#include "convoy/apps/front/models/hub_fetch.h"
#include "convoy/core/base/error.h"
#include "convoy/data/datasets/formats/row_source.h"
#include "convoy/data/datasets/sources/dataset_catalog.h"

namespace convoy::apps {
namespace {

// True for files of rows, and for the card that maps files to splits.
bool is_data_file(const std::string& path) { return path == "README.md" || data::names_rows(path); }

int fetch_data(const Context& context, const FetchFlags& flags, const Words& words) {
  if (words.size() != 1)
    throw ConfigError(fmt::format("wanted one hub id, found {}", words.size()),
                      {.hint = "convoy data fetch ORG/NAME"});
  const data::KnownDataset* const known = data::find_known_dataset(words[0]);
  const std::string id = known == nullptr ? words[0] : known->hub_ids.front();
  return fetch_from_hub(context, flags,
                        {.repository = {.id = id, .kind = io::HubRepository::Dataset},
                         .is_read = is_data_file,
                         .use = fmt::format("convoy data tokens --model M --data {}", id)});
}

}  // namespace

Command data_fetch_action() {
  return {.name = "fetch",
          .summary = "Download a data set of the Hugging Face hub",
          .usage = "convoy data fetch ORG/NAME [flags]",
          .examples = "convoy data fetch openai/gsm8k",
          .flags = {flags_of<FetchFlags>()},
          .run = with_flags_of<FetchFlags, fetch_data>};
}

}  // namespace convoy::apps
