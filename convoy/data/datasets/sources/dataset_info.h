// SPDX-License-Identifier: Apache-2.0
//
// Implements `--list-datasets` and `--dataset-info`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "convoy/data/datasets/sources/dataset.h"

namespace convoy::data {

// One object per data set of the catalog, with the members key, hub_id, hub_ids (all accepted ids),
// config, fields, about, is_here.
nlohmann::ordered_json dataset_list();
std::string dataset_list_text();

// Facts about a data set by any name: location, configs and splits with their files, rows and
// bytes, and the first row of the split that would be read. For a data set that is not on this
// host: the facts of the catalog, and how to get it. Counts rows, and reads whole files when their
// format does not store the number. Throws DataError for files that cannot be read.
nlohmann::ordered_json dataset_info(const DatasetRequest& request);
std::string dataset_info_text(const nlohmann::ordered_json& info);

}  // namespace convoy::data
