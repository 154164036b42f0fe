// What OCT reconstruction does with voxels, from device memory to device memory, with the same bits on every device:
// filters, resizing, the tissue interface, rolls, projections, correlations, transforms, percentiles, blending; and
// tiles that are simulated. Called by the stages and verbs. It reads no files and fits nothing: sums come to the host,
// small fits happen there.
//
// Every member that takes a queue returns once its work is queued, unless it returns numbers: then it waits for them.
// Volumes stay until the work is done. `to` has its shape and memory beforehand and is another volume than `from`.
// Voxels are finite.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "device/device.hpp"
#include "device/memory_pool.hpp"
#include "oct/device_volume.hpp"
#include "oct/placement/ncc_window.hpp"

namespace cingulum::oct {

class KernelBackend;  // oct/kernel_backend.hpp
struct AxisStep;      // oct/axis_taps.hpp
struct AxisTaps;
struct TileVoxelsRecord;  // oct/kernel/kernel_records.hpp

enum class Alignment {
  center,  // voxels are cells: c = (o + 1/2) in/out - 1/2, as scikit-image has it
  corner,  // first and last samples coincide: c = o (in - 1)/(out - 1), as scipy.ndimage.zoom has it
};

struct ResizeOptions {
  int order = 1;  // 0, 1 or 3
  bool anti_aliasing = true;
  Alignment alignment = Alignment::center;
  // For comparisons alone, with corners aligned: samples that SciPy rounds past the last one are zero, as in SciPy.
  bool compat_edge_zero = false;
};

struct FilterBoundary {
  Boundary mode = Boundary::reflect;
  float value = 0.0f;  // of Boundary::constant
};

struct InterfaceOptions {
  std::uint32_t box_xy = 15;           // voxels; 0 or 1: no box
  double sigma_z = 2.0;                // voxels
  std::uint32_t derivative_order = 1;  // along z
  bool use_log = true;
  bool detect_cutting_errors = false;
  bool sub_voxel = false;  // the parabola's peak plus half of sigma_z, instead of the next whole number
};

struct RollOptions {
  bool circular = true;
  float fill = 0.0f;  // what stands beyond the ends when not circular
};

enum class Projection { mean, max };

// A sum of products over a rectangle of two planes, by plane sums (numerics/plane_sum.hpp). Rectangles of equal size
// begin at a_y, a_x in plane a_z of one volume and at b_y, b_x in plane b_z of the other.
enum class ProductKind : std::uint32_t {
  sum,           // of a
  square,        // of a a
  product,       // of a b
  other_sum,     // of b
  other_square,  // of b b
};
struct PlaneProduct {
  ProductKind kind = ProductKind::product;
  std::uint32_t a_z = 0, a_y = 0, a_x = 0;
  std::uint32_t b_z = 0, b_y = 0, b_x = 0;
  std::uint32_t rows = 0, columns = 0;
};

// Two planes, and how far one is shifted against the other.
struct PlanePair {
  std::uint32_t fixed_z = 0, moving_z = 0;
  ShiftWindow window;
};

struct OverlapSearch {
  std::int64_t expected = 0;  // planes
  std::int64_t lowest = 0;    // from there ...
  std::int64_t highest = 0;   // ... to here; nothing is searched unless lowest < highest
};
struct OverlapFound {
  std::int64_t planes = 0;
  double correlation = 0.0;
  std::vector<double> correlations;  // of lowest, lowest + 1, ...
};

struct Offset3 {
  std::int32_t z = 0, y = 0, x = 0;
};

struct SampleOptions {
  int order = 1;  // 0, 1 or 3
  Boundary boundary = Boundary::constant;
  float value = 0.0f;  // outside, with Boundary::constant
};

// All members: one caller at a time. What is left over in between is used again in the order of the queue: whoever has
// several queues makes an OctKernels for each.
class OctKernels {
 public:
  // `most_elements` plays a device that binds no more numbers than that at once.
  [[nodiscard]] static Result<std::unique_ptr<OctKernels>> create(Device& device,
                                                                  std::uint64_t most_elements = UINT64_MAX);
  ~OctKernels();
  OctKernels(const OctKernels&) = delete;
  OctKernels& operator=(const OctKernels&) = delete;

