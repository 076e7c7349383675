// SPDX-License-Identifier: Apache-2.0
//
// Messages are Trace{packet=1}, TracePacket, TrackDescriptor, TrackEvent and DebugAnnotation of Perfetto; field numbers stand beside each
// use, from protos/perfetto/trace of github.com/google/perfetto.
#include "convoy/profile/perfetto_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "convoy/base/protobuf_fields.h"

namespace convoy::profile {
namespace {

enum EventType : int64_t { kSliceBegin = 1, kSliceEnd = 2, kCounter = 4 };
constexpr int64_t kExplicitOrder = 3;  // TrackDescriptor.ChildTracksOrdering

// What a slice says when it is clicked.
struct Fact {
  std::string_view name;
  int64_t value;
};

class Writer {
 public:
  // TrackDescriptor{uuid=1, name=2, process=3{pid=1, process_name=6}, child_ordering=11, sibling_order_rank=12}.
  uint64_t add_process(const std::string& name, int64_t pid) {
    std::string process;
    put_integer(process, 1, pid);
    put_bytes(process, 6, name);
    std::string track = new_track(name);
    put_bytes(track, 3, process);
    put_integer(track, 11, kExplicitOrder);
    put_integer(track, 12, pid);
    put_descriptor(track);
    return num_tracks_;
  }

  // parent_uuid=5.
  uint64_t add_track(const std::string& name, uint64_t process, int64_t place) {
    std::string track = new_track(name);
    put_integer(track, 5, static_cast<int64_t>(process));
    put_integer(track, 12, place);
    put_descriptor(track);
    return num_tracks_;
  }

  // counter=8{unit_name=6}.
  uint64_t add_counter(const std::string& name, const std::string& unit, uint64_t process) {
    std::string counter;
    put_bytes(counter, 6, unit);
    std::string track = new_track(name);
    put_integer(track, 5, static_cast<int64_t>(process));
    put_bytes(track, 8, counter);
    put_descriptor(track);
    return num_tracks_;
  }

  // TrackEvent{debug_annotations=4{name=10, int_value=4}, type=9, track_uuid=11, categories=22, name=23}.
  void add_slice(uint64_t track, std::string_view category, std::string_view name, const Span& span,
                 std::initializer_list<Fact> facts = {}) {
    std::string begin;
    for (const Fact& fact : facts) {
      std::string annotation;
      put_bytes(annotation, 10, fact.name);
      put_integer(annotation, 4, fact.value);
      put_bytes(begin, 4, annotation);
    }
    put_bytes(begin, 22, category);
    put_bytes(begin, 23, name);
    put_event(track, kSliceBegin, span.begin_ns, std::move(begin));
    put_event(track, kSliceEnd, span.end_ns, {});
  }

  // double_counter_value=44.
  void add_value(uint64_t track, int64_t time_ns, double value) {
    std::string event;
    put_double(event, 44, value);
    put_event(track, kCounter, time_ns, std::move(event));
  }

  std::string take() { return std::move(out_); }

 private:
  std::string new_track(const std::string& name) {
    std::string track;
    put_integer(track, 1, static_cast<int64_t>(++num_tracks_));
    put_bytes(track, 2, name);
    return track;
  }

  void put_descriptor(const std::string& track) {
    std::string packet;
    put_bytes(packet, 60, track);  // track_descriptor
    put_packet(std::move(packet));
  }

  void put_event(uint64_t track, EventType type, int64_t time_ns, std::string event) {
    put_integer(event, 9, type);
    put_integer(event, 11, static_cast<int64_t>(track));
    std::string packet;
    put_integer(packet, 8, time_ns);  // timestamp
    put_bytes(packet, 11, event);     // track_event
    put_packet(std::move(packet));
  }

  void put_packet(std::string packet) {
    put_integer(packet, 10, 1);  // trusted_packet_sequence_id
    put_bytes(out_, 1, packet);
  }

  std::string out_;
  uint64_t num_tracks_ = 0;
};

void add_spans(Writer& writer, uint64_t track, std::string_view category,
               const std::vector<NamedSpan>& spans) {
  for (const NamedSpan& span : spans) writer.add_slice(track, category, span.name, span.span);
}

// Slices of a track nest or follow each other, collectives do neither: each goes to the first track that is free when it begins.
void add_collectives(Writer& writer, const RankTrace& trace, uint64_t process, int64_t place) {
  std::vector<std::pair<uint64_t, int64_t>> lanes;  // track, and when it is free
  for (const TracedCollective& collective : trace.collectives) {
    auto lane = std::find_if(lanes.begin(), lanes.end(), [&collective](const auto& candidate) {
      return candidate.second <= collective.flight.begin_ns;
    });
    if (lane == lanes.end()) {
      const uint64_t track = writer.add_track(
          fmt::format("collectives {}", lanes.size() + 1), process,
          place + static_cast<int64_t>(lanes.size()));
      lane = lanes.insert(lanes.end(), {track, 0});
    }
    lane->second = collective.flight.end_ns;
    writer.add_slice(lane->first, "collective", collective.name, collective.flight,
                     {{"bytes", collective.bytes}, {"sequence", collective.sequence}});
  }
}

void add_rank(Writer& writer, const RankTrace& trace) {
  // Perfetto takes 0 for the idle process.
  const uint64_t process =
      writer.add_process(fmt::format("rank {} ({})", trace.rank, trace.host), trace.rank + 1);
  add_spans(writer, writer.add_track("steps", process, 0), "step", trace.steps);
  add_spans(writer, writer.add_track("phases", process, 1), "phase", trace.phases);
  const uint64_t waits = writer.add_track("waits", process, 2);
  for (const TracedCollective& collective : trace.collectives)
    if (collective.wait.length_ns() > 0)
      writer.add_slice(waits, "wait", collective.name, collective.wait);
  add_collectives(writer, trace, process, 3);
}

}  // namespace

std::string perfetto_trace(const std::vector<RankTrace>& traces,
                           const std::vector<DeviceCounter>& counters) {
  Writer writer;
  for (const RankTrace& trace : traces) add_rank(writer, trace);
  std::string device;
  uint64_t process = 0;
  int64_t pid = 1'000'000;  // beyond any rank
  for (const DeviceCounter& counter : counters) {
    if (counter.device != device || process == 0)
      process = writer.add_process(counter.device, ++pid);
    device = counter.device;
    const uint64_t track = writer.add_counter(counter.name, counter.unit, process);
    for (const auto& [time_ns, value] : counter.values) writer.add_value(track, time_ns, value);
  }
  return writer.take();
}

}  // namespace convoy::profile
