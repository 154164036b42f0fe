#include "formats/output_sidecar.hpp"

#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/json_text.hpp"
#include "base/json_view.hpp"
#include "base/read_file.hpp"
#include "formats/bids/bids_sidecar.hpp"
#include "formats/sidecar.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;

FileLayer& layer_of(const WriteOptions& options) {
  return options.layer != nullptr ? *options.layer : FileLayer::system();
}

// The options for a small file beside the output.
WriteOptions options_beside(WriteOptions options) {
  const WriteOptions defaults;
  options.expected_bytes = defaults.expected_bytes;
  options.buffer_bytes = 1;  // the text is in memory already
  options.companion = nullptr;
  return options;
}

bool names_a_hash(const nlohmann::ordered_json& json) {
  return JsonView(json)["xxh3_128"].text() != nullptr;
}

bool is_there(const fs::path& file) {
  std::error_code ignored;
  return fs::exists(file, ignored);
}

// What the sidecar `old` says of the file that is there; where it says nothing, the file is looked at.
Result<nlohmann::ordered_json> facts_of_replaced(const fs::path& file, const nlohmann::ordered_json& old,
                                                 const CancelToken& cancel) {
  if (!is_there(file)) return nlohmann::ordered_json(nullptr);
  if (names_a_hash(old)) return settle_sidecar(old, file);
  CGL_TRY_ASSIGN(const FileDigest digest, digest_of_file(file, cancel));
  nlohmann::ordered_json facts = nlohmann::ordered_json::object();
  set_digest(facts, file, digest);
  return facts;
}

std::string pending_text(nlohmann::ordered_json json, nlohmann::ordered_json replaced, const fs::path& file) {
  json["pending"] = {{"replaces", std::move(replaced)}};
  return json_text(sidecar_as_written(std::move(json), file));
}

}  // namespace

OutputSidecar::OutputSidecar(fs::path file, const WriteOptions& options)
    : file_(std::move(file)), path_(sidecar_path(file_)), options_(options_beside(options)) {}

Result<std::optional<OutputSidecar::Old>> OutputSidecar::read_old(const fs::path& file, FileLayer& layer) {
  const fs::path path = sidecar_path(file);
  FileState state;
  const int error = -uninterrupted([&] { return layer.state(path.c_str(), state); });
  if (error != 0) {
    return fail_file(path.native(), ErrorKind::io, "writing {}: looking at its sidecar {}: {}", file.native(),
                     path.native(), system_error_text(error));
  }
  if (state.kind == FileKind::absent) return std::optional<Old>();
  Old old;
  if (state.kind != FileKind::regular && state.kind != FileKind::link) return std::optional<Old>(std::move(old));
  CGL_TRY_ASSIGN(old.text, add_file_context(read_text_file(path), "writing", file.native()));
  if (auto json = parse_json(old.text)) {
    const nlohmann::ordered_json said = sidecar_as_read(std::move(*json));
    old.names_a_hash = names_a_hash(said);
    old.replaceable = old.names_a_hash && is_pending_sidecar(said) && !is_there(file);
  }
  return std::optional<Old>(std::move(old));
}

Status check_sidecar_output(const fs::path& file, const WriteOptions& options) {
  return catch_out_of_memory([&]() -> Status {
    WriteOptions beside = options_beside(options);
    const auto old = OutputSidecar::read_old(file, layer_of(options));
    if (old && *old && (*old)->replaceable) beside.force = true;
    return check_output(sidecar_path(file), beside);
  });
}

