#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "formats/crc32.hpp"
#include "formats/folder_output.hpp"
#include "formats/guarded_writer.hpp"
#include "formats/spool.hpp"
#include "formats/tractogram_batch.hpp"
#include "formats/trx.hpp"
#include "formats/zip_writer.hpp"

namespace cingulum {
namespace {

constexpr std::size_t positions_alignment = 64;

std::string array_path(std::string_view folder, const DataField& field) {
  std::string path = folder.empty() ? field.name : fmt::format("{}/{}", folder, field.name);
  if (field.columns != 1) path += fmt::format(".{}", field.columns);
  return path + "." + field.type.name();
}

// Where the arrays go. Array 0 is the positions.
class TrxContainer {
 public:
  virtual ~TrxContainer() = default;
  [[nodiscard]] virtual Status append(std::size_t array, std::span<const std::byte> bytes) = 0;
  [[nodiscard]] virtual Status append_positions(std::span<const std::uint64_t> offsets,
                                                const AtomicFile::MakePart& make) = 0;
  [[nodiscard]] virtual Status add_file(std::string name, std::span<const std::byte> bytes) = 0;
  [[nodiscard]] virtual Status commit(const TrxHeader& header) = 0;
};

class ZipContainer final : public TrxContainer {
 public:
  // Each array after the positions may take `spool_bytes` of memory before it goes to a temporary file.
  ZipContainer(ZipWriter zip, std::vector<std::string> names, FileLayer& layer, const std::string& output,
               std::size_t spool_bytes, const TractogramLayout& layout)
      : zip_(std::move(zip)),
        names_(std::move(names)),
        layer_(layer),
        output_(output),
        spool_bytes_(spool_bytes),
        deflated_(layout.deflated),
        pool_(layout.deflating_pool) {
    // Behind a symbolic link, as the output itself.
    std::string resolved;
    if (uninterrupted([&] { return layer_.resolve(output_.c_str(), resolved); }) == 0) output_ = resolved;
    for (std::size_t i = 1; i < names_.size(); ++i) spools_.emplace_back(layer_, output_, spool_bytes_);
  }

  Status begin(const TrxHeader& empty) {
    // Padded so that the counts find room at the end, and so that the positions are aligned for whoever maps them.
    std::size_t bytes = format_trx_header(empty, 0).size() + 2 * (trx_counts_digits - 1);
    const std::uint64_t headers =
        ZipWriter::header_bytes("header.json", true) + ZipWriter::header_bytes(names_[0], false);
    bytes += (positions_alignment - (headers + bytes) % positions_alignment) % positions_alignment;
    const std::string text = format_trx_header(empty, bytes);
    header_bytes_ = text.size();
    const auto content = std::as_bytes(std::span(text));
    CGL_TRY(zip_.begin_known("header.json", content.size(), crc32(content)));
    CGL_TRY(zip_.append(content));
    CGL_TRY(zip_.end());
    return deflated_ ? zip_.begin_deflated(names_[0], pool_) : zip_.begin(names_[0]);
  }

  Status append(std::size_t array, std::span<const std::byte> bytes) override {
    if (array == 0) return zip_.append(bytes);
    return spools_[array - 1].append(bytes);
  }
  Status append_positions(std::span<const std::uint64_t> offsets, const AtomicFile::MakePart& make) override {
    return zip_.append_parts(offsets, make);
  }

  Status add_file(std::string name, std::span<const std::byte> bytes) override {
    names_.push_back(std::move(name));
    return spools_.emplace_back(layer_, output_, spool_bytes_).append(bytes);
  }

  Status commit(const TrxHeader& header) override {
    CGL_TRY(zip_.end());
    for (std::size_t i = 0; i < spools_.size(); ++i) {
      CGL_TRY(deflated_ ? zip_.begin_deflated(names_[i + 1], pool_)
                        : zip_.begin_known(names_[i + 1], spools_[i].size(), spools_[i].crc()));
      CGL_TRY(spools_[i].drain([&](std::span<const std::byte> bytes) { return zip_.append(bytes); }));
      CGL_TRY(zip_.end());
    }
    const std::string text = format_trx_header(header, header_bytes_);
    CGL_TRY(zip_.replace(0, std::as_bytes(std::span(text))));
    return zip_.commit();
  }

