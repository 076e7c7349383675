// SPDX-License-Identifier: Apache-2.0
//
// Messages are Trace{packet=1}, TracePacket, TrackDescriptor, TrackEvent and DebugAnnotation of
// Perfetto; field numbers stand beside each use, from protos/perfetto/trace of
// github.com/google/perfetto.
#include "convoy/machine/profile/perfetto_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "convoy/core/base/protobuf_fields.h"

namespace convoy::profile {
namespace {

enum EventType : int64_t { kSliceBegin = 1, kSliceEnd = 2, kCounter = 4 };
constexpr int64_t kExplicitOrder = 3;  // TrackDescriptor.ChildTracksOrdering

// A detail that a slice shows when it is clicked.
struct Fact {
  std::string_view name;
  int64_t value;
};

class Writer {
 public:
  // TrackDescriptor{uuid=1, name=2, child_ordering=11, sibling_order_rank=12}. The group is not a
  // process: the viewer shows the tracks of a process by name, folded.
  uint64_t add_group(const std::string& name, int64_t place) {
    std::string track = new_track(name);
    put_integer(track, 11, kExplicitOrder);
    put_integer(track, 12, place);
    put_descriptor(track);
    return num_tracks_;
  }

  // parent_uuid=5.
  uint64_t add_track(const std::string& name, uint64_t group, int64_t place) {
    std::string track = new_track(name);
    put_integer(track, 5, static_cast<int64_t>(group));
    put_integer(track, 12, place);
    put_descriptor(track);
    return num_tracks_;
  }

  // counter=8{unit_name=6}.
  uint64_t add_counter(const std::string& name, const std::string& unit, uint64_t group) {
    std::string counter;
    put_bytes(counter, 6, unit);
    std::string track = new_track(name);
    put_integer(track, 5, static_cast<int64_t>(group));
    put_bytes(track, 8, counter);
    put_descriptor(track);
    return num_tracks_;
  }

  void add_slice(uint64_t track, std::string_view category, std::string_view name, const Span& span,
                 std::initializer_list<Fact> facts = {}) {
    begin_slice(track, category, name, span.begin_ns, facts);
    end_slice(track, span.end_ns);
  }

  // A slice that begins before the end of another slice of its track is inside that slice.
  // TrackEvent{debug_annotations=4{name=10, int_value=4}, type=9, track_uuid=11, categories=22,
  // name=23}.
  void begin_slice(uint64_t track, std::string_view category, std::string_view name,
                   int64_t time_ns, std::initializer_list<Fact> facts = {}) {
    std::string begin;
    for (const Fact& fact : facts) {
      std::string annotation;
      put_bytes(annotation, 10, fact.name);
      put_integer(annotation, 4, fact.value);
      put_bytes(begin, 4, annotation);
    }
    put_bytes(begin, 22, category);
    put_bytes(begin, 23, name);
    put_event(track, kSliceBegin, time_ns, std::move(begin));
  }
  void end_slice(uint64_t track, int64_t time_ns) { put_event(track, kSliceEnd, time_ns, {}); }

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

// Steps, and their phases within them.
void add_steps(Writer& writer, uint64_t track, const RankTrace& trace) {
  size_t at = 0;
  for (const NamedSpan& step : trace.steps) {
    writer.begin_slice(track, "step", step.name, step.span.begin_ns);
    for (; at < trace.phases.size() && trace.phases[at].span.end_ns <= step.span.end_ns; ++at)
      writer.add_slice(track, "phase", trace.phases[at].name, trace.phases[at].span);
    writer.end_slice(track, step.span.end_ns);
  }
}

// Slices of a track must nest or follow each other. Collectives do neither, so each goes to the
// first track that is free when it begins. Tracks of one name are shown as one.
void add_collectives(Writer& writer, const RankTrace& trace, uint64_t group, int64_t place) {
  std::vector<std::pair<uint64_t, int64_t>> lanes;  // track, and when it is free
  for (const TracedCollective& collective : trace.collectives) {
    auto lane = std::find_if(lanes.begin(), lanes.end(), [&collective](const auto& candidate) {
      return candidate.second <= collective.flight.begin_ns;
    });
    if (lane == lanes.end()) {
      lane =
          lanes.insert(lanes.end(), {writer.add_track("collectives under way", group, place), 0});
    }
    lane->second = collective.flight.end_ns;
    writer.add_slice(lane->first, "collective", collective.name, collective.flight,
                     {{"bytes", collective.bytes}, {"sequence", collective.sequence}});
  }
}

void add_rank(Writer& writer, const RankTrace& trace) {
  const uint64_t group =
      writer.add_group(fmt::format("rank {} ({})", trace.rank, trace.host), trace.rank);
  add_steps(writer, group, trace);
  const uint64_t waits = writer.add_track("waits for collectives", group, 0);
  for (const TracedCollective& collective : trace.collectives)
    if (collective.wait.length_ns() > 0)
      writer.add_slice(waits, "wait", collective.name, collective.wait);
  add_collectives(writer, trace, group, 1);
}

}  // namespace

std::string perfetto_trace(const std::vector<RankTrace>& traces,
                           const std::vector<DeviceCounter>& counters) {
  Writer writer;
  for (const RankTrace& trace : traces) add_rank(writer, trace);
  std::string device;
  uint64_t group = 0;
  int64_t place = traces.empty() ? 0 : traces.back().rank;
  for (const DeviceCounter& counter : counters) {
    if (counter.device != device || group == 0) group = writer.add_group(counter.device, ++place);
    device = counter.device;
    const uint64_t track = writer.add_counter(counter.name, counter.unit, group);
    for (const auto& [time_ns, value] : counter.values) writer.add_value(track, time_ns, value);
  }
  return writer.take();
}

}  // namespace convoy::profile
