// From the boxes of a batch to the records and launches of a kernel (box_record.hpp): the widest unit that both sides
// allow, and pieces where a device binds less than the whole of a buffer. Called by whoever fills a batch, before any
// byte of it is there. Plain arithmetic on the host.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "zarr/box_move.hpp"
#include "zarr/direct/box_record.hpp"

namespace cingulum::zarr {

struct BoxTask {
  BoxMove move;
  std::uint64_t chunk_at = 0;  // where the chunk's bytes begin in the staging memory
  bool is_fill = false;        // there is no chunk: the fill value is put in place
};

// Records [first_record, first_record + records) in one launch, with the bytes [place_begin, place_begin + place_bytes)
// of the region's buffer bound.
struct BoxLaunch {
  std::uint32_t first_record = 0;
  std::uint32_t records = 0;
  std::uint32_t blocks = 0;
  std::uint64_t place_begin = 0;
  std::uint64_t place_bytes = 0;
};

// What a device asks of the records.
struct BoxLimits {
  std::uint64_t place_bytes = 0;       // of the region's buffer
  std::uint64_t binding_bytes = 0;     // a kernel sees at most so many bytes of a buffer; 0: all of it
  std::uint32_t place_misaligned = 0;  // low bits of the address at which the buffer begins
};

class BoxPlan {
 public:
  // `fill` is one element in the byte order of the region; unused where no task is a fill.
  BoxPlan(const BoxLimits& limits, std::span<const std::byte> fill);

  // Boxes without elements add nothing.
  void add(const BoxTask& task);
  // How many records add() would make.
  [[nodiscard]] std::size_t records_for(const BoxTask& task) const;
  [[nodiscard]] std::span<const BoxRecord> records() const { return records_; }
  [[nodiscard]] std::span<const BoxLaunch> launches() const { return launches_; }

 private:
  [[nodiscard]] bool is_one_record(const BoxTask& task) const;
  void add_record(const BoxTask& task);

  BoxLimits limits_;
  std::array<std::uint32_t, 4> fill_{};
  std::vector<BoxRecord> records_;
  std::vector<BoxLaunch> launches_;
};

}  // namespace cingulum::zarr
