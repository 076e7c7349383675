// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/nn/block_parameters.h"

#include <fmt/format.h>

#include <utility>

namespace convoy::nn {

BlockSource::BlockSource(const ParameterSource& source, int64_t index)
    : source_(source), prefix_(fmt::format("model.layers.{}.", index)) {}

Linear BlockSource::linear(const std::string& suffix, int64_t in, int64_t out, bool bias) const {
  const std::string name = prefix_ + suffix;
  at::Tensor weight = source_({name + ".weight", {out, in}});
  return Linear(name, std::move(weight), bias ? source_({name + ".bias", {out}}) : at::Tensor());
}

Projections BlockSource::projections(const std::vector<architecture::StoredMap>& maps, int64_t in,
                                     bool bias, std::vector<int64_t> widths) const {
  std::vector<Linear> made;
  made.reserve(maps.size());
  for (const architecture::StoredMap& map : maps)
    made.push_back(linear(map.suffix, in, map.out, bias));
  return {std::move(made), std::move(widths)};
}

BlockParameter BlockSource::norm(const std::string& suffix, int64_t size) const {
  if (suffix.empty()) return {};
  return parameter(suffix + ".weight", {size});
}

BlockParameter BlockSource::parameter(const std::string& suffix, std::vector<int64_t> shape) const {
  const std::string name = prefix_ + suffix;
  return {name, source_({name, std::move(shape)})};
}

}  // namespace convoy::nn
