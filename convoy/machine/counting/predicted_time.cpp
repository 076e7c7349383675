// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/counting/predicted_time.h"

#include <algorithm>
#include <map>

namespace convoy::counting {
namespace {

int64_t up_to(int64_t count, int64_t step) { return (count + step - 1) / step; }

double best_share(ProductKind kind, const GpuSpeed& gpu) {
  switch (kind) {
    case ProductKind::Matrix:
      return assumptions().product_share;
    case ProductKind::Attention:
      return gpu.attention_share;
    case ProductKind::AttentionBackward:
      return gpu.attention_backward_share;
    case ProductKind::CudnnAttention:
      return gpu.cudnn_share;
    case ProductKind::CudnnAttentionBackward:
      return gpu.cudnn_backward_share;
  }
  return assumptions().product_share;
}

// The share of the peak that a product reaches. Tiles fill the SMs in waves, and the last wave
// takes as long as a full one. With fewer tiles than SMs, several SMs share the sum of a tile.
double product_share(const ProductShape& product, const GpuSpeed& gpu) {
  const Assumptions& assumed = assumptions();
  const int64_t tiles = product.batch * up_to(product.rows, assumed.tile_rows) *
                        up_to(product.columns, assumed.tile_columns);
  const double best = best_share(product.kind, gpu);
  if (tiles <= gpu.processors && product.kind == ProductKind::Matrix) return best;
  const int64_t waves = up_to(tiles, gpu.processors);
  return best * static_cast<double>(tiles) / static_cast<double>(waves * gpu.processors);
}

bool waits(const Work& work) { return work.host_waits || work.host_reads_earlier; }

double host_seconds(const Work& work) {
  const Assumptions& assumed = assumptions();
  switch (work.kind) {
    case WorkKind::Host:
      return waits(work) ? 0 : assumed.view_seconds;
    case WorkKind::Op:
      return assumed.op_seconds + assumed.more_launch_seconds *
                                      static_cast<double>(std::max<int64_t>(work.launches - 1, 0));
    case WorkKind::OwnKernel:
      return assumed.more_launch_seconds * static_cast<double>(work.launches);
    case WorkKind::Upload:
    case WorkKind::Download:
      return assumed.copy_seconds;
    case WorkKind::Collective:
      return assumed.op_seconds;
    case WorkKind::CollectiveWait:
      return 0;
  }
  return 0;
}

double link_seconds(const Work& work, const GpuSpeed& gpu) {
  if (work.link_bytes == 0) return 0;
  const Assumptions& assumed = assumptions();
  return assumed.link_seconds + work.link_bytes / (gpu.link_bytes * assumed.link_share);
}

void add(const Work& work, double seconds, WorkTotal& total) {
  total.name = work.name;
  ++total.calls;
  total.launches += work.launches;
  total.bytes += work.total_bytes();
  total.flops += work.flops;
  total.device_seconds += seconds;
}

void add_product(const Work& work, double seconds, std::vector<ProductTotal>& products) {
  auto found = std::find_if(products.begin(), products.end(), [&](const ProductTotal& product) {
    return product.shape == work.product && product.name == work.name;
  });
  if (found == products.end())
    found = products.insert(found, {.name = work.name, .shape = work.product});
  ++found->calls;
  found->flops += work.flops;
  found->device_seconds += seconds;
}

template <class Total>
void sort_longest_first(std::vector<Total>& totals) {
  std::stable_sort(totals.begin(), totals.end(), [](const Total& a, const Total& b) {
    return a.device_seconds > b.device_seconds;
  });
}

// The time at which each side is done.
struct Timeline {
  double host = 0;
  double device = 0;
  double link = 0;
  std::map<int64_t, double> ends = {};  // when each collective ends

