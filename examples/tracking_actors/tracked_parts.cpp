#include "examples/tracking_actors/tracked_parts.hpp"

#include <cstring>

namespace cingulum {

Status check_question(const TrackingQuestion& question) {
  if (question.seeds.size() >= most_seeds) {
    return fail(ErrorKind::invalid_argument, "{} seeds in one request (at most 2^32 - 1)", question.seeds.size());
  }
  if (question.directions.empty() || question.directions.size() == question.seeds.size()) return {};
  return fail(ErrorKind::invalid_argument, "{} initial directions for {} seeds", question.directions.size(),
              question.seeds.size());
}

std::uint64_t bytes_of_request(const TrackingQuestion& question) {
  return tracking_request_bytes(question.seeds.size(), !question.directions.empty());
}

void write_request(const TrackingQuestion& question, std::span<std::byte> bytes) {
  const TrackingRequestHead head{question.plan, static_cast<std::uint32_t>(question.seeds.size()),
                                 question.directions.empty() ? 0u : 1u, question.channel, 0u};
  std::byte* at = bytes.data();
  const auto put = [&](const void* from, std::size_t count) {
    if (count > 0) std::memcpy(at, from, count);
    at += count;
  };
  put(&head, sizeof head);
  put(question.seeds.data(), question.seeds.size_bytes());
  put(question.directions.data(), question.directions.size_bytes());
}

Result<TrackingRequestHead> read_request_head(std::span<const std::byte> bytes) {
  TrackingRequestHead head{};
  if (bytes.size() >= sizeof head) std::memcpy(&head, bytes.data(), sizeof head);
  if (bytes.size() < sizeof head || bytes.size() < tracking_request_bytes(head.seeds, head.has_directions != 0u)) {
    return fail(ErrorKind::invalid_argument, "a request of {} bytes is too short for its {} seeds", bytes.size(),
                head.seeds);
  }
  return head;
}

std::uint64_t bytes_of_part(const StreamlineBatch& batch) {
  return tracked_part_bytes(batch.streamline_count(), batch.offsets.back());
}

void write_part(const StreamlineBatch& batch, std::span<std::byte> bytes) {
  const auto lines = static_cast<std::uint32_t>(batch.streamline_count());
  const TrackedPartHead head{static_cast<std::uint32_t>(batch.seeds.first),
                             static_cast<std::uint32_t>(batch.seeds.count),
                             lines,
                             static_cast<std::uint32_t>(batch.offsets.back()),
                             lines,
                             static_cast<std::uint32_t>(batch.seeds_outside),
                             static_cast<std::uint32_t>(batch.seeds_without_direction),
                             0u,
                             batch.steps};
  std::memcpy(bytes.data(), &head, sizeof head);
  std::byte* at = bytes.data() + sizeof head;
  for (std::size_t i = 0; i < lines; ++i) {
    const TrackedLine line{static_cast<std::uint32_t>(batch.seed_index[i]),
                           static_cast<std::uint32_t>(batch.offsets[i + 1] - batch.offsets[i]), batch.seed_point[i],
                           batch.end_reason[2 * i] | std::uint32_t{batch.end_reason[2 * i + 1]} << 8u};
    std::memcpy(at, &line, sizeof line);
    at += sizeof line;
  }
  if (!batch.points.empty()) std::memcpy(at, batch.points.data(), batch.points.size() * sizeof(float));
}

Result<TrackedPartHead> read_part(std::span<const std::byte> bytes, StreamlineBatch& batch) {
  TrackedPartHead head{};
  if (bytes.size() >= sizeof head) std::memcpy(&head, bytes.data(), sizeof head);
  if (bytes.size() < sizeof head || bytes.size() < tracked_part_bytes(head.lines, head.points)) {
    return fail(ErrorKind::corrupt, "a buffer of {} bytes is too short for {} streamlines of {} points", bytes.size(),
                head.lines, head.points);
  }
  const std::byte* at = bytes.data() + sizeof head;
  std::uint64_t points = 0;
  for (std::uint32_t i = 0; i < head.lines; ++i) {
    TrackedLine line{};
    std::memcpy(&line, at, sizeof line);
    at += sizeof line;
    points += line.points;
    batch.offsets.push_back(batch.offsets.back() + line.points);
    batch.seed_index.push_back(line.seed_index);
    batch.seed_point.push_back(line.seed_point);
    batch.end_reason.push_back(static_cast<std::uint8_t>(line.reasons));
    batch.end_reason.push_back(static_cast<std::uint8_t>(line.reasons >> 8u));
  }
  if (points != head.points) {
    return fail(ErrorKind::corrupt, "streamlines of {} points in a buffer of {}", points, head.points);
  }
  const std::size_t before = batch.points.size();
  batch.points.resize(before + 3 * static_cast<std::size_t>(points));
  if (points > 0) std::memcpy(batch.points.data() + before, at, 3 * sizeof(float) * static_cast<std::size_t>(points));
  batch.seeds = {head.first_seed, head.seeds};
  batch.steps += head.steps;
  batch.seeds_outside = head.seeds_outside;
  batch.seeds_without_direction = head.seeds_without_direction;
  return head;
}

}  // namespace cingulum
