// Outputs of every writer with their sidecars, small, in two variants: for the tests of what failures and power cuts
// leave of the pair. Not used outside tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/nifti.hpp"
#include "formats/output_sidecar.hpp"
#include "support/example_tractogram.hpp"

namespace cingulum::testing {

constexpr std::array<const char*, 6> pair_names = {"a.trx", "a.trk", "a.tck", "a.nii", "a.nii.gz", "a.txt"};

// For the names of tests: "a.nii.gz" is nii_gz.
inline std::string name_of_pair(const ::testing::TestParamInfo<const char*>& parameter) {
  std::string name = std::string(parameter.param).substr(2);
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

inline WriteOptions described(const std::filesystem::path& path, const WriteOptions& options, int variant) {
  auto sidecar = std::make_shared<OutputSidecar>(path, options);
  sidecar->describe([variant] { return nlohmann::ordered_json{{"variant", variant}}; });
  return with_sidecar(options, std::move(sidecar));
}

// Variant 0 or 1 of the file, in the format of its name, by the real writer.
inline Status write_variant(const std::filesystem::path& path, int variant, const WriteOptions& options) {
  const std::string name = path.filename().native();
  if (name.ends_with(".txt")) {
    const std::string text = variant == 0 ? "the old text" : "the new text, which is longer";
    return write_file_atomically(path, text, without_sidecar(path, options));
  }
  if (name.ends_with(".nii") || name.ends_with(".nii.gz")) {
    std::vector<float> values;
    for (int i = 0; i < 60; ++i) values.push_back(static_cast<float>(i * i + 7 * variant));
    ImageGeometry geometry = example_reference();
    geometry.size = {5, 4, 3};
    return write_image(path, geometry, 1, values, {.file = options});
  }
  CGL_TRY_ASSIGN(const TractogramFormat format, format_of_name(path));
  const bool fields = format != TractogramFormat::tck;
  CGL_TRY_ASSIGN(const auto writer, TractogramWriter::create(path, example_layout(format), options));
  CGL_TRY(writer->append(example_batch(fields, 0, 3)));
  if (variant == 1) CGL_TRY(writer->append(example_batch(fields, 3, 5)));
  return writer->commit();
}

}  // namespace cingulum::testing
