#include "runs/convert_tractogram.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/argument_name.hpp"
#include "base/elapsed.hpp"
#include "base/progress.hpp"
#include "formats/nifti.hpp"
#include "formats/output_sidecar.hpp"
#include "formats/sidecar.hpp"
#include "formats/trk.hpp"
#include "formats/trx.hpp"

namespace cingulum {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr ElementType double_type = {ElementType::Code::floating, 64};

bool is_trx(TractogramFormat format) {
  return format == TractogramFormat::trx || format == TractogramFormat::trx_folder;
}

Result<ImageGeometry> read_reference(const fs::path& path) {
  const std::string& name = path.native();
  if (name.ends_with(".nii") || name.ends_with(".nii.gz")) {
    CGL_TRY_ASSIGN(const NiftiReader reader, NiftiReader::open(path));
    return reader.header().geometry;
  }
  CGL_TRY_ASSIGN(const auto reader, TractogramReader::open(path));
  if (!reader->layout().reference) {
    return fail(ErrorKind::invalid_argument, "{} {}: {} files have no grid; name a NIfTI image, a TRK or a TRX",
                argument_name("reference"), name, tractogram_format_name(reader->layout().format));
  }
  return *reader->layout().reference;
}

// What of the source's fields goes into the target, under which names, and what is said about the rest.
struct FieldPlan {
  std::vector<std::size_t> kept_point_fields;  // indices in the source
  std::vector<std::size_t> kept_streamline_fields;
  std::vector<std::string> warnings;
  std::vector<std::string> lost;  // "fa (per point)"
};

// A name that TRX can hold and that is not taken.
std::string trx_name(const std::string& name, std::set<std::string>& taken) {
  std::string plain;
  for (const char c : name.substr(0, 180)) {
    const bool bad = static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '.' || c == '/' || c == '\\' || c == ':';
    plain.push_back(bad ? '_' : c);
  }
  if (plain.empty()) plain = "unnamed";
  std::string unique = plain;
  for (int i = 2; !taken.insert(unique).second; ++i) unique = fmt::format("{}_{}", plain, i);
  return unique;
}

bool exact_as_float32(ElementType type) {
  if (type.code == ElementType::Code::floating) return type.bits <= 32;
  return type.bits <= 16;
}

void plan_fields(const char* kind, const std::vector<DataField>& source, TractogramFormat target,
                 std::vector<std::size_t>& kept, std::vector<DataField>& fields, FieldPlan& plan) {
  std::set<std::string> taken;
  const auto lose = [&](const DataField& field) { plan.lost.push_back(fmt::format("{} (per {})", field.name, kind)); };
  for (std::size_t i = 0; i < source.size(); ++i) {
    DataField field = source[i];
    if (target == TractogramFormat::tck) {
      lose(field);
      continue;
    }
    if (target == TractogramFormat::trk) {
      if (const Status fits = check_trk_field(field); !fits || fields.size() == trk_most_fields) {
        if (!fits) plan.warnings.push_back(fits.error().message());
        lose(field);
        continue;
      }
      if (!exact_as_float32(field.type)) {
        plan.warnings.push_back(
            fmt::format("the field {} (per {}) is {} and is rounded to float32, the only type of TRK", field.name, kind,
                        field.type.name()));
      }
    } else {
      field.name = trx_name(field.name, taken);
      if (field.name != source[i].name) {
        plan.warnings.push_back(
            fmt::format("the field '{}' (per {}) is named '{}' in TRX", source[i].name, kind, field.name));
      }
    }
    kept.push_back(i);
    fields.push_back(std::move(field));
  }
}

void keep_only(const std::vector<std::size_t>& kept, std::vector<std::vector<std::byte>>& data) {
  std::vector<std::vector<std::byte>> result;
  result.reserve(kept.size());
  for (const std::size_t index : kept) result.push_back(std::move(data[index]));
  data = std::move(result);
}

Result<TractogramLayout> plan_layout(const ConvertRequest& request, const TractogramLayout& source,
                                     TractogramFormat format, FieldPlan& plan) {
  TractogramLayout layout;
  layout.format = format;
  layout.reference = source.reference;
  if (!request.reference.empty()) {
    CGL_TRY_ASSIGN(layout.reference, read_reference(request.reference));
  }
  if (!layout.reference && format != TractogramFormat::tck) {
    return fail(
        ErrorKind::invalid_argument,
        "{} needs the grid of an image and {} files have none; name it by {} IMAGE (a NIfTI image, a TRK or a TRX)",
        tractogram_format_name(format), tractogram_format_name(source.format), argument_name("reference"));
  }
  layout.position_type = asked_position_type(request.layout).value_or(source.position_type);
  layout.deflated = request.layout.deflate.value();
  if (format == TractogramFormat::trk && source.position_type == double_type) {
    plan.warnings.emplace_back("positions are float64 and are rounded to float32, the only type of TRK");
  }
  plan_fields("point", source.point_fields, format, plan.kept_point_fields, layout.point_fields, plan);
  plan_fields("streamline", source.streamline_fields, format, plan.kept_streamline_fields, layout.streamline_fields,
              plan);
  if (format == TractogramFormat::tck) layout.notes = source.notes;
  return layout;
}

Status write_groups(std::vector<TractogramGroup> groups, TractogramWriter& writer, FieldPlan& plan) {
  std::set<std::string> taken;
  for (TractogramGroup& group : groups) {
    const std::string name = trx_name(group.name, taken);
    if (name != group.name) plan.warnings.push_back(fmt::format("the group '{}' is named '{}'", group.name, name));
    group.name = name;
    CGL_TRY(writer.add_group(std::move(group)));
  }
  return {};
}

}  // namespace