 private:
  ZipWriter zip_;
  std::vector<std::string> names_;
  FileLayer& layer_;
  std::string output_;
  std::size_t spool_bytes_;
  bool deflated_;
  ThreadPool* pool_;
  std::vector<Spool> spools_;
  std::size_t header_bytes_ = 0;
};

bool is_trx_folder(const std::filesystem::path& folder) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(folder / "header.json", ignored);
}
constexpr FolderKind trx_folder{"TRX folder", is_trx_folder};

class FolderContainer final : public TrxContainer {
 public:
  explicit FolderContainer(FolderOutput folder) : folder_(std::move(folder)) {}

  Status begin(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      CGL_TRY_ASSIGN(AtomicFile file, folder_.create_file(name));
      files_.push_back(std::move(file));
    }
    return {};
  }
  Status append(std::size_t array, std::span<const std::byte> bytes) override { return files_[array].append(bytes); }
  Status append_positions(std::span<const std::uint64_t> offsets, const AtomicFile::MakePart& make) override {
    return files_[0].append_parts(offsets, make);
  }
  Status add_file(std::string name, std::span<const std::byte> bytes) override {
    CGL_TRY_ASSIGN(AtomicFile file, folder_.create_file(name));
    CGL_TRY(file.append(bytes));
    return file.commit();
  }
  Status commit(const TrxHeader& header) override {
    for (AtomicFile& file : files_) CGL_TRY(file.commit());
    const std::string text = format_trx_header(header, 0);
    CGL_TRY(add_file("header.json", std::as_bytes(std::span(text))));
    return folder_.commit();
  }

 private:
  FolderOutput folder_;
  std::vector<AtomicFile> files_;
};

class TrxWriter final : public GuardedWriter {
 public:
  TrxWriter(std::string shown, TractogramLayout layout, std::unique_ptr<TrxContainer> container)
      : GuardedWriter(std::move(shown), std::move(layout)), container_(std::move(container)) {}

  // The offset of the first streamline.
  Status begin() { return append_offset(0); }

 private:
  void discard() noexcept override { container_.reset(); }
  Status write_end() override {
    for (const auto& [name, largest] : largest_of_group_) {
      if (largest >= header_.streamlines) {
        return fail(ErrorKind::invalid_argument, "the group '{}' has streamline {}, but there are {}", name, largest,
                    header_.streamlines);
      }
    }
    header_.reference = *layout_.reference;
    CGL_TRY(container_->commit(header_));
    container_.reset();
    return {};
  }

  [[nodiscard]] Status append_offset(std::uint64_t offset) {
    return container_->append(1, std::as_bytes(std::span(&offset, 1)));
  }

  [[nodiscard]] Status append_positions(const TractogramBatch& batch) {
    if (batch.point_count() == 0) return {};
    const std::size_t point_bytes = 3 * layout_.position_type.bytes();
    parts_.cut(batch.streamline_count(), [&](std::size_t i) { return batch.offsets[i] * point_bytes; });
    FirstFailure failure;
    CGL_TRY(container_->append_positions(parts_.offsets, [&](std::size_t part, std::span<std::byte> place) {
      failure.note(part, encode_streamlines(batch, parts_.streamlines[part], parts_.streamlines[part + 1],
                                            layout_.position_type, place));
    }));
    return failure.take();
  }

  Status append_batch(const TractogramBatch& batch) override {
    CGL_TRY(check_batch(layout_, batch));
    CGL_TRY(append_positions(batch));
    absolute_offsets_.clear();
    for (std::size_t i = 1; i < batch.offsets.size(); ++i)
      absolute_offsets_.push_back(header_.points + batch.offsets[i]);
    CGL_TRY(container_->append(1, std::as_bytes(std::span(absolute_offsets_))));
    std::size_t array = 2;
    for (const auto& data : batch.point_data) CGL_TRY(container_->append(array++, data));
    for (const auto& data : batch.streamline_data) CGL_TRY(container_->append(array++, data));
    header_.points += batch.point_count();
    header_.streamlines += batch.streamline_count();
    return {};
  }

