#include "formats/tractogram_join.hpp"

#include <algorithm>
#include <memory>
#include <optional>

#include "formats/output_sidecar.hpp"
#include "formats/tractogram.hpp"
#include "formats/trk.hpp"

namespace cingulum {
namespace {

constexpr std::size_t points_at_once = std::size_t{1} << 16U;

Status check_alike(const TractogramLayout& first, const TractogramLayout& other) {
  const auto differ = [](std::string_view what) {
    return fail(ErrorKind::corrupt, "its {} are not those of the first part", what);
  };
  if (other.format != first.format) {
    return fail(ErrorKind::corrupt, "it is {}, and the first part is {}", tractogram_format_name(other.format),
                tractogram_format_name(first.format));
  }
  if (other.position_type != first.position_type || other.deflated != first.deflated) return differ("positions");
  if (other.point_fields != first.point_fields || other.streamline_fields != first.streamline_fields)
    return differ("fields");
  if (other.reference.has_value() != first.reference.has_value()) return differ("grid and affine");
  if (first.reference && (other.reference->size != first.reference->size ||
                          other.reference->voxel_to_world.rows != first.reference->voxel_to_world.rows)) {
    return differ("grid and affine");
  }
  if (other.notes != first.notes) return differ("notes");
  return {};
}

// Shortens the batch to its first `count` streamlines.
void keep_first(TractogramBatch& batch, std::size_t count, const TractogramLayout& layout) {
  if (count >= batch.streamline_count()) return;
  batch.offsets.resize(count + 1);
  const std::size_t points = batch.point_count();
  if (!batch.positions.empty()) batch.positions.resize(3 * points);
  if (!batch.positions64.empty()) batch.positions64.resize(3 * points);
  const auto row_bytes = [](const DataField& field) {
    return field.type.bytes() * static_cast<std::size_t>(field.columns);
  };
  for (std::size_t f = 0; f < layout.point_fields.size(); ++f)
    batch.point_data[f].resize(points * row_bytes(layout.point_fields[f]));
  for (std::size_t f = 0; f < layout.streamline_fields.size(); ++f)
    batch.streamline_data[f].resize(count * row_bytes(layout.streamline_fields[f]));
}

// What is taken of a part, a few batches of which stay in the cache between being read and being written. (Reading
// ahead by another thread costs more than it gives: all of it is copying, and the parts are hashed meanwhile.)
Status append_part(TractogramWriter& writer, TractogramReader& reader, std::uint64_t count, TractogramBatch& batch,
                   JoinedTractogram& joined, Progress* progress) {
  while (count > 0) {
    CGL_TRY_ASSIGN(const bool more, reader.next(batch, points_at_once, false));
    if (!more) return fail(ErrorKind::corrupt, "{} streamlines are missing", count);
    keep_first(batch, static_cast<std::size_t>(std::min<std::uint64_t>(count, batch.streamline_count())),
               reader.layout());
    CGL_TRY(writer.append(batch));
    count -= batch.streamline_count();
    joined.streamlines += batch.streamline_count();
    joined.points += batch.point_count();
    if (progress != nullptr) progress->advance(batch.streamline_count());
  }
  return {};
}

Status join_batches(std::span<const TractogramPart> parts, const std::filesystem::path& out, TractogramLayout layout,
                    const WriteOptions& options, JoinedTractogram& joined, Progress* progress,
                    const std::function<Status()>& before_commit) {
  layout.deflating_pool = options.pool;
  CGL_TRY_ASSIGN(const std::unique_ptr<TractogramWriter> writer, TractogramWriter::create(out, layout, options));
  TractogramBatch batch;
  for (const TractogramPart& part : parts) {
    CGL_TRY(options.cancel.check());
    CGL_TRY_ASSIGN(const std::unique_ptr<TractogramReader> reader, TractogramReader::open(part.path));
    CGL_TRY(add_context(check_alike(layout, reader->layout()), "joining {}", part.path.string()));
    CGL_TRY(add_context(append_part(*writer, *reader, part.streamlines, batch, joined, progress), "joining {}",
                        part.path.string()));
  }
  CGL_TRY(before_commit());
  return writer->commit();
}

Status join_records(std::span<const TractogramPart> parts, const std::filesystem::path& out,
                    const WriteOptions& options, JoinedTractogram& joined, Progress* progress,
                    const std::function<Status()>& before_commit) {
  std::optional<TrkJoin> join;
  for (const TractogramPart& part : parts) {
    CGL_TRY(options.cancel.check());
    const auto add = [&]() -> Status {
      CGL_TRY_ASSIGN(const FileBytes file, FileBytes::map(part.path));
      if (!join) {
        CGL_TRY_ASSIGN(join, TrkJoin::create(out, file.bytes(), without_sidecar(out, options)));
      }
      CGL_TRY_ASSIGN(const std::uint64_t points, join->add(file.bytes(), part.streamlines));
      joined.points += points;
      joined.streamlines += part.streamlines;
      return {};
    };
    CGL_TRY(add_context(add(), "joining {}", part.path.string()));
    if (progress != nullptr) progress->advance(part.streamlines);
  }
  CGL_TRY(before_commit());
  return join->commit();
}

}  // namespace

Status join_tractograms(std::span<const TractogramPart> parts, const std::filesystem::path& out,
                        const WriteOptions& options, JoinedTractogram& joined, Progress* progress,
                        const std::function<Status()>& before_commit) {
  return catch_out_of_memory([&]() -> Status {
    joined = {};
    if (parts.empty()) return fail(ErrorKind::invalid_argument, "joining {}: there are no parts", out.string());
    CGL_TRY_ASSIGN(const TractogramFormat format, format_of_name(out));
    TractogramLayout layout;
    {
      CGL_TRY_ASSIGN(const auto first, TractogramReader::open(parts.front().path));
      layout = first->layout();
    }
    if (layout.format != format) {
      return fail(ErrorKind::invalid_argument,
                  "joining {}: {} is {}; parts are joined as they are (`cingulum convert` changes the format)",
                  out.string(), parts.front().path.string(), tractogram_format_name(layout.format));
    }
    if (format == TractogramFormat::trk) return join_records(parts, out, options, joined, progress, before_commit);
    return join_batches(parts, out, std::move(layout), options, joined, progress, before_commit);
  });
}

}  // namespace cingulum
