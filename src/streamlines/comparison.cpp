#include "streamlines/comparison.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "formats/tractogram.hpp"
#include "streamlines/density_map.hpp"
#include "streamlines/lengths.hpp"
#include "streamlines/midline.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;

void count_voxels(std::vector<std::uint32_t>& density, const std::vector<std::int64_t>& voxels) {
  for (const std::int64_t voxel : voxels) {
    std::uint32_t& count = density[static_cast<std::size_t>(voxel)];
    if (count < std::numeric_limits<std::uint32_t>::max()) ++count;
  }
}

std::string place_text(const float* p) {
  return fmt::format("({} {} {})", p[0], p[1], p[2]);
}

// Streamlines of a file one after the other, whatever the batches.
class StreamlineStream {
 public:
  static Result<StreamlineStream> open(const std::filesystem::path& path) {
    StreamlineStream stream;
    CGL_TRY_ASSIGN(stream.reader_, TractogramReader::open(path));
    return stream;
  }

  Result<bool> next() {
    ++at_;
    if (at_ < batch_.streamline_count() && begun_) return true;
    begun_ = true;
    at_ = 0;
    return reader_->next(batch_, default_batch_points, true);
  }

  [[nodiscard]] std::span<const float> positions() const { return batch_.streamline(at_); }
  // Bytes of field `field` for this streamline.
  [[nodiscard]] std::span<const std::byte> streamline_data(std::size_t field) const {
    const DataField& about = reader_->layout().streamline_fields[field];
    const std::size_t bytes = static_cast<std::size_t>(about.columns) * about.type.bytes();
    return std::span(batch_.streamline_data[field]).subspan(at_ * bytes, bytes);
  }
  [[nodiscard]] std::span<const std::byte> point_data(std::size_t field) const {
    const DataField& about = reader_->layout().point_fields[field];
    const std::size_t bytes = static_cast<std::size_t>(about.columns) * about.type.bytes();
    const auto first = static_cast<std::size_t>(batch_.offsets[at_]);
    const auto count = static_cast<std::size_t>(batch_.offsets[at_ + 1]) - first;
    return std::span(batch_.point_data[field]).subspan(first * bytes, count * bytes);
  }
  [[nodiscard]] TractogramReader& reader() { return *reader_; }

 private:
  std::unique_ptr<TractogramReader> reader_;
  TractogramBatch batch_;
  std::size_t at_ = 0;
  bool begun_ = false;
};

bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

// Fields that both files have, by name, type and columns.
struct SharedField {
  std::string name;
  std::size_t in_a = 0;
  std::size_t in_b = 0;
};

std::optional<std::string> match_fields(std::string_view what, const std::vector<DataField>& a,
                                        const std::vector<DataField>& b, std::vector<SharedField>& shared) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto other =
        std::find_if(b.begin(), b.end(), [&](const DataField& field) { return field.name == a[i].name; });
    if (other == b.end()) return fmt::format("data per {} '{}' are in the first file only", what, a[i].name);
    if (!(*other == a[i])) {
      return fmt::format("data per {} '{}' have {} x {} in the first file, {} x {} in the second", what, a[i].name,
                         a[i].columns, a[i].type.name(), other->columns, other->type.name());
    }
    shared.push_back({a[i].name, i, static_cast<std::size_t>(other - b.begin())});
  }
  for (const DataField& field : b) {
    const bool known =
        std::any_of(a.begin(), a.end(), [&](const DataField& other) { return other.name == field.name; });
    if (!known) return fmt::format("data per {} '{}' are in the second file only", what, field.name);
  }
  return std::nullopt;
}

std::optional<std::string> position_difference(std::span<const float> a, std::span<const float> b, std::uint64_t s) {
  if (a.size() != b.size()) {
    return fmt::format("streamline {} has {} points in the first file, {} in the second", s, a.size() / 3,
                       b.size() / 3);
  }
  if (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0) return std::nullopt;
  for (std::size_t i = 0; i < a.size(); i += 3) {
    if (std::memcmp(a.data() + i, b.data() + i, 3 * sizeof(float)) == 0) continue;
    const Vec3d away = Vec3d{a[i], a[i + 1], a[i + 2]} - Vec3d{b[i], b[i + 1], b[i + 2]};
    return fmt::format("streamline {}, point {} of {}: {} against {}, {:.3g} mm apart", s, i / 3, a.size() / 3,
                       place_text(&a[i]), place_text(&b[i]), length(away));
  }
  return std::nullopt;
}

}  // namespace

double middle_world_x(const ImageGeometry& grid) {
  const auto middle = [&](std::size_t axis) { return (static_cast<double>(grid.size[axis]) - 1) / 2; };
  return grid.voxel_to_world.apply({middle(0), middle(1), middle(2)}).x;
}