  [[nodiscard]] Device& device() const { return device_; }
  // The most numbers that a launch binds at once.
  [[nodiscard]] std::uint64_t most_elements() const { return most_elements_; }
  // Memory for a volume; it goes back to a pool of this object when the last owner lets go.
  [[nodiscard]] Result<DeviceVolume> allocate(VolumeShape shape);
  // Both wait until the copy is done.
  [[nodiscard]] Result<DeviceVolume> upload(Queue& queue, VolumeShape shape, std::span<const float> voxels);
  [[nodiscard]] Result<std::vector<float>> download(Queue& queue, const DeviceVolume& volume);
  // The largest volume that kernels take whole; larger ones go in parts where a kernel is able to.
  [[nodiscard]] std::uint64_t most_voxels() const { return most_elements_; }
  // Gives memory back to the device that no volume holds. No work is under way.
  [[nodiscard]] Status trim();

  // Filters, separable: z, then y, then x.
  [[nodiscard]] Status resize(Queue& queue, const DeviceVolume& from, DeviceVolume& to, const ResizeOptions& options);
  // Derivatives of the Gaussian by order (0 to 3) along each axis; the window ends at `truncate` sigma.
  [[nodiscard]] Status filter_gaussian(Queue& queue, const DeviceVolume& from, DeviceVolume& to,
                                       const std::array<double, 3>& sigma, const std::array<std::uint32_t, 3>& orders,
                                       const FilterBoundary& boundary, double truncate = 4.0);
  [[nodiscard]] Status filter_box(Queue& queue, const DeviceVolume& from, DeviceVolume& to,
                                  const std::array<std::uint32_t, 3>& sizes, const FilterBoundary& boundary);
  // Planes [first, first + to.shape.z) of `from`.
  [[nodiscard]] Status crop_planes(Queue& queue, const DeviceVolume& from, std::uint32_t first, DeviceVolume& to);

  // The tissue interface of every A-line, in voxels, as a map of one plane; whole numbers unless sub_voxel. Where a
  // mask (0 or not) is given, the samples outside are left out of each A-line, and their response is 0.
  [[nodiscard]] Result<DeviceVolume> find_interface(Queue& queue, const DeviceVolume& volume,
                                                    const InterfaceOptions& options,
                                                    const DeviceVolume* mask = nullptr);
  // Each A-line by its own number of voxels c: out[z] = (1 - f) in[z + k] + f in[z + k + 1], k = floor(c), f = c - k.
  [[nodiscard]] Status roll_lines(Queue& queue, const DeviceVolume& from, const DeviceVolume& by, DeviceVolume& to,
                                  const RollOptions& options);
  // Reorders voxels from the order in which lines are acquired, (y, line, z) with z fastest, to (z, y, x): column x is
  // line first_line + x of its row, and behind the last line the first one follows.
  [[nodiscard]] Status order_lines(Queue& queue, const DeviceVolume& from, std::uint32_t first_line, DeviceVolume& to);
  // Sums along each A-line by its surface (a map, in planes): as many layers of a few planes below it as `to` has
  // planes, less two; then of the first `depth` planes below it, and of the planes that lie clear above it. What each
  // of them holds: oct/kernel/layer_line.hpp.
  [[nodiscard]] Status sum_layers(Queue& queue, const DeviceVolume& volume, const DeviceVolume& surface,
                                  std::uint32_t depth, DeviceVolume& to);
  // Planes [first, first + to.shape.z) of `from`, each voxel over the map's value of its A-line.
  [[nodiscard]] Status divide_by_map(Queue& queue, const DeviceVolume& from, std::uint32_t first,
                                     const DeviceVolume& map, DeviceVolume& to);
  // Projects along z to a map. The mean is a lane sum, divided.
  [[nodiscard]] Status project(Queue& queue, const DeviceVolume& from, DeviceVolume& to, Projection projection);

