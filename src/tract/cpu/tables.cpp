#include "tract/cpu/tables.hpp"

#include <algorithm>
#include <array>

#include "numerics/elementary64.hpp"
#include "numerics/mirror_sum.hpp"
#include "numerics/spherical_harmonics.hpp"
#include "tract/kernel/series.hpp"

namespace cingulum {
namespace {

using numerics::lane_count;

constexpr numerics::HarmonicConvention convention = numerics::HarmonicConvention::descoteaux07_legacy;

bool samples_series(const Field& field) {
  return field.kind == FieldKind::harmonics || field.kind == FieldKind::bootstrap;
}

bool has_sphere(const Field& field) {
  return field.kind == FieldKind::amplitudes || samples_series(field);
}

Status check_getter(const TrackingPlan& plan, const Field& field) {
  const auto getter = static_cast<Getter>(plan.getter);
  const bool spherical = field.kind == FieldKind::amplitudes || field.kind == FieldKind::harmonics;
  bool fits = false;
  std::string needed;
  switch (getter) {
    case Getter::boot:
      fits = field.kind == FieldKind::bootstrap;
      needed = fmt::format("a diffusion series ({} opdt or csa)", argument_name("model"));
      break;
    case Getter::prob:
    case Getter::det:
    case Getter::ptt:
      fits = spherical;
      needed = fmt::format("a spherical function ({}, {} or a model that gives one)", argument_name("sf"),
                           argument_name("sh"));
      break;
    case Getter::closest:
      fits = spherical || field.kind == FieldKind::peaks;
      needed = fmt::format("peaks or a spherical function ({}, {}, {} or a model that gives one)",
                           argument_name("peaks"), argument_name("sf"), argument_name("sh"));
      break;
    case Getter::tensor:
      fits = field.kind == FieldKind::tensor;
      needed = fmt::format("a tensor field ({} or {} dti)", argument_name("tensor"), argument_name("model"));
      break;
  }
  if (fits) return {};
  return fail_argument("direction_getter", "direction getter {} needs {}; the field is of another kind",
                       getter_name(getter), needed);
}

Status check_field(const Field& field) {
  const auto voxels = static_cast<std::size_t>(field.geometry.voxel_count());
  if (field.record_of_voxel.size() != voxels) {
    return fail(ErrorKind::invalid_argument, "field: {} record numbers for {} voxels", field.record_of_voxel.size(),
                voxels);
  }
  if (field.stride < field.channels + 1 || field.number_count() < Field::record_padding + field.stride) {
    return fail(ErrorKind::invalid_argument, "field: stride {} and {} numbers do not hold records of {} channels",
                field.stride, field.number_count(), field.channels);
  }
  const std::size_t records = field.record_count();
  const auto beyond = std::find_if(field.record_of_voxel.begin(), field.record_of_voxel.end(),
                                   [records](std::uint32_t record) { return record >= records; });
  if (beyond != field.record_of_voxel.end()) {
    return fail(ErrorKind::invalid_argument, "field: a voxel has record {} of {}", *beyond, records);
  }
  std::size_t expected = field.channels;
  if (field.kind == FieldKind::amplitudes) expected = field.sphere.size();
  const auto coefficients = static_cast<std::size_t>(numerics::coefficient_count(field.degree, false));
  if (field.kind == FieldKind::harmonics) expected = coefficients;
  if (field.kind == FieldKind::bootstrap) expected = coefficients + 1 + field.bootstrap.gradients;
  if (field.kind == FieldKind::tensor) expected = 6;
  if (field.kind == FieldKind::peaks) expected = field.channels / 3 * 3;
  if (field.channels != expected || field.channels == 0) {
    return fail(ErrorKind::invalid_argument, "field: {} channels where its kind has {}", field.channels, expected);
  }
  if (has_sphere(field) && field.sphere.size() == 0) {
    return fail(ErrorKind::invalid_argument, "field: a spherical function without a sphere");
  }
  if (samples_series(field) &&
      (field.degree < 0 || field.degree % 2 != 0 || field.degree > numerics::largest_harmonic_degree)) {
    return fail(ErrorKind::invalid_argument, "field: degree {} is not an even number from 0 to {}", field.degree,
                numerics::largest_harmonic_degree);
  }
  if (samples_series(field) && !field.sphere.is_hemisphere) {
    return fail(ErrorKind::invalid_argument,
                "field: an even series on the full sphere {} would start every direction twice; give its half",
                field.sphere.name);
  }
  return {};
}

void place_sphere(const Field& field, KernelTables& tables) {
  const Sphere& sphere = field.sphere;
  const bool mirror = samples_series(field) && sphere.mirror_symmetric;
  const std::size_t slots = mirror ? sphere.slots.size() : sphere.size();
  tables.rows = numerics::row_count(static_cast<std::uint32_t>(slots));
  const std::size_t padded = std::size_t{lane_count} * tables.rows;
  tables.slot_of_vertex.resize(sphere.size());
  for (std::uint32_t slot = 0; slot < slots; ++slot) {
    const std::uint32_t vertex = mirror ? sphere.slots[slot] : slot;
    if (vertex != no_vertex) tables.slot_of_vertex[vertex] = slot;
  }
  tables.occupied.assign(tables.rows, 0);
  tables.x.assign(padded, 0);
  tables.y.assign(padded, 0);
  tables.z.assign(padded, 0);
  for (std::size_t vertex = 0; vertex < sphere.size(); ++vertex) {
    const std::uint32_t slot = tables.slot_of_vertex[vertex];
    tables.occupied[slot / lane_count] |= 1u << (slot % lane_count);
    tables.x[slot] = static_cast<float>(sphere.directions[vertex].x);
    tables.y[slot] = static_cast<float>(sphere.directions[vertex].y);
    tables.z[slot] = static_cast<float>(sphere.directions[vertex].z);
    tables.degree = std::max(tables.degree, sphere.neighbour_offsets[vertex + 1] - sphere.neighbour_offsets[vertex]);
  }
  tables.neighbours.resize(padded * tables.degree);
  for (std::uint32_t column = 0; column < tables.degree; ++column) {
    for (std::uint32_t slot = 0; slot < padded; ++slot) tables.neighbours[padded * column + slot] = slot;
    for (std::size_t vertex = 0; vertex < sphere.size(); ++vertex) {
      const std::uint32_t at = sphere.neighbour_offsets[vertex] + column;
      if (at >= sphere.neighbour_offsets[vertex + 1]) continue;
      tables.neighbours[padded * column + tables.slot_of_vertex[vertex]] = tables.slot_of_vertex[sphere.neighbours[at]];
    }
  }
}

void place_harmonics(const Field& field, KernelTables& tables) {
  const numerics::HarmonicBasis basis{convention, field.degree, false};
  const auto count = static_cast<std::uint32_t>(numerics::coefficient_count(field.degree, false));
  std::vector<std::uint32_t> order(count);
  for (std::uint32_t j = 0; j < count; ++j) order[j] = j;
  const bool mirror = field.sphere.mirror_symmetric;
  if (mirror) numerics::sort_by_mirror_class(convention, field.degree, order.data());
  tables.record_index.resize(count);
  tables.level.resize(count);
  for (std::uint32_t j = 0; j < count; ++j) {
    tables.record_index[order[j]] = j;
    tables.level[j] =
        static_cast<std::uint32_t>(numerics::harmonic_of_coefficient(static_cast<int>(order[j]), false).l / 2);
  }
  std::vector<double> values(count);
  if (mirror) {
    const std::size_t groups = tables.rows / 4;
    tables.harmonics.assign(groups * lane_count * count, 0);
    for (std::uint32_t orbit = 0; orbit < field.sphere.orbits.size(); ++orbit) {
      numerics::evaluate_harmonics(basis, field.sphere.orbits[orbit], values.data());
      for (std::uint32_t j = 0; j < count; ++j) {
        tables.harmonics[numerics::mirror_matrix_index(orbit, j, count)] = static_cast<float>(values[order[j]]);
      }
    }
  } else {
    tables.harmonics.assign(std::size_t{tables.rows} * lane_count * count, 0);
    for (std::uint32_t vertex = 0; vertex < field.sphere.size(); ++vertex) {
      numerics::evaluate_harmonics(basis, field.sphere.directions[vertex], values.data());
      for (std::uint32_t j = 0; j < count; ++j) {
        tables.harmonics[numerics::mirror_matrix_index(vertex, j, count)] = static_cast<float>(values[j]);
      }
    }
  }
  tables.recurrence.resize(kernel::series_table_size(field.degree));
  kernel::fill_series_table(field.degree, tables.recurrence.data());
}

Status place_bootstrap(const Field& field, KernelTables& tables) {
  const BootstrapTables& boot = field.bootstrap;
  const std::size_t gradients = boot.gradients;
  const std::size_t count = boot.coefficients;
  if (count != tables.record_index.size() || gradients == 0 || boot.basis.size() != gradients * count ||
      boot.fit.size() != gradients * count || boot.residual_scale.size() != gradients) {
    return fail(ErrorKind::invalid_argument, "field: the bootstrap's matrices do not fit {} gradients and degree {}",
                gradients, field.degree);
  }
  if (gradients > 65536 / 8) {
    return fail(ErrorKind::invalid_argument, "field: {} gradients; the bootstrap tracks at most {}", gradients,
                65536 / 8);
  }
  tables.boot_rows = numerics::row_count(boot.gradients);
  const std::size_t padded = std::size_t{lane_count} * tables.boot_rows;
  tables.boot_basis.assign(padded * count, 0);
  tables.boot_fit.assign(padded * count, 0);
  tables.residual_scale.assign(padded, 0);
  double sum = 0;
  for (std::size_t g = 0; g < gradients; ++g) {
    for (std::size_t i = 0; i < count; ++i) {
      tables.boot_basis[lane_count * count * (g / lane_count) + lane_count * i + g % lane_count] =
          boot.basis[g * count + i];
      tables.boot_fit[padded * tables.record_index[i] + g] = boot.fit[i * gradients + g];
    }
    tables.residual_scale[g] = boot.residual_scale[g];
    sum += static_cast<double>(boot.residual_scale[g]);
  }
  tables.inverse_scale_sum = sum > 0 ? static_cast<float>(1 / sum) : 0.0f;
  return {};
}

constexpr std::uint32_t disc_points = 32;

// Points of the unit disc, each turned by the golden angle against the one before (Vogel, Math. Biosci. 44, 1979).
// Radii grow evenly from zero, so that the points lie denser towards the centre: there the support is largest on most
// steps, and among sharp turns it is small everywhere.
void place_disc(KernelTables& tables) {
  constexpr double golden_angle = 0x1.3331febfa4bfbp+1;  // pi (3 - sqrt(5))
  for (std::uint32_t i = 0; i < disc_points; ++i) {
    const double radius = static_cast<double>(i) / (disc_points - 1);
    const double angle = golden_angle * i;
    tables.disc_k1.push_back(static_cast<float>(radius * numerics::cosine(angle)));
    tables.disc_k2.push_back(static_cast<float>(radius * numerics::sine(angle)));
  }
}

constexpr std::uint32_t cells_per_edge = 96;

// The direction of the cube's surface at (u, v) of a face; faces 3 to 5 are opposite to 0 to 2.
numerics::Vec3d on_cube(std::uint32_t face, double u, double v) {
  const double major = face < 3 ? 1 : -1;
  switch (face % 3) {
    case 0: return {major, u * major, v * major};
    case 1: return {u * major, major, v * major};
    default: return {u * major, v * major, major};
  }
}

// A slot is left out of a cell when another is nearer at all four corners: cosines are linear in the direction, so it
// is then nearer everywhere in the cell. Corners are moved outwards a little, for directions that rounding puts into
// the neighbouring cell, and ties within rounding are kept.
void place_nearest(const Field& field, KernelTables& tables) {
  const std::uint32_t faces = field.sphere.is_hemisphere ? 3 : 6;
  std::vector<std::vector<std::uint32_t>> lists;
  std::vector<std::array<double, 4>> cosines;
  std::vector<std::uint32_t> slots;
  for (std::uint32_t face = 0; face < faces; ++face) {
    for (std::uint32_t j = 0; j < cells_per_edge; ++j) {
      for (std::uint32_t i = 0; i < cells_per_edge; ++i) {
        constexpr double margin = 1e-4;
        numerics::Vec3d corners[4];
        for (std::uint32_t corner = 0; corner < 4; ++corner) {
          const double across = (corner & 1) != 0 ? i + 1 + margin : i - margin;
          const double up = (corner & 2) != 0 ? j + 1 + margin : j - margin;
          corners[corner] =
              numerics::normalise(on_cube(face, 2 * across / cells_per_edge - 1, 2 * up / cells_per_edge - 1));
        }
        const numerics::Vec3d centre = numerics::normalise((corners[0] + corners[1]) + (corners[2] + corners[3]));
        cosines.clear();
        slots.clear();
        for (std::uint32_t slot = 0; slot < tables.x.size(); ++slot) {
          if (((tables.occupied[slot / lane_count] >> (slot % lane_count)) & 1u) == 0) continue;
          numerics::Vec3d v{static_cast<double>(tables.x[slot]), static_cast<double>(tables.y[slot]),
                            static_cast<double>(tables.z[slot])};
          if (field.sphere.is_hemisphere && numerics::dot(v, centre) < 0) v = -v;
          slots.push_back(slot);
          cosines.push_back({numerics::dot(v, corners[0]), numerics::dot(v, corners[1]), numerics::dot(v, corners[2]),
                             numerics::dot(v, corners[3])});
        }
        // Most are beaten by the one nearest to the cell's middle.
        const auto sum = [](const std::array<double, 4>& c) { return (c[0] + c[1]) + (c[2] + c[3]); };
        const std::array<double, 4> middle = *std::max_element(
            cosines.begin(), cosines.end(), [&](const auto& a, const auto& b) { return sum(a) < sum(b); });
        std::vector<std::uint32_t> list;
        for (std::size_t a = 0; a < slots.size(); ++a) {
          const auto beaten = [&](const std::array<double, 4>& other) {
            constexpr double tie = 1e-6;
            return other[0] > cosines[a][0] + tie && other[1] > cosines[a][1] + tie && other[2] > cosines[a][2] + tie &&
                   other[3] > cosines[a][3] + tie;
          };
          if (beaten(middle) || std::any_of(cosines.begin(), cosines.end(), beaten)) continue;
          list.push_back(slots[a]);
        }
        tables.nearest_capacity = std::max(tables.nearest_capacity, static_cast<std::uint32_t>(list.size()));
        lists.push_back(std::move(list));
      }
    }
  }
  for (const std::vector<std::uint32_t>& list : lists) {
    for (std::uint32_t n = 0; n < tables.nearest_capacity; ++n) {
      tables.nearest.push_back(n < list.size() ? list[n] : list[0]);
    }
  }
}

}  // namespace

Status check_plan_and_field(const TrackingPlan& plan, const Field& field) {
  CGL_TRY(check_getter(plan, field));
  CGL_TRY(check_field(field));
  if (plan.size.x != field.geometry.size[0] || plan.size.y != field.geometry.size[1] ||
      plan.size.z != field.geometry.size[2]) {
    return fail(ErrorKind::invalid_argument, "the plan is for {} x {} x {} voxels, the field has {} x {} x {}",
                plan.size.x, plan.size.y, plan.size.z, field.geometry.size[0], field.geometry.size[1],
                field.geometry.size[2]);
  }
  return {};
}

Result<KernelTables> make_kernel_tables(const TrackingPlan& plan, const Field& field) {
  CGL_TRY(check_plan_and_field(plan, field));
  KernelTables tables;
  if (has_sphere(field)) place_sphere(field, tables);
  if (samples_series(field)) place_harmonics(field, tables);
  if (field.kind == FieldKind::bootstrap) CGL_TRY(place_bootstrap(field, tables));
  if (static_cast<Getter>(plan.getter) == Getter::ptt) {
    place_disc(tables);
    if (field.kind == FieldKind::amplitudes) place_nearest(field, tables);
  }
  return tables;
}

TrackingInput make_tracking_input(const TrackingPlan& plan, const Field& field, const KernelTables& tables) {
  TrackingInput input{};
  input.plan = plan;
  input.field = {static_cast<std::uint32_t>(field.kind),
                 field.channels,
                 field.stride,
                 field.record_of_voxel.data(),
                 static_cast<const float*>(field.stored_records()),
                 field.number_count() < (std::size_t{1} << 31) ? 1u : 0u,
                 field.is_float16() ? 1u : 0u};
  input.sphere = {tables.rows,     field.sphere.is_hemisphere ? 1u : 0u,
                  tables.degree,   tables.occupied.data(),
                  tables.x.data(), tables.y.data(),
                  tables.z.data(), tables.neighbours.data()};
  if (samples_series(field)) {
    input.harmonics.coefficients = static_cast<std::uint32_t>(tables.record_index.size());
    input.harmonics.degree = static_cast<std::uint32_t>(field.degree);
    input.harmonics.mirror = field.sphere.mirror_symmetric ? 1u : 0u;
    const numerics::MirrorClassSizes sizes = numerics::mirror_class_sizes(field.degree);
    for (std::size_t i = 0; i < 4; ++i) input.harmonics.class_sizes[i] = sizes.of_class[i];
    input.harmonics.matrix = tables.harmonics.data();
    input.harmonics.record_index = tables.record_index.data();
    input.harmonics.recurrence = tables.recurrence.data();
  }
  if (field.kind == FieldKind::bootstrap) {
    input.bootstrap = {field.bootstrap.csa ? 1u : 0u, field.bootstrap.gradients, tables.boot_rows,
                       tables.boot_basis.data(),      tables.boot_fit.data(),    tables.level.data(),
                       tables.residual_scale.data(),  tables.inverse_scale_sum};
  }
  input.disc = {static_cast<std::uint32_t>(tables.disc_k1.size()), tables.disc_k1.data(), tables.disc_k2.data()};
  input.nearest = {cells_per_edge, tables.nearest_capacity, tables.nearest.data()};
  return input;
}

AlignedTables::AlignedTables(const KernelTables& tables, TrackingInput& input) {
  constexpr std::size_t line_floats = 16;
  struct Copy {
    const std::vector<float>& from;
    const float*& view;
  };
  const Copy copies[] = {{tables.x, input.sphere.x},
                         {tables.y, input.sphere.y},
                         {tables.z, input.sphere.z},
                         {tables.harmonics, input.harmonics.matrix},
                         {tables.boot_basis, input.bootstrap.basis},
                         {tables.boot_fit, input.bootstrap.fit},
                         {tables.residual_scale, input.bootstrap.residual_scale},
                         {tables.disc_k1, input.disc.k1},
                         {tables.disc_k2, input.disc.k2}};
  const auto lines = [](const Copy& copy) { return (copy.from.size() + line_floats - 1) / line_floats * line_floats; };
  std::size_t total = 0;
  for (const Copy& copy : copies) total += lines(copy);
  floats_.resize(total);
  float* at = floats_.data();
  for (const Copy& copy : copies) {
    if (copy.from.empty()) continue;
    std::copy(copy.from.begin(), copy.from.end(), at);
    copy.view = at;
    at += lines(copy);
  }
}

SlabMemory::SlabMemory(const TrackingInput& input) {
  const std::size_t record = std::size_t{lane_count} * numerics::row_count(input.field.channels + 1u);
  const std::size_t values = std::size_t{lane_count} * input.sphere.rows;
  const std::size_t signal = std::size_t{lane_count} * input.bootstrap.rows * (input.harmonics.degree / 2u + 1u);
  constexpr std::size_t coefficients = 96;
  // The most lanes that any kind of Probes has.
  constexpr std::size_t probing_lanes = 48;
  const std::size_t probe = input.disc.count > 0 && input.field.kind == field_of_harmonics ? 96 * probing_lanes : 0;
  floats_.resize(record + values + signal + coefficients + probe);
  words_.resize(values + most_initial_directions);
  slab_.record = floats_.data();
  slab_.values = slab_.record + record;
  slab_.signal = slab_.values + values;
  slab_.coefficients = slab_.signal + signal;
  slab_.probe = slab_.coefficients + coefficients;
  slab_.survivors = words_.data();
  slab_.peaks = slab_.survivors + values;
}

}  // namespace cingulum
