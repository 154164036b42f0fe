#include "formats/bids/bids_index.hpp"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <tuple>

#include "base/file_layer.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;

struct FolderEntries {
  std::vector<std::string> files;
  std::vector<std::string> folders;
};

enum class EntryKind { file, folder, other };

// Links are followed; one that leads nowhere, or in a circle, is a file: whoever opens it says why it cannot.
EntryKind kind_of(const fs::path& folder, const dirent& entry) {
  if (entry.d_type == DT_REG) return EntryKind::file;
  if (entry.d_type == DT_DIR) return EntryKind::folder;
  if (entry.d_type != DT_LNK && entry.d_type != DT_UNKNOWN) return EntryKind::other;
  struct stat state {};
  if (::stat((folder / entry.d_name).c_str(), &state) != 0) return EntryKind::file;
  if (S_ISDIR(state.st_mode)) return EntryKind::folder;
  return S_ISREG(state.st_mode) ? EntryKind::file : EntryKind::other;
}

// Sorted names, hidden ones left out.
Result<FolderEntries> list_folder(const fs::path& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::opendir(folder.c_str()), ::closedir);
  if (!listing) {
    return fail_file(folder.native(), ErrorKind::io, "listing {}: {}", folder.native(), system_error_text(errno));
  }
  FolderEntries entries;
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(listing.get());
    if (entry == nullptr) break;
    if (entry->d_name[0] == '.') continue;
    const EntryKind kind = kind_of(folder, *entry);
    if (kind == EntryKind::file) entries.files.emplace_back(entry->d_name);
    if (kind == EntryKind::folder) entries.folders.emplace_back(entry->d_name);
  }
  if (errno != 0) {
    return fail_file(folder.native(), ErrorKind::io, "listing {}: {}", folder.native(), system_error_text(errno));
  }
  std::sort(entries.files.begin(), entries.files.end());
  std::sort(entries.folders.begin(), entries.folders.end());
  return entries;
}

// The files of one level of the dataset that may belong to a series.
struct NamedFile {
  BidsName name;
  fs::path path;
};
using Level = std::vector<NamedFile>;

Level level_of(const fs::path& folder, const std::vector<std::string>& files) {
  Level level;
  for (const std::string& file : files) {
    if (auto name = parse_bids_name(file)) level.push_back({std::move(*name), folder / file});
  }
  return level;
}

std::string both_names(const std::vector<const NamedFile*>& files) {
  return fmt::format("{} and {}", files[0]->path.string(), files[1]->path.string());
}

// What applies to the series at one level: that of its own name alone, where it is there.
std::vector<const NamedFile*> applying_at(const Level& level, const BidsName& series, std::string_view suffix,
                                          std::string_view extension) {
  std::vector<const NamedFile*> found;
  for (const NamedFile& file : level) {
    if (file.name.suffix != suffix || file.name.extension != extension || !applies_to(file.name, series)) continue;
    if (file.name.entities.size() == series.entities.size()) return {&file};
    found.push_back(&file);
  }
  return found;
}

void set_problem(BidsSeries& series, std::string what, fs::path file) {
  if (!series.problem.empty()) return;
  series.problem = std::move(what);
  series.problem_file = std::move(file);
}

// The nearest that applies, from the series' own folder upwards.
void inherit(BidsSeries& series, const std::vector<const Level*>& levels, std::string_view extension, fs::path& path) {
  for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
    const auto found = applying_at(**level, series.name, "dwi", extension);
    if (found.empty()) continue;
    if (found.size() > 1) {
      set_problem(series, fmt::format("two files *{} apply to it: {}", extension, both_names(found)), found[1]->path);
      return;
    }
    path = found.front()->path;
    return;
  }
  set_problem(series, fmt::format("there is no *_dwi{} for it", extension), series.dwi);
}

// A brain mask in the folder of the series: of the same space, and `desc-brain` where derivatives describe theirs.
void find_mask(BidsSeries& series, const Level& level) {
  std::vector<const NamedFile*> found;
  for (const NamedFile& file : level) {
    if (file.name.suffix != "mask" || (file.name.extension != ".nii.gz" && file.name.extension != ".nii")) continue;
    BidsName candidate = file.name;
    const auto description = candidate.label("desc");
    if (description && *description != "brain") continue;
    std::erase_if(candidate.entities, [](const auto& entity) { return entity.first == "desc"; });
    if (candidate.label("space") != series.name.label("space") || !applies_to(candidate, series.name)) continue;
    found.push_back(&file);
  }
  if (found.size() > 1) {
    set_problem(series, fmt::format("two masks apply to it: {}", both_names(found)), found[1]->path);
  } else if (!found.empty()) {
    series.mask = found.front()->path;
  }
}

class Indexer {
 public:
  Indexer(const fs::path& dataset, const BidsSelection& selection) : dataset_(dataset), selection_(selection) {}