Status OutputSidecar::write_pending(const fs::path& partial) {
  auto taken = digest_.valid() ? digest_.get() : digest_of_file(partial, options_.cancel);
  CGL_TRY_ASSIGN(const FileDigest digest, add_file_context(std::move(taken), "writing", file_.native()));
  nlohmann::ordered_json json = content_ ? content_() : nlohmann::ordered_json::object();
  if (!json.is_object()) json = nlohmann::ordered_json::object();
  set_digest(json, file_, digest);
  nlohmann::ordered_json old_json;
  if (old_ && old_->names_a_hash) {
    CGL_TRY_ASSIGN(auto whole, parse_json(old_->text));
    old_json = sidecar_as_read(std::move(whole));
  }
  CGL_TRY_ASSIGN(const nlohmann::ordered_json replaced, facts_of_replaced(file_, old_json, options_.cancel));
  std::string text = pending_text(json, replaced, file_);
  // What others made of an old sidecar may be deeper or larger than what is read within another.
  if (replaced.is_object() && !parse_json(text)) text = pending_text(json, {{"xxh3_128", replaced["xxh3_128"]}}, file_);
  if (old_ && old_->replaceable && !options_.force) {
    // Whoever writes the same output at this moment has written it anew before we can: then we are refused below.
    (void)uninterrupted([&] { return layer_of(options_).unlink(path_.c_str()); });
  }
  pending_ = std::move(text);
  CGL_TRY(write_file_atomically(path_, pending_, options_));
  if (!content_) return {};
  // Written now, so that a full disk is met while the old file is still there; and after the pending one, which it is
  // to replace.
  WriteOptions replacing = options_;
  replacing.force = true;
  CGL_TRY_ASSIGN(final_, AtomicFile::create(path_, replacing));
  return final_->append(json_text(sidecar_as_written(std::move(json), file_)));
}

void OutputSidecar::begin(const fs::path& partial) {
  if (!content_) return;
  // By a thread; where none can be had, when the digest is asked for.
  digest_ = std::async(std::launch::async | std::launch::deferred,
                       [partial, cancel = options_.cancel] { return digest_of_file(partial, cancel); });
}

Status OutputSidecar::before_rename(const fs::path& partial) {
  return catch_out_of_memory([&]() -> Status {
    pending_.clear();
    CGL_TRY_ASSIGN(old_, read_old(file_, layer_of(options_)));
    if (!content_ && !(old_ && old_->names_a_hash)) return {};
    if (old_ && !old_->replaceable && !options_.force) {
      return fail_file(path_.native(), ErrorKind::already_exists, "writing {}: it exists; use {} to replace it",
                       path_.native(), argument_name("force"));
    }
    Status status = catch_out_of_memory([&] { return write_pending(partial); });
    if (!status) take_back();
    return status;
  });
}

Status OutputSidecar::remove() {
  const int error = -uninterrupted([&] { return layer_of(options_).unlink(path_.c_str()); });
  if (error != 0 && error != ENOENT) {
    return fail_file(path_.native(), ErrorKind::io, "removing {}: {}", path_.native(), system_error_text(error));
  }
  // When this is not on the disk at a power failure, the pending sidecar comes back, and it fits.
  fs::path folder = path_.parent_path();
  if (folder.empty()) folder = ".";
  if (options_.sync) (void)uninterrupted([&] { return layer_of(options_).sync_folder(folder.c_str()); });
  return {};
}

Status OutputSidecar::after_rename() {
  return catch_out_of_memory([&]() -> Status {
    if (pending_.empty()) return {};
    pending_.clear();
    const Status status = final_ ? final_->commit() : remove();
    final_.reset();
    if (status) return {};
    return fail_file(path_.native(), status.error().kind(),
                     "writing {}: the file is complete, but its sidecar is not finished, though it fits: {}",
                     file_.native(), status.error());
  });
}

void OutputSidecar::take_back() noexcept {
  final_.reset();
  const std::string ours = std::exchange(pending_, {});
  // What cannot be brought back is no loss to the old file: the pending sidecar fits it.
  (void)catch_out_of_memory([&]() -> Status {
    if (ours.empty()) return {};
    CGL_TRY_ASSIGN(const std::string now, read_text_file(path_));
    if (now != ours) return {};  // it was never written, or is another program's
    if (!old_ || old_->replaceable) return remove();
    WriteOptions options = options_;
    options.force = true;
    return write_file_atomically(path_, old_->text, options);
  });
}

WriteOptions with_sidecar(WriteOptions options, std::shared_ptr<OutputSidecar> sidecar) {
  options.companion = std::move(sidecar);
  return options;
}

WriteOptions without_sidecar(const fs::path& file, WriteOptions options) {
  if (!options.companion) options.companion = std::make_shared<OutputSidecar>(file, options);
  return options;
}

}  // namespace cingulum
