#include "view/field_peaks.hpp"

#include <algorithm>
#include <span>

#include "dmri/models/peaks.hpp"
#include "dmri/models/tensor_kernel.hpp"
#include "view/field_slice.hpp"
#include "view/view_messages.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;

struct SlicePeaks {
  std::size_t most = 0;        // of a voxel
  std::vector<float> vectors;  // x y z, image axes, the length is the amplitude; zeros where there are fewer
};

Result<SlicePeaks> peaks_of_records(const Field& field, std::span<const std::uint32_t> records, ThreadPool& pool) {
  SlicePeaks peaks;
  switch (field.kind) {
    case FieldKind::harmonics:
    case FieldKind::amplitudes: {
      CGL_TRY_ASSIGN(const PeakFinder finder, PeakFinder::create(field.sphere, {}));
      CGL_TRY_ASSIGN(const MappedVector<float> values,
                     amplitudes_of_records(field, records, field.sphere.directions, pool));
      peaks.most = finder.max_peaks();
      peaks.vectors = finder.peak_vectors(values, pool);
      return peaks;
    }
    case FieldKind::peaks: {
      peaks.most = field.channels / 3;
      for (const std::uint32_t record : records) {
        for (std::size_t i = 0; i < 3 * peaks.most; ++i) peaks.vectors.push_back(number_of_record(field, record, i));
      }
      return peaks;
    }
    case FieldKind::tensor: {
      peaks.most = 1;
      for (const std::uint32_t record : records) {
        double tensor[6], values[3], vectors[9];
        for (std::size_t i = 0; i < 6; ++i) tensor[i] = static_cast<double>(number_of_record(field, record, i));
        symmetric_eigen(tensor, values, vectors);
        for (std::size_t i = 0; i < 3; ++i) {
          peaks.vectors.push_back(values[0] > 0 ? static_cast<float>(vectors[i]) : 0.0f);
        }
      }
      return peaks;
    }
    case FieldKind::bootstrap: break;
  }
  return fail(ErrorKind::unavailable, "the peaks of a bootstrap field are drawn anew for every streamline");
}

}  // namespace

Result<std::vector<std::byte>> peaks_of_slice(const Field& field, int axis, double mm, ThreadPool& pool) {
  return catch_out_of_memory([&]() -> Result<std::vector<std::byte>> {
    CGL_TRY_ASSIGN(const FieldSlice slice, voxels_of_slice(field, axis, mm));
    CGL_TRY_ASSIGN(const SlicePeaks peaks, peaks_of_records(field, slice.records, pool));
    const double half = 0.5 * field.geometry.smallest_edge_mm();
    std::vector<std::uint64_t> offsets = {0};
    std::vector<float> positions;
    std::vector<std::uint32_t> voxels;
    for (std::size_t v = 0; v < slice.records.size(); ++v) {
      const std::span<const float> own(peaks.vectors.data() + 3 * peaks.most * v, 3 * peaks.most);
      const auto vector = [&](std::size_t p) {
        return Vec3d{static_cast<double>(own[3 * p]), static_cast<double>(own[3 * p + 1]),
                     static_cast<double>(own[3 * p + 2])};
      };
      double greatest = 0;
      for (std::size_t p = 0; p < peaks.most; ++p) greatest = std::max(greatest, length(vector(p)));
      for (std::size_t p = 0; p < peaks.most; ++p) {
        if (!(length(vector(p)) > 0)) continue;
        const Vec3d way = to_world_axes(field.geometry, vector(p)) * (half / greatest);
        for (const Vec3d end : {slice.centres[v] - way, slice.centres[v] + way}) {
          const numerics::Vec3 point = rounded(end);
          positions.insert(positions.end(), {point.x, point.y, point.z});
        }
        offsets.push_back(offsets.back() + 2);
        voxels.push_back(static_cast<std::uint32_t>(v));
      }
    }
    const std::vector<std::byte> reasons(2 * voxels.size(), std::byte{0});
    return view::make_batch_message(0, {.offsets = offsets,
                                        .positions = positions,
                                        .seed_index = std::as_bytes(std::span(voxels)),
                                        .end_reasons = reasons});
  });
}

}  // namespace cingulum
