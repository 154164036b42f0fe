#include "formats/nifti_header.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "support/each_device.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum::nifti_header_tests {
namespace {

using testing::fails_with;

NiftiHeader some_header() {
  NiftiHeader header;
  header.shape = {2, 3, 4};
  header.type = {ElementType::Code::unsigned_integer, 8};
  header.geometry.size = {2, 3, 4};
  header.geometry.voxel_to_world.rows = {2, 0, 0, -1, 0, 2, 0, -2, 0, 0, 2, -3};
  return header;
}

template <class T>
void put(std::vector<std::byte>& bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
}

template <class T>
T get(const std::vector<std::byte>& bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

// Places in the header of version 1.
constexpr std::size_t dim_offset = 40, vox_offset_offset = 108, sform_code_offset = 254, quatern_offset = 256;

std::vector<std::byte> encoded(const NiftiHeader& header) {
  auto bytes = encode_nifti_header(header);
  EXPECT_TRUE(bytes) << testing::message_of(bytes);
  return bytes ? std::move(*bytes) : std::vector<std::byte>(nifti2_header_bytes + nifti_extension_flag_bytes);
}

Result<NiftiHeader> parsed(const std::vector<std::byte>& bytes) {
  return parse_nifti_header(std::span(bytes).first(nifti1_header_bytes));
}

// The rotation by a unit quaternion, as the NIfTI standard writes it.
std::array<double, 9> rotation_by(double a, double b, double c, double d) {
  return {a * a + b * b - c * c - d * d, 2 * (b * c - a * d),           2 * (b * d + a * c),
          2 * (b * c + a * d),           a * a + c * c - b * b - d * d, 2 * (c * d - a * b),
          2 * (b * d - a * c),           2 * (c * d + a * b),           a * a + d * d - b * b - c * c};
}

TEST(NiftiQuaternion, of_any_rotation_is_the_one_it_was_made_of_whichever_part_is_the_largest) {
  const std::array<double, 3> edges = {2, 2.5, 3};
  for (std::size_t largest = 0; largest < 4; ++largest) {
    for (unsigned signs = 0; signs < 16; ++signs) {
      for (const bool mirrored : {false, true}) {
        SCOPED_TRACE(::testing::Message()
                     << largest << " is the largest, signs " << signs << ", mirrored " << mirrored);
        // 0.1, 0.3, 0.5 and the largest: squares with the sum 1.
        std::array<double, 4> q = {0.1, 0.3, 0.5, std::sqrt(0.65)};
        std::swap(q[largest], q[3]);
        for (std::size_t part = 0; part < 4; ++part) {
          if ((signs >> part & 1U) != 0) q[part] = -q[part];
        }
        const auto rotation = rotation_by(q[0], q[1], q[2], q[3]);
        NiftiHeader header = some_header();
        Affine& affine = header.geometry.voxel_to_world;
        for (std::size_t row = 0; row < 3; ++row) {
          for (std::size_t column = 0; column < 3; ++column) {
            const double sign = mirrored && column == 2 ? -1 : 1;
            affine.at(static_cast<int>(row), static_cast<int>(column)) =
                sign * rotation[row * 3 + column] * edges[column];
          }
        }
        auto bytes = encoded(header);
        const double sign = q[0] < 0 ? -1 : 1;  // the header holds those with a >= 0
        for (std::size_t part = 0; part < 3; ++part) {
          EXPECT_NEAR(get<float>(bytes, quatern_offset + part * 4), sign * q[part + 1], 1e-6) << part;
        }
        put<std::int16_t>(bytes, sform_code_offset, 0);
        ASSERT_OK_AND_ASSIGN(const NiftiHeader found, parsed(bytes));
        EXPECT_EQ(found.affine_source, AffineSource::qform);
        for (std::size_t i = 0; i < 12; ++i) {
          EXPECT_NEAR(found.geometry.voxel_to_world.rows[i], affine.rows[i], 1e-5) << i;
        }
      }
    }
  }
}

TEST(NiftiHeaders, a_data_offset_of_zero_means_behind_the_header_and_is_told) {
  auto bytes = encoded(some_header());
  EXPECT_EQ(parsed(bytes)->warnings, std::vector<std::string>{});
  EXPECT_EQ(parsed(bytes)->data_offset, 352U);
  put(bytes, vox_offset_offset, 0.0F);
  ASSERT_OK_AND_ASSIGN(const NiftiHeader found, parsed(bytes));
  EXPECT_EQ(found.data_offset, 352U);
  EXPECT_EQ(found.warnings, std::vector<std::string>{"vox_offset is 0: the voxels are taken from byte 352"});
}

TEST(NiftiHeaders, axes_that_hold_more_bytes_than_63_bits_count_are_refused) {
  auto bytes = encoded(some_header());
  const auto set_axes = [&](const std::vector<std::int16_t>& lengths) {
    put(bytes, dim_offset, static_cast<std::int16_t>(lengths.size()));
    for (std::size_t i = 0; i < lengths.size(); ++i) put(bytes, dim_offset + 2 + i * 2, lengths[i]);
  };
  set_axes({16384, 16384, 16384, 16384, 64});
  EXPECT_EQ(nifti_data_bytes(*parsed(bytes)).value(), std::uint64_t{1} << 62U);
  set_axes({16384, 16384, 16384, 16384, 128});
  EXPECT_TRUE(fails_with(parsed(bytes), ErrorKind::corrupt,
                         "axes of 16384 x 16384 x 16384 x 16384 x 128 voxels hold more than 2^63 bytes"));
  // 2^70 bytes, which wrap round to 0.
  set_axes({16384, 16384, 16384, 16384, 16384});
  EXPECT_TRUE(fails_with(parsed(bytes), ErrorKind::corrupt, "hold more than 2^63 bytes"));
}

TEST(NiftiHeaders, have_one_to_seven_axes) {
  NiftiHeader header = some_header();
  header.shape = {2, 3, 4, 1, 1, 1, 5};
  EXPECT_EQ(parsed(encoded(header))->shape, header.shape);
  header.shape.push_back(1);
  EXPECT_TRUE(fails_with(encode_nifti_header(header), ErrorKind::invalid_argument, "8 axes: NIfTI has 1 to 7"));
  header.shape.clear();
  EXPECT_TRUE(fails_with(encode_nifti_header(header), ErrorKind::invalid_argument, "0 axes: NIfTI has 1 to 7"));
}

TEST(NiftiHeaders, lengths_in_metres_and_micrometres_become_millimetres) {
  const auto with_units = [](int code) {
    auto bytes = encoded(some_header());
    put(bytes, 123, static_cast<std::uint8_t>(code));
    return parsed(bytes).value();
  };
  const auto expect = [](const NiftiHeader& found, double factor, const char* unit, const std::string& warning) {
    EXPECT_EQ(found.spatial_unit, unit);
    EXPECT_EQ(found.warnings, warning.empty() ? std::vector<std::string>{} : std::vector<std::string>{warning});
    for (std::size_t i = 0; i < 12; ++i) {
      const double expected = some_header().geometry.voxel_to_world.rows[i] * factor;
      EXPECT_DOUBLE_EQ(found.geometry.voxel_to_world.rows[i], expected);
    }
  };
  expect(with_units(0), 1, "unknown", "");
  expect(with_units(1), 1000, "m", "lengths are in metres: converted to mm");
  expect(with_units(2), 1, "mm", "");
  expect(with_units(3), 0.001, "um", "lengths are in micrometres: converted to mm");
  expect(with_units(4), 1, "unknown", "spatial unit 4 is not known: taken as mm");
  const std::vector<std::string> times = {"unknown", "s", "ms", "us", "Hz", "ppm", "rad/s", "code 56"};
  for (std::size_t i = 0; i < times.size(); ++i) {
    EXPECT_EQ(with_units(static_cast<int>(2 + 8 * i)).time_unit, times[i]);
  }
}

TEST(NiftiHeaders, scaling_that_cannot_be_meant_is_told_and_not_done) {
  const auto with_scaling = [](float slope, float intercept) {
    auto bytes = encoded(some_header());
    put(bytes, 112, slope);
    put(bytes, 116, intercept);
    return parsed(bytes);
  };
  const auto expect_none = [&](float slope, float intercept, const std::string& warning) {
    ASSERT_OK_AND_ASSIGN(const NiftiHeader found, with_scaling(slope, intercept));
    EXPECT_EQ(found.slope, 1);
    EXPECT_EQ(found.intercept, 0);
    EXPECT_EQ(found.warnings, std::vector<std::string>{warning});
  };
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  expect_none(nan, 5, "scl_slope is nan: the values are not scaled");
  expect_none(0, 0, "scl_slope is 0: the values are not scaled");
  expect_none(0, 5, "scl_slope is 0: the values are not scaled, and scl_inter = 5 is ignored");
  EXPECT_TRUE(
      fails_with(with_scaling(2, nan), ErrorKind::corrupt, "byte 116: scl_inter is nan beside a valid scl_slope of 2"));
  ASSERT_OK_AND_ASSIGN(const NiftiHeader found, with_scaling(-2, 5));
  EXPECT_EQ(found.slope, -2);
  EXPECT_EQ(found.intercept, 5);
  EXPECT_EQ(found.warnings, std::vector<std::string>{});
}

TEST(NiftiQuaternion, that_is_too_long_is_shortened_and_told_beyond_rounding) {
  // Half turns about each axis.
  for (std::size_t axis = 0; axis < 3; ++axis) {
    for (const float part : {1.0F, 1.000001F, 1.5F, -1.5F}) {
      SCOPED_TRACE(::testing::Message() << part << " about axis " << axis);
      auto bytes = encoded(some_header());
      put<std::int16_t>(bytes, sform_code_offset, 0);
      put(bytes, quatern_offset + axis * 4, part);
      ASSERT_OK_AND_ASSIGN(const NiftiHeader found, parsed(bytes));
      Affine half_turn = some_header().geometry.voxel_to_world;
      for (int other = 0; other < 3; ++other) {
        if (other != static_cast<int>(axis)) half_turn.at(other, other) *= -1;
      }
      for (std::size_t i = 0; i < 12; ++i) {
        EXPECT_NEAR(found.geometry.voxel_to_world.rows[i], half_turn.rows[i], 1e-12) << i;
      }
      const bool warned = std::abs(part) == 1.5F;
      EXPECT_EQ(found.warnings, warned
                                    ? std::vector<std::string>{"the quaternion's vector has length 1.5: shortened to 1"}
                                    : std::vector<std::string>{});
    }
  }
}

TEST(NiftiExtensions, of_a_big_endian_file_are_skipped_by_their_sizes) {
  auto bytes = encoded(some_header());
  // One extension of 16 bytes and one of 32.
  put(bytes, vox_offset_offset, 352.0F + 48);
  put(bytes, nifti1_header_bytes, std::uint8_t{1});
  bytes.resize(352 + 48 + 24);
  put<std::int32_t>(bytes, 352, 16);
  put<std::int32_t>(bytes, 352 + 16, 32);
  for (std::size_t i = 0; i < 24; ++i) put(bytes, 352 + 48 + i, static_cast<std::uint8_t>(i));
  const auto warnings_of = [](const std::vector<std::byte>& file) {
    const TemporaryFolder folder;
    folder.put("a.nii", {reinterpret_cast<const char*>(file.data()), file.size()});
    auto reader = NiftiReader::open(folder / "a.nii");
    EXPECT_TRUE(reader) << testing::message_of(reader);
    std::vector<float> values(24);
    EXPECT_TRUE(reader->next_volume(std::span(values)));
    for (std::size_t i = 0; i < 24; ++i) EXPECT_EQ(values[i], static_cast<float>(i));
    return reader->header().warnings;
  };
  EXPECT_EQ(warnings_of(bytes), std::vector<std::string>{});
  const auto turn = [&](std::size_t offset, std::size_t size, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(offset + i * size),
                   bytes.begin() + static_cast<std::ptrdiff_t>(offset + (i + 1) * size));
    }
  };
  turn(0, 4, 1);     // sizeof_hdr
  turn(40, 2, 8);    // dim
  turn(68, 2, 4);    // intent_code, datatype, bitpix, slice_start
  turn(76, 4, 11);   // pixdim, vox_offset, scl_slope, scl_inter
  turn(252, 2, 2);   // qform_code, sform_code
  turn(256, 4, 18);  // quaternion, offsets, sform
  turn(352, 4, 1);
  turn(352 + 16, 4, 1);
  EXPECT_TRUE(parsed(bytes)->big_endian);
  EXPECT_EQ(warnings_of(bytes), std::vector<std::string>{});
  put<std::int32_t>(bytes, 352 + 16, 0x21000000);  // 33
  EXPECT_EQ(warnings_of(bytes),
            std::vector<std::string>{"the extension at byte 368 says that it has 33 bytes, 32 are there: skipped"});
  put<std::int32_t>(bytes, 352 + 16, 0x07000000);  // 7
  EXPECT_EQ(warnings_of(bytes),
            std::vector<std::string>{"the extension at byte 368 says that it has 7 bytes, 32 are there: skipped"});
}

}  // namespace
}  // namespace cingulum::nifti_header_tests
