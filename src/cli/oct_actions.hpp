// The actions of `cingulum oct`, each in a file of its subject, and what they share. oct.cpp declares their arguments.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/verb.hpp"
#include "oct/tiles/mosaic_grid.hpp"
#include "oct/volume/volume_file.hpp"
#include "runs/oct/oct_output.hpp"
#include "runs/oct/oct_request.hpp"

namespace cingulum {

[[nodiscard]] Status run_oct_simulate(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_oct_grid(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_oct_stitch(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_oct_flatfield(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_oct_profile(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_oct_attenuation(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_oct_normalise(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_oct_register(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_oct_stack(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_oct_curvature(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_oct_interface(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_oct_aip(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_oct_resample(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_oct_overlap(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_oct_report(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_oct_run(const ParsedArguments& arguments, VerbContext& context);

// The fields of an OctRequest as the action was given them, with defaults; `tiles` is left out.
[[nodiscard]] OctRequest oct_request(const ParsedArguments& arguments);

// The one input of an action that takes one; it must be there.
[[nodiscard]] Result<std::filesystem::path> oct_input(const ParsedArguments& arguments);
// --out, which every action needs.
[[nodiscard]] Result<std::filesystem::path> oct_output(const ParsedArguments& arguments);
// --out of an action that writes a volume, which may be written.
[[nodiscard]] Result<std::filesystem::path> oct_volume_output(const ParsedArguments& arguments, VerbContext& context);
// "3,4": `count` whole numbers from 0 on.
[[nodiscard]] Result<std::vector<std::size_t>> parse_counts(const char* option, const std::string& text,
                                                            std::size_t count);
// --model, or BaSiC's where --compat asks for it.
[[nodiscard]] std::string oct_model(const ParsedArguments& arguments);
// Reads and says how many values were not finite.
[[nodiscard]] Result<oct::VolumeFile> read_oct_volume(const std::filesystem::path& path,
                                                      const ParsedArguments& arguments, VerbContext& context);
// A volume that says of which tiles it is made.
struct OctMosaic {
  oct::VolumeFile file;
  oct::TileGrid grid;
};
[[nodiscard]] Result<OctMosaic> read_oct_mosaic(const std::filesystem::path& path, const ParsedArguments& arguments,
                                                VerbContext& context);
// What a stage writes, by its arguments: `about` is what it found.
[[nodiscard]] OctOutput stage_output(const std::filesystem::path& path, nlohmann::ordered_json attributes,
                                     nlohmann::ordered_json about, const ParsedArguments& arguments);
// Prints what a stage found: `about` as JSON, or a line.
[[nodiscard]] Status print_oct_stage(nlohmann::ordered_json about, const std::filesystem::path& output,
                                     const std::string& line, VerbContext& context);
// Writes the volume of a stage with what it found, and prints that.
[[nodiscard]] Status finish_oct_stage(const std::filesystem::path& output, const oct::VolumeFile& made,
                                      const nlohmann::ordered_json& about, const std::string& line,
                                      const ParsedArguments& arguments, VerbContext& context);

}  // namespace cingulum
