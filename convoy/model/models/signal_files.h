// SPDX-License-Identifier: Apache-2.0
//
// A classifier of sensor windows on disk: config.json, and model.safetensors with parameters and
// running statistics.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "convoy/model/nn/signal_classifier.h"

namespace convoy::models {

nn::ChannelPooling parse_channel_pooling(const std::string& name);  // throws ConfigError
std::string channel_pooling_name(nn::ChannelPooling pooling);

// The text of config.json: the network, and the names of channels and classes in their order.
std::string signal_config_text(const nn::SignalClassifierSpec& spec,
                               const std::vector<std::string>& channel_names,
                               const std::vector<std::string>& class_names);

// Writes both files, atomically. Throws IoError.
void save_signal_classifier(const nn::SignalClassifier& model, const std::string& config_text,
                            const std::filesystem::path& folder);

// Copies the encoder's parameters and running statistics from `path`: a folder that
// save_signal_classifier() wrote, a run folder with such a folder `model`, a checkpoint of a run,
// or a .safetensors file. Throws DataError where a tensor of the encoder is missing, left over or
// of another shape.
void load_signal_encoder(nn::SignalClassifier& model, const std::filesystem::path& path);

}  // namespace convoy::models