  Status append_group(const TractogramGroup& group) override {
    CGL_TRY(check_trx_name("group", group.name));
    if (!group_names_.insert(group.name).second) {
      return fail(ErrorKind::invalid_argument, "the group '{}' comes twice", group.name);
    }
    if (!group.streamlines.empty()) {
      largest_of_group_.emplace_back(group.name, *std::max_element(group.streamlines.begin(), group.streamlines.end()));
    }
    CGL_TRY(
        container_->add_file(fmt::format("groups/{}.uint32", group.name), std::as_bytes(std::span(group.streamlines))));
    if (group.fields.size() != group.data.size()) {
      return fail(ErrorKind::invalid_argument, "the group '{}' has {} fields and {} arrays", group.name,
                  group.fields.size(), group.data.size());
    }
    std::set<std::string_view> names;
    for (std::size_t i = 0; i < group.fields.size(); ++i) {
      const DataField& field = group.fields[i];
      CGL_TRY(check_trx_name("field", field.name));
      if (!names.insert(field.name).second || field.columns < 1 ||
          group.data[i].size() != static_cast<std::size_t>(field.columns) * field.type.bytes()) {
        return fail(ErrorKind::invalid_argument, "the field '{}' of the group '{}' comes twice or has a wrong size",
                    field.name, group.name);
      }
      CGL_TRY(container_->add_file(array_path(fmt::format("dpg/{}", group.name), field), group.data[i]));
    }
    return {};
  }

  std::unique_ptr<TrxContainer> container_;
  TrxHeader header_;
  StreamlineParts parts_;
  std::vector<std::uint64_t> absolute_offsets_;
  std::set<std::string> group_names_;
  std::vector<std::pair<std::string, std::uint32_t>> largest_of_group_;
};

Status add_field_names(std::string_view folder, const std::vector<DataField>& fields, std::vector<std::string>& names) {
  std::set<std::string_view> seen;
  for (const DataField& field : fields) {
    CGL_TRY(check_trx_name("field", field.name));
    if (!seen.insert(field.name).second) {
      return fail(ErrorKind::invalid_argument, "the {} field '{}' comes twice", folder, field.name);
    }
    if (field.columns < 1 || !element_type_from_name(field.type.name())) {
      return fail(ErrorKind::invalid_argument, "the {} field '{}' has {} columns of {}", folder, field.name,
                  field.columns, field.type.name());
    }
    names.push_back(array_path(folder, field));
  }
  return {};
}

Result<std::unique_ptr<TractogramWriter>> create(const std::filesystem::path& path, const TractogramLayout& layout,
                                                 const WriteOptions& options) {
  if (!layout.reference) {
    return fail(ErrorKind::invalid_argument, "TRX needs the grid of a reference image, and none is known");
  }
  if (layout.position_type != float16_type && layout.position_type != float32_type &&
      layout.position_type != float64_type) {
    return fail(ErrorKind::invalid_argument, "positions of TRX are float16, float32 or float64, not {}",
                layout.position_type.name());
  }
  for (const std::int64_t size : layout.reference->size) {
    if (size < 1 || size > 0xffff) {
      return fail(ErrorKind::invalid_argument, "TRX holds grids of 1 to 65535 voxels per axis, not {}", size);
    }
  }
  if (!layout.reference->voxel_to_world.is_finite()) {
    return fail(ErrorKind::invalid_argument, "the affine of the reference is not finite");
  }
  std::vector<std::string> names = {fmt::format("positions.3.{}", layout.position_type.name()), "offsets.uint64"};
  CGL_TRY(add_field_names("dpv", layout.point_fields, names));
  CGL_TRY(add_field_names("dps", layout.streamline_fields, names));

  std::unique_ptr<TrxContainer> container;
  if (layout.format == TractogramFormat::trx_folder) {
    if (layout.deflated) {
      return fail(ErrorKind::invalid_argument,
                  "a TRX folder holds its arrays as they are; only an archive is deflated");
    }
    CGL_TRY_ASSIGN(FolderOutput output, FolderOutput::create(path, trx_folder, options));
    auto folder = std::make_unique<FolderContainer>(std::move(output));
    CGL_TRY(folder->begin(names));
    container = std::move(folder);
  } else {
    CGL_TRY_ASSIGN(ZipWriter zip, ZipWriter::create(path, options));
    FileLayer& layer = options.layer != nullptr ? *options.layer : FileLayer::system();
    auto archive = std::make_unique<ZipContainer>(std::move(zip), std::move(names), layer, path.native(),
                                                  std::max<std::size_t>(1, options.buffer_bytes), layout);
    CGL_TRY(archive->begin({.reference = *layout.reference, .streamlines = 0, .points = 0}));
    container = std::move(archive);
  }
  auto writer = std::make_unique<TrxWriter>(path.native(), layout, std::move(container));
  CGL_TRY(writer->begin());
  return writer;
}

}  // namespace

Result<std::unique_ptr<TractogramWriter>> create_trx_writer(const std::filesystem::path& path,
                                                            const TractogramLayout& layout,
                                                            const WriteOptions& options) {
  return catch_out_of_memory([&] { return name_output(create(path, layout, options), path.native()); });
}

}  // namespace cingulum