  void run(std::span<const Work> all, const GpuSpeed& gpu) {
    const double earlier = device;
    for (const Work& work : all) {
      host += host_seconds(work);
      const double doing = device_seconds(work, gpu);
      if (doing > 0) device = std::max(device, host) + doing;
      if (work.kind == WorkKind::Collective)
        ends[work.collective] = link = std::max({link, device, host}) + link_seconds(work, gpu);
      if (work.kind == WorkKind::CollectiveWait) device = std::max(device, ends[work.collective]);
      if (waits(work))
        host = std::max(host, work.host_waits ? device : earlier) + assumptions().wait_seconds;
    }
  }
};

double seconds_of(std::span<const Work> all, const GpuSpeed& gpu) {
  Timeline timeline;
  timeline.run(all, gpu);
  if (std::none_of(all.begin(), all.end(),
                   [](const Work& work) { return work.host_reads_earlier; }))
    return std::max(timeline.host, timeline.device);
  timeline.run(all, gpu);
  const double before = timeline.device;
  timeline.run(all, gpu);
  return timeline.device - before;
}

void add_collective(const Work& work, double seconds, Prediction& result) {
  result.link_bytes += work.link_bytes;
  result.link_seconds += seconds;
  auto found = std::find_if(result.collectives.begin(), result.collectives.end(),
                            [&](const LinkTotal& total) { return total.name == work.name; });
  if (found == result.collectives.end())
    found = result.collectives.insert(found, {.name = work.name});
  ++found->calls;
  found->link_bytes += work.link_bytes;
  found->seconds += seconds;
}

double seconds_without_links(std::span<const Work> all, const GpuSpeed& gpu) {
  std::vector<Work> without(all.begin(), all.end());
  for (Work& work : without) work.link_bytes = 0;
  return seconds_of(without, gpu);
}

bool is_of_links(const Work& work) {
  return work.kind == WorkKind::Collective || work.kind == WorkKind::CollectiveWait;
}

}  // namespace

double device_seconds(const Work& work, const GpuSpeed& gpu) {
  const Assumptions& assumed = assumptions();
  if (work.kind == WorkKind::Host || is_of_links(work)) return 0;
  if (work.kind == WorkKind::Upload || work.kind == WorkKind::Download)
    return assumed.kernel_seconds + work.total_bytes() / gpu.host_bytes;
  double seconds = work.total_bytes() / (gpu.bytes * assumed.bytes_share);
  if (work.product.batch > 0) {
    const double peak = work.product.on_tensor_cores ? gpu.tensor_flops : gpu.fp32_flops;
    seconds = std::max(seconds, work.flops / (peak * product_share(work.product, gpu)));
  }
  return assumed.kernel_seconds * static_cast<double>(work.launches) + seconds;
}

Prediction predict(std::span<const Work> all, const GpuSpeed& gpu, Launching launching) {
  Prediction result;
  if (launching == Launching::OneByOne) result.seconds = seconds_of(all, gpu);
  std::map<std::string, WorkTotal> totals;
  for (const Work& work : all) {
    const double doing = device_seconds(work, gpu);
    result.host_seconds += host_seconds(work);
    result.device_seconds += doing;
    result.launches += work.launches;
    result.uploads += work.kind == WorkKind::Upload ? 1 : 0;
    result.downloads += work.kind == WorkKind::Download ? 1 : 0;
    result.host_waits += work.host_waits ? 1 : 0;
    result.host_ops += work.kind == WorkKind::Host && !waits(work) ? 1 : 0;
    result.flops += work.flops;
    for (size_t content = 0; content < kContents; ++content)
      result.bytes[content] += work.bytes[content];
    if (work.kind == WorkKind::Collective) add_collective(work, link_seconds(work, gpu), result);
    if (work.kind != WorkKind::Host && !is_of_links(work)) add(work, doing, totals[work.name]);
    if (work.product.batch > 0) add_product(work, doing, result.products);
  }
  if (launching == Launching::AsAGraph) result.seconds = result.device_seconds;
  if (result.link_seconds > 0)
    result.exposed_seconds = result.seconds - seconds_without_links(all, gpu);
  for (auto& [name, total] : totals) result.totals.push_back(std::move(total));
  sort_longest_first(result.totals);
  sort_longest_first(result.products);
  return result;
}

}  // namespace convoy::counting
