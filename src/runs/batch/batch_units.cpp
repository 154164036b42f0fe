#include "runs/batch/batch_units.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/read_file.hpp"
#include "runs/track/track_part.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;

std::vector<std::string_view> split_text(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> words;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

// "01 02", "01,02", or the option several times; each once.
Result<std::vector<std::string>> labels_of(const std::vector<std::string>& texts, std::string_view argument,
                                           std::string_view key) {
  std::set<std::string> labels;
  for (const std::string& text : texts) {
    for (const std::string_view word : split_text(text, " ,")) {
      if (word.empty() && text.find_first_not_of(" ,") != std::string::npos) continue;
      CGL_TRY_ASSIGN(std::string label, bids_label_of(word, key, fmt::format("{}", argument_name(argument))));
      labels.insert(std::move(label));
    }
  }
  return std::vector<std::string>(labels.begin(), labels.end());
}

// A row of --list: a subject, and a session or all of them.
struct ListedSubject {
  std::string subject;
  std::string session;
  std::size_t line = 0;
};

struct SubjectList {
  std::vector<ListedSubject> rows;
  std::vector<BatchFailure> failures;
};

Result<SubjectList> read_subject_list(const fs::path& path) {
  CGL_TRY_ASSIGN(const std::string text, read_text_file(path));
  SubjectList list;
  std::ptrdiff_t subject_column = -1, session_column = -1;
  std::set<std::pair<std::string, std::string>> seen;
  const std::string name = path.string();
  const std::vector<std::string_view> lines = split_text(text, "\n");
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string_view line = lines[i];
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::vector<std::string_view> cells = split_text(line, "\t");
    if (i == 0) {
      for (std::size_t column = 0; column < cells.size(); ++column) {
        if (cells[column] == "participant_id") subject_column = static_cast<std::ptrdiff_t>(column);
        if (cells[column] == "session_id") session_column = static_cast<std::ptrdiff_t>(column);
      }
      if (subject_column < 0) {
        return fail(ErrorKind::invalid_argument, "{} {}: its first line names no column participant_id",
                    argument_name("list"), name);
      }
      continue;
    }
    if (line.empty()) continue;
    const auto cell = [&](std::ptrdiff_t column) {
      const bool there = column >= 0 && static_cast<std::size_t>(column) < cells.size();
      return there ? std::string(cells[static_cast<std::size_t>(column)]) : std::string();
    };
    const std::string subject = cell(subject_column), session = cell(session_column);
    const std::string place = fmt::format("line {} of the list", i + 1);
    const auto label = bids_label_of(subject, "sub", place);
    const auto session_label =
        session.empty() || session == "n/a" ? Result<std::string>(std::string()) : bids_label_of(session, "ses", place);
    if (!label || !session_label) {
      list.failures.push_back({subject, name, (label ? session_label : label).error().message()});
      continue;
    }
    if (!seen.emplace(*label, *session_label).second) {
      list.failures.push_back({fmt::format("sub-{}", *label), name, fmt::format("{} lists it a second time", place)});
      continue;
    }
    list.rows.push_back({*label, *session_label, i + 1});
  }
  return list;
}

// Series that the list names; a row that none belongs to is a failure.
void keep_listed(const SubjectList& list, const std::string& name, BidsIndex& index) {
  std::vector<BidsSeries> kept;
  std::set<std::string> known(index.subjects.begin(), index.subjects.end());
  std::multimap<std::string, std::string> wanted;
  for (const ListedSubject& row : list.rows) wanted.emplace(row.subject, row.session);
  for (BidsSeries& series : index.series) {
    const auto [first, last] = wanted.equal_range(series.subject);
    if (std::any_of(first, last, [&](const auto& row) { return row.second.empty() || row.second == series.session; })) {
      kept.push_back(std::move(series));
    }
  }
  index.series = std::move(kept);
  for (const ListedSubject& row : list.rows) {
    const bool found = std::any_of(index.series.begin(), index.series.end(), [&](const BidsSeries& series) {
      return series.subject == row.subject && (row.session.empty() || row.session == series.session);
    });
    const bool said = std::any_of(index.problems.begin(), index.problems.end(),
                                  [&](const BidsProblem& problem) { return problem.unit == "sub-" + row.subject; });
    if (found || said) continue;
    index.problems.push_back(
        {"sub-" + row.subject, name,
         fmt::format("line {} of the list names it{}, and the dataset has no such series", row.line,
                     row.session.empty() ? "" : fmt::format(" with session {}", row.session))});
  }
}

}  // namespace

Result<BatchUnits> find_batch_units(const fs::path& dataset, const BatchChoice& choice) {
  BidsSelection selection;
  CGL_TRY_ASSIGN(selection.subjects, labels_of(choice.participants, "participant_label", "sub"));
  CGL_TRY_ASSIGN(selection.sessions, labels_of(choice.sessions, "session_label", "ses"));
  const std::vector<std::string> asked = selection.subjects;
  SubjectList list;
  std::string list_name;
  if (!choice.list.empty()) {
    if (!choice.participants.empty()) {
      return fail(ErrorKind::invalid_argument, "{} and {} both name the subjects; give one", argument_name("list"),
                  argument_name("participant_label"));
    }
    list_name = choice.list.string();
    CGL_TRY_ASSIGN(list, read_subject_list(list_name));
    for (const ListedSubject& row : list.rows) selection.subjects.push_back(row.subject);
    std::sort(selection.subjects.begin(), selection.subjects.end());
    selection.subjects.erase(std::unique(selection.subjects.begin(), selection.subjects.end()),
                             selection.subjects.end());
    if (selection.subjects.empty()) selection.subjects.emplace_back();  // none, not all
  }
  CGL_TRY_ASSIGN(BidsIndex index, index_bids(dataset, selection));
  if (!choice.list.empty()) keep_listed(list, list_name, index);
  for (const std::string& label : asked) {
    if (std::binary_search(index.subjects.begin(), index.subjects.end(), label)) continue;
    index.problems.push_back({"sub-" + label, "sub-" + label, "the dataset has no such subject"});
  }

  // One order for everything, so that shards divide failures, too.
  struct Entry {
    std::string unit;
    BidsSeries* series = nullptr;
    BatchFailure failure;
  };
  std::vector<Entry> entries;
  for (BidsSeries& series : index.series) {
    if (series.problem.empty()) {
      entries.push_back({series.unit(), &series, {}});
    } else {
      entries.push_back({series.unit(), nullptr, {series.unit(), series.problem_file.string(), series.problem}});
    }
  }
  for (const BidsProblem& problem : index.problems) {
    entries.push_back({problem.unit, nullptr, {problem.unit, problem.file.string(), problem.what}});
  }
  for (const BatchFailure& failure : list.failures) entries.push_back({failure.unit, nullptr, failure});
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.unit < b.unit; });

  SeedRange range{0, entries.size()};
  if (!choice.shard.empty()) {
    CGL_TRY_ASSIGN(range, range_of_share("shard", choice.shard, entries.size()));
  }
  BatchUnits units;
  for (std::size_t i = range.first; i < range.first + range.count; ++i) {
    if (entries[i].series != nullptr) {
      units.series.push_back(std::move(*entries[i].series));
    } else {
      units.failures.push_back(std::move(entries[i].failure));
    }
  }
  if (entries.empty()) {
    return fail(ErrorKind::invalid_argument,
                "{}: there is no diffusion series (sub-*/dwi/*_dwi.nii.gz) that was asked for", dataset.string());
  }
  return units;
}

}  // namespace cingulum