  [[nodiscard]] Result<BidsIndex> run() {
    CGL_TRY_ASSIGN(const FolderEntries top, list_folder(dataset_));
    top_ = level_of({}, top.files);
    for (const std::string& folder : top.folders) {
      if (!folder.starts_with("sub-")) continue;
      const std::string label = folder.substr(4);
      if (!wanted(selection_.subjects, label)) continue;
      if (!is_bids_label(label)) {
        problem(folder, folder,
                fmt::format("'{}' is not the name of a subject: a label has letters and digits alone", folder));
        continue;
      }
      index_.subjects.push_back(label);
      subject(label, folder);
    }
    std::sort(index_.series.begin(), index_.series.end(), [](const BidsSeries& a, const BidsSeries& b) {
      return std::tie(a.subject, a.session, a.dwi) < std::tie(b.subject, b.session, b.dwi);
    });
    refuse_same_units();
    return std::move(index_);
  }

 private:
  static bool wanted(const std::vector<std::string>& labels, const std::string& label) {
    return labels.empty() || std::binary_search(labels.begin(), labels.end(), label);
  }

  void problem(std::string unit, fs::path file, std::string what) {
    index_.problems.push_back({std::move(unit), std::move(file), std::move(what)});
  }

  std::optional<FolderEntries> list(const std::string& unit, const fs::path& folder) {
    auto entries = list_folder(dataset_ / folder);
    if (entries) return std::move(*entries);
    problem(unit, folder, entries.error().message());
    return std::nullopt;
  }

  void subject(const std::string& label, const std::string& unit) {
    const auto entries = list(unit, unit);
    if (!entries) return;
    const std::size_t before = index_.series.size() + index_.problems.size();
    const Level level = level_of(unit, entries->files);
    // A link in a circle is listed as a file.
    for (const std::string& file : entries->files) {
      if (file == "dwi") (void)list(unit, fs::path(unit) / file);
    }
    for (const std::string& folder : entries->folders) {
      if (folder == "dwi") series_of(label, "", fs::path(unit) / folder, {&top_, &level});
      if (!folder.starts_with("ses-")) continue;
      const std::string session = folder.substr(4);
      if (!wanted(selection_.sessions, session)) continue;
      if (!is_bids_label(session)) {
        problem(unit, fs::path(unit) / folder,
                fmt::format("'{}' is not the name of a session: a label has letters and digits alone", folder));
        continue;
      }
      const auto below = list(unit, fs::path(unit) / folder);
      if (!below) continue;
      const Level session_level = level_of(fs::path(unit) / folder, below->files);
      if (std::find(below->folders.begin(), below->folders.end(), "dwi") != below->folders.end()) {
        series_of(label, session, fs::path(unit) / folder / "dwi", {&top_, &level, &session_level});
      }
    }
    if (index_.series.size() + index_.problems.size() == before && selection_.sessions.empty()) {
      problem(unit, unit, "it has no diffusion series (dwi/*_dwi.nii.gz)");
    }
  }

  void series_of(const std::string& subject, const std::string& session, const fs::path& folder,
                 std::vector<const Level*> levels) {
    if (session.empty() && !selection_.sessions.empty()) return;
    const auto entries = list(fmt::format("sub-{}", subject), folder);
    if (!entries) return;
    for (const std::string& file : entries->files) {
      const bool image = file.ends_with("_dwi.nii.gz") || file.ends_with("_dwi.nii");
      if (image && !parse_bids_name(file)) {
        problem(
            fmt::format("sub-{}", subject), folder / file,
            fmt::format("'{}' is not a name of BIDS: labels have letters and digits alone, each entity once", file));
      }
    }
    const Level own = level_of(folder, entries->files);
    levels.push_back(&own);
    for (const NamedFile& file : own) {
      if (file.name.suffix != "dwi" || (file.name.extension != ".nii.gz" && file.name.extension != ".nii")) continue;
      BidsSeries series;
      series.subject = subject;
      series.session = session;
      series.name = file.name;
      series.dwi = file.path;
      if (file.name.label("sub") != subject || file.name.label("ses").value_or("") != session) {
        set_problem(series, fmt::format("its name is not of the folder it lies in ({})", folder.string()), file.path);
      }
      inherit(series, levels, ".bval", series.bval);
      inherit(series, levels, ".bvec", series.bvec);
      for (const Level* level : levels) {
        for (const NamedFile* json : applying_at(*level, series.name, "dwi", ".json"))
          series.json.push_back(json->path);
      }
      find_mask(series, own);
      index_.series.push_back(std::move(series));
    }
  }

  // Two files with one output: dwi.nii beside dwi.nii.gz, or two descriptions of one series.
  void refuse_same_units() {
    for (std::size_t i = 1; i < index_.series.size(); ++i) {
      BidsSeries& one = index_.series[i - 1];
      BidsSeries& other = index_.series[i];
      if (one.unit() != other.unit()) continue;
      const std::string what =
          fmt::format("two series are one by their names: {} and {}", one.dwi.string(), other.dwi.string());
      set_problem(one, what, one.dwi);
      set_problem(other, what, other.dwi);
    }
  }

  const fs::path& dataset_;
  const BidsSelection& selection_;
  Level top_;
  BidsIndex index_;
};

}  // namespace

Result<BidsIndex> index_bids(const fs::path& dataset, const BidsSelection& selection) {
  return catch_out_of_memory([&]() -> Result<BidsIndex> {
    BidsSelection sorted = selection;
    std::sort(sorted.subjects.begin(), sorted.subjects.end());
    std::sort(sorted.sessions.begin(), sorted.sessions.end());
    return Indexer(dataset, sorted).run();
  });
}

}  // namespace cingulum
