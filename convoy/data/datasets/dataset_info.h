// SPDX-License-Identifier: Apache-2.0
//
// What `--list-datasets` and `--dataset-info` say.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "convoy/data/datasets/dataset.h"

namespace convoy::data {

// One object per data set of the catalog: key, hub_id, hub_ids (all that count), config, fields,
// about, is_here.
nlohmann::ordered_json dataset_list();
std::string dataset_list_text();

// Of any name: where it lies, its configs and splits with their files, rows and bytes, the first
// row of the split that would be read; what is known of it where it is not here, and how to get it.
// Counts rows: reads whole files where their format does not say. Throws DataError for files that
// cannot be read.
nlohmann::ordered_json dataset_info(const DatasetRequest& request);
std::string dataset_info_text(const nlohmann::ordered_json& info);

}  // namespace convoy::data