Result<ConvertOutcome> convert_tractogram(const ConvertRequest& request, RunMachine& machine) {
  const auto start = std::chrono::steady_clock::now();
  fs::path output = request.output;
  CGL_TRY_ASSIGN(const TractogramFormat format, format_of_name(output));
  if (!output.has_filename()) output = output.parent_path();
  const WriteOptions options = machine.write_options();
  CGL_TRY(check_tractogram_output(output, format, options));
  CGL_TRY(check_layout_options(request.layout, format, output));
  CGL_TRY_ASSIGN(const auto reader, TractogramReader::open(request.input));

  FieldPlan plan;
  CGL_TRY_ASSIGN(TractogramLayout layout, plan_layout(request, reader->layout(), format, plan));
  if (layout.deflated) {
    CGL_TRY_ASSIGN(layout.deflating_pool, machine.pool());
  }
  CGL_TRY_ASSIGN(std::vector<TractogramGroup> groups, reader->groups());
  if (!is_trx(format)) {
    for (const TractogramGroup& group : groups) plan.lost.push_back(fmt::format("{} (group)", group.name));
  }
  const auto sidecar = std::make_shared<OutputSidecar>(output, options);
  CGL_TRY_ASSIGN(const auto writer, TractogramWriter::create(output, layout, with_sidecar(options, sidecar)));
  if (is_trx(format)) CGL_TRY(write_groups(std::move(groups), *writer, plan));
  if (!plan.lost.empty()) {
    plan.warnings.push_back(fmt::format("{} cannot hold, and {} is lost: {}", tractogram_format_name(format),
                                        plan.lost.size() == 1 ? "this" : "all of this", fmt::join(plan.lost, ", ")));
  }

  ConvertOutcome outcome{.output = output, .format = format, .position_type = layout.position_type};
  {
    const auto total = static_cast<std::uint64_t>(std::max<std::int64_t>(0, reader->layout().streamline_count));
    Progress progress("converting", total, "streamlines", machine.progress_options());
    TractogramBatch batch;
    while (true) {
      CGL_TRY(machine.cancel().check());
      CGL_TRY_ASSIGN(const bool more, reader->next(batch, default_batch_points, false));
      if (!more) break;
      keep_only(plan.kept_point_fields, batch.point_data);
      keep_only(plan.kept_streamline_fields, batch.streamline_data);
      outcome.points_read += batch.point_count();
      if (request.linearise) {
        CGL_TRY_ASSIGN(batch, linearise(batch, layout, *request.linearise));
      }
      CGL_TRY(writer->append(batch));
      outcome.points += batch.point_count();
      outcome.streamlines += batch.streamline_count();
      progress.advance(batch.streamline_count());
    }
    progress.finish();
  }
  // Readers add to their warnings until the end.
  for (const std::string& warning : reader->layout().warnings) {
    plan.warnings.push_back(fmt::format("{}: {}", request.input.native(), warning));
  }
  for (const std::string& warning : plan.warnings) log_warning("{}", warning);
  outcome.lost = std::move(plan.lost);
  outcome.warnings = std::move(plan.warnings);

  CGL_TRY_ASSIGN(const std::string input_hash, hash_of_file(request.input));
  Json parameters = {{"format", std::string(tractogram_format_name(format))},
                     {"position_type", layout.position_type.name()},
                     {"deflated", layout.deflated},
                     {"reference", request.reference.empty() ? Json() : Json(request.reference.native())},
                     {"linearise_mm", request.linearise ? Json(request.linearise->tolerance_mm) : Json()},
                     {"max_segment_mm", request.linearise ? Json(request.linearise->max_segment_mm) : Json()}};
  sidecar->describe([&]() -> Json {
    return {{"command", "convert"},
            {"parameters", parameters},
            {"inputs", Json::array({{{"file", request.input.filename().native()}, {"xxh3_128", input_hash}}})},
            {"streamlines", outcome.streamlines},
            {"points", outcome.points},
            {"lost", outcome.lost},
            {"warnings", outcome.warnings},
            {"run", run_facts(machine.threads(), seconds_since(start))}};
  });
  CGL_TRY(writer->commit());
  return outcome;
}

}  // namespace cingulum