Result<TractogramSummary> summarise_tractogram(const std::filesystem::path& path, const ImageGeometry& grid,
                                               double midline, const CancelToken& cancel) {
  return catch_out_of_memory([&]() -> Result<TractogramSummary> {
    TractogramSummary summary;
    summary.path = path;
    CGL_TRY_ASSIGN(const Affine world_to_voxel, grid.voxel_to_world.inverse());
    CGL_TRY_ASSIGN(const std::unique_ptr<TractogramReader> reader, TractogramReader::open(path));
    CGL_TRY_ASSIGN(const std::vector<TractogramGroup> groups, reader->groups());
    const auto voxels = static_cast<std::size_t>(grid.voxel_count());
    summary.density.assign(voxels, 0);

    // Which groups a streamline belongs to; groups may overlap.
    std::vector<std::pair<std::uint32_t, std::vector<std::uint32_t>*>> memberships;
    for (const TractogramGroup& group : groups) {
      std::vector<std::uint32_t>& density = summary.group_density[group.name];
      density.assign(voxels, 0);
      for (const std::uint32_t streamline : group.streamlines) memberships.emplace_back(streamline, &density);
    }
    std::stable_sort(memberships.begin(), memberships.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::size_t membership = 0;

    LengthHistogram lengths;
    TractogramBatch batch;
    std::vector<std::int64_t> visited;
    for (;;) {
      CGL_TRY(cancel.check());
      CGL_TRY_ASSIGN(const bool more, reader->next(batch, default_batch_points, true));
      if (!more) break;
      for (std::size_t s = 0; s < batch.streamline_count(); ++s) {
        const std::span<const float> points = batch.streamline(s);
        if (!collect_passed_voxels(grid, world_to_voxel, points, visited)) ++summary.outside_grid;
        count_voxels(summary.density, visited);
        for (; membership < memberships.size() && memberships[membership].first == summary.streamlines; ++membership) {
          count_voxels(*memberships[membership].second, visited);
        }
        ++summary.streamlines;
        summary.points += points.size() / 3;
        lengths.add(length_in_mm(points));
        const MidlineSides sides = midline_sides(points, midline);
        if (sides.ends_apart) ++summary.commissural;
        if (sides.crosses) ++summary.crossing_midline;
      }
    }
    summary.mean_length_mm = lengths.mean_mm();
    summary.median_length_mm = lengths.quantile_mm(0.5);
    summary.smallest_length_mm = lengths.smallest_mm();
    summary.largest_length_mm = lengths.largest_mm();
    return summary;
  });
}

VoxelOverlap voxel_overlap(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
  VoxelOverlap overlap;
  double visits_a = 0, visits_b = 0, shared_a = 0, shared_b = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    overlap.voxels_a += a[i] > 0 ? 1U : 0U;
    overlap.voxels_b += b[i] > 0 ? 1U : 0U;
    visits_a += a[i];
    visits_b += b[i];
    if (a[i] == 0 || b[i] == 0) continue;
    ++overlap.shared;
    shared_a += a[i];
    shared_b += b[i];
  }
  const std::uint64_t both = overlap.voxels_a + overlap.voxels_b;
  overlap.dice = both > 0 ? 2 * static_cast<double>(overlap.shared) / static_cast<double>(both) : 1;
  const double share_a = visits_a > 0 ? shared_a / visits_a : 0;
  const double share_b = visits_b > 0 ? shared_b / visits_b : 0;
  overlap.weighted_dice = both > 0 ? (share_a + share_b) / 2 : 1;
  return overlap;
}

Result<std::optional<std::string>> first_difference(const std::filesystem::path& a, const std::filesystem::path& b,
                                                    const CancelToken& cancel) {
  return catch_out_of_memory([&]() -> Result<std::optional<std::string>> {
    CGL_TRY_ASSIGN(StreamlineStream first, StreamlineStream::open(a));
    CGL_TRY_ASSIGN(StreamlineStream second, StreamlineStream::open(b));
    std::vector<SharedField> point_fields;
    std::vector<SharedField> streamline_fields;
    const TractogramLayout& layout_a = first.reader().layout();
    const TractogramLayout& layout_b = second.reader().layout();
    if (auto text = match_fields("point", layout_a.point_fields, layout_b.point_fields, point_fields)) return text;
    if (auto text =
            match_fields("streamline", layout_a.streamline_fields, layout_b.streamline_fields, streamline_fields)) {
      return text;
    }
    std::uint64_t s = 0;
    for (;; ++s) {
      if (s % 65536 == 0) CGL_TRY(cancel.check());
      CGL_TRY_ASSIGN(const bool more_a, first.next());
      CGL_TRY_ASSIGN(const bool more_b, second.next());
      if (more_a != more_b) {
        return fmt::format("the {} file ends after {} streamlines, the {} goes on", more_a ? "second" : "first", s,
                           more_a ? "first" : "second");
      }
      if (!more_a) break;
      if (auto text = position_difference(first.positions(), second.positions(), s)) return text;
      for (const SharedField& field : streamline_fields) {
        if (!same_bytes(first.streamline_data(field.in_a), second.streamline_data(field.in_b))) {
          return fmt::format("streamline {}: its '{}' differs", s, field.name);
        }
      }
      for (const SharedField& field : point_fields) {
        if (!same_bytes(first.point_data(field.in_a), second.point_data(field.in_b))) {
          return fmt::format("streamline {}: '{}' of its points differs", s, field.name);
        }
      }
    }
    CGL_TRY_ASSIGN(std::vector<TractogramGroup> groups_a, first.reader().groups());
    CGL_TRY_ASSIGN(std::vector<TractogramGroup> groups_b, second.reader().groups());
    const auto by_name = [](const TractogramGroup& x, const TractogramGroup& y) { return x.name < y.name; };
    std::sort(groups_a.begin(), groups_a.end(), by_name);
    std::sort(groups_b.begin(), groups_b.end(), by_name);
    for (std::size_t g = 0; g < std::max(groups_a.size(), groups_b.size()); ++g) {
      if (g >= groups_a.size() || (g < groups_b.size() && groups_b[g].name < groups_a[g].name)) {
        return fmt::format("group '{}' is in the second file only", groups_b[g].name);
      }
      if (g >= groups_b.size() || groups_a[g].name < groups_b[g].name) {
        return fmt::format("group '{}' is in the first file only", groups_a[g].name);
      }
      if (groups_a[g].streamlines != groups_b[g].streamlines) {
        return fmt::format("group '{}' holds different streamlines", groups_a[g].name);
      }
    }
    return std::nullopt;
  });
}

}  // namespace cingulum