  // Products of one launch: a grid of WebGPU has fewer than 2^16 along an axis.
  static constexpr std::size_t most_products = 32768;
  // Values less `a_offset` and `b_offset` enter the products.
  [[nodiscard]] Result<std::vector<float>> plane_products(Queue& queue, const DeviceVolume& a, const DeviceVolume& b,
                                                          float a_offset, float b_offset,
                                                          std::span<const PlaneProduct> products);
  // The number of planes that the end of `fixed` and the beginning of `moving` share, by correlation of the middle
  // half.
  [[nodiscard]] Result<OverlapFound> find_z_overlap(Queue& queue, const DeviceVolume& fixed, const DeviceVolume& moving,
                                                    const OverlapSearch& search);
  // The products of plane_terms_on_host for each pair of planes, at all shifts of its window; 0 where the planes share
  // nothing.
  [[nodiscard]] Result<std::vector<float>> shift_products(Queue& queue, const DeviceVolume& fixed,
                                                          const DeviceVolume& moving, float offset,
                                                          std::span<const PlanePair> pairs);

  // out(o) = in(matrix (o, 1)): rows z, y, x of the input's coordinates in voxels.
  [[nodiscard]] Status transform_affine(Queue& queue, const DeviceVolume& from, DeviceVolume& to,
                                        const std::array<std::array<double, 4>, 3>& matrix,
                                        const SampleOptions& options);
  // `coordinates` holds the volumes of z, y and x one after the other: its shape is that of `to` with three times z.
  [[nodiscard]] Status map_coordinates(Queue& queue, const DeviceVolume& from, const DeviceVolume& coordinates,
                                       DeviceVolume& to, const SampleOptions& options);
  // The same with displacements from each output voxel.
  [[nodiscard]] Status displace(Queue& queue, const DeviceVolume& from, const DeviceVolume& field, DeviceVolume& to,
                                const SampleOptions& options);

  // Exact percentiles, linear between ranks as in NumPy.
  [[nodiscard]] Result<std::vector<double>> percentiles(Queue& queue, const DeviceVolume& volume,
                                                        std::span<const double> percents, bool positive_only = false);
  // The median in a window that reflects at the ends; of an even number of samples it is the upper of the middle two,
  // as in SciPy.
  [[nodiscard]] Status filter_median(Queue& queue, const DeviceVolume& from, DeviceVolume& to,
                                     const std::array<std::uint32_t, 3>& sizes);

  // A tile times its weights (a map) into accumulators that begin as zeros; what lies outside is left out. Whoever adds
  // tiles in the same order has the same bits.
  [[nodiscard]] Status blend_add(Queue& queue, const DeviceVolume& tile, const DeviceVolume& weights, Offset3 at,
                                 DeviceVolume& sum, DeviceVolume& weight_sum);
  // Sums over weights; 0 where there is no weight.
  [[nodiscard]] Status blend_finish(Queue& queue, const DeviceVolume& sum, const DeviceVolume& weight_sum,
                                    DeviceVolume& to);

  // The mean of every plane, weighted by a map.
  [[nodiscard]] Result<std::vector<double>> axial_profile(Queue& queue, const DeviceVolume& volume,
                                                          const DeviceVolume& weights);
  // ln(1 + v / (sum of the samples below + tail)) / (2 step), where the tail is a map times a factor: zero (Vermeer),
  // or the last plane over what an exponential leaves of it.
  [[nodiscard]] Status find_attenuation(Queue& queue, const DeviceVolume& volume, const DeviceVolume& tails,
                                        double tail_factor, double step, DeviceVolume& to);
  // v / max(exp(-2 strength (attenuation above) step), least).
  [[nodiscard]] Status compensate_attenuation(Queue& queue, const DeviceVolume& volume, const DeviceVolume& attenuation,
                                              double step, double strength, double least, DeviceVolume& to);

  // Simulated tiles (simulate/tile_simulator.hpp). White noise of the sample's lattice, from the point `first` on.
  [[nodiscard]] Status fill_noise(Queue& queue, std::uint64_t seed, const std::array<std::int32_t, 3>& first,
                                  DeviceVolume& to);
  // Windows along z, then y, then x whose samples all lie inside: `to` is shorter by a window less one along each axis.
  // Each voxel is a fresh sum, which begins with the first product.
  [[nodiscard]] Status filter_inside(Queue& queue, const DeviceVolume& from, DeviceVolume& to,
                                     const std::array<std::vector<float>, 3>& windows);
  // exp(factor v), in place.
  [[nodiscard]] Status exponentiate(Queue& queue, DeviceVolume& volume, float factor);
  // The voxels that `record` says, from the part of the texture that it says, to the numbers of a buffer from `first`
  // on.
  [[nodiscard]] Status simulate_voxels(Queue& queue, const TileVoxelsRecord& record, const DeviceVolume& texture,
                                       const Buffer& to, std::uint64_t first);

 private:
  OctKernels(Device& device, std::unique_ptr<KernelBackend> backend, std::uint64_t most_elements);
  // Words that kernels read, which stay on the device: every volume of a run needs the same ones.
  struct Table {
    std::vector<std::uint32_t> words;
    std::unique_ptr<Buffer> buffer;
  };

  [[nodiscard]] Result<const Table*> table(Queue& queue, const std::string& key, std::vector<std::uint32_t> words);
  [[nodiscard]] Status filter_axis(Queue& queue, const DeviceVolume& from, DeviceVolume& to, std::uint32_t axis,
                                   const std::string& key, const AxisTaps& taps);
  [[nodiscard]] Status spline_axis(Queue& queue, DeviceVolume& volume, std::uint32_t axis, bool half_sample);
  [[nodiscard]] Status filter_steps(Queue& queue, const DeviceVolume& from, DeviceVolume& to,
                                    std::span<const AxisStep> steps);
  [[nodiscard]] Result<std::vector<std::uint32_t>> count_keys(Queue& queue, const DeviceVolume& volume,
                                                              std::uint32_t shift, std::uint32_t bins,
                                                              std::uint32_t prefix, std::uint32_t prefix_shift,
                                                              std::uint32_t least_key);
  [[nodiscard]] Status check_binds(const VolumeShape& shape) const;
  // Where each voxel of a result reads: tables of each output axis, or a volume for each input axis.
  struct Coordinates {
    std::uint32_t source = 0;
    const Table* table = nullptr;
    std::array<std::uint64_t, 3> table_first{};
    std::array<std::uint64_t, 3> table_count{};
    const DeviceVolume* volume = nullptr;
  };
  [[nodiscard]] Status sample(Queue& queue, const DeviceVolume& from, DeviceVolume& to, const SampleOptions& options,
                              const Coordinates& coordinates);
  [[nodiscard]] Status sample_at(Queue& queue, const DeviceVolume& from, const DeviceVolume& places, DeviceVolume& to,
                                 const SampleOptions& options, std::uint32_t source);

  Device& device_;
  std::unique_ptr<KernelBackend> backend_;
  std::uint64_t most_elements_;  // of a range of a launch
  std::shared_ptr<DevicePool> pool_;
  std::mutex mutex_;  // guards tables_
  std::map<std::string, std::unique_ptr<Table>> tables_;
};

// The size of a volume scaled by factors, at least 1 along each axis, half to even; and that of a volume brought to
// another spacing, truncated.
[[nodiscard]] VolumeShape rescaled_shape(VolumeShape shape, const std::array<double, 3>& scale);
[[nodiscard]] VolumeShape resampled_shape(VolumeShape shape, const std::array<double, 3>& spacing,
                                          const std::array<double, 3>& target);
// One level up a pyramid: half of each axis, rounded down, at least 1. resize() without anti-aliasing gives its voxels:
// the mean of 2 x 2 x 2 for even sizes.
[[nodiscard]] VolumeShape halved_shape(VolumeShape shape);

}  // namespace cingulum::oct
